"""A source driven by hand: answers in order, no network, and a look at what was asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import strategies as st

from DocsToKG.ContentDownload.api.ports import Call, Page, Resolver
from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.errors import TransientFailure
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.ids.identifier import parse_identifier, to_work

CONTACT = "who@uni.example.edu"
SETTINGS = ResolverSettings(email=CONTACT, api_key="sesame")
CALL = Call(work_id="doi:10.1234/abc")


class ScriptedClient:
    """Answers in order and remembers what was asked for."""

    def __init__(self, *answers: Page | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def fetch(self, url, role, call, *, headers=None):  # type: ignore[no-untyped-def]
        self.asked.append(url)
        return given(self.answers.pop(0))

    def open(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        raise AssertionError("a resolver downloads nothing (RES-09)")


def given(answer: Page | Exception) -> Page:
    """As the real client gives it: an answer that says "not now" is raised."""
    if isinstance(answer, Exception):
        raise answer
    if answer.status == 429 or answer.status >= 500:
        after = answer.headers.get("retry-after")
        raise TransientFailure(
            "http-status",
            f"status {answer.status}",
            http_status=answer.status,
            retry_after_s=float(after) if after else None,
        )
    return answer


def answer(body: Any = b"", status: int = 200, **headers: str) -> Page:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Page(f"https://api.example.org/x?email={CONTACT}", status, named, raw, ())


def named(text: str) -> WorkArtifact:
    return to_work(parse_identifier(text))


def drive(steps: Any) -> Any:
    with pytest.raises(StopIteration) as done:
        steps.send(None)
    return done.value.value


def resolve(source: Resolver, work: WorkArtifact, *answers: Page | Exception) -> tuple[ResolverResult, list[str]]:
    """What the source makes of the answers, and the addresses it asked for."""
    client = ScriptedClient(*answers)
    return drive(source.resolve(work, client, CALL)), client.asked


def ask(
    name: str, work: WorkArtifact, *answers: Page | Exception, settings: ResolverSettings = SETTINGS
) -> ResolverResult:
    built = registry.build([name], settings={name: settings})[name]
    return resolve(built, work, *answers)[0]


def first_words(notes: tuple[str, ...]) -> list[str]:
    return [note.split(":")[0] for note in notes]


def like(example: Any) -> st.SearchStrategy[Any]:
    """JSON with the shape of an example, any part of which may be of another kind or missing."""
    rubbish = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.lists(st.none(), max_size=2)
    rubbish |= st.sampled_from(["https://[", "javascript:x", "10.1/\x00", "\ud800", {}, [[]], {"a": {}}])
    if isinstance(example, dict):
        fields = {key: like(value) for key, value in example.items()}
        return st.fixed_dictionaries({}, optional=fields) | rubbish
    if isinstance(example, list):
        return st.lists(st.one_of([like(item) for item in example]) if example else rubbish, max_size=3) | rubbish
    return st.just(example) | rubbish
