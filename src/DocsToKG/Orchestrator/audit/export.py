"""Writes the bundle of a range: the ledger's history in files that anyone can check, signed.

Promises: one snapshot; memory that does not grow with the range; the same range gives the same bytes, whatever has
happened since; a ledger that contradicts its own history is not signed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any

from DocsToKG.Orchestrator.audit import archive, layout, range_reader
from DocsToKG.Orchestrator.audit.history_replay import JobEnd, Replays
from DocsToKG.Orchestrator.audit.layout import CHAINS, CONTENT, HISTORY, JOBS, THROTTLES, digested, line, moment
from DocsToKG.Orchestrator.audit.range_reader import Chain, ManyWriters, OneWriter, Place, Range
from DocsToKG.Orchestrator.control.jobs.views import job_digest
from DocsToKG.Orchestrator.errors import BadRange, LedgerContradicts
from DocsToKG.Orchestrator.jobs.states import API_STATUS, JobState
from DocsToKG.Orchestrator.ledger.control import ControlLedger, ControlTx
from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keyring import record_of
from DocsToKG.Orchestrator.signing.keys import Signer

_JOBS_PAGE = 500
_OTHER_ARCHIVES = (".tar", ".gz", ".tgz", ".tzst", ".bz2", ".xz", ".zip", ".7z")
_SETTLED_MS = 5000  # after so long, no transaction of a server that began in the range is still to come


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: where, and how many rows of each file."""

    path: Path
    rows: dict[str, int]
    manifest_sha256: str


class _File:
    """A content file while it is written."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name, self.rows, self.size = name, 0, 0
        self._sha = hashlib.sha256()
        self._out = (folder / name).open("wb", buffering=1 << 18)

    def __enter__(self) -> _File:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._out.close()

    def add(self, row: layout.Row) -> None:
        data = line(row)
        self._out.write(data)
        self._sha.update(data)
        self.rows, self.size = self.rows + 1, self.size + len(data)

    def told(self) -> dict[str, Any]:
        return {"name": self.name, "sha256": self._sha.hexdigest(), "bytes": self.size, "rows": self.rows}


def export(
    ledger: ControlLedger,
    asked: Range,
    signers: Sequence[Signer],
    target: Path,
    *,
    wait: Callable[[float], None] = time.sleep,
) -> Exported:
    """The bundle at `target`: an archive where the name ends in .tar.zst, else a folder. It appears whole or not."""
    _refuse_target(target)
    _settle(ledger, asked, wait)
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    try:
        way = OneWriter if ledger.one_writer else ManyWriters
        told = ledger.read(partial(_write_content, way=way, asked=asked, folder=work))
        manifest = signed_manifest(work, asked, told, signers)
        if archive.is_archive(target):
            spare = work.with_name(work.name + ".new")
            archive.pack(work, spare, signers)
            spare.replace(target)
            shutil.rmtree(work)
        else:
            work.chmod(0o755)
            work.rename(target)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        work.with_name(work.name + ".new").unlink(missing_ok=True)
        raise
    return Exported(target, {one["name"]: one["rows"] for one in told}, hashlib.sha256(manifest).hexdigest())


def _refuse_target(target: Path) -> None:
    if target.suffix in _OTHER_ARCHIVES or (target.suffix == ".zst" and not archive.is_archive(target)):
        raise BadRange(f"{target.name} would be a folder; a bundle is a folder or a FILE{archive.SUFFIX}")
    if target.exists() or target.is_symlink():
        raise BadRange(f"{target} is there already; name a new one")


def _settle(ledger: ControlLedger, asked: Range, wait: Callable[[float], None]) -> None:
    """A range that is not over would give other bytes tomorrow."""
    if asked.start < 0 or asked.end > layout.LAST_MOMENT:
        raise BadRange("a range lies between 1970-01-01 and the year 10000")
    if asked.start >= asked.end:
        raise BadRange("the range ends before it begins")
    now = ledger.read(lambda tx: tx.now_ms)
    if asked.end > now:
        raise BadRange(f"the range is not over: it is {moment(now)} in the ledger, and --to is {moment(asked.end)}")
    if ledger.one_writer:
        ledger.write(lambda tx: None)  # behind whoever writes now: what began in the range is committed then
    elif asked.end + _SETTLED_MS > now:
        wait((asked.end + _SETTLED_MS - now) / 1000)


def _write_content(
    tx: ControlTx, way: type[OneWriter] | type[ManyWriters], asked: Range, folder: Path
) -> list[dict[str, Any]]:
    for left in folder.iterdir():  # from a try before a connection was lost
        left.unlink()
    source = way(tx, asked)
    if asked.tenant is not None and not source.chains():
        raise BadRange(f"there is no tenant {asked.tenant[:64]!r} in this ledger")
    with Replays() as replays:
        told, ends = _write_history(source, folder, replays)
        told.append(_written(folder, CHAINS, _chains(source, ends)))
        told.append(_written(folder, JOBS, _jobs(tx, asked, replays)))
    told.append(_written(folder, THROTTLES, map(digested, range_reader.throttles(tx, asked))))
    return sorted(told, key=lambda one: CONTENT.index(one["name"]))


def _written(folder: Path, name: str, rows: Iterable[layout.Row]) -> dict[str, Any]:
    with _File(folder, name) as file:
        for row in rows:
            file.add(row)
    return file.told()


def _write_history(
    source: OneWriter | ManyWriters, folder: Path, replays: Replays
) -> tuple[list[dict[str, Any]], dict[Chain, tuple[Place, Place, int]]]:
    """The history and what is told of it elsewhere; and where each chain stood before and after, and its rows."""
    ends: dict[Chain, tuple[Place, Place, int]] = {}
    names = (HISTORY, layout.QUOTAS, layout.INCIDENTS, layout.ACTIONS)
    files = {name: _File(folder, name) for name in names}
    try:
        for number, stored in enumerate(source.rows(), 1):
            chain, link = (stored[1], stored[2]), stored[3]
            before, _, rows = ends.get(chain) or ((link - 1, bytes(stored[15])), None, 0)
            ends[chain] = (before, (link, bytes(stored[16])), rows + 1)
            row = layout.history_row(stored)
            files[HISTORY].add(row)
            for name, projected in layout.projections(row):
                files[name].add(projected)
            if stored[4] is not None:
                replays.add(stored[4], number, stored[5], stored[7], stored[8], stored[9], stored[10])
    finally:
        for file in files.values():
            file.__exit__(None, None, None)
    return [file.told() for file in files.values()], ends


def _chains(source: OneWriter | ManyWriters, ends: dict[Chain, tuple[Place, Place, int]]) -> Iterator[layout.Row]:
    for chain in source.chains():
        stands = source.standing(chain)
        before, after, rows = ends.get(chain, (stands, stands, 0))
        if after != stands:
            raise LedgerContradicts(
                f"chain {chain[0]}/{chain[1]} ends at link {after[0]} in the range, but goes on from link {stands[0]}:"
                " rows of its history were removed or changed"
            )
        if after[0]:  # else it was begun after the range
            yield digested(
                {
                    "tenant": chain[0], "shard": chain[1], "rows": rows,
                    "from": {"link": before[0], "hash": before[1].hex()},
                    "to": {"link": after[0], "hash": after[1].hex()},
                }
            )  # fmt: skip


def _jobs(tx: ControlTx, asked: Range, replays: Replays) -> Iterator[layout.Row]:
    ends = replays.ends(_contradicts)
    while page := list(islice(ends, _JOBS_PAGE)):
        known = range_reader.jobs(tx, [end.job_id for end in page])
        for end in page:
            yield _job(tx, asked, end, known.get(end.job_id))


def _contradicts(line: int, message: str) -> None:
    raise LedgerContradicts(f"the history of this ledger is not sound: {message} (row {line} of the range)")


def _job(tx: ControlTx, asked: Range, end: JobEnd, known: layout.Row | None) -> layout.Row:
    if known is None:
        raise LedgerContradicts(f"the history tells of job {end.job_id}, which is not in the ledger")
    state, fence, attempts, before = end.state, end.fence, end.attempts, end.state_before
    if state is None:
        state, fence, attempts = range_reader.state_before(tx, end.job_id, asked.start)
        before = state
    if state != known["now"] and not range_reader.changed_later(tx, end.job_id, asked.end):
        raise LedgerContradicts(f"job {end.job_id} is {known['now']} in the ledger, and {state} by its history")
    fixed = {name: value for name, value in known.items() if name != "now"}
    return digested(
        {
            **fixed, "jobDigest": job_digest(fixed), "stateBefore": before, "state": state,
            "status": None if state is None else API_STATUS[JobState(state)], "attempts": attempts, "fence": fence,
            "historyRows": end.rows, "changedAt": moment(end.last_at),
        }
    )  # fmt: skip


def signed_manifest(folder: Path, asked: Range, told: list[dict[str, Any]], signers: Sequence[Signer]) -> bytes:
    manifest = line(
        {
            "schema": layout.SCHEMA, "producer": producer(), "tenant": asked.tenant,
            "range": {"from": moment(asked.start), "to": moment(asked.end)}, "files": told,
            "signers": sorted((record_of(signer.key) for signer in signers), key=lambda record: str(record["keyid"])),
        }
    )  # fmt: skip
    (folder / layout.MANIFEST).write_bytes(manifest)
    (folder / layout.SIGNATURE).parent.mkdir()
    (folder / layout.SIGNATURE).write_bytes(line(dsse.sign(manifest, layout.MANIFEST_TYPE, signers)))
    for path in (*folder.iterdir(), folder / layout.SIGNATURE):
        _synced(path)
    return manifest


def producer() -> str:
    try:
        return f"docstokg {version('docstokg')}"
    except PackageNotFoundError:
        return "docstokg"


def _synced(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
