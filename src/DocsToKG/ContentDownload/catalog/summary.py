"""A run in figures, or a whole record.

Knows the tables of the record and what each figure means; `counts` does the counting, `gates` the judging. Reads only.
Promises: a work counts once, as obtained when any of its lines says so; a ratio with nothing to divide by is None.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from typing import Any

from DocsToKG.ContentDownload.catalog import aggregates, counts
from DocsToKG.ContentDownload.catalog.aggregates import Tally
from DocsToKG.ContentDownload.catalog.connection import Db
from DocsToKG.ContentDownload.catalog.counts import Scope, word
from DocsToKG.ContentDownload.catalog.duplicates import STANDS
from DocsToKG.ContentDownload.catalog.rollups import Pieces, count_all, count_among
from DocsToKG.ContentDownload.catalog.selection import host_of
from DocsToKG.ContentDownload.catalog.slo import Gate, gates
from DocsToKG.ContentDownload.catalog.sources import (
    SourceFigures,
    count_files,
    failing_sources,
    skipped_sources,
    source_figures,
)

__all__ = ["HELD_REASONS", "Figures", "Gate", "figures", "gates", "percentile"]

# Skips of these reasons mean that the file was there already; every other skip is a work not obtained.
HELD_REASONS = ("already-present", "not-modified")
FIRST_TIER = "direct_oa"
TIME_STEPS_S = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 60.0)

_TIMES = """
SELECT run_id, started_at, finished_at,
       (SELECT created_at FROM manifests m WHERE m.run_id = s.run_id ORDER BY id DESC LIMIT 1), catalog_write_p95_ms,
       artifacts_total, artifacts_success
  FROM run_summary s WHERE (:run_id IS NULL OR run_id = :run_id)
   AND (:since IS NULL OR COALESCE(finished_at, '9') >= :since) ORDER BY started_at
"""
_CORRUPT = f"""SELECT COUNT(DISTINCT sha256) FROM downloads
  WHERE corrupt <> 0 AND (:run_id IS NULL OR run_id = :run_id) AND {STANDS}"""
_MOST_RUNS = 50
# With these a host says that it will not give the file to us, or that it has none.
_BARRED = frozenset(
    {"robots", "challenge", "cookie-wall", "login-wall", "paywall", "interstitial", "router", "http-status",
     "html-instead-of-pdf", "no_open_copy", "unknown-identifier", "security-policy", "bad-url",
     "closed", "open-but-blocked", "gone", "embargo"}
)  # fmt: skip


@dataclass(slots=True)
class Figures:
    """What a run, or a whole record, comes to. Ratios are None when there is nothing to divide by."""

    run_id: str | None = None
    since: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    duration_s: float | None = None
    attempted: int = 0
    obtained: int = 0
    skipped: int = 0  # already present
    failed: int = 0
    skipped_robots: int = 0  # attempted, and forbidden by robots.txt
    left_out: int = 0  # by the user's own filters: neither attempted nor failed
    taken_down: int = 0
    yield_ratio: float | None = None  # of the works attempted
    open_works: int = 0  # obtained, or an index calls them open or names a copy
    yield_of_open: float | None = None
    reachable_works: int = 0  # of the open ones, less those that every host bars, hides behind a wall or has no more
    yield_of_reachable: float | None = None
    bytes: int = 0
    timed_files: int = 0
    ttfp_p50_s: float | None = None
    ttfp_p95_s: float | None = None
    ttfp_steps: list[int] = field(default_factory=list)  # files below each of TIME_STEPS_S, and the rest
    waited_p50_s: float | None = None
    waited_p95_s: float | None = None
    work_p50_s: float | None = None  # from beginning to end, waits included
    work_p95_s: float | None = None
    answer_p50_ms: int | None = None  # of a host, from the request to the head of its answer
    answer_p95_ms: int | None = None
    rate_delay_p95_ms: int | None = None
    waits: int = 0
    waits_s: float = 0.0
    waits_by_rule: dict[str, dict[str, float]] = field(default_factory=dict)
    requests: int = 0
    http_429: int = 0
    ratio_429: float | None = None
    retry_after: int = 0  # answers that said when to come back
    retry_after_broken: int = 0  # requests that went out before that moment
    cache_hits: int = 0  # those that a host confirmed among them
    revalidated: int = 0
    cache_hit_ratio: float | None = None
    rerun_id: str | None = None  # the latest run that obtained works again
    rerun_works: int = 0
    rerun_cache_hit_ratio: float | None = None  # of all answers, those of indexes among them
    rerun_cache_hit_ratio_files: float | None = None  # of the answers to requests for files
    breaker_opens: int = 0
    duplicates: int = 0
    dedupe_saved_bytes: int = 0
    corruption: int = 0
    catalog_write_p95_ms: float | None = None
    works_per_hour: float | None = None
    processes: int = 0
    first_tier_share: float | None = None
    failed_by_reason: dict[str, int] = field(default_factory=dict)
    failed_by_cause: dict[str, int] = field(default_factory=dict)  # what stood in the way, where that is known
    by_resolver: dict[str, int] = field(default_factory=dict)
    by_tier: dict[str, int] = field(default_factory=dict)
    by_license: dict[str, int] = field(default_factory=dict)
    by_year: dict[str, int] = field(default_factory=dict)
    attempted_by_year: dict[str, int] = field(default_factory=dict)
    by_evidence: dict[str, int] = field(default_factory=dict)
    guessed: int = 0  # obtained from an address that a rule built and no source named
    unproved: int = 0  # files in which nothing shows that they are the paper
    damaged: int = 0  # files kept on request though some of their streams do not decode
    delivered: list[dict[str, Any]] = field(default_factory=list)  # files by source, tier and evidence
    sources: dict[str, SourceFigures] = field(default_factory=dict)
    failing: dict[str, str] = field(default_factory=dict)  # sources in trouble, with what to look at
    skipped_sources: dict[str, str] = field(default_factory=dict)  # never asked, for lack of a key or an address
    by_host: dict[str, dict[str, Any]] = field(default_factory=dict)  # exchanges
    files_by_host: dict[str, int] = field(default_factory=dict)  # where the obtained files came from
    runs: list[dict[str, Any]] = field(default_factory=list)  # the latest ones
    progress: list[tuple[str, int]] = field(default_factory=list)  # when how many works had ended

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def figures(
    db: Db,
    run_id: str | None = None,
    *,
    since: str | None = None,
    another: Callable[[], Db] | None = None,
) -> Figures:
    """The figures of one run, or of everything in the record when `run_id` is None; `since` leaves out earlier lines.

    With `another` connection to the same record, works and exchanges are counted side by side.
    """
    scope, result = Scope(run_id, since), Figures(run_id=run_id, since=since)
    with counts.read_transaction(db):
        lines = Pieces(db, aggregates.WORKS, scope)
        with lines.with_help(another, first=partial(_count_events, result=result, scope=scope)) as counted:
            undecided = _undecided(db, scope)
            works = counted(db)
        works = _deciding(works, undecided)
        _fill_files(result, works)
        _fill_misses(result, works)
        _fill_yields(result)
        _count_rerun(db, result, scope)
        _place_sources(result, works)
        _measure_time(db, result, scope)
        result.progress = counts.progress(db, scope)
    return result


def _undecided(db: Db, scope: Scope) -> Tally:
    """What is counted of the lines that do not decide about their work, and of works whose own bytes came back."""
    counts.find_superseded(db, scope)
    tally = count_among(db, aggregates.WORKS, "temp.superseded")
    shared, shared_bytes = counts.shared_again(db)
    aggregates.add(tally, {"sums": Counter(shared=shared, shared_bytes=shared_bytes)})
    return tally


def _deciding(lines: Tally, undecided: Tally) -> Tally:
    aggregates.add(lines, undecided, times=-1)
    return defaultdict(Counter, {name: +counted for name, counted in lines.items()})


def percentile(ordered: Sequence[float], share: float) -> float | None:
    """The nearest-rank percentile of values in rising order."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _fill_misses(result: Figures, works: Tally) -> None:
    """What became of the other works; the yields are for whoever knows both."""
    states: Counter[str] = Counter()
    years: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    causes: Counter[str] = Counter()
    for (state, cause, reason, year, is_open, for_a_while), count in works["misses"].items():
        states[state] += count
        if state in ("failed", "robots"):
            years[word(year)] += count
            result.open_works += count if is_open or state == "robots" else 0
            is_near = is_open and (for_a_while or cause not in _BARRED)
            result.reachable_works += count if is_near and state == "failed" else 0
        if state == "failed":
            reasons[word(reason)] += count
            causes[word(cause)] += count
    result.failed, result.skipped_robots = states["failed"], states["robots"]
    result.skipped, result.left_out, result.taken_down = states["present"], states["left-out"], states["taken-down"]
    result.attempted_by_year = dict(years)
    result.failed_by_reason, result.failed_by_cause = _most_first(reasons), _most_first(causes)


def _fill_files(result: Figures, works: Tally) -> None:
    sums, kinds = works["sums"], works["kinds"]
    result.obtained, result.bytes = sums["files"], sums["bytes"]
    result.guessed = sum(count for kind, count in kinds.items() if kind[-1] == "1")
    result.unproved, result.damaged = sums["unproved"], sums["damaged"]
    result.duplicates, result.dedupe_saved_bytes = sums["shared"], sums["shared_bytes"]
    result.by_year = dict(sorted(_words(works["years"]).items()))
    result.by_license = _most_first(_words(works["licences"]))
    result.files_by_host = _most_first(_words(works["sites"], host_of))
    for place, name in enumerate(("by_resolver", "by_tier", "by_evidence")):
        counter: Counter[str] = Counter()
        for kind, count in kinds.items():
            counter[word(kind[place])] += count
        setattr(result, name, _most_first(counter))
    result.first_tier_share = _ratio(result.by_tier.get(FIRST_TIER, 0), result.obtained)
    ttfp, waited, work = (counts.Distribution(works[name]) for name in ("ttfp_ms", "waited_ms", "work_ms"))
    result.timed_files = len(ttfp)
    result.ttfp_p50_s, result.ttfp_p95_s = _seconds(ttfp.percentile(0.5)), _seconds(ttfp.percentile(0.95))
    result.ttfp_steps = ttfp.steps(tuple(round(edge * 1000) for edge in TIME_STEPS_S))
    result.waited_p50_s, result.waited_p95_s = _seconds(waited.percentile(0.5)), _seconds(waited.percentile(0.95))
    result.work_p50_s, result.work_p95_s = _seconds(work.percentile(0.5)), _seconds(work.percentile(0.95))


def _fill_yields(result: Figures) -> None:
    """Both kinds of works are counted; here they come together."""
    result.attempted = result.obtained + result.failed + result.skipped_robots
    result.attempted_by_year = dict(sorted((Counter(result.attempted_by_year) + Counter(result.by_year)).items()))
    result.open_works += result.obtained
    result.reachable_works += result.obtained
    result.yield_ratio = _ratio(result.obtained, result.attempted)
    result.yield_of_open = _ratio(result.obtained, result.open_works)
    result.yield_of_reachable = _ratio(result.obtained, result.reachable_works)


def _count_events(db: Db, result: Figures, scope: Scope) -> None:
    result.sources = source_figures(db, scope)
    _count_exchanges(db, result, scope)
    _count_waits(db, result, scope)
    result.corruption = int(db.execute(_CORRUPT, scope.values).fetchone()[0])


def _count_exchanges(db: Db, result: Figures, scope: Scope) -> None:
    seen = count_all(db, aggregates.EXCHANGES, scope)
    hosts: dict[str, _HostSums] = {}
    for (host, status, too_many), count in seen["seen"].items():
        sums = hosts.setdefault(word(host), _HostSums())
        sums.requests += count * ((status in counts.SENT) - (status == "cache-hit"))
        sums.http_429 += count if too_many and status in counts.SENT else 0
        sums.cache_hits += count if status == "cache-hit" else 0
        sums.revalidated += count if status == "http-304" else 0
        sums.answers += count if status == "http-get" else 0
    for host, size in seen["bytes"].items():
        hosts[word(host)].bytes += size
    _fill_exchanges(result, hosts)
    answered, told = counts.Distribution(seen["answered_ms"]), _words(+seen["told"])
    result.answer_p50_ms, result.answer_p95_ms = answered.percentile(0.5), answered.percentile(0.95)
    result.retry_after, result.retry_after_broken = told.total(), counts.broken_pauses(db, scope, list(told))


@dataclass(slots=True)
class _HostSums:
    requests: int = 0
    http_429: int = 0
    cache_hits: int = 0
    revalidated: int = 0
    answers: int = 0
    bytes: int = 0


def _fill_exchanges(result: Figures, hosts: dict[str, _HostSums]) -> None:
    for host, sums in sorted(hosts.items(), key=lambda one: (-one[1].requests, one[0])):
        hits = sums.cache_hits + sums.revalidated
        seen = {"requests": sums.requests, "http_429": sums.http_429, "bytes": sums.bytes}
        result.by_host[host] = {**seen, "cache_hits": hits, "waited_s": 0.0}
    result.requests = sum(sums.requests for sums in hosts.values())
    result.http_429 = sum(sums.http_429 for sums in hosts.values())
    result.revalidated = sum(sums.revalidated for sums in hosts.values())
    result.cache_hits = sum(sums.cache_hits for sums in hosts.values()) + result.revalidated
    result.ratio_429 = _ratio(result.http_429, result.requests)
    hits, answers = result.cache_hits, sum(sums.answers for sums in hosts.values())
    # A record that was cut off can hold a line of the cache without the one it belongs to.
    result.cache_hit_ratio = _ratio(hits, max(hits, answers))


def _count_waits(db: Db, result: Figures, scope: Scope) -> None:
    waits = count_all(db, aggregates.WAITS, scope)
    result.rate_delay_p95_ms = counts.Distribution(waits["delay_ms"]).percentile(0.95)
    rules: dict[str, dict[str, float]] = {}
    for (key, why), count in waits["waits"].items():
        delay_ms = waits["ms"][(key, why)]
        rule = rules.setdefault(word(why), {"waits": 0, "seconds": 0.0})
        rule["waits"] += count
        rule["seconds"] += delay_ms  # divided at the end: the order of the rows must not show
        host = result.by_host.get(str(key).removeprefix("host:"))
        if host is not None:
            host["waited_s"] = round(host["waited_s"] + delay_ms / 1000, 3)
    for rule in rules.values():
        rule["seconds"] /= 1000
    result.waits_by_rule = dict(sorted(rules.items(), key=lambda one: (-one[1]["seconds"], one[0])))
    result.waits, result.waits_s = (
        sum(int(r["waits"]) for r in rules.values()),
        round(sum(r["seconds"] for r in rules.values()), 3),
    )
    # A failure that opened the breakers of a host and of its source is two lines of the record and one opening here.
    alone = f"COALESCE(reason, '') NOT LIKE '%; together with %' AND {scope.where('ts')}"
    opened = f"SELECT COUNT(*) FROM breaker_transitions WHERE new_state = 'open' AND {alone}"
    result.breaker_opens = int(db.execute(opened, scope.values).fetchone()[0])


def _count_rerun(db: Db, result: Figures, scope: Scope) -> None:
    """How much of the latest run that obtained works again came from the cache."""
    found = counts.rerun(db, scope)
    if found is None:
        return
    result.rerun_id, result.rerun_works = found
    hits, answers, file_hits, file_answers = db.execute(
        """SELECT COALESCE(SUM(hit), 0), COALESCE(SUM(answer), 0), COALESCE(SUM(hit * file), 0),
                  COALESCE(SUM(answer * file), 0)
             FROM (SELECT CASE WHEN role = 'artifact' THEN 1 ELSE 0 END AS file,
                          CASE WHEN status IN ('cache-hit', 'http-304') THEN 1 ELSE 0 END AS hit,
                          CASE WHEN status = 'http-get' THEN 1 ELSE 0 END AS answer
                     FROM http_events WHERE run_id = ?) asked""",
        (result.rerun_id,),
    ).fetchone()
    result.rerun_cache_hit_ratio = _ratio(hits, max(hits, answers))
    result.rerun_cache_hit_ratio_files = _ratio(file_hits, max(file_hits, file_answers))


def _place_sources(result: Figures, works: Tally) -> None:
    found = result.sources
    delivered: Counter[tuple[str, str, str, bool]] = Counter()
    for (source, tier, why, guess), count in works["kinds"].items():
        delivered[(word(source), word(tier), word(why), guess == "1")] += count
    count_files(found, delivered)
    result.sources = dict(sorted(found.items(), key=lambda item: (-item[1].files, -item[1].asked, item[0])))
    result.failing, result.skipped_sources = failing_sources(found), skipped_sources(found)
    names = ("source", "tier", "evidence", "is_guess")
    result.delivered = [
        {**dict(zip(names, kind, strict=True)), "files": count, "share": _ratio(count, result.obtained)}
        for kind, count in sorted(delivered.items(), key=lambda one: (-one[1], one[0]))
    ]


def _measure_time(db: Db, result: Figures, scope: Scope) -> None:
    """The time the runs took, pauses between them left out; a run that was cut off ends with its last line."""
    seconds = 0.0
    for run_id, started_at, finished_at, last_line_at, write_ms, total, obtained in db.execute(_TIMES, scope.values):
        result.started_at = result.started_at or started_at
        result.finished_at, result.catalog_write_p95_ms = finished_at, write_ms
        begun = max(started_at, scope.since) if scope.since else started_at
        took = max(0.0, _seconds_between(begun, finished_at or last_line_at or begun))
        seconds += took
        result.runs.append(
            {"run_id": run_id, "started_at": started_at, "seconds": took, "works": total, "obtained": obtained}
        )
    result.runs = result.runs[-_MOST_RUNS:]
    result.duration_s = round(seconds, 3) if result.started_at else None
    result.works_per_hour = round(result.attempted / seconds * 3600, 1) if seconds > 0 and result.attempted else None
    latest = f"SELECT worker_id FROM manifests WHERE {scope.where('created_at')} ORDER BY id DESC LIMIT 5000"
    result.processes = int(
        db.execute(f"SELECT COUNT(DISTINCT worker_id) FROM ({latest}) l", scope.values).fetchone()[0]
    )


def _words(counter: Counter[Any], of: Callable[[str], str] = str) -> Counter[str]:
    """What was counted as it came, in words: each value is read once."""
    words: Counter[str] = Counter()
    for value, count in counter.items():
        words[word(value) if value is None else of(value)] += count
    return words


def _most_first(counter: Counter[str]) -> dict[str, int]:
    ordered = sorted(counter.items(), key=lambda one: (-one[1], one[0]))
    return {word: count for word, count in ordered if count}


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 6) if whole > 0 else None


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _seconds_between(start: str, end: str) -> float:
    return round((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds(), 3)
