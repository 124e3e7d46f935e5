"""Answers that can be proved later: each object that has a place for signatures is signed, where there are keys.

Knows bodies of answers, and who says which keys there are. Promises: without keys nothing changes.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from DocsToKG.core.clock import Clock
from DocsToKG.Orchestrator.signing.current import CurrentSigners
from DocsToKG.Orchestrator.signing.errors import SigningError
from DocsToKG.Orchestrator.signing.keyring import KeyFolder
from DocsToKG.Orchestrator.signing.keys import Signer
from DocsToKG.Orchestrator.signing.statements import ANSWER, FIELD, signatures, signed_parts


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
        """The body of an answer with its signatures filled in."""
        signers = self.signers()
        if not signers or f'"{FIELD}":[]'.encode() not in body:
            return body
        value = orjson.loads(body)
        for _, part in signed_parts(value):
            part[FIELD] = signatures(part, ANSWER, signers)
        return orjson.dumps(value)
