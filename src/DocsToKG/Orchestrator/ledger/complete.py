"""What workers say of their leases: finished, failed, given back, begun. Many at once, each fenced by itself.

Orders of one kind become one statement; only orders for the same job keep their order. A lost lease is an answer in its
place and spoils none of the others. The same end given twice is no harm: the first reply may have been lost on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, NamedTuple

from DocsToKG.Orchestrator.errors import LeaseLost
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, FinishResult, Progress, Release
from DocsToKG.Orchestrator.ledger.chain import Move
from DocsToKG.Orchestrator.ledger.checks import (
    End,
    delay_ms,
    host_name,
    release_delay_ms,
    result_text,
    short_error,
    storable,
)
from DocsToKG.Orchestrator.ledger.transaction import Transaction, answered

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
    """A `Release` as it is written, and why."""

    job_id: int
    fence: int
    lease_id: str
    counted: int
    host_key: str | None
    delay_ms: int
    why: str | None


Order = End | Failing | Releasing | Progress


def failing(fail: Fail) -> Failing:
    error, result = short_error(fail.last_error), result_text(fail.result)
    names = (fail.job_id, fail.fence, storable(fail.lease_id))
    return Failing(*names, fail.max_attempts, error, result, delay_ms(fail.delay_s))


def releasing(release: Release) -> Releasing:
    names = (release.job_id, release.fence, storable(release.lease_id))
    delay, host = release_delay_ms(release.delay_s), host_name(release.host_key)
    return Releasing(*names, int(release.count_attempt), host, delay, short_error(release.why))


def progressing(progress: Progress) -> Progress:
    job_id, fence, lease_id, stage, begun, host = progress
    asked = None if host is None else host_name(host)
    return Progress(job_id, fence, storable(lease_id), storable(stage[:64]), begun, asked)


def complete(tx: Transaction, orders: Sequence[Order]) -> list[Answer]:
    """One answer per order, in their order."""
    if len({type(order) for order in orders}) == 1 and len({order[0] for order in orders}) == len(orders):
        return _WRITE[type(orders[0])](tx, orders)  # as nearly always
    answers: list[Answer] = [None] * len(orders)
    for kind, places in _waves(orders):
        group = [orders[place] for place in places]
        for place, answer in zip(places, _WRITE[kind](tx, group), strict=True):
            answers[place] = answer
    return answers


def _waves(orders: Sequence[Order]) -> list[tuple[type[Order], list[int]]]:
    """Groups of one kind that name no job twice, but for words of one lease about its progress. A later order for a job
    is in a later wave."""
    waves: dict[tuple[int, type[Order]], list[int]] = {}
    last: dict[int, tuple[int, Order]] = {}
    for place, order in enumerate(orders):
        kind, known = type(order), last.get(order[0])
        number = 0
        if known is not None:
            goes_on = kind is Progress and type(known[1]) is Progress and known[1][:3] == order[:3]
            number = known[0] + (not goes_on)
        last[order[0]] = (number, order)
        waves.setdefault((number, kind), []).append(place)
    return [(kind, waves[number, kind]) for number, kind in sorted(waves, key=lambda wave: wave[0])]


def _finish(tx: Transaction, ends: Sequence[End]) -> list[Answer]:
    owned = {row[0]: row for row in tx.write_rows("finish", ends)}
    moves: list[Move] = []
    for job_id, fence, lease_id, state, _, error, _ in ends:
        row = owned.get(job_id)
        if row is not None:
            moves.append((job_id, row[1], row[2], "in_progress", state, fence, row[3], lease_id, error))
    tx.moved_all("finished", moves, answered=answered(ends) if tx.control_version else ())
    return answers_to_ends(tx, ends, owned)


def answers_to_ends(tx: Transaction, ends: Sequence[End], owned: Container[int]) -> list[Answer]:
    """What to say to those whose lease was owned still, and to the others."""
    late = _leases_of(tx, [end for end in ends if end.job_id not in owned])
    return ["applied" if end.job_id in owned else _already(end, late, {end.state}) for end in ends]


def _fail(tx: Transaction, fails: Sequence[Failing]) -> list[Answer]:
    owned = {row[0]: row for row in tx.write_rows("fail", fails)}
    late = _leases_of(tx, [fail for fail in fails if fail.job_id not in owned])
    answers: list[Answer] = []
    for fail in fails:
        row = owned.get(fail.job_id)
        if row is not None:
            answers.append(JobState(row[4]))
            continue
        answer = _already(fail, late, {"queued", "error"})
        answers.append(answer if isinstance(answer, LeaseLost) else JobState(late[fail.job_id][1]))
    tx.moved_all("failed", [_back(fail, owned[fail.job_id], fail.last_error) for fail in fails if fail.job_id in owned])
    return answers


def _release(tx: Transaction, releases: Sequence[Releasing]) -> list[Answer]:
    owned = {row[0]: row for row in tx.write_rows("release", [order[:-1] for order in releases])}
    held = [order for order in releases if order.job_id in owned]
    tx.moved_all("released", [_back(order, owned[order.job_id], order.why) for order in held])
    return [JobState(owned[o.job_id][4]) if o.job_id in owned else LeaseLost(o.job_id, o.fence) for o in releases]


def _back(order: Failing | Releasing, row: Sequence[Any], reason: str | None) -> Move:
    _, tenant, job_type, attempts, state = row
    return (order.job_id, tenant, job_type, "in_progress", state, order.fence, attempts, order.lease_id, reason)


def _progress(tx: Transaction, orders: Sequence[Progress]) -> list[Answer]:
    """The last word of each lease is written."""
    words: dict[tuple[int, int, str], tuple[str, bool, str | None]] = {}
    for job_id, fence, lease_id, stage, begun, host in orders:
        name = (job_id, fence, lease_id)
        _, was_begun, known = words.get(name, ("", False, None))
        words[name] = (stage, was_begun or begun, host or known)
    # Nearly all say no more than that the job has begun, and write no more than that.
    short = [(*name, word[0]) for name, word in words.items() if word[1:] == (True, None)]
    full = [(*name, *word) for name, word in words.items() if word[1:] != (True, None)]
    held = {row[0] for row in (*tx.write_rows("progress", short), *tx.write_rows("progress_hosts", full))}
    return [None if order[0] in held else LeaseLost(order[0], order[1]) for order in orders]


_WRITE: Mapping[type[Order], Callable[[Transaction, Sequence[Any]], list[Answer]]] = {
    End: _finish,
    Failing: _fail,
    Releasing: _release,
    Progress: _progress,
}


def _leases_of(tx: Transaction, orders: Sequence[End | Failing]) -> dict[int, tuple[Any, ...]]:
    return {row[0]: row for row in tx.write_rows("leases_of", [order[:3] for order in orders])}


def _already(order: End | Failing, late: Mapping[int, tuple[Any, ...]], states: set[str]) -> FinishResult | LeaseLost:
    row = late.get(order.job_id)
    same = row is not None and row[1] in states and (row[2], row[3]) == (order.last_error, order.result_json)
    return "already" if same else LeaseLost(order.job_id, order.fence)
