"""The figures of a run, counted in memory: counters, histograms, and gauges that are read when asked for.

Knows no exporter: `exposition` shows what is here. The figures of other processes come as what they counted since
they last told (`take`), and are added (`merge`), so that one tally stands for the whole run. Promises: label values are
bounded; counters only grow; adding costs one lock and one look-up.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from DocsToKG.ContentDownload.telemetry import metrics
from DocsToKG.ContentDownload.telemetry.metrics import METRICS, Metric, Reading

OTHER = "other"
NONE = "none"

_LONGEST = 80
_UNPRINTABLE = re.compile(r"[^\x21-\x7e\u00a1-\ud7ff\ue000-\ufffd]")
_MOST = 64
# Reasons and statuses are words of ours, of which there are more than sources and tiers.
_OWN: Mapping[str, int] = {"reason": 128, "status": 128}
_MOST_SERIES = 2_000  # of one metric; a histogram has one for each bucket besides
_BY_NAME: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}

Values = tuple[str, ...]
Counts = dict[str, Any]


class LabelBounds:
    """The values in use, label by label. `on_fold` is told the label of each value that became `other`."""

    def __init__(self, *, most_hosts: int = 100, on_fold: Callable[[str], None] = lambda label: None) -> None:
        self._most = {**_OWN, "host": most_hosts}
        self._on_fold = on_fold
        self._known: dict[str, dict[str, str]] = {}
        self._lock = threading.Lock()

    def value(self, label: str, value: str) -> str:
        """The value to count under."""
        known = self._known.get(label)
        found = known.get(value) if known is not None else None
        return found if found is not None else self._take_in(label, value)

    def _take_in(self, label: str, value: str) -> str:
        if value == OTHER:
            return OTHER
        clean = _UNPRINTABLE.sub("?", str(value)[:_LONGEST]) or NONE
        with self._lock:
            known = self._known.setdefault(label, {})
            if clean in known or len(known) < self._most.get(label, _MOST):
                known[clean] = clean
                return clean
        self._on_fold(label)
        return OTHER


class Tally:
    """Takes figures from any thread."""

    def __init__(self, *, most_hosts: int = 100) -> None:
        self._bounds = LabelBounds(most_hosts=most_hosts, on_fold=self._folded)
        self._lock = threading.Lock()
        self._counters: dict[str, dict[Values, float]] = {}
        self._histograms: dict[str, dict[Values, list[float]]] = {}  # a count for each bucket, then the sum
        self._readers: dict[str, Callable[[], Iterable[Reading]]] = {}
        self.observe(metrics.CACHE_HIT, self._cache_hit_ratio)
        self.observe(metrics.YIELD, self._yields)

    def add(self, metric: Metric, amount: int = 1, **labels: str) -> None:
        self._add(metric, self._values(metric, labels), amount)

    def record(self, metric: Metric, value: float, **labels: str) -> None:
        counts = [0.0] * (len(metric.buckets) + 2)
        counts[bisect_left(metric.buckets, value)] = 1
        counts[-1] = value
        self._spread(metric, self._values(metric, labels), counts)

    def observe(self, metric: Metric, read: Callable[[], Iterable[Reading]]) -> None:
        self._readers[metric.name] = read

    def total(self, metric: Metric, **labels: str) -> float:
        """A counter's sum over all series with these labels."""
        wanted = [(metric.labels.index(label), value) for label, value in labels.items()]
        with self._lock:
            series = list(self._counters.get(metric.name, {}).items())
        return sum(n for values, n in series if all(values[at] == value for at, value in wanted))

    def counters(self, metric: Metric) -> dict[Values, float]:
        """Each series of a counter; some are there from the start."""
        with self._lock:
            return {**dict.fromkeys(metric.first_series, 0.0), **self._counters.get(metric.name, {})}

    def histograms(self, metric: Metric) -> dict[Values, list[float]]:
        with self._lock:
            series = {values: list(counts) for values, counts in self._histograms.get(metric.name, {}).items()}
        return {**{values: [0.0] * (len(metric.buckets) + 2) for values in metric.first_series}, **series}

    def gauges(self, metric: Metric) -> dict[Values, float]:
        """What the gauge reads now; nothing when nobody can say."""
        reader = self._readers.get(metric.name)
        readings = list(reader()) if reader is not None else []
        return {self._values(metric, labels): value for value, labels in readings}

    def readings(self, metric: Metric) -> list[Reading]:
        return [(value, dict(zip(metric.labels, labels, strict=True))) for labels, value in self.gauges(metric).items()]

    def take(self) -> Counts:
        """What was counted since this was last asked, ready for JSON; empty when nothing was."""
        with self._lock:
            counters, self._counters = self._counters, {}
            histograms, self._histograms = self._histograms, {}
        told = {
            "counters": [[name, values, n] for name, series in counters.items() for values, n in series.items()],
            "histograms": [[name, values, c] for name, series in histograms.items() for values, c in series.items()],
        }
        return {kind: rows for kind, rows in told.items() if rows}

    def merge(self, counts: Counts) -> None:
        """Add what another process has taken from its tally."""
        for name, values, amount in counts.get("counters", ()):
            metric = _BY_NAME[name]
            self._add(metric, self._values(metric, dict(zip(metric.labels, values, strict=True))), amount)
        for name, values, spread in counts.get("histograms", ()):
            metric = _BY_NAME[name]
            self._spread(metric, self._values(metric, dict(zip(metric.labels, values, strict=True))), spread)

    def _values(self, metric: Metric, labels: Mapping[str, str]) -> Values:
        return tuple(self._bounds.value(label, labels.get(label) or NONE) for label in metric.labels)

    def _add(self, metric: Metric, values: Values, amount: float) -> None:
        with self._lock:
            series = self._counters.setdefault(metric.name, {})
            key = _room(series, values)
            series[key] = series.get(key, 0.0) + amount

    def _spread(self, metric: Metric, values: Values, counts: list[float]) -> None:
        with self._lock:
            series = self._histograms.setdefault(metric.name, {})
            key = _room(series, values)
            so_far = series.get(key)
            series[key] = counts if so_far is None else [a + b for a, b in zip(so_far, counts, strict=True)]

    def _folded(self, label: str) -> None:
        self._add(metrics.LABELS_FOLDED, (label,), 1)

    def _cache_hit_ratio(self) -> Iterator[Reading]:
        """As in the summary of a run: what the cache gave or confirmed, of all answers to GET."""
        count = {
            status: self.total(metrics.ATTEMPTS, status=status) for status in ("cache-hit", "http-304", "http-get")
        }
        hits = count["cache-hit"] + count["http-304"]
        yield (hits / max(count["http-get"], hits) if hits else 0.0), {}

    def _yields(self) -> Iterator[Reading]:
        ended = self.counters(metrics.TIERS_ENDED)
        whole = sum(ended.values())
        for (tier,), n in ended.items():
            if tier != NONE:
                yield n / whole, {"tier": tier}


def _room(series: Mapping[Values, Any], values: Values) -> Values:
    """The series to count under: where there are too many already, the one that stands for all others."""
    return values if values in series or len(series) < _MOST_SERIES else (OTHER,) * len(values)
