"""The console beside a live run of the sandbox: it moves by itself, says why a job waits, and acts.

One run for all tests, in any order: each adds the jobs that it needs, by numbers of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.console.conftest import Console, Watched, console_over, jobs_of, watched

from DocsToKG.ContentDownload.cli.launch import load_settings, paths_in
from DocsToKG.ContentDownload.config.merge import merge
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
WORKS = 40


@dataclass
class Live:
    """A run that is through with half of the works and waits for more, and its console."""

    run: DownloadRun
    console: Console
    others: list[str]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    out: Path = tmp_path_factory.mktemp("corpus")
    with SandboxServer(works=WORKS, seed=3) as sandbox:
        settings = {**paths_in(out), "orchestrator": {"max_workers": 4}}
        cfg = load_settings(None, merge(sandbox.profile(), settings), environ={})
        ids = sandbox.identifiers(WORKS)
        first, others = ids[: WORKS // 2], ids[WORKS // 2 :]
        with DownloadRun(cfg) as run, console_over(Path(cfg.queue.path)) as console:
            run.enqueue(coerce_works(first))
            run.start()
            run.wait(patience_s=60)
            yield Live(run, console, others)
            run.stop(2.0)


@pytest.fixture(scope="module")
def seen(browser: Any, live: Live) -> Iterator[Watched]:
    with watched(browser, live.console) as opened:
        yield opened


def counted(page: Any, status: str) -> int:
    return int(page.locator(f"[data-count={status}]").inner_text().replace(",", ""))


def test_counters_move_by_themselves_while_the_run_works(seen, live):
    page = seen.open("overview")
    before = counted(page, "succeeded")
    loads = []
    page.on("framenavigated", lambda frame: loads.append(frame.url))
    live.run.enqueue(coerce_works(live.others))
    wanted = before + len(live.others) // 2
    seen.until(f"Number(document.querySelector('[data-count=succeeded]').textContent) >= {wanted}")
    seen.until("Number(document.querySelector('[data-count=queued]').textContent) === 0")
    assert loads == [], "it moved without a reload"
    assert page.locator("svg rect.good").count() > 0, "the chart moved too"


def test_the_token_is_taken_out_of_the_address_and_kept_for_this_tab(seen):
    page = seen.open("overview")
    assert "token" not in page.url
    assert page.evaluate("sessionStorage.getItem('docstokg.token')").startswith("dtk_")
    assert page.evaluate("Object.keys(localStorage).filter((name) => name.includes('token'))") == []


def test_a_filter_is_in_the_address_and_a_reload_keeps_it(seen):
    page = seen.open("jobs?status=succeeded")
    seen.wait("succeeded", "tbody")
    statuses = set(page.locator("tbody .badge").all_inner_texts())
    assert statuses == {"succeeded"}
    page.get_by_label("Search jobs").fill("arxiv:")
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**search=arxiv*")
    seen.until("[...document.querySelectorAll('td.line a')].every((a) => a.textContent.includes('arxiv'))")
    before = page.url
    page.reload()
    page.wait_for_selector("tbody a[data-job]")
    assert page.url == before
    assert page.get_by_label("Search jobs").input_value() == "arxiv:"


def test_a_job_shows_its_life_its_file_and_who_had_it(seen, live):
    page = seen.open("jobs?status=succeeded")
    page.locator("a[data-job]").last.click()
    page.wait_for_url("**/console/job/*")
    seen.wait("It is over")
    for part in ("Timeline", "Result", "Leases", "History", "Payload"):
        assert (
            page.get_by_role("region", name=part, exact=True).or_(page.locator(f"section[aria-label='{part}']")).count()
        )
    assert page.locator("section[aria-label=Result]").get_by_text("SHA-256").count() == 1
    assert page.locator("section[aria-label=Timeline] svg rect").count() >= 2


def test_a_paused_source_stops_says_why_and_goes_on_when_resumed(seen, live):
    page = seen.open("sources")
    seen.decide("Pause a source…", "Pause", source="archive-x", reason="they asked us to wait")
    seen.wait("archive-x")
    jobs = live.console.post("/jobs/bulk", jobs_of("archive-x", 3))["jobs"]
    free = live.console.post("/jobs/bulk", jobs_of("archive-y", 3, start=10))["jobs"]
    page = seen.open(f"job/{free[0]['id']}")
    seen.wait("It is over")  # others go on
    page = seen.open(f"job/{jobs[0]['id']}")
    seen.wait("Why is it not running?")
    why = page.locator(".why").inner_text()
    assert "throttle" in why
    assert "they asked us to wait" in why or "paused" in why
    assert all(live.console.get(f"/jobs/{job['id']}")["attempts"] == 0 for job in jobs)
    page = seen.open("sources")
    seen.decide("Resume archive-x", "Resume")
    seen.open(f"job/{jobs[0]['id']}")
    seen.wait("It is over")


def test_an_ended_job_is_replayed_as_a_copy_and_that_stands_in_the_audit_trail(seen, live):
    first = live.console.get("/jobs?status=succeeded&page_size=1")["jobs"][0]
    page = seen.open(f"job/{first['id']}")
    seen.decide("Replay…", "Replay", reason="once more", ticket="T-9")
    seen.until(f"!location.pathname.endsWith('/job/{first['id']}')")
    page.wait_for_selector("section[aria-label=Related] a")
    assert page.locator("section[aria-label=Related] a").first.inner_text() == str(first["id"])
    copy = int(page.url.rpartition("/")[2])
    told = live.console.get(f"/jobs/{copy}")
    assert (told["replayOf"], told["payloadDigest"]) == (first["id"], first["payloadDigest"])
    seen.wait("It is over")
    page = seen.open("incidents?ticket=T-9")
    seen.wait("once more", "section[aria-label='Audit trail']")
    assert page.locator("section[aria-label='Audit trail'] tbody tr").count() == 1


def test_a_breaker_is_forced_open_and_judges_again(seen, live):
    page = seen.open("breakers")
    seen.decide("Force a breaker…", "Force", service="jobtype:content.download", way="open", reason="a trial")
    row = page.locator("tr", has_text="jobtype:content.download")
    row.get_by_text("open", exact=True).wait_for()
    job = live.console.post("/jobs/bulk", jobs_of(None, 1, start=50))["jobs"][0]
    page = seen.open(f"job/{job['id']}")
    seen.wait("Why is it not running?")
    assert "breaker" in page.locator(".why").inner_text()
    page = seen.open("breakers")
    seen.decide("Let it judge jobtype:content.download", "Let it judge")
    page.locator("tr", has_text="jobtype:content.download").get_by_text("forced").wait_for(state="detached")
    seen.decide("Force close jobtype:content.download", "Force close") if row.get_by_text(
        "open", exact=True
    ).count() else None
    seen.open(f"job/{job['id']}")
    seen.wait("It is over")


def fail(seen: Watched, live: Live, start: int) -> None:
    """Three jobs that are over, in vain."""
    jobs = live.console.post("/jobs/bulk", jobs_of(None, 3, start=start))["jobs"]
    seen.until_true(lambda: all(live.console.get(f"/jobs/{job['id']}")["status"] == "failed" for job in jobs))


def test_failed_jobs_are_retried_together_after_a_preview(seen, live):
    fail(seen, live, 200)
    page = seen.open("jobs?status=failed&search=none.")
    page.wait_for_selector("tbody a[data-job]")
    page.get_by_label("Choose all on this page").check()
    button = page.locator(".bulk").get_by_role("button", name="Retry")
    button.click()
    page.locator("dialog .preview", has_text="will change").wait_for()
    page.locator("dialog [name=reason]").fill("the archive is back")
    page.locator("dialog").get_by_role("button", name="Retry", exact=True).click()
    page.locator("dialog").wait_for(state="detached")
    told = live.console.get("/actions?page_size=20")["actions"]
    assert any(each["reason"] == "the archive is back" for each in told)


def test_all_jobs_of_a_filter_are_retried_once_their_number_is_typed(seen, live):
    fail(seen, live, 300)
    page = seen.open("jobs?status=failed&search=none.")
    page.wait_for_selector("tbody a[data-job]")
    page.get_by_role("button", name="Retry all that fit…").click()
    page.locator("dialog .preview", has_text="would change").wait_for()
    count = page.locator("dialog .preview strong").inner_text().split()[0]
    page.locator("dialog [name=reason]").fill("all of them")
    page.locator("dialog [name=count]").fill("0")
    confirm = page.locator("dialog").get_by_role("button", name="Retry all that fit", exact=True)
    confirm.click()
    page.locator("dialog [role=alert]", has_text=f"Type {count}").wait_for()
    page.locator("dialog [name=count]").fill(count)
    confirm.click()
    page.locator("dialog").wait_for(state="detached")
    page.locator("#notes", has_text="changed").wait_for()


def test_an_action_can_be_copied_as_curl_and_as_a_command(seen, live):
    page = seen.open(f"job/{live.console.get('/jobs?status=succeeded&page_size=1')['jobs'][0]['id']}")
    page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); }")
    page.get_by_role("button", name="Replay…").click()
    page.locator("dialog [name=reason]").fill("it's time")
    page.get_by_role("button", name="Copy as curl").click()
    seen.until("window.copied")
    curl = page.evaluate("window.copied")
    assert curl.startswith("curl -X POST 'http://127.0.0.1:")
    assert "$DOCSTOKG_TOKEN" in curl
    assert live.console.token not in curl
    assert r"""it'\''s time""" in curl
    page.evaluate("window.copied = ''")
    page.get_by_role("button", name="Copy as CLI").click()
    seen.until("window.copied")
    assert page.evaluate("window.copied").startswith("docstokg-orchestrator call POST '/jobs/")
    page.keyboard.press("Escape")


def test_updates_wait_while_the_reader_selects(seen, live):
    page = seen.open("overview")
    before = counted(page, "failed")
    page.evaluate("""() => {
      const range = document.createRange(); range.selectNodeContents(document.querySelector('#main h1'));
      getSelection().removeAllRanges(); getSelection().addRange(range);
    }""")
    live.console.post("/jobs/bulk", jobs_of(None, 2, start=70))
    page.locator(".connection.waits").wait_for()
    assert counted(page, "failed") == before
    page.evaluate("getSelection().removeAllRanges()")
    seen.until(f"Number(document.querySelector('[data-count=failed]').textContent) > {before}")


def test_a_source_whose_jobs_flow_is_paused_and_stops(seen, live):
    """The pause comes in the middle of the flow: what runs may end, and nothing more begins."""
    of_source = "/jobs?source=archive-z&page_size=500&status="

    def of(status: str) -> int:
        return len(live.console.get(of_source + status)["jobs"])

    def waiting() -> int:
        return of("queued") + of("pending")  # where nothing else is due, the whole job type counts as held back

    seen.open("sources")
    live.console.post("/jobs/bulk", jobs_of("archive-z", 400, start=1000))
    seen.until_true(lambda: of("failed") + of("succeeded") > 0)
    seen.decide("Pause a source…", "Pause", source="archive-z", reason="in the middle")
    seen.wait("archive-z")
    seen.until_true(lambda: of("leased") == 0)
    left = waiting()
    assert left > 0, "there was nothing left to stop"
    page = seen.page
    page.locator("tr", has_text="archive-z").get_by_text("paused", exact=True).first.wait_for()
    page.wait_for_timeout(1000)
    assert (waiting(), of("leased")) == (left, 0)
    held = live.console.get("/jobs?source=archive-z&status=queued&status=pending&page_size=1")["jobs"][0]
    seen.open(f"job/{held['id']}")
    seen.wait("in the middle")
    seen.open("sources")
    seen.decide("Resume archive-z", "Resume")
    seen.until_true(lambda: waiting() < left)
