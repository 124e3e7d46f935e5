"""The keys to sign with now, for a program that runs for long: a folder of keys, looked into again and again.

Knows the folder and the time. Promises: a key that was rotated, taken away or has expired is not signed with for longer
than a few seconds; the folder is not read for every signature. Safe to share between threads.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.signing.errors import SigningError
from DocsToKG.Orchestrator.signing.keyring import KeyFolder
from DocsToKG.Orchestrator.signing.keys import Signer

LOOK_AGAIN_S = 5.0


class CurrentSigners:
    """The chosen keys of a folder, else the newest of every name."""

    def __init__(self, folder: KeyFolder, chosen: Sequence[str] = (), *, clock: Clock | None = None) -> None:
        self._folder, self._chosen = folder, chosen
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._signers: Sequence[Signer] = ()
        self._error: SigningError | None = None
        self._looked_at = float("-inf")

    def __call__(self) -> Sequence[Signer]:
        """At least one; raises `SigningError` where there is no key, or one that is wanted is not good."""
        now = self._clock.monotonic()
        with self._lock:
            if now - self._looked_at >= LOOK_AGAIN_S:
                self._look()
                self._looked_at = now
            if self._error is not None:
                raise self._error.with_traceback(None)
            return self._signers

    def _look(self) -> None:
        try:
            self._signers, self._error = self._folder.signers(self._clock.now(), self._chosen), None
        except SigningError as error:
            self._signers, self._error = (), error
