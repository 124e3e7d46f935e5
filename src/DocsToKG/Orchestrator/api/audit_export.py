"""Audit bundles over HTTP: written to a temporary file, then sent; one at a time.

Reads through a connection of its own. Promises: an export holds up no other request; nothing is left on disk.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import BinaryIO

from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.audit.export import Exported, export
from DocsToKG.Orchestrator.audit.range_reader import Range
from DocsToKG.Orchestrator.errors import BadRange
from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger
from DocsToKG.Orchestrator.signing.current import ResponseSigner

_CHUNK = 1 << 18


class AuditExporter:
    """Writes bundles of one ledger."""

    def __init__(self, open_reader: Callable[[], DatabaseLedger], signer: ResponseSigner) -> None:
        self._open_reader = open_reader
        self._signer = signer
        self._busy = threading.Lock()

    def write(self, asked: Range) -> Exported:
        """The bundle in a folder of its own, which `opened_and_unlinked` removes."""
        signers = self._signer.signers()
        if not signers:
            raise Problem(409, "NO_SIGNING_KEY", "there is no key to sign with; make one: audit keys new")
        if not self._busy.acquire(blocking=False):
            raise Problem(
                409, "EXPORT_RUNNING", "another export is being written; try again", headers={"Retry-After": "5"}
            )
        folder = Path(mkdtemp(prefix="docstokg-export-"))
        try:
            with self._open_reader() as ledger:
                return export(ledger, asked, signers, folder / "audit.tar.zst")
        except BadRange as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise Problem(422, "BAD_RANGE", str(error)) from None
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        finally:
            self._busy.release()


def opened_and_unlinked(path: Path) -> BinaryIO:
    """The bundle, open and already unlinked: nothing is left on disk, however the download ends."""
    try:
        return path.open("rb")
    finally:
        shutil.rmtree(path.parent, ignore_errors=True)


def chunks_of(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while chunk := file.read(_CHUNK):
            yield chunk
