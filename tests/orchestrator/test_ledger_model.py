"""Random walks on a real ledger, step by step beside a plain dict that follows the rules by hand."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.examples import examples

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.errors import LeaseLost
from DocsToKG.Orchestrator.jobs.retry import ENDED_AFTER, SUSPECT_AFTER
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Orchestrator.ledger.base import Fail, Finish, LeasedJob, NewJob, Progress, Release, WorkerEnd
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

TTL_S = 60
MAX_ATTEMPTS = 2
workers = st.sampled_from(["ann", "ben"])


GOOD, BAD = ("done", "skipped"), ("error", "canceled", "timed_out")


@dataclass
class Model:
    """One job as the rules have it."""

    priority: int
    needs: frozenset[int] = frozenset()
    state: str = "queued"
    attempts: int = 0
    crashes: int = 0
    fence: int = 0
    eligible: float = 0.0
    lease_until: float = 0.0
    worker: str = ""
    begun: bool = False
    follows: bool = False

    @property
    def is_suspect(self) -> bool:
        return self.crashes >= SUSPECT_AFTER

    def come_back(self, now: float, counted: bool = False) -> None:
        """Its worker died, or did not come back: that costs no attempt."""
        self.crashes += counted
        self.state = "error" if self.crashes >= ENDED_AFTER else "pending" if self.is_suspect else "queued"
        self.eligible = now

    def fail(self, then: float) -> None:
        self.attempts += 1
        self.crashes = 0
        self.state = "error" if self.attempts >= MAX_ATTEMPTS else "queued"
        self.eligible = then


class LedgerWalk(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="ledger-walk-"))
        self.clock = ManualClock()
        self.now = self.clock.now()
        self.ledger = SqliteLedger(self.folder / "ledger.sqlite", clock=self.clock)
        self.jobs: dict[int, Model] = {}
        self.leases: list[LeasedJob] = []
        self.paused = False

    def teardown(self) -> None:
        self.ledger.close()
        shutil.rmtree(self.folder)

    @rule(name=st.integers(0, 7), priority=st.integers(0, 1), needs=st.sets(st.integers(1, 8), max_size=2))
    def enqueue(self, name: int, priority: int, needs: set[int]) -> None:
        known = frozenset(needs & self.jobs.keys())
        job = NewJob(f"a:{name}", {}, priority=priority, max_attempts=MAX_ATTEMPTS, depends_on=sorted(known))
        [answer] = self.ledger.enqueue_many([job])
        assert answer.created == (answer.job_id not in self.jobs)
        if answer.created:
            self.jobs[answer.job_id] = Model(priority, known, self._by_needs(known), eligible=self.now)
            self.jobs[answer.job_id].follows = self.jobs[answer.job_id].state == "canceled"
        assert answer.state == self.jobs[answer.job_id].state

    def _by_needs(self, needs: frozenset[int]) -> str:
        states = [self.jobs[need].state for need in needs]
        if any(state in BAD for state in states):
            return "canceled"
        return "queued" if all(state in GOOD for state in states) else "pending"

    def _settle(self) -> None:
        """Whoever waits goes where its needs put it; needs have lower numbers, so one pass is enough."""
        for _, job in sorted(self.jobs.items()):
            if (job.state == "pending" and not job.is_suspect) or job.follows:
                job.state = self._by_needs(job.needs)
                job.follows = job.state == "canceled"

    @rule(worker=workers, limit=st.integers(1, 3))
    def lease(self, worker: str, limit: int) -> None:
        expected = [] if self.paused else self._expire_and_choose(worker, limit)
        leased = self.ledger.lease(worker, limit, TTL_S)
        assert [job.job_id for job in leased] == expected
        self._take(worker, leased)

    @rule(worker=workers)
    def lease_suspect(self, worker: str) -> None:
        expected = []
        if not self.paused:
            self._expire()
            due = [n for n, job in self.jobs.items() if job.state == "pending" and job.is_suspect]
            expected = sorted(
                (n for n in due if self.jobs[n].eligible <= self.now), key=lambda n: self.jobs[n].eligible
            )
        leased = self.ledger.lease_suspect(worker, TTL_S)
        assert len(leased) == min(1, len(expected))
        assert [self.jobs[job.job_id].eligible for job in leased] == [self.jobs[n].eligible for n in expected[:1]]
        self._take(worker, leased)

    def _take(self, worker: str, leased: list[LeasedJob]) -> None:
        for job in leased:
            model = self.jobs[job.job_id]
            model.state, model.worker, model.begun = "in_progress", worker, False
            model.fence += 1
            model.lease_until = self.now + TTL_S
            assert (job.fence, job.attempts) == (model.fence, model.attempts)
        self.leases += leased

    def _expire_and_choose(self, worker: str, limit: int) -> list[int]:
        self._expire()
        due = [n for n, job in self.jobs.items() if job.state == "queued" and job.eligible <= self.now]
        chosen = sorted(due, key=lambda n: (-self.jobs[n].priority, n))[:limit]
        self._settle()
        return chosen

    def _expire(self) -> None:
        for job in self.jobs.values():
            if job.state == "in_progress" and job.lease_until <= self.now:
                job.come_back(self.now)

    def _write(self, pick: int, write) -> Model | None:
        """Try a write with some lease, new or old; the job when the model says the lease holds."""
        if not self.leases:
            return None
        lease = self.leases[pick % len(self.leases)]
        job = self.jobs[lease.job_id]
        if job.state == "in_progress" and job.fence == lease.fence:
            write(lease)
            return job
        return None

    @rule(pick=st.integers(0, 99), state=st.sampled_from(["done", "skipped", "error"]))
    def finish(self, pick: int, state: str) -> None:
        job = self._write(
            pick, lambda ls: self.ledger.finish(Finish(ls.job_id, ls.fence, ls.lease_id, JobState(state)))
        )
        if job:
            job.state = state
            self._settle()

    @rule(pick=st.integers(0, 99), delay=st.sampled_from([0, 30]))
    def fail(self, pick: int, delay: int) -> None:
        job = self._write(
            pick, lambda ls: self.ledger.fail(Fail(ls.job_id, ls.fence, ls.lease_id, delay, MAX_ATTEMPTS, "no"))
        )
        if job:
            job.fail(self.now + delay)
            self._settle()

    @rule(pick=st.integers(0, 99), delay=st.sampled_from([0, 30]))
    def release(self, pick: int, delay: int) -> None:
        job = self._write(pick, lambda ls: self.ledger.release(Release(ls.job_id, ls.fence, ls.lease_id, delay)))
        if job:
            job.come_back(self.now + delay)

    @rule(pick=st.integers(0, 99))
    def progress(self, pick: int) -> None:
        job = self._write(pick, lambda ls: self.ledger.progress(Progress(ls.job_id, ls.fence, ls.lease_id, "fetch")))
        if job:
            job.begun = True

    @rule(pick=st.integers(0, 99), deed=st.sampled_from(["finish", "fail", "release", "progress"]))
    def late_write(self, pick: int, deed: str) -> None:
        """A stale fence is refused, whatever it asks for; only the very same end again is no harm."""
        if not self.leases:
            return
        lease = self.leases[pick % len(self.leases)]
        job = self.jobs[lease.job_id]
        if job.state == "in_progress" and job.fence == lease.fence:
            return
        names = (lease.job_id, lease.fence, lease.lease_id)
        order = {
            "finish": Finish(*names, JobState.DONE, result={"late": True}),
            "fail": Fail(*names, 0, 99, "too late"),
            "release": Release(*names),
            "progress": Progress(*names, "fetch"),
        }[deed]
        with pytest.raises(LeaseLost):
            getattr(self.ledger, deed)(order)

    @rule(worker=workers)
    def heartbeat(self, worker: str) -> None:
        now = self.now
        live = {
            n
            for n, job in self.jobs.items()
            if job.state == "in_progress" and job.worker == worker and job.lease_until > now
        }
        held = self.ledger.heartbeat(worker, TTL_S)
        assert {lease.job_id for lease in self.leases if lease.lease_id in held} == live
        for n in live:
            self.jobs[n].lease_until = now + TTL_S

    @rule(worker=workers, known=st.booleans(), hand=st.sets(st.integers(1, 8), max_size=4), told=st.booleans())
    def worker_dies(self, worker: str, known: bool, hand: set[int], told: bool) -> None:
        lost = {n: job for n, job in self.jobs.items() if job.state == "in_progress" and job.worker == worker}
        end = WorkerEnd("by SIGKILL at verify") if told else None
        assert self.ledger.release_worker(worker, hand if known else None, end=end) == len(lost)
        for n, job in lost.items():
            was_at_work = n in hand if known else job.begun
            job.come_back(self.now, told if job.is_suspect else was_at_work)
        self._settle()

    @rule(pick=st.integers(1, 8))
    def cancel(self, pick: int) -> None:
        job = self.jobs.get(pick)
        if job:
            over = job.state in GOOD + BAD
            assert self.ledger.cancel(pick, "why") != over
            if not over:
                job.state = "canceled"
                job.fence += 1
                self._settle()

    @rule(states=st.sampled_from([("error",), ("error", "canceled"), ("done",)]))
    def retry(self, states: tuple[str, ...]) -> None:
        count = 0
        for _, job in sorted(self.jobs.items()):
            wanted = self._by_needs(job.needs)
            if job.state in states and wanted != "canceled":
                job.state, job.attempts, job.crashes, job.eligible = wanted, 0, 0, self.now
                job.follows = False
                count += 1
        assert self.ledger.retry_failed(states=[JobState(state) for state in states]) == count
        self._settle()

    @rule(paused=st.booleans())
    def switch(self, paused: bool) -> None:
        (self.ledger.pause if paused else self.ledger.resume)()
        self.paused = paused

    @rule(seconds=st.sampled_from([1, 29, 31, 61]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.now += seconds

    @rule(seconds=st.sampled_from([10, 100_000]))
    def the_clock_is_set_back(self, seconds: int) -> None:
        self.clock.step(-seconds)

    @rule()
    def the_ledger_is_closed_and_opened(self) -> None:
        self.ledger.heartbeat("nobody", 60)  # a change, with which the time is written that the next one goes on from
        self.ledger.close()
        self.ledger = SqliteLedger(self.folder / "ledger.sqlite", clock=self.clock)

    @invariant()
    def why_agrees_with_the_state(self) -> None:
        for n, job in self.jobs.items():
            why = self.ledger.why(n)
            queued = "paused" if self.paused else "delayed" if job.eligible > self.now else "queued"
            known = {"pending": "suspect" if job.is_suspect else "waits_for", "in_progress": "leased", "queued": queued}
            assert (why.state, why.reason) == (job.state, known.get(job.state, "ended"))

    @invariant()
    def the_ledger_is_where_the_model_is(self) -> None:
        rows = {row.job_id: row for row in self.ledger.list_jobs()}
        assert {n: (row.state, row.attempts, row.crashes, row.fence) for n, row in rows.items()} == {
            n: (job.state, job.attempts, job.crashes, job.fence) for n, job in self.jobs.items()
        }

    @invariant()
    def the_counts_equal_a_full_count(self) -> None:
        states = [job.state for job in self.jobs.values()]
        stats = self.ledger.stats()
        assert {state.value: stats[state.value] for state in JobState} == {s.value: states.count(s) for s in JobState}
        assert (stats["leased"], stats["total"]) == (stats["in_progress"], len(states))

    @invariant()
    def the_last_history_row_names_the_state(self) -> None:
        for n, job in self.jobs.items():
            assert self.ledger.history(n)[-1].to_state == job.state

    @invariant()
    def the_history_verifies(self) -> None:
        assert self.ledger.verify_history()


LedgerWalk.TestCase.settings = examples(12, stateful_step_count=40)
TestLedgerWalk = LedgerWalk.TestCase
