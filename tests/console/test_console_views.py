"""Every view: usable by all, fit for narrow screens, inert to what data may hold, honest when it is cut off."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.console.conftest import PATIENCE_MS, Console, Watched, console_over, watched
from tests.orchestrator_web.conftest import app_over

from DocsToKG.Orchestrator.api.auth.tokens import TokenFile
from DocsToKG.Orchestrator.api.server import serving
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]
NASTY = (
    '"></td><script>window.hit = 1</script><img src=x onerror="window.hit = 1"><a href="javascript:window.hit=1">x</a>'
)
WHY = {"reason": "a test", "ticket": "T-1"}
QUOTA = {"maxActive": 50, "maxPerHour": 5000, "burst": 50, **WHY, "reason": NASTY}


@dataclass
class Furnished:
    """A console over a ledger that holds something for every view."""

    console: Console
    ledger: Path
    run_id: str
    failed: int
    views: list[str]


def furnish(console: Console, path: Path) -> Furnished:
    jobs = [{"artifactId": f"{NASTY}{n}", "payload": {"title": NASTY}, "source": "arxiv"} for n in range(6)]
    ids = [job["id"] for job in console.post("/jobs/bulk", {"jobs": jobs})["jobs"]]
    with SqliteLedger(path) as ledger:
        for job in ledger.lease("worker-1", 3, 600):
            tried = {"url": NASTY, "source": "arxiv", "reason": "html", "http_status": 200, "detail": "a login page"}
            lease = (job.job_id, job.fence, job.lease_id)
            failed = Finish(*lease, JobState.ERROR, NASTY, {"candidates": [tried]})
            ledger.finish(failed if job.job_id == ids[0] else Finish(*lease, JobState.DONE))
        ledger.lease("worker-1", 1, 600)
    console.post("/workers", {"workerId": "worker-1", "node": "a", "kind": "content", "info": {"said": NASTY}})
    console.put("/sources/arxiv", {"state": {"said": NASTY}})
    console.post("/sources/openalex/pause", {**WHY, "reason": NASTY})
    console.post("/limits/throttle", {"jobType": "other", "maxActive": 3, **WHY})
    console.post("/circuit-breakers/crossref/force-open", {**WHY, "reason": NASTY})
    console.post("/circuit-breakers/host:a.example/failure", {"failureReason": NASTY})
    testing = {"source": "arxiv", "host": "b.example", "breaker": "half-open"}
    console.post("/source-hosts", {"workerId": "worker-1", "hosts": [testing]})
    console.post("/incidents", {"source": "host:a.example", "severity": "error", "cause": NASTY})
    console.put("/quotas/content.download", QUOTA)
    console.post("/quota-governance/policies", {"name": NASTY, "strategy": "Equal", "totalCapacity": 60, **WHY})
    run = console.post("/pack-runs", {"project": "p", "channel": NASTY, "heartbeatSeconds": 3600})["packRunId"]
    console.post(f"/pack-runs/{run}/logs", {"lines": [{"line": NASTY}, {"line": "second", "stream": "stderr"}]})
    artifact = {"name": NASTY, "digest": "sha256:" + "0" * 64, "uri": "javascript:window.hit=1", "size": 5}
    console.post(f"/pack-runs/{run}/artifacts", artifact)
    views = [
        *(
            "overview",
            "jobs",
            f"job/{ids[0]}",
            f"job/{ids[5]}",
            "sources",
            "workers",
            "quotas",
            "breakers?key=crossref",
        ),
        *("incidents", "runs", f"run/{run}", "feed"),
    ]
    return Furnished(console, path, run, ids[0], views)


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Furnished]:
    path = tmp_path_factory.mktemp("ledger") / "ledger.sqlite"
    with console_over(path) as console:
        yield furnish(console, path)


@pytest.fixture(scope="module")
def seen(browser: Any, full: Furnished) -> Iterator[Watched]:
    with watched(browser, full.console) as opened:
        yield opened


def settled(seen: Watched, view: str) -> Any:
    page = seen.open(view)
    page.locator("#main .loading").wait_for(state="detached")
    page.wait_for_timeout(150)
    return page


def test_how_far_job_types_are_from_their_limits_is_a_chart(seen: Watched) -> None:
    """DASH-08: starts that are left and jobs that run, of as many as may be, each as a bar and in words."""
    page = settled(seen, "overview")
    chart = page.locator("section[aria-label='Rate limits'] figure.levels svg[role=img]")
    said = chart.get_attribute("aria-label")
    assert said == "Rate limits: content.download may start 50 of 50, running 1 of 50"
    widths = [float(each.get_attribute("width")) for each in chart.locator("rect").all()]
    track, starts, track_again, running = widths
    assert track == track_again == starts
    assert 2 <= running < track / 10
    assert "5k / h" in (chart.text_content() or "").replace("5,000", "5k")


@pytest.mark.parametrize("view", ["overview", "sources", "breakers?key=host:b.example"])
def test_a_breaker_that_is_tested_looks_the_same_everywhere(seen: Watched, view: str) -> None:
    """The API has two spellings of the word, HalfOpen and half-open."""
    badges = settled(seen, view).locator(".badge.is-half-open")
    assert set(badges.all_text_contents()) == {"half open"}
    plain = "getComputedStyle(document.body).color"
    assert badges.first.evaluate(f"badge => getComputedStyle(badge).color !== {plain}")


def test_the_copies_that_were_tried_say_why_they_are_not_the_paper(seen: Watched, full: Furnished) -> None:
    rows = settled(seen, f"job/{full.failed}").get_by_role("region", name="Candidates tried: table").locator("tbody tr")
    assert rows.locator("td").all_text_contents() == ["arxiv", NASTY, "html 200, a login page"]


def violations(page: Any) -> list[str]:
    from axe_playwright_python.sync_playwright import Axe

    return told_of(Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"])


def contrasts(page: Any) -> list[str]:
    """The one rule that other colours can break, on a page that axe is already in."""
    only = "{runOnly: {type: 'rule', values: ['color-contrast']}, resultTypes: ['violations']}"
    return told_of(page.evaluate(f"axe.run({only}).then((found) => found.violations)"))


def told_of(found: list[dict[str, Any]]) -> list[str]:
    return [f"{each['id']}: {node['target']} {node['html'][:120]}" for each in found for node in each["nodes"][:3]]


def test_every_view_can_be_used_by_all_fits_a_phone_and_shows_markup_as_text(browser, full):
    """axe in light colours, its contrast in dark ones too; titles, errors, reasons, names and addresses are text."""
    told: dict[str, list[str]] = {}
    with watched(browser, full.console, color_scheme="light", reduced_motion="reduce") as seen:
        for view in full.views:
            page = settled(seen, view)
            told[view] = violations(page)
            page.evaluate("document.documentElement.dataset.theme = 'dark'")
            told[view] += [f"dark {each}" for each in contrasts(page)]
            page.set_viewport_size({"width": 360, "height": 740})
            width = page.evaluate("document.documentElement.scrollWidth")
            told[view] += [f"{width} pixels wide on a phone"] if width > 360 else []
            page.set_viewport_size({"width": 1280, "height": 860})
            assert page.evaluate("window.hit") is None, view
            assert page.locator("#main script, #main img, #main a[href^='javascript']").count() == 0, view
        page = settled(seen, "quotas")
        page.get_by_role("button", name="New policy…").click()
        page.locator("dialog .preview").wait_for()
        told["dialog"] = violations(page)
        page = settled(seen, f"job/{full.failed}")
        assert NASTY in page.locator(".why").inner_text()
    assert {view: found for view, found in told.items() if found} == {}


def test_markup_is_inert_wherever_an_answer_may_hold_it(browser, full):
    """Also where the service would never let it in, like a tenant's name: every text of every answer is replaced."""

    def spoil(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {key: spoil(each, key) for key, each in value.items()}
        if isinstance(value, list):
            return [spoil(each, name) for each in value]
        fixed = name.endswith(("At", "at", "From", "Until", "until", "state", "status", "State", "severity", "scopes"))
        return value if not isinstance(value, str) or fixed else NASTY

    def answer(route: Any) -> None:
        response = route.fetch()
        route.fulfill(response=response, body=json.dumps(spoil(response.json())))

    with watched(browser, full.console) as seen:
        seen.page.route(lambda url: "/api/" in url and "/streams/" not in url and "/follow" not in url, answer)
        for view in full.views[::2]:
            page = settled(seen, view)
            assert page.evaluate("window.hit") is None, view
            assert page.locator("script:not([src]), #top img:not([src^='/']), a[href^='javascript']").count() == 0, view
            assert NASTY in page.locator("#top .person").inner_text(), "the tenant's name is shown as it is"
        seen.page.unroute_all(behavior="ignoreErrors")


def test_an_action_that_the_token_does_not_allow_says_so(browser, full):
    tokens = TokenFile(full.ledger.with_name(f"{full.ledger.name}.tokens.json"))
    token, _ = tokens.make("reader", scopes=["orch:read"], tenant="default")
    reading = Console(f"{full.console.origin}/console/#token={token}")
    with watched(browser, reading) as seen:
        page = settled(seen, f"job/{full.failed}")
        button = page.get_by_role("button", name="Replay…")
        assert button.get_attribute("aria-disabled") == "true"
        assert "orch:operate" in button.get_attribute("title")
        button.click(force=True)
        page.locator("#notes", has_text="lacks the scope orch:operate").wait_for()
        assert page.locator("dialog").count() == 0
        settled(seen, "quotas")
        assert page.get_by_role("button", name="New policy…").get_attribute("aria-disabled") == "true"
    reading.calls.close()


def test_a_policy_is_tried_before_it_is_saved(seen, full):
    page = settled(seen, "quotas")
    page.get_by_role("button", name="New policy…").click()
    page.locator("dialog [name=priority]").fill("5")
    page.locator("dialog [name=totalCapacity]").fill("12")
    page.locator("dialog .preview", has_text="of 12").wait_for()
    assert page.locator("dialog .preview", has_text="default").count() == 1
    page.locator("dialog").get_by_role("button", name="Cancel").click()
    assert len(full.console.get("/quota-governance/policies")["policies"]) == 1


def test_a_quota_is_changed_with_its_reason(seen, full):
    page = settled(seen, "quotas")
    row = page.locator("section[aria-label=Quotas]")
    row.get_by_role("button", name="Change…").click()
    page.locator("dialog [name=maxActive]").fill("7")
    page.locator("dialog .preview", has_text="→").wait_for()
    page.locator("dialog [name=reason]").fill("less")
    page.locator("dialog").get_by_role("button", name="Save").click()
    page.locator("dialog").wait_for(state="detached")
    [quota] = full.console.get("/quotas")["quotas"]
    full.console.put("/quotas/content.download", QUOTA)  # as the others know it
    assert (quota["maxActive"], quota["quotaReason"]) == (7, "less")


def test_the_keyboard_is_enough(seen):
    page = settled(seen, "overview")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/console/jobs")
    page.wait_for_selector("tbody a[data-job]")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/job/*")
    page.wait_for_selector(".why")
    page.keyboard.press("?")
    page.locator("dialog", has_text="Keys").wait_for()
    page.keyboard.press("Escape")


def test_a_log_grows_by_itself(seen, full):
    page = settled(seen, f"run/{full.run_id}")
    seen.wait("second", ".log")
    full.console.post(f"/pack-runs/{full.run_id}/logs", {"lines": [{"line": "a third line"}]})
    seen.wait("a third line", ".log")
    assert page.locator(".log > div").count() == 3


def test_without_a_token_the_page_says_what_to_do(browser, full):
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{full.console.origin}/")
    page.get_by_role("heading", name="Where do I get one?").wait_for(timeout=PATIENCE_MS)
    assert "docstokg-orchestrator token new" in page.inner_text("main")
    assert violations(page) == []
    page.get_by_label("Token").fill("dtk_wrong")
    page.get_by_role("button", name="Open").click()
    page.get_by_role("heading", name="Open the console").wait_for(timeout=PATIENCE_MS)
    page.get_by_label("Token").fill(full.console.token)
    page.get_by_role("button", name="Open").click()
    page.get_by_role("heading", name="Overview").wait_for(timeout=PATIENCE_MS)
    context.close()


def test_an_empty_ledger_says_how_to_begin(browser, tmp_path):
    with console_over(tmp_path / "empty.sqlite") as console, watched(browser, console) as seen:
        seen.open("overview")
        seen.wait("This ledger holds no jobs yet")


def test_a_lost_connection_is_said_and_caught_up(browser, tmp_path):
    """The service goes and comes back at the same place; what happened meanwhile is there without a reload."""
    with SqliteLedger(tmp_path / "ledger.sqlite") as ledger:
        tokens = TokenFile(tmp_path / "tokens.json")
        token, _ = tokens.make("t", scopes=["orch:read", "orch:operate"], tenant="default")
        first = socket.create_server(("127.0.0.1", 0))
        port = first.getsockname()[1]
        console = Console(f"http://127.0.0.1:{port}/console/#token={token}")
        context = browser.new_context()
        page = context.new_page()
        with serving(app_over(ledger, tokens), first, drain_s=1):
            page.goto(console.address)
            page.locator(".connection", has_text="Live").wait_for(timeout=PATIENCE_MS)
        first.close()
        page.locator(".connection.lost", has_text="Connection lost").wait_for(timeout=PATIENCE_MS)
        with socket.create_server(("127.0.0.1", port)) as again, serving(app_over(ledger, tokens), again, drain_s=1):
            console.post("/jobs", {"payload": {}})
            page.locator(".connection", has_text="Live").wait_for(timeout=PATIENCE_MS)
            page.locator("[data-count=queued]", has_text="1").wait_for(timeout=PATIENCE_MS)
            console.calls.close()
        context.close()
