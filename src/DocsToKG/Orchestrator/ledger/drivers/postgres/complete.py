"""What workers say of their leases: finished, failed, given back, begun. Many at once, each fenced by itself.

Orders of one kind become one statement over arrays; only orders for the same job keep their order. A lost lease is an
answer in its place and spoils none of the others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from DocsToKG.Orchestrator.errors import LeaseLost
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, FinishResult, Progress, Release
from DocsToKG.Orchestrator.ledger.checks import End, delay_ms, host_name, release_delay_ms, result_text, short_error
from DocsToKG.Orchestrator.ledger.drivers.postgres.transaction import Transaction, as_json
from DocsToKG.Orchestrator.ledger.transaction import answered

Answer = FinishResult | JobState | LeaseLost | None


class Failing(NamedTuple):
    """A `Fail` as it is written."""

    job_id: int
    fence: int
    lease_id: str
    max_attempts: int
    last_error: str | None
    result_json: str | None
    delay_ms: int


class Releasing(NamedTuple):
    """A `Release` as it is written."""

    job_id: int
    fence: int
    lease_id: str
    counted: int
    host_key: str | None
    delay_ms: int
    why: str | None


class Progressing(NamedTuple):
    """A `Progress` as it is written."""

    job_id: int
    fence: int
    lease_id: str
    stage: str
    begun: bool
    host_key: str | None


Order = End | Failing | Releasing | Progressing


def failing(fail: Fail) -> Failing:
    error, result = plain(short_error(fail.last_error)), result_text(fail.result)
    names = (fail.job_id, fail.fence, fail.lease_id)
    return Failing(*names, fail.max_attempts, error, result, delay_ms(fail.delay_s))


def releasing(release: Release) -> Releasing:
    names = (release.job_id, release.fence, release.lease_id)
    delay, host = release_delay_ms(release.delay_s), host_name(release.host_key)
    return Releasing(*names, int(release.count_attempt), host, delay, plain(short_error(release.why)))


def progressing(progress: Progress) -> Progressing:
    names, stage = (progress.job_id, progress.fence, progress.lease_id), plain(progress.stage[:64]) or ""
    return Progressing(*names, stage, progress.begun, host_name(progress.host_key))


def ending(end: End) -> End:
    outcome, error, lease_id = plain(end.outcome) or end.state, plain(end.last_error), plain(end.lease_id) or ""
    return End(end.job_id, end.fence, lease_id, end.state, outcome, error, end.result_json)


def plain(text: str | None) -> str | None:
    """PostgreSQL's texts have no place for NUL."""
    return text if text is None or "\0" not in text else text.replace("\0", "\ufffd")


def settle(tx: Transaction, orders: Sequence[Order]) -> list[Answer]:
    """One answer per order, in their order."""
    answers: list[Answer] = [None] * len(orders)
    for kind, places in _waves(orders):
        group: list[Any] = [orders[place] for place in places]
        for place, answer in zip(places, _SETTLE[kind](tx, group), strict=True):
            answers[place] = answer
    return answers


def _waves(orders: Sequence[Order]) -> list[tuple[type[Order], list[int]]]:
    """Groups of one kind that name no job twice; a later order for a job is in a later wave."""
    waves: defaultdict[int, defaultdict[type[Order], list[int]]] = defaultdict(lambda: defaultdict(list))
    seen: Counter[int] = Counter()
    for place, order in enumerate(orders):
        waves[seen[order.job_id]][type(order)].append(place)
        seen[order.job_id] += 1
    return [(kind, places) for number in sorted(waves) for kind, places in waves[number].items()]


def _finish(tx: Transaction, ends: Sequence[End]) -> list[Answer]:
    owned = {row[0]: row for row in tx.rows("finish", {"ends": as_json("iflsoer", ends), "now": tx.now_ms})}
    moves = []
    for end in ends:
        row = owned.get(end.job_id)
        if row is not None:
            moves.append(
                (end.job_id, row[1], row[2], "in_progress", end.state, end.fence, row[3], end.lease_id, end.last_error)
            )
    tx.moved_all("finished", moves, answered=answered(ends))
    return answers_to_ends(tx, ends, owned)


def answers_to_ends(tx: Transaction, ends: Sequence[End], owned: Container[int]) -> list[Answer]:
    """What to say to those whose lease was owned still, and to the others."""
    late = _ends_of(tx, [end for end in ends if end.job_id not in owned])
    return ["applied" if end.job_id in owned else _already(end, late, {end.state}) for end in ends]


def _fail(tx: Transaction, fails: Sequence[Failing]) -> list[Answer]:
    values = {
        **_names(fails),
        "caps": [fail.max_attempts for fail in fails],
        "errors": [fail.last_error for fail in fails],
        "results": [fail.result_json for fail in fails],
        "delays": [fail.delay_ms for fail in fails],
        "now": tx.now_ms,
    }
    owned = {row[0]: row for row in tx.rows("fail", values)}
    moves, answers = [], list[Answer]()
    late = _ends_of(tx, [fail for fail in fails if fail.job_id not in owned])
    for fail in fails:
        row = owned.get(fail.job_id)
        if row is None:
            answer = _already(fail, late, {"queued", "error"})
            answers.append(answer if isinstance(answer, LeaseLost) else JobState(late[fail.job_id][3]))
            continue
        _, tenant, job_type, attempts, state = row
        answers.append(JobState(state))
        moves.append(
            (fail.job_id, tenant, job_type, "in_progress", state, fail.fence, attempts, fail.lease_id, fail.last_error)
        )
    tx.moved_all("failed", moves)
    return answers


def _release(tx: Transaction, releases: Sequence[Releasing]) -> list[Answer]:
    values = {
        **_names(releases),
        "counted": [order.counted for order in releases],
        "hosts": [order.host_key for order in releases],
        "delays": [order.delay_ms for order in releases],
        "now": tx.now_ms,
    }
    owned = {row[0]: row for row in tx.rows("release", values)}
    held = [order for order in releases if order.job_id in owned]
    tx.moved_all(
        "released",
        [
            (o.job_id, row[1], row[2], "in_progress", row[4], o.fence, row[3], o.lease_id, o.why)
            for o, row in ((order, owned[order.job_id]) for order in held)
        ],
    )
    return [JobState(owned[o.job_id][4]) if o.job_id in owned else LeaseLost(o.job_id, o.fence) for o in releases]


def _progress(tx: Transaction, words: Sequence[Progressing]) -> list[Answer]:
    values = {
        **_names(words),
        "stages": [word.stage for word in words],
        "begun": [word.begun for word in words],
        "hosts": [word.host_key for word in words],
        "now": tx.now_ms,
    }
    owned = {row[0] for row in tx.rows("progress", values)}
    return [None if word.job_id in owned else LeaseLost(word.job_id, word.fence) for word in words]


_SETTLE: Mapping[type[Order], Callable[[Transaction, Sequence[Any]], list[Answer]]] = {
    End: _finish,
    Failing: _fail,
    Releasing: _release,
    Progressing: _progress,
}


def _names(orders: Sequence[Order]) -> dict[str, list[Any]]:
    return {
        "ids": [order.job_id for order in orders],
        "fences": [order.fence for order in orders],
        "lease_ids": [plain(order.lease_id) for order in orders],
    }


def _ends_of(tx: Transaction, orders: Sequence[End | Failing]) -> dict[int, tuple[Any, ...]]:
    return {row[0]: row for row in tx.rows("leases_of", _names(orders))} if orders else {}


def _already(order: End | Failing, late: Mapping[int, tuple[Any, ...]], states: set[str]) -> FinishResult | LeaseLost:
    """The same answer given twice is no harm: the first reply may have been lost on the way."""
    row = late.get(order.job_id)
    same = row is not None and row[3] in states and (row[4], row[5]) == (order.last_error, order.result_json)
    return "already" if same else LeaseLost(order.job_id, order.fence)
