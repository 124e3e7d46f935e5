"""Answers that can be proved later: each object that has a place for signatures is signed, where there are keys.

Knows the key folder and bodies of answers. Promises: without keys nothing changes; a key that was rotated or has
expired is not signed with for longer than a moment.
"""

from __future__ import annotations

import threading

import orjson

from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.Orchestrator.signing.errors import SigningError
from DocsToKG.Orchestrator.signing.keyring import KeyFolder
from DocsToKG.Orchestrator.signing.keys import Signer
from DocsToKG.Orchestrator.signing.statements import ANSWER, FIELD, signatures, signed_parts

_LOOK_AGAIN_S = 5.0


class AnswerSigner:
    """Signs with the newest key of every name in a folder."""

    def __init__(self, folder: KeyFolder, *, clock: Clock | None = None) -> None:
        self._folder = folder
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._signers: list[Signer] = []
        self._looked_at = float("-inf")

    def signers(self) -> list[Signer]:
        """Empty where there is no key, or none that is good."""
        now = self._clock.monotonic()
        with self._lock:
            if now - self._looked_at >= _LOOK_AGAIN_S:
                try:
                    self._signers = self._folder.signers(self._clock.now())
                except SigningError:
                    self._signers = []
                self._looked_at = now
            return self._signers

    def __call__(self, body: bytes) -> bytes:
        """The body of an answer with its signatures filled in."""
        signers = self.signers()
        if not signers or f'"{FIELD}":[]'.encode() not in body:
            return body
        value = orjson.loads(body)
        for _, part in signed_parts(value):
            part[FIELD] = signatures(part, ANSWER, signers)
        return orjson.dumps(value)
