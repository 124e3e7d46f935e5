"""What is said between the service, those who ask it, its workers, and the receivers of its events."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import httpx2
from graphql import GraphQLError, OperationType
from tests.fuzz.target import NOW, Target, text

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.api.auth.admission import parsed
from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.graphql.limits import checked
from DocsToKG.Orchestrator.client.api import OrchestratorClient
from DocsToKG.Orchestrator.control.history.feed import parse_cursor
from DocsToKG.Orchestrator.control.paging import position
from DocsToKG.Orchestrator.errors import BadPage, LedgerError
from DocsToKG.Orchestrator.events.targets import Delivery, DeliveryFailed
from DocsToKG.Orchestrator.events.webhook import Webhook, secret_bytes
from DocsToKG.Orchestrator.jobs.search import MAX_CHARS, MAX_WORDS, parse, pattern

STATUSES = (200, 202, 400, 401, 404, 409, 422, 429, 503)
ASKED: tuple[Callable[[OrchestratorClient], object], ...] = (
    lambda service: service.enqueue({}),
    lambda service: service.enqueue_many([{}]),
    lambda service: service.lease("w-1"),
    lambda service: service.renew(["lease_1_1"]),
    lambda service: service.complete("lease_1_1", "succeeded"),
    lambda service: service.complete_and_lease("lease_1_1", "succeeded", "w-1"),
    lambda service: service.job(1),
    lambda service: next(service.jobs(), None),
    lambda service: service.history(1),
    lambda service: service.report_hosts("w-1", []),
)


def answers_to_a_worker(data: bytes) -> None:
    """One answer to every call. A worker that meets nonsense has one family of errors to catch."""
    for status in (200, 409, 503):
        wire = answering(status, data)
        with OrchestratorClient("http://service.example.org", "t", tries=1, transport=wire) as service:
            for ask in ASKED:
                with contextlib.suppress(LedgerError):
                    ask(service)


def answers_of_a_receiver(data: bytes) -> None:
    """A delivery succeeded, or failed with a wish that lies ahead."""
    delivery = Delivery("e", "t", "tenant", "k", b"{}")
    for status in STATUSES:
        about = {"secret": b"x" * 24, "clock": ManualClock(NOW), "transport": answering(status, data)}
        hook = Webhook("hook", "https://receiver.example.org/", **about)
        retry_after_s = None
        try:
            hook.send(delivery)
        except DeliveryFailed as failed:
            retry_after_s = failed.retry_after_s
        assert retry_after_s is None or retry_after_s >= 0
        hook.close()


def answering(status: int, data: bytes) -> httpx2.MockTransport:
    subscription = data.partition(b"\n")[0].strip(b"\0\r ")[:200]

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(status, headers=[(b"retry-after", subscription)], stream=httpx2.ByteStream(data))

    return httpx2.MockTransport(answer)


def request_body(data: bytes) -> None:
    parsed(data, 32)


def page_token(data: bytes) -> None:
    position("jobs", text(data), (int, str))


def feed_cursor(data: bytes) -> None:
    found = parse_cursor(text(data))
    assert parse_cursor(str(found)).tenant == found.tenant


def search_words(data: bytes) -> None:
    found = parse(text(data))
    assert len(found.words) <= MAX_WORDS
    assert all(len(pattern(word)) <= 2 * MAX_CHARS + 80 for word in (*found.words, *found.errors))


def graph_question(data: bytes) -> None:
    checked(text(data), {"n": 7}, OperationType.QUERY)


def event_secret(data: bytes) -> None:
    assert secret_bytes(text(data))


TARGETS = {
    "answers-to-a-worker": Target(answers_to_a_worker, is_json=True),
    "answers-of-a-receiver": Target(answers_of_a_receiver),
    "request-body": Target(request_body, (Problem,), is_json=True),
    "page-token": Target(page_token, (BadPage,)),
    "feed-cursor": Target(feed_cursor, (BadPage,)),
    "search-words": Target(search_words),
    "graph-question": Target(graph_question, (GraphQLError,)),
    "event-secret": Target(event_secret, (ValueError,)),
}
