"""Impolite traffic is seen, polite traffic is not blamed."""

from __future__ import annotations

import http.client
import os
import signal
import sys
import threading
import time

import pytest
from tests import needs

from DocsToKG.Sandbox import Faults, SandboxServer
from DocsToKG.Sandbox.limits import HostLimit, Limits, RobotsRules, robots_for
from DocsToKG.Sandbox.messages import parse_head
from DocsToKG.Sandbox.politeness import Politeness

LIMITS = Limits(
    rate_factor=1.0,
    overrides={
        "spaced.example": HostLimit(1.0, 1, 4, interval_s=1.0),
        "rated.example": HostLimit(2.0, 5, 4),
        "narrow.example": HostLimit(1000.0, 1000, 2),
    },
)


def _request(host, path="/a", agent="me (mailto:me@university.edu)"):
    return parse_head(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}".encode())


@pytest.fixture
def judge():
    return Politeness(limits=LIMITS)


def _visit(judge, host, at, **options):
    judge.end(judge.begin(_request(host, **options), at, settle=lambda key: None))


def _kinds(judge):
    return [found["kind"] for found in judge.report()["violations"]]


def test_a_gap_shorter_than_the_interval_is_noted_beyond_a_tenth_of_a_second(judge):
    for at in (100.0, 101.0, 101.95, 102.80):
        _visit(judge, "spaced.example", at)
    assert _kinds(judge) == ["interval"]
    assert judge.hosts["spaced.example"].min_gap_s == pytest.approx(0.85)


def test_answers_drawn_out_in_the_only_slot_are_added_up():
    limits = {
        "single.example": HostLimit(1.0, 1, 1, interval_s=1.0),
        "wide.example": HostLimit(1.0, 1, 2, interval_s=1.0),
    }
    judge = Politeness(limits=Limits(rate_factor=1.0, overrides=limits))
    for host in limits:
        for at, took_s in ((100.0, 0.4), (101.0, 3.5), (105.0, 0.0)):
            judge.end(judge.begin(_request(host), at, settle=lambda key: None), took_s=took_s)
    assert {host: judge.hosts[host].as_dict()["drawn_out_s"] for host in limits} == {
        "single.example": 2.5,
        "wide.example": 0.0,
    }


def test_requests_that_are_told_of_in_another_order_are_judged_by_when_they_came(judge):
    for at in (100.0, 99.0, 101.0, 100.9):
        _visit(judge, "spaced.example", at)
    assert _kinds(judge) == ["interval"]
    for at in (100.0, 99.5, 100.1):
        _visit(judge, "rated.example", at)
    assert _kinds(judge) == ["interval"], "no interval is asked there"


def test_rate_times_window_plus_burst_is_allowed_and_no_more(judge):
    allowed = int(2.0 * 10.1 + 5)
    for number in range(allowed):
        _visit(judge, "rated.example", 100.0 + number * 0.01)
    assert _kinds(judge) == []
    _visit(judge, "rated.example", 101.0)
    assert _kinds(judge) == ["rate"]
    _visit(judge, "rated.example", 200.0)
    assert _kinds(judge) == ["rate"], "an old crowd is forgotten"


def test_more_at_once_than_the_cap_is_noted(judge):
    for _ in range(3):
        judge.begin(_request("narrow.example"), 100.0, settle=lambda key: None)
    assert _kinds(judge) == ["concurrency"]
    assert judge.hosts["narrow.example"].max_concurrent == 3


def test_an_exchange_whose_client_has_gone_is_settled_before_blame(judge):
    keys = [judge.begin(_request("narrow.example"), 100.0, settle=lambda key: None) for _ in range(2)]
    judge.begin(_request("narrow.example"), 100.1, settle=judge.end)
    assert _kinds(judge) == []
    assert keys == ["narrow.example"] * 2


def test_a_request_before_retry_after_has_passed_is_noted(judge):
    judge.hold("rated.example", 100.0, 2.0)
    _visit(judge, "rated.example", 100.2)
    assert _kinds(judge) == [], "it was on its way already"
    _visit(judge, "rated.example", 101.0)
    _visit(judge, "rated.example", 101.95)
    assert _kinds(judge) == ["retry-after"]


def test_robots_rules_are_judged_and_robots_txt_itself_is_free(judge):
    _visit(judge, "www.walledgarden.example", 100.0, path="/robots.txt")
    _visit(judge, "www.walledgarden.example", 100.1, path="/about")
    assert _kinds(judge) == []
    _visit(judge, "www.walledgarden.example", 100.2, path="/article/1000001")
    _visit(judge, "www.flickering.example", 100.2, path="/article/1000001")
    assert _kinds(judge) == ["robots", "robots"]


def test_an_agent_without_an_address_is_noted(judge):
    _visit(judge, "rated.example", 100.0, agent="python-requests/2")
    assert _kinds(judge) == ["unidentified"]


def test_a_reset_forgets_all_but_what_is_under_way(judge):
    key = judge.begin(_request("narrow.example"), 100.0, settle=lambda key: None)
    judge.reset()
    assert judge.report()["total"] == 0
    assert judge.hosts[key].active == 1


def test_published_rates_are_multiplied_and_crawl_delays_told_as_they_hold():
    limits = Limits(rate_factor=20.0)
    assert limits.of("export.arxiv.org").interval_s == pytest.approx(0.15)
    assert limits.of("export.arxiv.org").burst == 1
    assert limits.of("api.unpaywall.org").rate_per_s == 200
    assert robots_for("arxiv.org", 20.0).crawl_delay_s == limits.of("arxiv.org").interval_s == 0.75
    assert limits.of("www.slowlane.example").interval_s == 1.0
    assert limits.key_of("web.archive.org", "/cdx/search/cdx") == "web.archive.org/cdx"
    assert limits.key_of("web.archive.org", "/web/2020id_/x") == "web.archive.org"


def test_the_longest_robots_rule_decides_and_allow_wins_a_tie():
    """ROB-09."""
    rules = RobotsRules(allow=("/a/open", "/b"), disallow=("/a", "/b"))
    assert rules.permits("/a/open/1")
    assert not rules.permits("/a/shut")
    assert rules.permits("/b/1")
    assert rules.permits("/c")
    assert RobotsRules(status=404).permits("/x")
    assert not RobotsRules(status=503).permits("/x")


def test_the_server_sees_haste_on_arxiv(troubled, ask, first_with):
    sandbox = troubled()
    _, copy = first_with(sandbox, "arxiv")
    for _ in range(2):
        ask(sandbox, copy.pdf_url)
    found = sandbox.violations()
    assert [violation["kind"] for violation in found] == ["interval"]
    assert found[0]["host"] == "arxiv.org"
    assert sandbox.counters()["hosts"]["arxiv.org"]["min_gap_s"] < 0.5


def test_the_server_sees_a_client_that_does_not_wait_when_told(troubled, ask):
    sandbox = troubled("rate_limited")
    url = f"https://doi.org/{sandbox.world.work(1).doi}"
    assert ask(sandbox, url).status == 429
    time.sleep(0.35)  # beyond what is forgiven as already under way
    ask(sandbox, url)
    assert [violation["kind"] for violation in sandbox.violations()] == ["retry-after"]


def test_the_server_sees_robots_ignored_and_missing_addresses(troubled, ask, first_with):
    sandbox = troubled("robots_disallow")
    _, copy = first_with(sandbox, "publisher", lambda w, c: c.publisher.robots == "disallow")
    ask(sandbox, copy.landing_url, User_Agent="curl/8")
    assert sorted(violation["kind"] for violation in sandbox.violations()) == ["robots", "unidentified"]


def _start(sandbox, copy):
    connection = http.client.HTTPConnection("127.0.0.1", sandbox.port, timeout=10)
    host, _, rest = copy.pdf_url.removeprefix("https://").partition("/")
    connection.request("GET", f"/{rest}", headers={"Host": host, "User-Agent": "t (mailto:t@t.t)"})
    return connection


def test_the_server_sees_too_many_at_once(troubled, first_with):
    sandbox = troubled("slow", slow_s=20.0)
    _, copy = first_with(sandbox, "arxiv")
    connections = [_start(sandbox, copy) for _ in range(2)]
    deadline = time.monotonic() + 30
    while sandbox.counters()["hosts"].get("arxiv.org", {}).get("max_concurrent", 0) < 2:
        assert time.monotonic() < deadline
    for connection in connections:
        connection.close()
    assert "concurrency" in {violation["kind"] for violation in sandbox.violations()}


def test_a_client_that_cancels_before_it_asks_again_is_not_blamed(troubled):
    sandbox = troubled("stalled", stall_s=30.0, works=200)
    copies = [copy for index in range(200) if (copy := sandbox.world.work(index).copy("arxiv"))]
    assert len(copies) > 20
    for copy in copies[:20]:
        connection = _start(sandbox, copy)
        response = connection.getresponse()
        response.close()
        connection.close()
    assert sandbox.counters()["hosts"]["arxiv.org"]["max_concurrent"] == 1
    assert "concurrency" not in {violation["kind"] for violation in sandbox.violations()}


def test_polite_traffic_leaves_no_violation(troubled, ask):
    sandbox = troubled()
    done = []

    def client(number):
        for index in range(number, 40, 4):
            work = sandbox.world.work(index)
            done.append(ask(sandbox, f"https://api.unpaywall.org/v2/{work.serial}?email=me@university.edu").status)

    threads = [threading.Thread(target=client, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 40
    assert sandbox.violations() == []


@needs.system(sys.platform == "linux", "Linux, which says when the last data came")
def test_a_server_that_was_kept_from_running_does_not_blame_its_clients():
    """What counts is when a request arrived, not when the machine let the server look at it."""
    with SandboxServer(works=5, faults=Faults.none()) as sandbox:  # 20 times the published rates: 0.15 s apart
        connection = http.client.HTTPConnection("127.0.0.1", sandbox.port, timeout=20)
        headers = {"Host": "export.arxiv.org", "User-Agent": "me (mailto:me@university.edu)"}
        connection.request("GET", "/abs/2104.00001", headers=headers)
        connection.getresponse().read()
        time.sleep(0.16)
        os.kill(sandbox.pid, signal.SIGSTOP)
        try:
            connection.request("GET", "/abs/2104.00002", headers=headers)
            time.sleep(0.16)
        finally:
            os.kill(sandbox.pid, signal.SIGCONT)
        connection.getresponse().read()
        connection.request("GET", "/abs/2104.00003", headers=headers)
        connection.getresponse().read()
        connection.close()
        assert sandbox.violations() == []
        assert 0.14 <= sandbox.counters()["hosts"]["export.arxiv.org"]["min_gap_s"] < 0.3
