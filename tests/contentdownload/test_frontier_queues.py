"""Who is asked for next before shut gates."""

from __future__ import annotations

from DocsToKG.ContentDownload.api.steps import Gate, NotYet
from DocsToKG.ContentDownload.frontier.queues import _MOST_PASSED_OVER, GateQueues
from DocsToKG.ContentDownload.frontier.task import Task
from DocsToKG.core.cancel import CancelToken


def waiting(**lengths: int) -> GateQueues:
    queues = GateQueues()
    for key, length in lengths.items():
        for _ in range(length):
            queues.join(key, Task(iter(()), CancelToken(), lambda ended: None))  # type: ignore[arg-type]
        queues.mark_askable(key)
    return queues


def test_the_longest_queue_is_asked_for_first():
    queues = waiting(short=1, long=9, middle=4)
    assert [queues.next_askable() for _ in range(4)] == ["long", "middle", "short", None]


def test_no_key_is_passed_over_for_ever():
    queues = waiting(short=1, long=2)
    asked = 0
    while queues.next_askable() == "long":
        queues.mark_askable("long")
        asked += 1
    assert asked == _MOST_PASSED_OVER - 1


def test_a_key_without_waiters_is_not_asked_for():
    queues = waiting(a=1)
    queues.pass_first("a", 1.0)
    assert "a" not in queues
    assert not queues.mark_askable("a")


def test_only_the_soonest_time_of_a_key_counts():
    queues = waiting(a=1)
    assert queues.note(NotYet("a", 5.0, "later"))
    assert queues.note(NotYet("a", 3.0, "sooner"))
    assert not queues.note(NotYet("a", 4.0, "known already"))
    assert [queues.is_due("a", at) for at in (5.0, 3.0, 3.0)] == [False, True, False]


def gated(queues: GateQueues, key: str, *, due: float | None) -> CancelToken:
    cancel = CancelToken()
    task = Task(iter(()), cancel, lambda ended: None)  # type: ignore[arg-type]
    task.gate = Gate(f"https://{key}/", "test", "artifact")
    queues.join(key, task)
    if due is not None:
        queues.note(NotYet(key, due, "shut"))
    return cancel


def test_where_there_are_more_gates_than_may_be_waited_for_those_shut_for_longest_go_without():
    """ORC-03, EXT-06."""
    queues = GateQueues()
    waiting = {
        key: gated(queues, key, due=due) for key, due in (("far.org", 90.0), ("soon.org", 11.0), ("slot.org", None))
    }
    parted = {keep: [crowded.cancel for crowded in queues.crowds(keep, lambda _: True, 10.0)] for keep in (3, 2, 1, 0)}
    far, soon, slot = (waiting[key] for key in ("far.org", "soon.org", "slot.org"))
    assert parted[3] == []
    assert parted[2] == [far]
    assert parted[1] == [far, soon]  # shut, and then perhaps busy, while a slot may be free at any moment
    assert len(parted[0]) == len({far, soon, slot})
