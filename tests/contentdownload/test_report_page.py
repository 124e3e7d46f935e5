"""The report as one page: complete, self-contained, and inert whatever the record holds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from lxml import html as markup

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, SourceAttempt, SourceOutcome, Verb
from DocsToKG.ContentDownload.catalog.selection import Selection
from DocsToKG.ContentDownload.catalog.slo import Targets, gates
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.catalog.summary import Figures
from DocsToKG.ContentDownload.report import charts
from DocsToKG.ContentDownload.report.page import html_page
from DocsToKG.ContentDownload.report.sections import Report, count, most, number, seconds, size
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock

NASTY = (
    "<script>window.hit = 1</script>",
    '"><img src="https://evil.example/x.png" onerror="window.hit = 1">',
    "</style><link rel=stylesheet href=//evil.example/x.css>",
    "</svg><iframe src='javascript:window.hit=1'></iframe>",
    "a\x00b\u202ec\nd",
)


def nasty_record(root: Path) -> Path:
    """A record in which everything that comes from outside tries to be markup."""
    with RunTelemetry(root, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        for number, bad in enumerate(NASTY):
            words: dict[str, Any] = {"resolver": bad, "tier": bad, "evidence": bad, "license": bad, "title": bad}
            stored = {"outcome": "success", "sha256": f"{number:064x}", "path": f"{number}.pdf", "ttfp_ms": 40}
            record.finish(ManifestRecord(doc_id=f"doi:ok/{number}{bad}", year=2000 + number, **stored, **words))
            missed = {"reason": bad, "cause": bad, "explanation": bad, "title": bad}
            record.finish(ManifestRecord(doc_id=f"doi:no/{number}{bad}", outcome="error", **missed))
            record.attempt(Attempt(1.0, bad, "https://a.org/x", Verb.GET, AttemptStatus.HTTP_GET, 200, host=bad))
            record.source_attempt(
                SourceAttempt(1.0, "doi:x", "indexes", bad, SourceOutcome.ERROR, "refused: 401; " + bad)
            )
            record.rate_wait(f"host:{bad}", 1500, why=bad)
    return root


def page_of(root: Path, *, name: str = "corpus") -> str:
    with Catalog(root / "manifest.sqlite") as catalog:
        figures = catalog.figures()
        missed = catalog.page(Selection(states=("failed",))).works
    return html_page(Report(name, figures, gates(figures), missed, "2026-11-16 15:00 UTC"))


def test_nothing_in_the_record_becomes_markup(tmp_path: Path) -> None:
    text = page_of(nasty_record(tmp_path), name=NASTY[0])
    page = markup.document_fromstring(text)
    allowed = {
        *(
            "html",
            "head",
            "meta",
            "title",
            "style",
            "body",
            "main",
            "header",
            "div",
            "h1",
            "h2",
            "h3",
            "p",
            "span",
            "b",
        ),
        *("section", "figure", "figcaption", "ul", "li", "i", "table", "thead", "tbody", "tr", "th", "td", "footer"),
        *("svg", "g", "rect", "text", "line", "polyline", "polygon"),
    }
    assert {element.tag for element in page.iter() if isinstance(element.tag, str)} <= allowed
    names = {name for element in page.iter() if isinstance(element.tag, str) for name in element.attrib}
    assert not {name for name in names if name.startswith("on") or name in ("src", "href", "style", "action")}
    assert "window.hit = 1" in page.text_content(), "it is shown as text"
    assert "\u202e" not in text
    assert "\x00" not in text


def test_the_page_forbids_itself_to_load_or_run_anything(tmp_path: Path) -> None:
    text = page_of(nasty_record(tmp_path))
    page = markup.document_fromstring(text)
    [policy] = page.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy.startswith("default-src 'none'")
    assert "script-src" not in policy
    [style] = page.xpath("//style/text()")
    assert not re.search(r"url\(|@import|https?:", style)
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style


def test_every_part_has_its_place(tmp_path: Path) -> None:
    page = markup.document_fromstring(page_of(nasty_record(tmp_path)))
    heads = page.xpath("//h2/text()")
    assert heads == ["Service levels", "Yield", "Not obtained", "Time", "In figures", "Sources, hosts and waits"]
    pictures = page.xpath("//svg/@aria-label")
    wanted = ["Yield by three measures", "Works", "Files by source", "Files by tier", "Files by licence"]
    assert [name for name in wanted if name not in pictures] == []
    assert {"Works by year", "Works not obtained by cause", "Files by time"} <= set(pictures)
    assert len(page.xpath("//h2[1]/following-sibling::section[1]//tbody/tr")) == 8


def test_an_empty_record_has_a_page_too() -> None:
    page = markup.document_fromstring(html_page(Report("nothing", Figures(), gates(Figures()))))
    assert "Too little to judge" not in page.text_content(), "that nothing is corrupt can be judged"
    assert "The one service level that was judged is kept" in page.text_content()
    none = gates(Figures(), Targets(corrupt_files_max=None))
    assert "Too little to judge" in html_page(Report("nothing", Figures(), none))


def test_a_missed_level_stands_at_the_top() -> None:
    figures = Figures(attempted=100, obtained=50, failed=50, yield_ratio=0.5)
    page = markup.document_fromstring(html_page(Report("half", figures, gates(figures))))
    assert page.xpath("//header//span[contains(@class, 'missed')]/text()") == ["1 of 2 service levels missed"]


def test_a_bar_is_as_long_as_its_share() -> None:
    picture = charts.bars("b", [("half", 1.0, "1"), ("whole", 2.0, "2"), ("none", 0.0, "0")])
    widths = [float(width) for width in re.findall(r'class="one"[^>]*width="([\d.]+)"', picture)]
    assert widths[0] * 2 == pytest.approx(widths[1], abs=0.2)
    assert widths[2] == 0
    assert charts.bars("b", []).startswith("<svg")


def test_a_line_begins_at_the_left_and_ends_at_the_top_right() -> None:
    picture = charts.line("l", [(0, 0), (5, 1), (10, 4)], left="a", right="b", top="c")
    [points] = re.findall(r'polyline class="stroke" points="([^"]+)"', picture)
    first, *_, last = [tuple(map(float, point.split(","))) for point in points.split()]
    assert first[0] == 0
    assert last[0] == charts.WIDTH
    assert last[1] < first[1]


def test_the_parts_of_a_strip_fill_it() -> None:
    picture = charts.strip("s", [("a", 1, "good"), ("b", 2, "bad")])
    assert sum(map(float, re.findall(r' width="([\d.]+)"', picture))) == pytest.approx(charts.WIDTH, abs=0.2)


def test_figures_are_worded_for_people() -> None:
    assert [count(0), count(9_999), count(1_234_567)] == ["0", "9999", "1 234 567"]
    assert [seconds(None), seconds(0.5), seconds(200), seconds(90_000)] == ["-", "0.50 s", "3 min 20 s", "1 d 1 h"]
    assert [number(None), number(0.015), number(2_751.26), number(27_512.6)] == ["-", "0.015", "2751", "27 513"]
    assert [size(0), size(2_500_000), size(3_210_000_000)] == ["0.0 MB", "2.5 MB", "3.21 GB"]
    assert most({"a": 5, "b": 2, "c": 1}, 1) == [("a", 5), ("and 2 more", 3)]
