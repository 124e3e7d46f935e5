"""The keys that a long-running program signs with now, and the responses that it signs.

Knows the folder of keys and the time. Promises: a key that was rotated, removed or has expired is not signed with for
longer than a few seconds; the folder is not read for every signature. Safe to share between threads.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import orjson

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.errors import SigningError
from DocsToKG.Orchestrator.signing.keyring import KeyFolder
from DocsToKG.Orchestrator.signing.keys import Signer
from DocsToKG.Orchestrator.signing.statements import ANSWER, FIELD, signatures, signed_parts

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


class ResponseSigner:
    """Signs with the newest key of every name in a folder."""

    def __init__(self, folder: KeyFolder, *, clock: Clock | None = None) -> None:
        self._current = CurrentSigners(folder, clock=clock)

    def signers(self) -> Sequence[Signer]:
        """Empty where there is no key, or none that is good."""
        try:
            return self._current()
        except SigningError:
            return ()

    def __call__(self, body: bytes) -> bytes:
        """The body of a response with its signatures filled in, where there are keys."""
        signers = self.signers()
        if not signers or f'"{FIELD}":[]'.encode() not in body:
            return body
        value = orjson.loads(body)
        for _, part in signed_parts(value):
            part[FIELD] = signatures(part, ANSWER, signers)
        return orjson.dumps(value)
