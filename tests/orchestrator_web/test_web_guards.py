"""What is refused, how it is told, and what every answer carries."""

from __future__ import annotations

import logging
import threading
from functools import partial

import anyio
import pytest
from starlette.testclient import TestClient
from tests.orchestrator_web.conftest import app_over, caller_of, token_for
from tests.orchestrator_web.serving import EventStream, served
from tests.waiting import eventually

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator import errors
from DocsToKG.Orchestrator.api import idempotency as idempotency
from DocsToKG.Orchestrator.api.auth.rate_limit import RateLimiter
from DocsToKG.Orchestrator.api.errors import problem_of
from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.errors import LedgerBusy, LedgerDamaged, LedgerError

JSON = {"Content-Type": "application/json"}


def is_envelope(answer) -> bool:
    error = answer.json()["error"]
    return (
        set(error) - {"details"} == {"code", "message", "trace_id"}
        and error["trace_id"] == answer.headers["x-trace-id"]
    )


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("GET", f"{HOME}/nothing", 404),
        ("PATCH", f"{HOME}/jobs", 405),
        ("DELETE", "/healthz", 405),
        ("GET", f"{HOME}/jobs", 401),
        ("GET", f"{HOME}/jobs/", 404),
        ("GET", f"{HOME}/jobs?search=%00", 400),
        ("GET", f"{HOME}/jobs/%00", 400),
        ("GET", f"{HOME}/jobs?search=" + "x" * 9000, 414),
        ("GET", "/docs", 404),
        ("GET", "/openapi.json", 404),
    ],
)
def test_every_refusal_has_one_form(client, method, path, status):
    """API-30."""
    answer = client.request(method, path)
    assert answer.status_code == status
    assert is_envelope(answer)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/jobs/0", 422),
        ("/jobs/x", 422),
        ("/jobs/99999999999999999999", 422),
        ("/jobs?page_size=0", 422),
        ("/jobs/7", 404),
    ],
)
def test_what_does_not_fit_is_told_without_what_was_sent(admin, path, status):
    answer = admin.get(path)
    assert (answer.status_code, is_envelope(answer)) == (status, True)
    assert "99999999999999999999" not in answer.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 400),
        (b"\xff", 400),
        (b'{"payload": ' + b"[" * 100 + b"]" * 100 + b"}", 400),
        (b'{"payload": {"a": NaN}}', 400),
        (b'{"payload": {"a": "\\u0000"}}', 400),
        (b'{"payload": {"a": "\\ud800"}}', 400),
        (b'{"payload": {"a": "\\\\u0000 [[[["}}', 201),
        (b'{"payload": {}, "surprise": 1}', 422),
        (b'{"payload": {}, "priority": 1e999}', 400),
        (b"[]", 422),
        (b"", 422),
        (b'{"payload": {"a": "' + b"x" * 1_100_000 + b'"}}', 413),
        (b"[" * 200_000, 400),
    ],
)
def test_hostile_bodies_are_refused_in_the_same_form(client, content, status):
    headers = {"Authorization": f"Bearer {token_for()}", **JSON}
    answer = client.post(f"{HOME}/jobs", content=content, headers=headers)
    assert answer.status_code == status, answer.text
    assert status == 201 or is_envelope(answer)


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded", "application/jsonp", ""])
def test_a_body_of_another_kind_is_refused_with_the_way_out(client, media):
    """What `curl -d` says without a header is not JSON, and a message about its fields would mislead."""
    headers = {"Authorization": f"Bearer {token_for()}", "Content-Type": media}
    answer = client.post(f"{HOME}/jobs", content=b'{"payload": {}}', headers=headers)
    assert answer.status_code == 415
    assert is_envelope(answer)
    assert "application/json" in answer.json()["error"]["message"]


def test_json_may_say_more_of_itself(client):
    headers = {"Authorization": f"Bearer {token_for()}", "Content-Type": "application/json; charset=utf-8"}
    assert client.post(f"{HOME}/jobs", content=b'{"payload": {}}', headers=headers).status_code == 201


def test_a_filter_that_nobody_knows_is_refused_and_not_left_out(admin):
    """A misspelled filter would give the jobs of all types to whoever cancels what it is given."""
    admin.post("/jobs", {"payload": {}})
    answer = admin.get("/jobs?jobtype=x&page_size=5")
    assert answer.status_code == 422
    [told] = answer.json()["error"]["details"]
    assert told["where"] == "query.jobtype"
    assert "jobType" in told["why"]
    assert admin.get("/jobs/1?verbose=1").status_code == 422
    assert admin.post("/jobs?dry=1", {"payload": {}}).status_code == 422
    assert len(admin.get("/jobs?jobType=content.download").json()["jobs"]) == 1


def test_a_body_without_a_length_is_cut_off_too(client):
    headers = {"Authorization": f"Bearer {token_for()}", **JSON}
    answer = client.post(f"{HOME}/jobs", content=(b"x" * 65536 for _ in range(40)), headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "BODY_TOO_LARGE")


def test_a_body_that_does_not_come_is_not_waited_for(ledger):
    with served(app_over(ledger, body_seconds=0.2)) as port:
        lines = {"Content_Type": "application/json", "Content_Length": "10"}
        with EventStream(port, f"{HOME}/jobs", token_for(), method="POST", **lines) as answer:
            assert (answer.status, answer.body()["error"]["code"]) == (408, "TOO_SLOW")


def test_too_many_headers_are_refused(client):
    answer = client.get("/healthz", headers={f"x-{n}": "1" for n in range(200)})
    assert (answer.status_code, is_envelope(answer)) == (431, True)
    assert client.get("/healthz", headers={"x": "y" * 20_000}).status_code == 431


def test_every_answer_carries_the_headers_of_safety(client, admin):
    for answer in (client.get("/healthz"), client.get("/nothing"), admin.get("/jobs")):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"


def test_a_token_asks_only_so_often(ledger):
    clock = ManualClock()
    app = app_over(ledger, rate_limiter=RateLimiter(per_second=1, burst=2, clock=clock))
    with TestClient(app) as client:
        first, other = caller_of(client)(), caller_of(client)(tenants=("x",))
        other.token = token_for(tenant="other")
        assert [first.get("/jobs").status_code for _ in range(3)] == [200, 200, 429]
        refused = first.get("/jobs")
        assert (refused.headers["retry-after"], refused.headers["x-ratelimit-remaining"]) == ("2", "0")
        assert int(refused.headers["x-ratelimit-reset"]) == int(clock.now()) + 2
        assert is_envelope(refused)
        clock.advance(1)
        assert first.get("/jobs").status_code == 200


def test_rates_are_kept_apart_and_bounded():
    rate_limiter = RateLimiter(per_second=1, burst=1, clock=ManualClock())
    assert rate_limiter.take("a").wait_s == 0
    assert rate_limiter.take("a").wait_s > 0
    assert rate_limiter.take("b").wait_s == 0
    for n in range(20_000):
        rate_limiter.take(str(n))
    assert len(rate_limiter) <= 10_000


def test_what_nobody_foresaw_says_nothing_of_itself(make_app, ledger, monkeypatch, caplog):
    """The trace id names it in the log."""
    app = make_app()
    monkeypatch.setattr(app.state.api.services.jobs, "list", _fails, raising=False)
    with TestClient(app, raise_server_exceptions=False) as client, caplog.at_level(logging.ERROR):
        answer = caller_of(client)().get("/jobs")
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "INTERNAL")
    assert "planted" not in answer.text
    assert "planted" in caplog.text
    assert caplog.records[-1].trace_id == answer.json()["error"]["trace_id"]


def _fails(*_, **__):
    raise RuntimeError("planted secret")


def test_a_ledger_that_is_away_is_told_without_its_place(make_app, monkeypatch):
    app = make_app()
    for error, code in ((LedgerBusy("busy"), "BUSY"), (LedgerDamaged("/secret/path is broken"), "LEDGER_UNUSABLE")):

        def fails(*_, error=error, **__):
            raise error

        monkeypatch.setattr(app.state.api.services.jobs, "list", fails, raising=False)
        with TestClient(app) as client:
            answer = caller_of(client)().get("/jobs")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, code)
        assert (answer.headers["retry-after"], "secret" in answer.text) == ("1", False)


def test_every_error_of_the_ledger_has_a_status():
    """Translate at the border, once: no error of ours is unmapped."""
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, LedgerError):
            made = kind.__new__(kind)
            Exception.__init__(made, "words")
            assert problem_of(made) is not None, kind


def test_a_request_that_takes_too_long_is_answered(make_app, monkeypatch):
    app = make_app(request_seconds=0.1)
    gate = threading.Event()
    monkeypatch.setattr(app.state.api.services.jobs, "list", lambda *_, **__: gate.wait(30), raising=False)
    with TestClient(app) as client:
        try:
            answer = caller_of(client)().get("/jobs")
        finally:
            gate.set()
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "TIMED_OUT")


def test_requests_that_took_too_long_keep_their_slots_until_they_are_through(make_app, monkeypatch):
    """What was answered 504 is still at work: slow work must not pile up beyond the cap."""
    app = make_app(request_seconds=0.1, threads=anyio.CapacityLimiter(2))
    gate, begun = threading.Event(), []
    services = app.state.api.services
    monkeypatch.setattr(services.jobs, "list", lambda *_, **__: begun.append(1) or gate.wait(30), raising=False)
    with TestClient(app) as client:
        ask = caller_of(client)().get
        try:
            assert [ask("/jobs").status_code for _ in range(4)] == [504] * 4
            assert (len(begun), ask("/quotas").status_code) == (2, 504)  # those without a slot were not begun
        finally:
            gate.set()
        eventually(lambda: ask("/quotas").status_code == 200)
    assert len(begun) == 2


def test_a_request_that_takes_too_long_acts_once_however_often_it_is_sent(make_app, ledger, monkeypatch):
    """API-29: the thread that was waited for in vain may still act."""
    app = make_app(request_seconds=1.0)
    jobs, gate = app.state.api.services.jobs, threading.Event()
    submit = jobs.submit
    monkeypatch.setattr(jobs, "submit", lambda *said, **more: gate.wait(30) and submit(*said, **more), raising=False)
    with TestClient(app) as client:
        send = partial(caller_of(client)().post, "/jobs/bulk", {"jobs": [{"payload": {}}]}, Idempotency_Key="k")
        try:
            assert [send().status_code, send().status_code] == [504, 409]
        finally:
            gate.set()
        again = eventually(lambda: (answer := send()).status_code not in (409, 504) and answer)
    assert (again.status_code, again.headers["idempotency-replayed"]) == (201, "true")
    assert ledger.stats()["total"] == 1


def test_the_key_of_a_request_is_held_while_it_is_at_work(make_app, monkeypatch):
    """A backfill may take longer than a minute, after which a key that nobody holds counts as abandoned."""
    app = make_app(request_seconds=0.1, threads=anyio.CapacityLimiter(1))
    gate, holds, doors = threading.Event(), threading.Semaphore(0), app.state.api
    hold = doors.services.answers.hold

    def held(*place):
        hold(*place)
        holds.release()
        raise LedgerBusy("said again")

    monkeypatch.setattr(idempotency, "HOLD_S", 0.01)
    monkeypatch.setattr(doors.services.answers, "hold", held, raising=False)
    monkeypatch.setattr(doors.services.jobs, "submit", lambda *_, **__: gate.wait(30), raising=False)
    with TestClient(app) as client:
        try:
            sent = caller_of(client)().post("/jobs/bulk", {"jobs": [{"payload": {}}]}, Idempotency_Key="k")
            assert sent.status_code == 504
            assert all(holds.acquire(timeout=20) for _ in range(3))
        finally:
            gate.set()


@pytest.mark.parametrize(
    ("reason", "ticket", "status"),
    [("x" * 256, "y" * 128, 200), ("x" * 257, None, 422), ("ok", "y" * 129, 422), ("  ", None, 400)],
)
def test_reasons_and_tickets_are_bounded(caller, reason, ticket, status):
    asking = caller()
    job = asking.post("/jobs", {"payload": {}}).json()["id"]
    headers = {"X-Reason": reason} | ({"X-Ticket": ticket} if ticket else {})
    assert asking.post(f"/jobs/{job}/cancel", None, **headers).status_code == status


def test_health_tells_when_the_ledger_is_away(make_app, ledger):
    with TestClient(make_app()) as client:
        assert client.get("/readyz").json() == {"status": "ok"}
        ledger.close()
        assert client.get("/healthz").json() == {"status": "ok"}
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"status": "unavailable"})
