"""The frontier: works wait in per-key queues and come back to a thread when they may go on.

Knows steps, keys and times; knows nothing of HTTP, jobs or papers. Promises: a permit is asked for
only when a thread stands ready to use it, so that grants and sends keep their spacing; waiters of one key
go first come, first served; the longest queue goes first, and never so often that another starves; a race resumes its
parent with the first winner and never waits for losers; a parked work holds no thread.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any, Self, assert_never

from DocsToKG.ContentDownload.api.steps import (
    Arrival,
    ExchangeOver,
    Gate,
    Gatekeeper,
    GateShut,
    NotYet,
    Race,
    Step,
    Steps,
    Until,
    Wait,
)
from DocsToKG.ContentDownload.frontier.arrivals import Arrivals
from DocsToKG.ContentDownload.frontier.crew import Crew, CrewTurn
from DocsToKG.ContentDownload.frontier.queues import GateQueues
from DocsToKG.ContentDownload.frontier.task import Crowded, Ended, Hands, NoHands, RaceState, Row, Task
from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import Clock
from DocsToKG.core.turns import join_pool
from DocsToKG.core.urls import BadUrl, host_key

# More than this only take the interpreter from each other. Threads that wait for the network do not count.
MOST_RUNNING = 1
# Beyond those that may all be waiting for the network: they prove what has come while the next requests go out.
_SPARE_THREADS = 2
_LONGEST_WAIT_S = 60.0
_ON_TIME = "time"
_ON_RACE = "race"
_ON_OTHERS = "others"
_ON_WIRE = "wire"
_LOOK_EVERY_S = 0.001
_TURN = 8  # works, about a millisecond: hosts that have answered are not kept waiting for longer
_MANY_ASIDE = 16  # bodies that wait for their proof, in memory, while exchanges go first


class Frontier:
    """A pool that drives any number of generators of steps, with at most `threads` at work at once; one
    that is done with the network, and proves or stores what came, does not count."""

    def __init__(
        self,
        *,
        gate: Gatekeeper,
        clock: Clock,
        threads: int,
        name: str = "frontier",
        most_running: int = MOST_RUNNING,
        hands: Hands | None = None,
    ) -> None:
        self._gate = gate
        self._clock = clock
        self._name = name
        self._hands = hands or NoHands()
        self._lock = threading.Lock()
        self._arrivals: Arrivals[Task] = Arrivals(self._has_arrived)
        self._arrived: deque[Task] = deque()  # what they waited for has come; they need no place, or have theirs
        self._looked_at = 0.0
        self._crew = Crew(self._lock, most_running=most_running, has_work=self._has_work, outlook=self._arrivals)
        self._over = threading.Condition(self._lock)  # whoever waits for the last work to end
        self._fresh: deque[Task] = deque()  # not started
        self._ready: deque[Task] = deque()  # may go on at once
        self._queues = GateQueues()  # parked before a gate
        self._timers: list[tuple[float, int, Task | str]] = []
        self._sequence = itertools.count()
        self._running: set[Task] = set()
        self._places = threads
        self._at_work = 0
        self._preparing: Task | None = None  # begun without a place, and on its way to its first gate
        self._prepared = 0  # stand before a gate that nobody has asked for them yet, for want of a place
        self._aside: deque[Task] = deque()  # may go on at once, and need no place
        self._exchanges = 0  # picked since the last of those
        self._proofs_left = 0  # so many more of those go before anything else
        self._live = 0  # submitted and not ended, races' branches left out
        self._closing = False
        self._is_asking = False  # between an answer and the place in a queue that it leads to
        self._threads = [
            threading.Thread(target=self._loop, name=f"{name}-{n}", daemon=True)
            for n in range(threads + _SPARE_THREADS)
        ]
        gate.on_free(self._key_moved)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop(grace_s=0.0)

    def start(self) -> None:
        self._arrivals.open()
        for thread in self._threads:
            thread.start()

    def submit(
        self, steps: Steps[Any], *, cancel: CancelToken, on_done: Callable[[Ended], None], number: int = 0
    ) -> None:
        """Begin `steps` when a thread is free. `on_done` is called in a thread of the pool, exactly once. `number` is
        noted while a thread is at it."""
        task = Task(steps, cancel, on_done, None, number)
        with self._lock:
            self._live += 1
            refused = self._closing
            if not refused:
                self._fresh.append(task)
                self._crew.call()
        if refused:
            self._end(task, Ended(error=Cancelled()))
        else:
            self._watch(task)

    def run(self, steps: Steps[Any], *, cancel: CancelToken | None = None) -> Any:
        """Drive `steps` to the end while the caller waits; its value or its exception is the caller's."""
        box: list[Ended] = []
        over = threading.Event()

        def done(ended: Ended) -> None:
            box.append(ended)
            over.set()

        self.submit(steps, cancel=cancel or CancelToken(), on_done=done)
        over.wait()
        return box[0].unwrap()

    @property
    def live(self) -> int:
        """Works begun or waiting to begin."""
        return self._live

    def room(self, *, most_live: int, most_fresh: int) -> int:
        """How many more may be submitted to hold at most `most_live`, of them `most_fresh` not begun."""
        with self._lock:
            not_begun = len(self._fresh) + (self._preparing is not None)
            return max(0, min(most_live - self._live, most_fresh - not_begun))

    @property
    def active(self) -> int:
        """Works in a thread right now; those that are done with the network do not count beyond the others."""
        return min(len(self._running), self._places)

    def waits(self) -> Counter[str]:
        """What parked works wait for, and how many: for people who look."""
        with self._lock:
            return self._queues.waits()

    @property
    def is_starved(self) -> bool:
        """A thread has nothing to do, because all that is here waits."""
        has_some = self._arrived or self._ready or self._aside or self._fresh or self._queues.is_any_askable
        return len(self._running) < self._places and not has_some

    def crowds(self, keep: int, may: Callable[[CancelToken], bool]) -> list[Crowded]:
        """The works to part with so that about `keep` stay parked before gates: the last ones of the longest queues,
        if they `may` go."""
        with self._lock:
            return self._queues.crowds(keep, may, self._clock.monotonic())

    def stop(self, *, grace_s: float) -> None:
        """Begin nothing more, drop what is parked, let running works finish for `grace_s`, then cut them."""
        with self._lock:
            self._closing = True
            dropped = [*self._fresh, *self._parked(), *(task for task in self._ready if not task.started)]
            self._crew.call_all()
        for task in dropped:
            task.cancel.cancel()
        self._end_dropped()
        if not self._wait_idle(grace_s):
            with self._lock:
                cut = list(self._running)
            for task in cut:
                task.cancel.cancel()
            self._wait_idle(None)
        for thread in self._threads:
            if thread.is_alive() and thread is not threading.current_thread():
                thread.join()
        if threading.current_thread() not in self._threads:
            self._arrivals.close()

    def _end_dropped(self) -> None:
        """What was dropped ends here and now, so that others can have it: all threads may be busy until the last."""
        while (task := self._take_dropped()) is not None:
            self._advance(task)

    def _take_dropped(self) -> Task | None:
        with self._lock:
            for queue in (self._ready, self._aside):
                for task in queue:
                    # What stands aside for another reason has something to keep, and is left to the threads.
                    if isinstance(task.error, Cancelled) or (queue is self._ready and task.cancel.cancelled):
                        queue.remove(task)
                        self._running.add(task)
                        return task
        return None

    # the threads

    def _loop(self) -> None:
        turn = CrewTurn(self._crew)
        join_pool(turn)
        with self._lock:
            self._crew.begin()
        try:
            while (task := self._next(turn.bell)) is not None:
                place = self._hands.take(task.number)
                self._advance(task)
                self._hands.drop(place)
        finally:
            with self._lock:
                self._crew.end()

    def _next(self, bell: threading.Lock) -> Task | None:
        """The next task for this thread, with its permit where it stood before a gate; None when the pool is over."""
        if len(self._arrivals):
            self._look_for_arrivals()
        with self._lock:
            while True:
                if self._timers:
                    self._ring_timers()
                if self._crew.may_take_work and (task := self._pick()) is not None:
                    self._running.add(task)
                    self._crew.found_work()
                    return task
                if self._closing and self._live == 0:
                    return None
                wait_s = max(0.0, self._timers[0][0] - self._clock.monotonic()) if self._timers else None
                self._crew.rest(bell, wait_s)

    def _look_for_arrivals(self) -> None:
        """A thread that is never idle comes by here between two works."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_EVERY_S:
            self._looked_at = now
            self._arrivals.look()

    def _has_arrived(self, task: Task, came: bool) -> None:
        task.value, task.parked_on = came, None
        self._arrived.append(task)

    def _has_work(self) -> bool:
        if self._arrived or self._aside or self._may_prepare:
            return True
        return self._has_free_place and bool(self._ready or self._fresh or self._queues.is_any_askable)

    @property
    def _has_free_place(self) -> bool:
        return self._at_work < self._places

    def _pick(self) -> Task | None:
        """Exchanges first: hosts answer while we prove what has come from others. Once much has come, in turns: neither
        may wait until the other has nothing left. Several of a kind make a turn, each finding its code still in the
        processor's caches."""
        if self._proofs_left and self._aside:
            self._proofs_left -= 1
            return self._aside.popleft()
        self._proofs_left = 0
        if self._arrived:
            return self._arrived.popleft()
        is_their_turn = self._exchanges >= _TURN and len(self._aside) >= _MANY_ASIDE
        if not is_their_turn and (task := self._pick_exchange()) is not None:
            self._exchanges += 1
            return task
        self._exchanges, self._proofs_left = 0, _TURN - 1
        return self._aside.popleft() if self._aside else self._pick_to_prepare()

    def _pick_exchange(self) -> Task | None:
        """What was begun goes before what is new, so that works end soon after they begin."""
        if not self._has_free_place:
            return None
        if self._ready:
            return self._take_place(self._ready.popleft())
        try:
            while (key := self._queues.next_askable()) is not None:
                if (task := self._ask_for_first(key)) is not None:
                    return task
        finally:
            self._is_asking = False
        return self._take_place(self._fresh.popleft()) if self._fresh else None

    def _pick_to_prepare(self) -> Task | None:
        """While all places are taken, works come up to their first gate one by one, to go out as soon as one is
        free."""
        if not self._may_prepare:
            return None
        self._preparing = self._fresh.popleft()
        return self._preparing

    @property
    def _may_prepare(self) -> bool:
        is_wanted = self._preparing is None and self._prepared < self._places and not self._has_free_place
        return is_wanted and bool(self._fresh)

    def _is_placed(self, task: Task) -> None:
        """It has a place, waits, or is over."""
        if self._preparing is task:
            self._preparing = None

    def _set_timer(self, at: float, who: Task | str) -> None:
        heapq.heappush(self._timers, (at, next(self._sequence), who))
        if self._timers[0][2] is who:  # sooner than what the one who keeps watch, if any, sleeps for
            self._crew.call_watch()

    def _ring_timers(self) -> None:
        now = self._clock.monotonic()
        while self._timers and self._timers[0][0] <= now:
            at, _, who = heapq.heappop(self._timers)
            if isinstance(who, Task):
                if who.parked_on == _ON_TIME:
                    self._make_ready(who)
            elif self._queues.is_due(who, at):
                self._mark_askable(who)

    def _advance(self, task: Task) -> None:
        """Run the task until it must wait or is over."""
        if not task.started and task.cancel.cancelled:
            task.error = Cancelled()
        task.started = True
        while True:
            try:
                step = task.steps.throw(task.error) if task.error is not None else task.steps.send(task.value)
            except StopIteration as stop:
                if task.row is not None:
                    task.row.go_on(task, stop.value, None, is_closing=self._closing)
                    continue
                self._end(task, Ended(stop.value, None, task.shut_host))
                return
            except BaseException as error:
                if task.row is not None:
                    task.row.go_on(task, None, error, is_closing=self._closing)
                    continue
                self._end(task, Ended(error=error))
                return
            task.value = task.error = None
            if not self._pass(task, step):
                return

    def _pass(self, task: Task, step: Step) -> bool:
        """True when the task may go on at once in this thread; otherwise it is parked."""
        if isinstance(step, ExchangeOver):
            return self._exchange_over(task)
        if isinstance(step, Until):
            self._wait_for_others(task, step)
            return False
        if task.cancel.cancelled:
            task.error = Cancelled()
            return True
        match step:
            case Arrival():
                return self._await_arrival(task, step)
            case Gate():
                return self._try_gate(task, step)
            case Wait():
                with self._lock:
                    if self._park(task, _ON_TIME):
                        self._set_timer(step.until, task)
                return False
            case Race():
                if step.parallel > 1 and len(step.branches) > 1:
                    self._begin_race(task, step)
                    return False
                task.row = Row(task.steps, step, task.row)
                task.row.go_on(task, None, None, is_closing=self._closing)
                return True
            case _:
                assert_never(step)

    def _exchange_over(self, task: Task) -> bool:
        """Its place is free: whoever can use it goes first, unless too many stand aside already."""
        with self._lock:
            self._leave_place(task)
            others = self._arrived or self._ready or self._fresh or self._queues.is_any_askable
            if not others or len(self._aside) >= self._places + _MANY_ASIDE:
                self._crew.call()
                return True
            self._running.discard(task)
            self._aside.append(task)
            return False

    def _await_arrival(self, task: Task, step: Arrival) -> bool:
        """It stays among those at work: the host has its request."""
        if not self._arrivals.is_open:
            task.value = True
            return True
        task.parked_on = _ON_WIRE
        self._arrivals.wait(step.fileno, step.until, task, step.number)  # from here on another thread may have it
        return False

    # gates

    def _try_gate(self, task: Task, gate: Gate) -> bool:
        with self._lock:
            try:
                return self._pass_gate(task, gate)
            except BadUrl as error:
                task.error = error
                return True
            finally:
                self._is_asking = False

    def _pass_gate(self, task: Task, gate: Gate) -> bool:
        key = f"host:{host_key(gate.url)}"
        has_place = task.has_place or self._has_free_place
        if has_place and key not in self._queues:
            answer = self._ask(task, gate)
            if isinstance(answer, BaseException):
                task.error = answer
                return True
            if not isinstance(answer, NotYet):
                self._grant(task, answer)
                return True
            key = answer.key
            self._note(answer)
        # Where others stand before this gate already, nobody overtakes them.
        if self._park(task, key):
            task.gate = gate
            self._queues.join(key, task, None if has_place else "a free worker")
            if not has_place:
                task.is_prepared = True
                self._prepared += 1
                self._mark_askable(key)
        return False

    def _asked_for(self, task: Task) -> None:
        """It waits for a worker no longer: for its gate, or not at all."""
        if task.is_prepared:
            task.is_prepared = False
            self._prepared -= 1

    def _grant(self, task: Task, permit: Any) -> Task:
        task.value, task.gate, task.parked_on = permit, None, None
        return self._take_place(task)

    def _take_place(self, task: Task) -> Task:
        self._is_placed(task)
        if not task.has_place:
            task.has_place = True
            self._at_work += 1
        return task

    def _leave_place(self, task: Task) -> None:
        self._is_placed(task)
        if task.has_place:
            task.has_place = False
            self._at_work -= 1

    def _ask(self, task: Task, gate: Gate) -> Any:
        """A permit, when to ask again, or the error that the work meets before this gate."""
        self._is_asking = True
        try:
            answer = self._gate.ask(gate)
        except BaseException as error:
            # The fault is this work's, as any other in its steps; the thread has others to serve.
            return error
        if isinstance(answer, NotYet) and self._is_too_long(answer):
            task.root.shut_host = host_key(gate.url)
            return GateShut(answer.at or 0.0, answer.why)
        return answer

    def _ask_for_first(self, key: str) -> Task | None:
        """Ask on behalf of the first waiter of `key`; the task with its permit, or None when it must wait on."""
        while (task := self._queues.first(key)) is not None:
            assert task.gate is not None
            self._asked_for(task)
            answer = self._ask(task, task.gate)
            if isinstance(answer, BaseException):
                self._queues.drop_first(key)
                task.gate, task.error = None, answer
                self._make_ready(task)
                continue
            if not isinstance(answer, NotYet):
                self._queues.pass_first(key, self._clock.monotonic())
                self._mark_askable(key)
                return self._grant(task, answer)
            self._note(answer)
            if answer.key == key:
                return None
            self._queues.drop_first(key)
            task.parked_on = answer.key
            self._queues.join(answer.key, task)
        return None

    def _is_too_long(self, answer: NotYet) -> bool:
        """Standing before a gate holds the work's lease; beyond a minute the work had better come back another time."""
        return answer.at is not None and answer.at - self._clock.monotonic() > _LONGEST_WAIT_S

    def _note(self, answer: NotYet) -> None:
        """Remember when to ask for this key again. Without a time, a freed slot will say so."""
        if self._queues.note(answer) and answer.at is not None:
            self._set_timer(answer.at, answer.key)

    def _key_moved(self, key: str) -> None:
        # Without the lock: whoever asks for a permit now will see what has moved, or stands in a queue already.
        if not self._is_asking and key not in self._queues:
            return
        with self._lock:
            self._mark_askable(key)

    def _mark_askable(self, key: str) -> None:
        if self._queues.mark_askable(key):
            self._crew.call()

    # parking and waking

    def _park(self, task: Task, on: str) -> bool:
        """Take the task from its thread. False when it must not wait: it was cancelled, or the pool is closing."""
        self._running.discard(task)
        self._leave_place(task)
        task.parked_on = on
        if task.cancel.cancelled or self._closing:
            task.error = Cancelled()
            self._make_ready(task)
            return False
        return True

    def _wait_for_others(self, task: Task, step: Until) -> None:
        """Neither a cancellation nor the end of the pool shortens this wait: what is under way is not called off."""
        with self._lock:
            self._running.discard(task)
            self._leave_place(task)
            task.parked_on = _ON_OTHERS
        try:
            step.start(lambda: self._others_done(task))
        except BaseException as error:
            task.error = error
            self._others_done(task)

    def _others_done(self, task: Task) -> None:
        with self._lock:
            if task.parked_on == _ON_OTHERS:
                task.parked_on = None
                self._arrived.append(task)
                self._crew.call()

    def _make_ready(self, task: Task) -> None:
        task.parked_on = None
        # One that was called off has nothing more to do than to end.
        (self._aside if isinstance(task.error, Cancelled) else self._ready).append(task)
        self._crew.call()

    def _watch(self, task: Task) -> None:
        task.forget_cancel = task.cancel.on_cancel(partial(self._wake_cancelled, task))

    def _wake_cancelled(self, task: Task) -> None:
        """A parked or unstarted task leaves its queue to meet its cancellation; a running one meets it by itself."""
        with self._lock:
            if task.ended or task in self._running:
                return
            if not task.started and task in self._fresh:
                self._fresh.remove(task)
            elif task.parked_on is None or task.parked_on == _ON_OTHERS:
                return
            elif task.gate is not None:
                self._queues.leave(task.parked_on, task)
                self._asked_for(task)
                task.gate = None
            task.error = Cancelled()
            self._make_ready(task)

    def _parked(self) -> list[Task]:
        on_time = (who for _, _, who in self._timers if isinstance(who, Task) and who.parked_on == _ON_TIME)
        return [*self._queues, *on_time]

    # races

    def _begin_race(self, parent: Task, race: Race) -> None:
        state = RaceState(parent, race)
        with self._lock:
            fed = self._feed_race(state) if self._park(parent, _ON_RACE) else []
        self._watch_all(fed)

    def _feed_race(self, state: RaceState) -> list[Task]:
        """Start what may start; with none left to run, the parent goes on."""
        fed = [] if self._closing else state.start_more()
        for branch in fed:
            self._make_ready(branch)
        outcome = state.outcome_of_none()
        if outcome is not None:
            self._decide(state, outcome)
        return fed

    def _watch_all(self, tasks: list[Task]) -> None:
        for task in tasks:
            self._watch(task)

    def _branch_ended(self, branch: Task, ended: Ended) -> None:
        state = branch.race
        assert state is not None
        with self._lock:
            losers: list[Task] = []
            fed: list[Task] = []
            if state.take_out(branch, ended):
                losers = list(state.running)
                self._decide(state, ended)
            else:
                fed = self._feed_race(state)
        self._watch_all(fed)
        for loser in losers:
            loser.cancel.cancel()

    def _decide(self, state: RaceState, ended: Ended) -> None:
        if state.decided:
            return
        state.decided = True
        state.waiting.clear()
        parent = state.parent
        if parent.parked_on == _ON_RACE:
            parent.value, parent.error = ended.value, ended.error
            self._make_ready(parent)

    # endings

    def _end(self, task: Task, ended: Ended) -> None:
        task.ended = True
        task.forget_cancel()
        task.cancel.close()
        try:
            if task.race is not None:
                self._branch_ended(task, ended)
            else:
                task.on_done(ended)
        finally:
            with self._lock:
                self._running.discard(task)
                self._leave_place(task)
                if task.race is None:
                    self._live -= 1
                if self._live == 0:
                    self._over.notify_all()
                    if self._closing:
                        self._crew.call_all()

    def _wait_idle(self, grace_s: float | None) -> bool:
        """Wait until every work has ended; False when the grace ran out first."""
        until = None if grace_s is None else self._clock.monotonic() + grace_s
        with self._lock:
            while self._live > 0:
                left = None if until is None else until - self._clock.monotonic()
                if left is not None and left <= 0:
                    return False
                self._over.wait(left)
        return True
