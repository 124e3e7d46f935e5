"""Questions to the limits, what they answered, and how several that keep one record are judged together."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st
from tests.waiting import eventually

from DocsToKG.ContentDownload.api.gates import Gate, NotYet
from DocsToKG.ContentDownload.api.types import Role
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimits, HostPermit
from DocsToKG.core.clock import ManualClock

Moves = Sequence[tuple[int, str, float]]  # who of three, what it does, and how long after the one before


def gate(host: str = "a.org", resolver: str = "unpaywall", role: Role = Role.ARTIFACT) -> Gate:
    return Gate(f"https://{host}/x.pdf", resolver, role)


def granted(answer: object) -> HostPermit:
    assert isinstance(answer, HostPermit), answer
    return answer


def granted_soon(limits: HostLimits, asked: Gate) -> HostPermit:
    """A permit, asked for until it comes."""

    def taken() -> HostPermit | None:
        answer = limits.ask(asked)
        return None if isinstance(answer, NotYet) else granted(answer)

    permit = eventually(taken)
    assert permit is not None
    return permit


def refused(answer: object) -> NotYet:
    assert isinstance(answer, NotYet), answer
    return answer


def any_moves(most: int) -> st.SearchStrategy[Moves]:
    what = st.sampled_from(["ask", "start", "free", "refund"])
    return st.lists(st.tuples(st.integers(0, 2), what, st.floats(0, 2)), max_size=most)


def judge_together(three: Sequence[HostLimits], clock: ManualClock, moves: Moves, *, slots: int, burst: int) -> None:
    """LIM-09: however they move, they stay within the slots and within one a second after the burst."""
    waiting: list[list[HostPermit]] = [[], [], []]
    running: list[list[HostPermit]] = [[], [], []]
    sent: list[float] = []
    for who, move, pause in moves:
        clock.advance(pause)
        if move == "ask" and isinstance(answer := three[who].ask(gate()), HostPermit):
            waiting[who].append(answer)
        elif move == "start" and waiting[who] and waiting[who][0].start() == 0.0:
            running[who].append(waiting[who].pop(0))
            sent.append(clock.monotonic())
        elif move == "free" and running[who]:
            running[who].pop(0).release()
        elif move == "refund" and waiting[who]:
            waiting[who][0].refund()
            waiting[who].pop(0).release()
        assert sum(map(len, waiting + running)) <= slots
    for limits in three:
        limits.close()
    for first, start in enumerate(sent):
        for count, end in enumerate(sent[first:], 1):
            # A thread counts as punctual up to a hundredth of a second after its grant.
            assert count <= (end - start + 0.011) * 1.0 + burst + 1e-6
