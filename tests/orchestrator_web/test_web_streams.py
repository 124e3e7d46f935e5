"""Live feeds, read by a real client over a real socket."""

from __future__ import annotations

import threading

import pytest
from tests.orchestrator_web.conftest import app_over, token_for
from tests.orchestrator_web.serving import PATIENCE_S, EventStream, served
from tests.waiting import eventually

from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Finish, NewJob

JOBS = f"{HOME}/streams/jobs"


@pytest.fixture
def port(ledger, tokens):
    with served(app_over(ledger, tokens)) as port:
        yield port


def enqueue(ledger, count, start=0, **fields):
    jobs = [NewJob(f"doi:10.1/{n}", {"n": n}, **fields) for n in range(start, start + count)]
    return [answer.job_id for answer in ledger.enqueue_many(jobs)]


def connected(stream):
    """Wait for the first sign, after which everything that happens is told."""
    assert next(stream.blocks())[""] == "connected"
    return stream


def test_a_reader_sees_a_jobs_way_as_it_happens(ledger, port):
    """STREAM-01, DOC-08."""
    with EventStream(port, JOBS, token_for()) as stream:
        assert (stream.status, stream.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        connected(stream)
        [job_id] = enqueue(ledger, 1, correlation_id="c-1")
        name, place, event = stream.next_event()
        assert (name, event["job"]["id"], event["correlationId"]) == ("job.enqueued", job_id, "c-1")
        assert event["schemaVersion"] == "orch.event.v1"
        assert place
        [job] = ledger.lease("w", 1, 60)
        assert stream.next_event()[0] == "job.leased"
        ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
        name, _, event = stream.next_event()
        assert (name, event["job"]["status"]) == ("job.completed", "succeeded")


def test_whatever_goes_wrong_with_the_news_readers_are_told_of_them_later(ledger, monkeypatch):
    app = app_over(ledger)
    feed = app.state.api.services.feed
    after, failed = feed.after, threading.Event()

    def shaky(*said):
        if not failed.is_set():
            failed.set()
            raise ZeroDivisionError
        return after(*said)

    with served(app) as port, EventStream(port, JOBS, token_for()) as stream:
        connected(stream)
        monkeypatch.setattr(feed, "after", shaky, raising=False)
        assert failed.wait(PATIENCE_S)
        [job_id] = enqueue(ledger, 1)
        assert stream.next_event()[2]["job"]["id"] == job_id


def test_a_reader_that_comes_back_misses_nothing_and_gets_nothing_twice(ledger, port):
    """STREAM-03: while others write, from the last id on."""
    with EventStream(port, JOBS, token_for()) as stream:
        connected(stream)
        enqueue(ledger, 3)
        first = [stream.next_event() for _ in range(2)]
    enqueue(ledger, 700, start=10)
    writer = threading.Thread(target=lambda: [enqueue(ledger, 1, start=10_000 + n) for n in range(50)])
    writer.start()
    with EventStream(port, JOBS, token_for(), Last_Event_ID=first[-1][1]) as stream:
        connected(stream)
        rest = [stream.next_event() for _ in range(751)]
    writer.join(PATIENCE_S)
    seen = [event["job"]["id"] for _, _, event in first + rest]
    assert sorted(seen) == sorted(set(seen)) == list(range(1, 754))


def test_the_same_event_has_the_same_id_for_every_reader(ledger, port):
    with EventStream(port, JOBS, token_for()) as one, EventStream(port, JOBS, token_for()) as two:
        connected(one)
        connected(two)
        enqueue(ledger, 1)
        assert one.next_event() == two.next_event()


def test_other_tenants_and_wrong_places_get_nothing(ledger, port):
    """STREAM-05."""
    with EventStream(port, JOBS, token_for(tenant="theirs")) as stream:
        connected(stream)
        enqueue(ledger, 1)
        enqueue(ledger, 1, start=5, tenant="theirs")
        assert stream.next_event()[2]["tenantId"] == "theirs"
    with EventStream(port, JOBS, token_for()) as ours:
        connected(ours)
        enqueue(ledger, 1, start=9)
        place = ours.next_event()[1]
    for headers in ({"Last_Event_ID": place}, {"Last_Event_ID": "nonsense"}):
        with EventStream(port, JOBS, token_for(tenant="theirs"), **headers) as refused:
            assert (refused.status, refused.body()["error"]["code"]) == (400, "BAD_PAGE_TOKEN")
    with EventStream(port, JOBS, token_for("orch:operate")) as refused:
        assert refused.status == 403
    with EventStream(port, JOBS, "nonsense") as refused:
        assert refused.status == 401


def test_a_slow_reader_is_let_go_with_a_notice_and_can_come_back(ledger):
    """STREAM-04: what it has not read lies neither in memory nor in the way of others."""
    app = app_over(ledger, streams={"buffer_events": 50})
    streams, token = app.state.api.streams, token_for()
    with served(app) as port, EventStream(port, JOBS, token, room=4096) as slow, EventStream(port, JOBS, token) as fast:
        connected(slow)
        connected(fast)
        # Until the sockets and the buffer are full, in steps that the fast one keeps up with.
        start = 0
        while not streams.dropped:
            enqueue(ledger, 40, start=start)
            for _ in range(40):
                fast.next_event()
            start += 40
        assert streams.dropped == 1
        told = list(slow.events())
        assert told[-1]["event"] == "notice"
        assert '"dropped"' in told[-1]["data"]
        with EventStream(port, JOBS, token_for(), Last_Event_ID=told[-2]["id"]) as again:
            connected(again)
            assert again.next_event()[2]["job"]["id"] == len(told)


def test_an_idle_stream_gives_signs_of_life(ledger):
    with (
        served(app_over(ledger, streams={"heartbeat_s": 0.05})) as port,
        EventStream(port, JOBS, token_for()) as stream,
    ):
        connected(stream)
        assert [next(stream.blocks())[""] for _ in range(3)] == ["alive"] * 3


@pytest.mark.slow
def test_a_stream_does_not_outlive_its_token(ledger, tokens):
    with served(app_over(ledger, tokens, streams={"heartbeat_s": 0.05})) as port:
        token, record = tokens.make("reader", scopes=["orch:read"], tenant="default")
        with EventStream(port, JOBS, token) as stream:
            connected(stream)
            tokens.revoke(record.token_id)
            name, _, data = stream.next_event()
            assert (name, data["message"]) == ("notice", "the token is no longer good")
            assert list(stream.blocks()) == []


def test_streams_end_when_the_service_does(ledger):
    app = app_over(ledger)
    with served(app) as port, EventStream(port, JOBS, token_for()) as stream:
        connected(stream)
        app.state.api.streams.close_soon()
        assert [fields["event"] for fields in stream.events()] == ["notice"]
    assert app.state.api.streams.open_streams == 0


def test_no_more_streams_than_there_may_be(ledger):
    with served(app_over(ledger, streams={"max_streams": 1})) as port, EventStream(port, JOBS, token_for()) as stream:
        connected(stream)
        with EventStream(port, JOBS, token_for()) as refused:
            assert (refused.status, refused.body()["error"]["code"]) == (503, "TOO_MANY_STREAMS")


@pytest.mark.slow
def test_the_dashboard_is_told_when_it_changes(ledger, port):
    with EventStream(port, f"{HOME}/streams/dashboard", token_for()) as stream:
        name, _, figures = stream.next_event()
        assert (name, figures["counts"]["queued"]) == ("dashboard.metrics", 0)
        enqueue(ledger, 3)
        while figures["counts"]["queued"] != 3:
            figures = stream.next_event()[2]


def test_pack_runs_have_a_stream_of_their_own(admin, ledger, port):
    with EventStream(port, f"{HOME}/streams/runs", token_for()) as stream:
        connected(stream)
        enqueue(ledger, 1)
        run = admin.post("/pack-runs", {"project": "p", "correlationId": "c"}).json()
        name, _, event = stream.next_event()
        assert (name, event["detail"]["packRunId"]) == ("pack_run.registered", run["packRunId"])
        assert (event["projectId"], event["correlationId"]) == ("p", "c")


def test_the_history_is_read_page_by_page_and_gone_on_with_as_a_stream(admin, ledger, port):
    enqueue(ledger, 5)
    seen, token = [], None
    for _ in range(3):
        page = admin.get("/history?page_size=2" + (f"&page_token={token}" if token else "")).json()
        seen += [event["job"]["id"] for event in page["events"]]
        token = page["next_page_token"]
    assert seen == [1, 2, 3, 4, 5]
    with EventStream(port, JOBS, token_for(), Last_Event_ID=token) as stream:
        connected(stream)
        enqueue(ledger, 1, start=50)
        assert stream.next_event()[2]["job"]["id"] == 6


def test_a_reader_that_is_gone_holds_nothing(ledger):
    app = app_over(ledger, streams={"heartbeat_s": 0.05})
    streams = app.state.api.streams
    with served(app) as port:
        with EventStream(port, JOBS, token_for()) as stream:
            connected(stream)
            assert (streams.open_streams, streams.followed_tenants) == (1, 1)
        eventually(lambda: (streams.open_streams, streams.followed_tenants) == (0, 0))
