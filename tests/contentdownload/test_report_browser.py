"""The page of a report in a real browser: it asks nobody for anything, complains of nothing and fits the screen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Role, SourceAttempt, SourceOutcome, Verb
from DocsToKG.ContentDownload.catalog.selection import Selection
from DocsToKG.ContentDownload.catalog.slo import gates
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.report.page import html_page
from DocsToKG.ContentDownload.report.sections import Report
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock

pytestmark = pytest.mark.slow

NASTY = '"></text></svg><script>window.hit = 1</script><img src="https://evil.example/x.png" onerror="window.hit = 1">'


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("record")
    clock = ManualClock()
    with RunTelemetry(root, run_id="r1", config_hash="c", clock=clock) as record:
        for number in range(60):
            clock.advance(7)
            told: dict[str, Any] = {
                "outcome": "success",
                "sha256": f"{number:064x}",
                "path": "p",
                "ttfp_ms": number * 90,
            }
            if number % 6 == 0:
                told = {"outcome": "error", "reason": "all_tiers_exhausted", "cause": "paywall", "explanation": NASTY}
            source = NASTY if number % 7 == 0 else "a-source-with-a-very-long-name"
            words = {
                "title": NASTY,
                "resolver": source,
                "tier": "direct_oa",
                "license": "CC-BY-4.0",
                "evidence": "link",
            }
            work_id, host = f"doi:10.1/{number}", f"pmc-oa-opendata.s3.number-{number % 20}.amazonaws.com"
            record.attempt(
                Attempt(clock.now(), "unpaywall", f"https://{host}/x", Verb.GET, AttemptStatus.HTTP_GET, 200,
                        elapsed_ms=7, work_id=work_id, host=host, role=Role.ARTIFACT)
            )  # fmt: skip
            record.rate_wait(f"host:{host}", 123_456, why="rate")
            record.source_attempt(
                SourceAttempt(clock.now(), work_id, "direct_oa", "semantic_scholar", SourceOutcome.NO_PDF)
            )
            record.finish(ManifestRecord(doc_id=work_id, year=1990 + number % 35, **told, **words))
            record.flush()
    with Catalog(root / "manifest.sqlite") as catalog:
        figures = catalog.figures()
        missed = catalog.page(Selection(states=("failed",))).works
    file = root / "report.html"
    file.write_text(html_page(Report(NASTY, figures, gates(figures), missed, "now")), encoding="utf-8")
    return file


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1200])
def test_it_is_quiet_and_fits(browser: Any, page_file: Path, scheme: str, width: int) -> None:
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800})
    page = context.new_page()
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(page_file.as_uri())
    assert asked == [page_file.as_uri()], "nothing but the page itself"
    assert complaints == []
    assert page.evaluate("window.hit") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(int(part) for part in ground.removeprefix("rgb(").rstrip(")").split(",")) / 3
    assert (brightness > 200) == (scheme == "light")
    assert page.locator("svg").count() >= 8
    assert len(page.screenshot(full_page=True)) > 10_000
    context.close()


@pytest.mark.parametrize("width", [900, 1100, 1200])
def test_on_a_desk_no_column_of_a_table_is_out_of_sight(browser: Any, page_file: Path, width: int) -> None:
    """What must be moved sideways to be seen is not seen, and not printed."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(page_file.as_uri())
    assert page.locator("th", has_text="waited").count() == 1
    hidden = "[...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > box.clientWidth + 1).length"
    assert page.evaluate(hidden) == 0
    page.close()


def test_it_can_be_printed(browser: Any, page_file: Path) -> None:
    page = browser.new_page(color_scheme="dark")
    page.goto(page_file.as_uri())
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()
