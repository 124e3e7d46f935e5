"""The report as one page of HTML that needs nothing else: no script, no font, no picture from elsewhere.

Knows how the parts are laid out. Everything that comes from the record goes through `safe`; the page forbids itself
to load or run anything, should that ever fail. Promises: readable without a network, in light and dark, on a phone and
on paper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any

from DocsToKG.ContentDownload.catalog.summary import TIME_STEPS_S, Figures
from DocsToKG.ContentDownload.report import charts
from DocsToKG.ContentDownload.report.charts import safe
from DocsToKG.ContentDownload.report.sections import (
    Report,
    count,
    fact_groups,
    most,
    notes,
    percent,
    seconds,
    size,
    tables,
)

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_MOST_YEARS = 40
_COLUMNS_BESIDE = 4  # a table with more of them has no room beside another
_GATE_NAMES = {
    "yield": "Yield: files of works tried",
    "ttfp_p50_s": "Time to a file, median (s)",
    "ttfp_p95_s": "Time to a file, 95 % (s)",
    "ratio_429": "Requests answered 429",
    "corruption": "Corrupt files",
    "rerun_cache_hit": "From the cache when obtained again",
    "catalog_write_p95_ms": "Write to the catalog, 95 % (ms)",
    "works_per_worker_hour": "Works an hour for each worker",
}
_ABOUT = (
    "Works tried are those of which a file was looked for. Open by an index are those obtained, and those that an "
    "index calls open or names a copy of. In reach are the open ones, less those that every host bars, hides behind a "
    "wall or has no more. The time to a file runs from the first request to the proved file, waits for our own limits "
    "left out."
)


def html_page(report: Report) -> str:
    """The whole page."""
    style = files("DocsToKG.ContentDownload.report").joinpath("page.css").read_text(encoding="utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{safe(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{safe(report.name)}: run report</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(_parts(report))
        + "\n</main>\n</body>\n</html>\n"
    )


def _parts(report: Report) -> Iterator[str]:
    figures = report.figures
    yield _head(report)
    yield _cards(figures)
    yield "<h2>Service levels</h2>" + _panel("", _gates(report))
    yield "<h2>Yield</h2>" + _panels(_yield(figures), _fates(figures), *_by_kind(figures))
    if figures.failed or figures.skipped_robots:
        yield "<h2>Not obtained</h2>" + _panels(_causes(figures), _missed(report))
    yield "<h2>Time</h2>" + _panels(_ttfp(figures), _progress(figures))
    yield "<h2>In figures</h2>" + _panels(*(_fact_panel(name, rows) for name, rows in fact_groups(figures)))
    listed = (
        _panel(title, _table(columns, rows, wide={0}), whole=len(columns) > _COLUMNS_BESIDE)
        for title, columns, rows in tables(figures)
    )
    yield "<h2>Sources, hosts and waits</h2>" + _panels(_notes(figures), *listed)
    if len(figures.runs) > 1:
        yield "<h2>Runs</h2>" + _panel("", _runs(figures))
    yield f"<footer><p>{safe(_ABOUT)}</p><p>Written {safe(report.written_at)}.</p></footer>"


def _head(report: Report) -> str:
    figures, broken = report.figures, report.broken
    judged = sum(gate.verdict != "not judged" for gate in report.gates)
    if broken:
        state = f'<span class="state missed">{len(broken)} of {judged} service levels missed</span>'
    elif judged:
        kept = f"All {judged} service levels kept" if judged > 1 else "The one service level that was judged is kept"
        state = f'<span class="state kept">{kept}</span>'
    else:
        state = '<span class="state unjudged">Too little to judge</span>'
    which = f"Run {figures.run_id}" if figures.run_id else f"{len(figures.runs)} run{'s' * (len(figures.runs) != 1)}"
    since = f", since {_moment(figures.since)}" if figures.since else ""
    period = f"{_moment(figures.started_at)} to {_moment(figures.finished_at)}" if figures.started_at else "no run"
    took = f", {seconds(figures.duration_s)} of work" if figures.duration_s else ""
    below = f'<p class="quiet">{safe(which + since)}: {safe(period + took)}</p>'
    return f"<header><div><h1>{safe(report.name)}</h1>{below}</div><div>{state}</div></header>"


def _cards(figures: Figures) -> str:
    cards = [
        (percent(figures.yield_ratio), "yield of the works tried"),
        (count(figures.obtained), f"files of {count(figures.attempted)} works"),
        (size(figures.bytes), f"stored, {size(figures.dedupe_saved_bytes)} saved by sharing"),
        (seconds(figures.ttfp_p50_s), f"to a file; 95 % within {seconds(figures.ttfp_p95_s)}"),
        (percent(figures.ratio_429), f"of {count(figures.requests)} requests answered 429"),
        (percent(figures.cache_hit_ratio), "of answers from the cache"),
    ]
    shown = "".join(f'<div class="card"><b>{safe(big)}</b><span>{safe(words)}</span></div>' for big, words in cards)
    return f'<div class="cards">{shown}</div>'


def _gates(report: Report) -> str:
    rows = []
    for gate in report.gates:
        name, target = gate.name, gate.target
        value = "-" if gate.value is None else f"{gate.value:.3g}" if gate.value < 1000 else count(round(gate.value))
        kind = {"kept": "kept", "missed": "missed"}.get(gate.verdict, "unjudged")
        note = f'<div class="quiet">{safe(gate.note)}</div>' if gate.note else ""
        wanted = target.replace(">=", "≥").replace("<=", "≤")
        rows.append(
            f'<tr><td class="w">{safe(_GATE_NAMES.get(name, name))}{note}</td><td class="n">{safe(value)}</td>'
            f'<td class="n">{safe(wanted)}</td>'
            f'<td class="n"><span class="state {kind}">{safe(gate.verdict)}</span></td></tr>'
        )
    head = '<tr><th>level</th><th class="n">value</th><th class="n">target</th><th class="n">verdict</th></tr>'
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _yield(figures: Figures) -> str:
    rows = [
        (f"of {count(whole)} {name}", ratio or 0.0, percent(ratio))
        for name, whole, ratio in (
            ("works tried", figures.attempted, figures.yield_ratio),
            ("open by an index", figures.open_works, figures.yield_of_open),
            ("in reach", figures.reachable_works, figures.yield_of_reachable),
        )
    ]
    return _chart("Files obtained", charts.bars("Yield by three measures", rows, kind="good", full=1.0, room=196))


def _fates(figures: Figures) -> str:
    parts = [
        ("obtained", figures.obtained, "good"),
        ("already present", figures.skipped, "one"),
        ("forbidden by robots.txt", figures.skipped_robots, "mild"),
        ("not obtained", figures.failed, "bad"),
        ("left out or taken down", figures.left_out + figures.taken_down, "still"),
    ]
    parts = [part for part in parts if part[1]]
    legend = "".join(f'<li><i class="{kind}"></i>{safe(name)} {count(found)}</li>' for name, found, kind in parts)
    return _chart("What became of the works", charts.strip("Works", parts) + f'<ul class="legend">{legend}</ul>')


def _by_kind(figures: Figures) -> Iterator[str]:
    for title, counts in (
        ("By source", figures.by_resolver),
        ("By tier", figures.by_tier),
        ("By licence", figures.by_license),
        ("By what named the file", figures.by_evidence),
    ):
        if counts:
            yield _chart(title, charts.bars(f"Files {title.lower()}", _counted(counts)))
    if figures.attempted_by_year:
        yield _years(figures)


def _years(figures: Figures) -> str:
    tried = {year: found for year, found in figures.attempted_by_year.items() if year != "unknown"}
    years = list(tried)[-_MOST_YEARS:]
    rows = [
        (year, tried[year], figures.by_year.get(year, 0), f"{figures.by_year.get(year, 0)} of {tried[year]}")
        for year in years
    ]
    every = max(1, round(len(rows) / 9))
    rest = sum(figures.attempted_by_year.values()) - sum(tried[year] for year in years)
    words = f"Works tried, and obtained of them.{f' {count(rest)} more of other or unknown years.' if rest else ''}"
    legend = '<ul class="legend"><li><i class="one"></i>obtained</li><li><i class="track"></i>tried</li></ul>'
    return _chart("By year", charts.columns("Works by year", rows, every=every) + legend, words)


def _causes(figures: Figures) -> str:
    rows = _counted(figures.failed_by_cause)
    if figures.skipped_robots:
        rows.append(("robots.txt", figures.skipped_robots, count(figures.skipped_robots)))
    return _chart("What stood in the way", charts.bars("Works not obtained by cause", rows, kind="bad"))


def _missed(report: Report) -> str:
    if not report.missed:
        return ""
    rows = "".join(
        f'<tr><td class="w">{safe(work.get("title") or "no title")}'
        f'<div class="quiet">{safe(work.get("doc_id"))}</div></td><td class="w">{safe(_why(work))}</td></tr>'
        for work in [*report.ended, *(work for work in report.missed if work not in report.ended)]
    )
    missed = report.figures.failed + report.figures.skipped_robots
    words = f'<p class="quiet">The first {len(report.missed)} of {count(missed)}.</p>' * (missed > len(report.missed))
    head = '<thead><tr><th class="w">work</th><th class="w">why</th></tr></thead>'
    return _panel("Works", f'<div class="scroll"><table>{head}<tbody>{rows}</tbody></table></div>{words}')


def _why(work: Any) -> Any:
    return work.get("explanation") or work.get("cause") or work.get("reason") or "unknown"


def _ttfp(figures: Figures) -> str:
    edges = ["0", *(f"{edge:g}" for edge in TIME_STEPS_S)]
    rows: list[tuple[str, float, float, str]] = []
    for place, found in enumerate(figures.ttfp_steps):
        last = place == len(TIME_STEPS_S)
        label = f"> {edges[-1]}" if last else f"< {edges[place + 1]}"
        span = f"over {edges[-1]} s" if last else f"{edges[place]} to {edges[place + 1]} s"
        rows.append((label, found, found, f"{count(found)} files, {span}"))
    middle, late = seconds(figures.ttfp_p50_s), seconds(figures.ttfp_p95_s)
    words = f"Files by seconds to the proved file; median {middle}, 95 % {late}."
    return _chart("Time to a file", charts.columns("Files by time", rows), words)


def _progress(figures: Figures) -> str:
    points = [(datetime.fromisoformat(moment), found) for moment, found in figures.progress]
    if len(points) < 2:
        return ""
    begun = points[0][0]
    drawn = [((moment - begun).total_seconds(), float(found)) for moment, found in points]
    first, last = _moment(figures.progress[0][0]), _moment(figures.progress[-1][0])
    top = f"{count(points[-1][1])} works ended"
    return _chart("Over time", charts.line("Works ended over time", drawn, left=first, right=last, top=top))


def _fact_panel(name: str, rows: Sequence[tuple[str, str]]) -> str:
    cells = "".join(f'<tr><td class="w">{safe(what)}</td><td class="n">{safe(value)}</td></tr>' for what, value in rows)
    return _panel(name, f"<table><tbody>{cells}</tbody></table>")


def _notes(figures: Figures) -> str:
    told = "".join(f"<li>{safe(note)}</li>" for note in notes(figures))
    return _panel("Sources to look at", f'<ul class="notes">{told}</ul>') if told else ""


def _runs(figures: Figures) -> str:
    rows = [
        (
            run["run_id"] or "",
            _moment(run["started_at"]),
            seconds(run["seconds"]),
            "-" if run["works"] is None else count(run["works"]),
            "-" if run["obtained"] is None else count(run["obtained"]),
        )
        for run in reversed(figures.runs)
    ]
    return _table(("run", "begun", "took", "works tried", "obtained"), rows, wide={0})


def _counted(counts: dict[str, int]) -> list[tuple[str, float, str]]:
    return [(name, float(found), count(found)) for name, found in most(counts, 12)]


def _chart(title: str, picture: str, words: str = "") -> str:
    caption = f"<figcaption>{safe(words)}</figcaption>" if words else ""
    return _panel(title, f"<figure>{picture}{caption}</figure>")


def _panels(*panels: str) -> str:
    return f'<div class="panels">{"".join(panel for panel in panels if panel)}</div>'


def _panel(title: str, inside: str, *, whole: bool = False) -> str:
    """`whole` takes the width of the page, where others stand side by side."""
    head = f"<h3>{safe(title)}</h3>" if title else ""
    return f'<section class="panel{" whole" * whole}">{head}{inside}</section>'


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, wide: Collection[int]) -> str:
    """The columns in `wide` hold words and may break; the others hold numbers."""
    kinds = ["w" if place in wide else "n" for place in range(len(columns))]
    head = "".join(f'<th class="{kind}">{safe(name)}</th>' for name, kind in zip(columns, kinds, strict=True))
    body = "".join(
        "<tr>"
        + "".join(f'<td class="{kind}">{safe(cell)}</td>' for cell, kind in zip(row, kinds, strict=True))
        + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _moment(text: str | None) -> str:
    """`2026-11-16T15:31:46.000Z` as people write it."""
    return "now" if text is None else f"{text[:10]} {text[11:16]} UTC"
