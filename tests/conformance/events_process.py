"""Processes that make jobs or carry events, and kill themselves where they are told to.

Each line of standard input is one, as a list in JSON; it is forked from this process, which has read the modules, and
its exit code is a line of standard output:

    work LEDGER KEYS URL STEP     adds, leases and ends jobs; STEP: before-commit, after-commit
    carry LEDGER KEYS URL STEP    carries; STEP: before or after claim, send or mark, as in after-send, or none

LEDGER is the path of a SQLite file, or `URL SCHEMA` of a PostgreSQL one. A step is struck at its third time, so that
there is something before it and something after it.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from DocsToKG.Orchestrator.events.notifier import Notifier, RetryPolicy
from DocsToKG.Orchestrator.events.outbox import Outbox, Subscription
from DocsToKG.Orchestrator.events.targets import SendLimits
from DocsToKG.Orchestrator.events.webhook import Webhook
from DocsToKG.Orchestrator.ledger.base import Finish, JobState, NewJob
from DocsToKG.Orchestrator.signing.keyring import KeyFolder

SECRET = b"a secret of enough bytes"
TIMES = 3


def opened(place: str) -> Any:
    if " " not in place:
        from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

        return SqliteLedger(place)
    from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

    url, schema = place.split(" ")
    return PostgresLedger(url, schema_name=schema, poll_s=0.05)


def struck(call: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
    """`call`, but this process is gone before it is done, or after it was, the third time.

    Every call keeps its own number: several threads send at once, and a fourth may begin before the third has ended.
    """
    numbers = itertools.count(1)

    def done(*words: Any, **more: Any) -> Any:
        number = next(numbers)
        if number == TIMES and before:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = call(*words, **more)
        if number == TIMES:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    return done


def work(place: str, step: str) -> None:
    with opened(place) as ledger:
        if step == "before-commit":
            _strike_before_commit(ledger)
        for number in range(TIMES + 1):
            names = [f"{os.getpid()}-{number}-{n}" for n in range(4)]
            ledger.enqueue_many([NewJob(name, {}) for name in names])
            for job in ledger.lease(f"w{os.getpid()}", 4, 600):
                ledger.finish(Finish(job.job_id, job.fence, job.lease_id, JobState.DONE))
            if step == "after-commit" and number == TIMES - 1:
                os.kill(os.getpid(), signal.SIGKILL)


def _strike_before_commit(ledger: Any) -> None:
    """History and outbox are written, and then the process is gone."""
    if "postgres" not in type(ledger).__module__:
        from DocsToKG.Orchestrator.ledger.drivers.sqlite.session import SqliteSession

        SqliteSession.write_along = struck(SqliteSession.write_along, before=False)  # type: ignore[method-assign]
        return
    from DocsToKG.Orchestrator.ledger.drivers.postgres import work

    # Called when the database has done all that the transaction does, but for the commit.
    work.answers_to_ends = struck(work.answers_to_ends, before=True)


def carry(place: str, keys: str, url: str, step: str) -> None:
    when = {"before": True, "after": False}.get(step.partition("-")[0])
    deed = step.partition("-")[2]
    if deed == "claim" and when is not None:
        Outbox.claim = struck(Outbox.claim, before=when)  # type: ignore[method-assign]
    if deed == "send" and when is not None:
        Webhook.send = struck(Webhook.send, before=when)  # type: ignore[method-assign]
    if deed == "mark" and when is not None:
        Outbox.settle = struck(Outbox.settle, before=when)  # type: ignore[method-assign]
    from DocsToKG.Orchestrator.events import notifier as notifiers

    notifiers.BATCH = 5  # type: ignore[misc]
    signers = KeyFolder(Path(keys)).signers(0.0)
    hook = Webhook("hook", url, secret=SECRET, private_hosts=["127.0.0.1"], limits=SendLimits(at_once=2))
    with opened(place) as ledger:
        subscriptions = [Subscription("hook", "webhook")]
        # Long enough for a busy machine: whoever's lead runs out sends no more, and so would never reach its end.
        carrier = Notifier(
            ledger, subscriptions, [hook], signers=signers, retry_policy=RetryPolicy(0.05, 0.2), lead_s=5
        )
        carrier.run_once()


def become(what: str, place: str, keys: str, url: str, step: str) -> None:
    """Do it in this process, and end it."""
    code = 1
    try:
        if what == "work":
            work(place, step)
        else:
            carry(place, keys, url, step)
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    for line in sys.stdin:
        if (pid := os.fork()) == 0:
            become(*json.loads(line))
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
