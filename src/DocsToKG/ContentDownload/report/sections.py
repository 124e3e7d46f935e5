"""What a report says, in the words of people: facts, tables and notes, whatever they are printed on.

Knows which figures belong together and how each is worded. Does not know terminals, Markdown or HTML; escapes nothing.
Promises: every table is short; what was cut off is counted in its last row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from DocsToKG.ContentDownload.catalog.slo import Gate
from DocsToKG.ContentDownload.catalog.summary import Figures

MOST_SHOWN = 15
GROUPS = {
    "failed_by_reason": "Not obtained, by reason",
    "failed_by_cause": "Not obtained, by what stood in the way",
    "by_tier": "By tier",
    "by_evidence": "By what named the file",
    "by_license": "By licence",
    "by_year": "By year",
}

ENDED_TITLE = "Put aside, as it ended its process"

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """Everything a report is made of. `missed` are some works that were not obtained, as the catalog tells them, and
    `ended` those of them that ended the process that worked on them."""

    name: str
    figures: Figures
    gates: list[Gate]
    missed: Sequence[Mapping[str, Any]] = ()
    written_at: str = ""
    ended: Sequence[Mapping[str, Any]] = ()

    @property
    def broken(self) -> list[Gate]:
        return [gate for gate in self.gates if not gate.ok]


def facts(figures: Figures) -> list[tuple[str, str]]:
    """The figures that everybody asks for."""
    return [fact for _, group in fact_groups(figures) for fact in group]


def fact_groups(figures: Figures) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """The same, by subject."""
    yield "Works", _works(figures)
    yield (
        "Time",
        [
            ("time to a file, median", seconds(figures.ttfp_p50_s)),
            ("time to a file, 95 %", seconds(figures.ttfp_p95_s)),
            ("waited for our own limits, median", seconds(figures.waited_p50_s)),
            ("waited for our own limits, 95 %", seconds(figures.waited_p95_s)),
            ("whole work with its waits, median", seconds(figures.work_p50_s)),
            ("whole work with its waits, 95 %", seconds(figures.work_p95_s)),
            ("answer of a host, median", _milliseconds(figures.answer_p50_ms)),
            ("answer of a host, 95 %", _milliseconds(figures.answer_p95_ms)),
            ("duration", seconds(figures.duration_s)),
            ("works an hour", "-" if figures.works_per_hour is None else count(round(figures.works_per_hour))),
        ],
    )
    yield (
        "Politeness",
        [
            ("requests", count(figures.requests)),
            ("answered 429", f"{count(figures.http_429)} ({percent(figures.ratio_429)})"),
            ("told when to come back", count(figures.retry_after)),
            ("asked again before that", count(figures.retry_after_broken)),
            ("waits for our own limits", f"{count(figures.waits)} ({seconds(figures.waits_s)})"),
            ("one such wait, 95 %", _milliseconds(figures.rate_delay_p95_ms)),
            ("hosts left alone for a while", count(figures.breaker_opens)),
        ],
    )
    yield (
        "Files and cache",
        [
            ("stored", size(figures.bytes)),
            ("files that several works share", count(figures.duplicates)),
            ("saved by shared files", size(figures.dedupe_saved_bytes)),
            ("of the files, from guessed addresses", count(figures.guessed)),
            ("of the files, unproved", count(figures.unproved)),
            ("of the files, kept though damaged", count(figures.damaged)),
            ("corrupt files", count(figures.corruption)),
            ("from the cache", percent(figures.cache_hit_ratio)),
            ("of these, asked whether still good", count(figures.revalidated)),
            *_rerun(figures),
            ("write to the catalog, 95 %", _milliseconds(figures.catalog_write_p95_ms)),
        ],
    )


def _works(figures: Figures) -> list[tuple[str, str]]:
    rare = [
        ("skipped, as robots.txt forbids them", figures.skipped_robots),
        ("left out by filters", figures.left_out),
        ("taken down", figures.taken_down),
    ]
    return [
        ("works tried", count(figures.attempted)),
        ("obtained", count(figures.obtained)),
        ("already present", count(figures.skipped)),
        ("not obtained", count(figures.failed)),
        *((name, count(number)) for name, number in rare if number),
        ("yield", percent(figures.yield_ratio)),
        (f"yield of {count(figures.open_works)} works that are open by an index", percent(figures.yield_of_open)),
        (f"yield of {count(figures.reachable_works)} works in reach", percent(figures.yield_of_reachable)),
    ]


def _rerun(figures: Figures) -> list[tuple[str, str]]:
    if figures.rerun_id is None:
        return []
    return [
        (f"from the cache, {count(figures.rerun_works)} works obtained again", percent(figures.rerun_cache_hit_ratio)),
        ("the same, files alone", percent(figures.rerun_cache_hit_ratio_files)),
    ]


def gate_row(gate: Gate) -> Row:
    kept = {"kept": "ok", "missed": "MISSED"}.get(gate.verdict, f"not judged: {gate.note}")
    return gate.name, number(gate.value), gate.target, kept


def groups(figures: Figures) -> list[tuple[str, list[tuple[str, str]]]]:
    """Works and files by what they have in common."""
    shown = []
    for name, title in GROUPS.items():
        counts: dict[str, int] = getattr(figures, name)
        told_already = name == "failed_by_cause" and counts == figures.failed_by_reason
        if counts and not told_already:
            shown.append((title, [(key, count(found)) for key, found in most(counts)]))
    return shown


def tables(figures: Figures) -> list[tuple[str, Row, list[Row]]]:
    """Title, columns and rows of what has more than one figure."""
    found: list[tuple[str, Row, list[Row]]] = [
        ("Sources", ("source", "asked", "files", "share", "guessed", "no good", "errors"), source_rows(figures)),
        ("Files by source, tier and evidence", ("source", "tier", "evidence", "files"), delivered_rows(figures)),
        ("Hosts", ("host", "files", "requests", "429", "received", "from the cache", "waited"), host_rows(figures)),
        ("Waits for our own limits", ("rule", "waits", "seconds"), wait_rows(figures)),
    ]
    return [(title, columns, rows) for title, columns, rows in found if rows]


def source_rows(figures: Figures) -> list[Row]:
    """Every source that was asked: how often, what it delivered, how it failed."""
    return [
        (name, str(one.asked), str(one.files), percent(one.share), str(one.guesses), str(one.no_good), str(one.errors))
        for name, one in figures.sources.items()
        if one.asked or one.files
    ]


def delivered_rows(figures: Figures) -> list[Row]:
    rows: list[Row] = [
        (row["source"], row["tier"], row["evidence"] + (" (guess)" if row["is_guess"] else ""), str(row["files"]))
        for row in figures.delivered[:MOST_SHOWN]
    ]
    rest = figures.delivered[MOST_SHOWN:]
    cut = (f"and {len(rest)} more", "", "", str(sum(row["files"] for row in rest)))
    return [*rows, cut] if rest else rows


def host_rows(figures: Figures) -> list[Row]:
    hosts = list(figures.by_host.items())
    rows: list[Row] = [
        (
            host,
            count(figures.files_by_host.get(host, 0)),
            count(one["requests"]),
            count(one["http_429"]),
            size(one["bytes"]),
            count(one["cache_hits"]),
            seconds(one["waited_s"]),
        )
        for host, one in hosts[:MOST_SHOWN]
    ]
    rest = [one for _, one in hosts[MOST_SHOWN:]]
    if not rest:
        return rows
    sums = {
        name: sum(one[name] for one in rest) for name in ("requests", "http_429", "bytes", "cache_hits", "waited_s")
    }
    files = sum(figures.files_by_host.get(host, 0) for host, _ in hosts[MOST_SHOWN:])
    words = (
        count(files),
        count(sums["requests"]),
        count(sums["http_429"]),
        size(sums["bytes"]),
        count(sums["cache_hits"]),
    )
    return [*rows, (f"and {len(rest)} more", *words, seconds(sums["waited_s"]))]


def wait_rows(figures: Figures) -> list[Row]:
    waits = list(figures.waits_by_rule.items())[:MOST_SHOWN]
    return [(rule, count(int(one["waits"])), f"{one['seconds']:.1f}") for rule, one in waits]


def notes(figures: Figures) -> list[str]:
    """Sources in trouble, and those that were never asked."""
    told = [f"failing: {name}: {what}" for name, what in figures.failing.items()]
    skipped = ", ".join(f"{name} ({why})" for name, why in figures.skipped_sources.items())
    return [*told, f"skipped: {skipped}"] if skipped else told


def ended_lines(report: Report) -> list[str]:
    """Works that ended their process: which, by what signal, at which stage and with which bytes."""
    return [f"{work.get('doc_id')}: {work.get('explanation') or 'unknown'}" for work in report.ended]


def most(counts: Mapping[str, int], shown: int = MOST_SHOWN) -> list[tuple[str, int]]:
    """The first entries; what was cut off is counted in the last."""
    rows = list(counts.items())
    rest = [found for _, found in rows[shown:]]
    return [*rows[:shown], (f"and {len(rest)} more", sum(rest))] if rest else rows


def count(value: int) -> str:
    """A whole number that can be read: thousands apart from five digits on."""
    return str(value) if abs(value) < 10_000 else f"{value:,}".replace(",", " ")


def number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if abs(value) < 10_000 else count(round(value))


def percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.1f} %"


def seconds(value: float | None) -> str:
    """`0.50 s`, `3 min 20 s`, `2 h 5 min`, `6 d 3 h`."""
    if value is None or value < 120:
        return "-" if value is None else f"{value:.2f} s"
    whole = round(value)
    parts: Sequence[tuple[int, str]] = [
        (whole // 86400, "d"),
        (whole // 3600 % 24, "h"),
        (whole // 60 % 60, "min"),
        (whole % 60, "s"),
    ]
    first = next(place for place, (found, _) in enumerate(parts) if found)
    return " ".join(f"{found} {unit}" for found, unit in parts[first : first + 2] if found)


def size(value: int) -> str:
    for unit, bytes_each in (("TB", 1e12), ("GB", 1e9)):
        if value >= bytes_each:
            return f"{value / bytes_each:.2f} {unit}"
    return f"{value / 1e6:.1f} MB"


def _milliseconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.0f} ms"
