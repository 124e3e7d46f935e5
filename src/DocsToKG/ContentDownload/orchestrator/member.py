"""An orchestrator as one of several processes: it works until its boss says stop, or is gone.

Knows the orchestrator and the boss; does not know what the other processes are.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import IO, Any

from DocsToKG.ContentDownload.orchestrator.processes import Boss
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.core.process import ours_alone

_TELL_EVERY_S = 0.2
_GATHER_S = 0.02
_OWN_GRACE_S = 8.0  # when somebody ends this process alone


def serve(orchestrator: Orchestrator, boss: Boss) -> None:
    """Work until the boss says stop or is gone. Raises what made the work fail."""
    grace: list[float | None] = [None]
    over = threading.Event()

    def halt(grace_s: float | None) -> None:
        grace[0] = grace_s
        orchestrator.halt()

    def listen() -> None:
        halt(boss.wait_for_stop())

    threading.Thread(target=listen, name="boss", daemon=True).start()
    signal.signal(signal.SIGTERM, lambda *_: halt(_OWN_GRACE_S))
    with ours_alone():
        orchestrator.start()
        boss.say({"up": orchestrator.worker_id})
        teller = threading.Thread(target=_tell, args=(orchestrator, boss, over), name="teller", daemon=True)
        teller.start()
        try:
            orchestrator.wait_until_stopping()
            orchestrator.stop(grace[0] or 0.0)
        finally:
            over.set()
            boss.has_gathered.set()
            teller.join()
            boss.say_gathered()


def _tell(orchestrator: Orchestrator, boss: Boss, over: threading.Event) -> None:
    """How works end, soon and many at a time; every now and then what goes on."""
    told: dict[str, Any] | None = None
    tell_at = 0.0
    while not over.is_set():
        if boss.has_gathered.wait(_TELL_EVERY_S) and not over.wait(_GATHER_S):
            boss.say_gathered()
        if time.monotonic() < tell_at:
            continue
        tell_at = time.monotonic() + _TELL_EVERY_S
        state = {"active": orchestrator.active, "waits": orchestrator.waits()}
        if state != told:
            boss.say({"state": state})
            told = state


def own_input() -> IO[bytes]:
    """The pipe from the boss. Python closes its own standard input at its end, and dies of it while a thread reads."""
    return os.fdopen(os.dup(0), "rb")


def own_output() -> IO[bytes]:
    """The pipe to the boss; whatever prints by accident goes to standard error instead."""
    pipe = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return pipe
