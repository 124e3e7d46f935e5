"""GraphQL: reading only, bounded, page by page, and live."""

from __future__ import annotations

import json
import threading

import pytest
from tests.orchestrator_web.conftest import app_over, token_for
from tests.orchestrator_web.serving import EventStream, served

from DocsToKG.Orchestrator.api.middleware import HOME
from DocsToKG.Orchestrator.ledger.base import NewJob


def ask(admin, query, **variables):
    answer = admin.post("/graphql", {"query": query, "variables": variables})
    assert answer.status_code == 200, answer.text
    return answer.json()


def enqueue(ledger, count, **fields):
    ledger.enqueue_many([NewJob(f"doi:10.1/{n}", {"n": n}, **fields) for n in range(count)])


def test_jobs_go_page_by_page(admin, ledger):
    """STREAM-02."""
    enqueue(ledger, 5)
    enqueue(ledger, 2, tenant="theirs")
    query = """query($after: String) { jobs(first: 2, after: $after) {
        nodes { id status jobType createdAt } pageInfo { hasNextPage endCursor } } }"""
    seen, after = [], None
    while True:
        found = ask(admin, query, after=after)["data"]["jobs"]
        seen += [node["id"] for node in found["nodes"]]
        after = found["pageInfo"]["endCursor"]
        if not found["pageInfo"]["hasNextPage"]:
            break
    assert seen == ["5", "4", "3", "2", "1"]


def test_the_graph_tells_what_the_api_tells(admin, ledger):
    enqueue(ledger, 1)
    query = """{ job(id: "1") { artifactId detail } other: job(id: "99") { id } dashboard circuitBreakers quotas
        incidents { nodes } packRuns { nodes } workers { nodes } deadLetters { nodes { id } } }"""
    data = ask(admin, query)["data"]
    assert data["job"]["detail"] == admin.get("/jobs/1").json()
    assert data["dashboard"]["counts"] == admin.get("/dashboard/metrics").json()["counts"]
    assert (data["other"], data["quotas"], data["incidents"]["nodes"]) == (None, [], [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("{ jobs { nodes { nothing } } }", "nothing"),
        ("mutation { cancel }", "only a query"),
        ("subscription { jobEvents { cursor } }", "only a query"),
        ("{ " + "a { " * 20 + "b" + " }" * 21, "nested"),
        ("{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }", "circles"),
        ("{ " + " ".join(f"a{n}: jobs(first: 500) {{ nodes {{ id status }} }}" for n in range(30)) + " }", "costs"),
        ("{ " + "x " * 3000 + "}", "token"),
        ("{", "Syntax Error"),
        ("{ jobs(first: 501) { nodes { id } } }", "between 1 and 500"),
        ('{ jobs(after: "garbage") { nodes { id } } }', "page token"),
        ('{ jobs(status: ["done"]) { nodes { id } } }', "status must be"),
    ],
)
def test_what_it_does_not_answer_is_said(admin, query, words):
    answer = ask(admin, query)
    assert words in answer["errors"][0]["message"], answer


def test_what_nobody_foresaw_says_nothing_of_itself(admin, app, monkeypatch):
    monkeypatch.setattr(app.state.api.services.breakers, "list", _fails, raising=False)
    answer = ask(admin, "{ circuitBreakers }")
    assert answer["errors"][0]["extensions"] == {"code": "INTERNAL"}
    assert "planted" not in json.dumps(answer)


def _fails(*_, **__):
    raise RuntimeError("planted secret")


def test_there_is_no_page_that_loads_from_elsewhere(admin):
    assert admin.get("/graphql").status_code == 405


def _write(ledger, stop):
    number = 0
    while not stop.wait(0.05):
        number += 1
        ledger.enqueue_many([NewJob(f"doi:10.1/{number}", {})])


def test_a_subscription_follows_a_live_run(ledger):
    body = json.dumps({"query": "subscription { jobEvents { cursor eventType envelope } }"})
    with served(app_over(ledger)) as port:
        with EventStream(port, f"{HOME}/graphql/stream", token_for(), method="POST", content=body) as stream:
            assert next(stream.blocks())[""] == "connected"
            # The question is answered from some moment on: jobs are made until one is told.
            stop = threading.Event()
            writer = threading.Thread(target=_write, args=(ledger, stop))
            writer.start()
            try:
                name, _, told = stream.next_event()
            finally:
                stop.set()
                writer.join(30)
            event = told["data"]["jobEvents"]
            assert (name, event["eventType"], event["envelope"]["schemaVersion"]) == (
                "next",
                "job.enqueued",
                "orch.event.v1",
            )
        wrong = json.dumps({"query": "{ dashboard }"})
        with EventStream(port, f"{HOME}/graphql/stream", token_for(), method="POST", content=wrong) as stream:
            told = [fields["event"] for fields in stream.blocks() if "event" in fields]
            assert told == ["next", "complete"]


def test_a_stream_may_be_asked_for_again_with_its_key(caller):
    """What it told cannot be told again, so that nothing is kept of it."""
    asking = caller()
    for _ in range(2):
        answer = asking.post("/graphql/stream", {"query": "{ jobs { nodes { id } } }"}, Idempotency_Key="k")
        assert (answer.status_code, "event: complete" in answer.text) == (200, True)
        assert "idempotency-replayed" not in answer.headers
