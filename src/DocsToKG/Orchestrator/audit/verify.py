"""Verifies a bundle with the bundle and trusted keys alone.

Checks signatures, digests and counts; every chain from its first link to its last; that chains continue from one bundle
to the next; that the history of every job leads to its state; that every row elsewhere is one of the history. Each
problem is named with its file and line.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import orjson

from DocsToKG.Orchestrator.audit import bundle, layout
from DocsToKG.Orchestrator.audit.history_replay import JobEnd, Replays
from DocsToKG.Orchestrator.control.jobs.views import job_digest
from DocsToKG.Orchestrator.errors import BadBundle, BadKey, NotVerified
from DocsToKG.Orchestrator.jobs.states import API_STATUS
from DocsToKG.Orchestrator.ledger.chain import NO_HASH, Entry, link_hash
from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keyring import key_of
from DocsToKG.Orchestrator.signing.keys import PublicKey, Trust

MAX_PROBLEMS = 50
_NOT_IT = (KeyError, TypeError, ValueError, AttributeError, OverflowError)
Chain = tuple[str, int]


@dataclass
class Report:
    """What was found of one bundle. Without problems it is proved."""

    path: Path
    problems: list[str] = field(default_factory=list)
    manifest: Mapping[str, Any] = field(default_factory=dict)
    signers: list[PublicKey] = field(default_factory=list)
    trusted: frozenset[str] = frozenset()  # ids of the keys one believes; the others may call themselves anything
    rows: dict[str, int] = field(default_factory=dict)
    chains: dict[Chain, Mapping[str, Any]] = field(default_factory=dict)
    envelopes: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def proved(self) -> bool:
        return not self.problems

    def wrong(self, where: str, message: str) -> None:
        """Keep a problem; a bundle with very many is not read to its end."""
        if len(self.problems) >= MAX_PROBLEMS:
            raise BadBundle(where, "there is more, which is not told")
        self.problems.append(f"{where}: {message}")


def verify(path: Path, trust: Trust) -> Report:
    """Check one bundle, whole."""
    report = Report(path, trusted=trust.ids)
    try:
        with bundle.opened(path, partial(_believe, trust, report)) as files:
            _check(files, trust, report)
    except BadBundle as error:
        report.problems.append(str(error))
    return report


def verify_sequence(paths: Sequence[Path], trust: Trust) -> list[Report]:
    """Check bundles that follow one another: each must go on where the one before ended."""
    reports = [verify(path, trust) for path in paths]
    for before, after in pairwise(reports):
        if before.proved and after.proved:
            try:
                _follows(before, after)
            except BadBundle as error:
                after.problems.append(str(error))
    return reports


def _believe(trust: Trust, report: Report, envelope: Mapping[str, Any], kind: str, where: str) -> bytes:
    report.envelopes[where] = envelope
    try:
        return dsse.verify(envelope, trust.keys, trust.now, trust.threshold, payload_type=kind)
    except NotVerified as error:
        raise BadBundle(where, f"is not to be believed ({error.reason}): {error}") from None


def _check(files: bundle.Files, trust: Trust, report: Report) -> None:
    manifest = _check_manifest(_next_whole(files), _next_whole(files), trust, report)
    said = {one["name"]: one for one in manifest["files"]}
    content = _Content(manifest, report)
    with content.replays:
        for name, size, stream in files:
            _refuse_larger(name, size, said[name]["bytes"])
            sha = hashlib.sha256()
            rows = content.read(name, stream, sha)
            report.rows[name] = rows
            found = {"name": name, "sha256": sha.hexdigest(), "bytes": size, "rows": rows}
            for part, value in found.items():
                if said[name][part] != value:
                    report.wrong(name, f"its {part} is {value}, the manifest says {str(said[name][part])[:80]}")
    content.compare_projections(said)


def _refuse_larger(name: str, size: int, said: int) -> None:
    """What is read is bounded by what was signed; a few bytes more are read to name what they are."""
    if size > said + bundle.MAX_LINE:
        raise BadBundle(name, f"its bytes are {size}, the manifest says {said}")


def _next_whole(files: bundle.Files) -> tuple[str, bytes]:
    name, size, stream = next(files)
    return name, bundle.whole(stream, size, name)


def _check_manifest(
    told: tuple[str, bytes], signed: tuple[str, bytes], trust: Trust, report: Report
) -> Mapping[str, Any]:
    """The manifest, once it is believed. Every signature that it promises must be there and be good, whether its key
    is trusted or not, and there must be no other."""
    payload = _believe(trust, report, bundle.parsed(signed[1], signed[0]), layout.MANIFEST_TYPE, signed[0])
    if payload != told[1]:
        raise BadBundle(told[0], "is not the manifest that was signed")
    manifest: Mapping[str, Any] = bundle.parsed(payload, told[0])
    try:
        report.signers = [key_of(record) for record in manifest["signers"]]
        _check_form(manifest)
    except (*_NOT_IT, BadKey):
        raise BadBundle(told[0], "does not say what a manifest of this version says") from None
    for where, envelope in report.envelopes.items():
        _check_signers(where, envelope, report.signers)
    report.manifest = manifest
    return manifest


def _check_signers(where: str, envelope: Mapping[str, Any], signers: Sequence[PublicKey]) -> None:
    if {key.key_id for key in signers} != set(dsse.signature_bytes(envelope)):
        raise BadBundle(where, "has other signatures than the manifest names")
    try:
        dsse.verify(envelope, signers, float("-inf"), len(signers))
    except NotVerified as error:
        raise BadBundle(where, str(error)) from None


def _check_form(manifest: Any) -> None:
    fields = {"schema", "producer", "tenant", "range", "files", "signers"}
    if manifest["schema"] != layout.SCHEMA or set(manifest) != fields:
        raise ValueError
    if [one["name"] for one in manifest["files"]] != list(layout.CONTENT):
        raise ValueError
    if any(set(one) != {"name", "sha256", "bytes", "rows"} for one in manifest["files"]):
        raise ValueError
    if layout.milliseconds(manifest["range"]["from"]) >= layout.milliseconds(manifest["range"]["to"]):
        raise ValueError
    if set(manifest["range"]) != {"from", "to"} or not isinstance(manifest["tenant"], str | None):
        raise ValueError


class _Content:
    """The files of one bundle while they are read, each in its way."""

    def __init__(self, manifest: Mapping[str, Any], report: Report) -> None:
        self._report = report
        self._tenant = manifest["tenant"]
        self._start = layout.milliseconds(manifest["range"]["from"])
        self._end = layout.milliseconds(manifest["range"]["to"])
        self._places: dict[Chain, tuple[int, bytes, int, int]] = {}  # link, hash, moment, rows
        self._projected = {name: (hashlib.sha256(), [0]) for name in (layout.QUOTAS, layout.INCIDENTS, layout.ACTIONS)}
        self._applied: dict[str, int] = {}  # throttles that the history says were applied, and its line
        self.replays = Replays()

    def read(self, name: str, stream: IO[bytes], sha: Any) -> int:
        rows = _rows(stream, name, sha, self._report)
        read = {
            layout.CHAINS: self._chains, layout.HISTORY: self._history, layout.JOBS: self._jobs,
            layout.THROTTLES: self._throttles,
        }  # fmt: skip
        return read.get(name, partial(_plain, self._report, name))(rows)

    def compare_projections(self, said: Mapping[str, Mapping[str, Any]]) -> None:
        for name, (sha, count) in self._projected.items():
            if (said[name]["sha256"], said[name]["rows"]) != (sha.hexdigest(), count[0]):
                self._report.wrong(name, f"is not what {layout.HISTORY} says, which has {count[0]} such rows")

    def _chains(self, rows: Iterator[tuple[int, Any]]) -> int:
        number, last = 0, ("", -1)
        for number, row in rows:
            try:
                chain = (row["tenant"], row["shard"])
                place = (row["from"]["link"], bytes.fromhex(row["from"]["hash"]), self._start, 0)
                good = last < chain and place[0] + row["rows"] == row["to"]["link"] and layout.has_its_digest(row)
                if not place[0] and place[1] != NO_HASH:
                    good = False
            except _NOT_IT:
                good = False
            if not good:
                self._report.wrong(f"{layout.CHAINS} line {number}", "is no chain in its place")
                continue
            last = chain
            self._places[chain] = place
            self._report.chains[chain] = row
        return number

    def _history(self, rows: Iterator[tuple[int, Any]]) -> int:
        number = 0
        for number, row in rows:
            try:
                problem = self._link(number, row)
            except _NOT_IT:
                problem = "is no row of a history"
            if problem is not None:
                self._report.wrong(f"{layout.HISTORY} line {number}", problem)
        for chain, row in self._report.chains.items():
            link, digest, _, count = self._places[chain]
            if (link, digest.hex(), count) != (row["to"]["link"], row["to"]["hash"], row["rows"]):
                self._report.wrong(
                    layout.HISTORY, f"chain {_shown(chain)} ends at link {link}, not as {layout.CHAINS} says"
                )
        return number

    def _link(self, number: int, row: Mapping[str, Any]) -> str | None:
        """One row: the next link of its chain, of the range, and told where it must be."""
        chain = (row["tenant"], row["shard"])
        if chain not in self._places or row.keys() != layout.HISTORY_FIELDS:
            return f"is of chain {_shown(chain)}, which is not in {layout.CHAINS}"
        link, before, at, count = self._places[chain]
        entry, digest = layout.entry_of(row), bytes.fromhex(row["hash"])
        self._places[chain] = (row["link"], digest, max(at, entry[4]), count + 1)
        problem = self._link_problem(row, entry, link, before, at)
        self._project(number, row)
        try:
            if row["jobId"] is not None:
                self.replays.add(row["jobId"], number, entry[4], entry[6], entry[7], entry[8], entry[9])
        except ValueError as error:
            return problem or str(error)
        return problem

    def _link_problem(self, row: Mapping[str, Any], entry: Entry, link: int, before: bytes, at: int) -> str | None:
        chain = _shown((row["tenant"], row["shard"]))
        if row["link"] != link + 1:
            return f"is link {row['link']} of chain {chain}, where {link + 1} must follow"
        if bytes.fromhex(row["prevHash"]) != before:
            return f"does not follow from link {link} of chain {chain}: its prevHash is another"
        if link_hash(entry, before).hex() != row["hash"]:
            return f"was changed: its hash is not that of link {row['link']} of chain {chain}"
        if not at <= entry[4] < self._end:
            return f"is of {row['at']}, which is outside of the range or before the row it follows"
        if self._tenant not in (None, row["tenant"]):
            return f"is of tenant {row['tenant'][:64]!r}, not {self._tenant!r}"
        return None

    def _project(self, number: int, row: Mapping[str, Any]) -> None:
        """Keep what the other files must say because of this row."""
        for name, projected in layout.projections(row):
            sha, rows = self._projected[name]
            sha.update(layout.line(projected))
            rows[0] += 1
        if row["event"] == "throttle_applied":
            self._applied[orjson.loads(row["detail"])["throttle"]] = number

    def _jobs(self, rows: Iterator[tuple[int, Any]]) -> int:
        """Every job that the history names, once, by its id, in the state its rows lead to."""
        number = 0

        def wrong(line: int, message: str) -> None:
            self._report.wrong(f"{layout.HISTORY} line {line}", message)

        ends = self.replays.ends(wrong)
        for number, row in rows:
            end = next(ends, None)
            problem = "is of a job that the history does not name" if end is None else _job_problem(row, end)
            if problem is not None:
                self._report.wrong(f"{layout.JOBS} line {number}", problem)
        for end in ends:
            self._report.wrong(layout.JOBS, f"job {end.job_id} of the history is missing")
        return number

    def _throttles(self, rows: Iterator[tuple[int, Any]]) -> int:
        """Every throttle that the history says was applied, and none that it does not know."""
        return _plain(self._report, layout.THROTTLES, self._known(rows))

    def _known(self, rows: Iterator[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
        last = ""
        for number, row in rows:
            yield number, row
            try:
                here = row["origin"] == "operator" and self._tenant in (None, row["tenant"])
                applied = self._applied.pop(row["throttleId"], None)
                good = last < row["throttleId"] and layout.milliseconds(row["createdAt"]) < self._end
                if here and layout.milliseconds(row["createdAt"]) >= self._start:
                    good = good and applied is not None
                last = row["throttleId"]
            except _NOT_IT:
                continue  # told already
            if not good:
                self._report.wrong(f"{layout.THROTTLES} line {number}", "is not a throttle that the history knows")
        for name, number in self._applied.items():
            self._report.wrong(layout.THROTTLES, f"{name} of {layout.HISTORY} line {number} is missing")


def _job_problem(row: Any, end: JobEnd) -> str | None:
    try:
        if row["jobId"] != end.job_id:
            return f"has job {row['jobId']}, where {end.job_id} must follow"
        told = (row["stateBefore"], row["state"], row["attempts"], row["fence"])
        # Rows that say no state leave a job as it was.
        leads = (end.state_before, end.state, end.attempts, end.fence) if end.state else (told[1], *told[1:])
        if told != leads:
            return f"job {end.job_id} is told as {told}, its history leads to {leads}"
        if (row["historyRows"], layout.milliseconds(row["changedAt"])) != (end.rows, end.last_at):
            return f"job {end.job_id} has {end.rows} rows in the history, the last at {layout.moment(end.last_at)}"
        if row["status"] != (None if row["state"] is None else API_STATUS[row["state"]]):
            return f"job {end.job_id} is {row['state']}, which is not {row['status']}"
        if row["jobDigest"] != job_digest(row) or not layout.has_its_digest(row):
            return f"job {end.job_id} was changed: its digest is another"
    except _NOT_IT:
        return "is no row of a job"
    return None


def _plain(report: Report, name: str, rows: Iterable[tuple[int, Any]]) -> int:
    number = 0
    for number, row in rows:
        try:
            good = layout.has_its_digest(row)
        except _NOT_IT:
            good = False
        if not good:
            report.wrong(f"{name} line {number}", "was changed: its digest is another")
    return number


def _rows(stream: IO[bytes], name: str, sha: Any, report: Report) -> Iterator[tuple[int, Any]]:
    """The rows of a file; a line that is none is told and passed over, its number stays taken."""
    for number, data in bundle.lines(stream, name, sha):
        try:
            yield number, bundle.parsed(data, f"{name} line {number}")
        except BadBundle as error:
            report.wrong(error.where, "is not JSON as a bundle writes it")
            yield number, None


def _follows(before: Report, after: Report) -> None:
    first, second = before.manifest, after.manifest
    where = after.path.name
    if first["tenant"] != second["tenant"]:
        after.wrong(where, f"is of tenant {second['tenant']}, {before.path.name} of {first['tenant']}")
    if first["range"]["to"] != second["range"]["from"]:
        after.wrong(where, f"begins at {second['range']['from']}, {before.path.name} ends at {first['range']['to']}")
    for chain, row in before.chains.items():
        there = after.chains.get(chain)
        if there is None or there["from"] != row["to"]:
            after.wrong(
                where,
                f"chain {_shown(chain)} does not go on where {before.path.name} ends, at link {row['to']['link']}",
            )
    for chain, row in after.chains.items():
        if chain not in before.chains and row["from"]["link"]:
            after.wrong(
                where,
                f"chain {_shown(chain)} begins at link {row['from']['link']}, which {before.path.name} does not have",
            )


def _shown(chain: Chain) -> str:
    return f"{str(chain[0])[:64]}/{chain[1]}"
