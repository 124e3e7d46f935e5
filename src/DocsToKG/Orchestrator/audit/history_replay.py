"""Replays the history of every job, in memory that does not grow with the number of jobs.

Knows states and transitions. Rows are partitioned by job into a fixed number of heaps, the large ones on disk; each
heap is replayed by itself, and the results come back in the order of the job ids.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from heapq import merge
from tempfile import TemporaryFile
from typing import IO, Any

from DocsToKG.Orchestrator.jobs.states import JobState, may_become

_HEAPS = 64
_SPILL_BYTES = 256 * 1024
_ROW = struct.Struct("<QQqqqbb")  # job, line, moment, fence, attempts, state before, state after
_END = struct.Struct("<QQqqqbb")  # job, rows, moment of the last, fence, attempts, first state before, last state
_NONE = -1
_STATES = tuple(JobState)
_NUMBER: dict[str | None, int] = {None: _NONE, **{state.value: number for number, state in enumerate(_STATES)}}


@dataclass(frozen=True, slots=True)
class JobEnd:
    """Where the rows of a job lead: None as a state means that no row says one."""

    job_id: int
    rows: int
    last_at: int
    fence: int | None
    attempts: int | None
    state_before: str | None
    state: str | None


class _Heap:
    """Records of one size, in the order they came; a file takes them once there are many."""

    def __init__(self) -> None:
        self._fresh = bytearray()
        self._file: IO[bytes] | None = None

    def add(self, record: bytes) -> None:
        self._fresh += record
        if len(self._fresh) >= _SPILL_BYTES:
            self._file = self._file or TemporaryFile(prefix="docstokg-audit-")  # noqa: SIM115  closed by `close`
            self._file.write(self._fresh)
            self._fresh.clear()

    def records(self, form: struct.Struct) -> Iterator[tuple[Any, ...]]:
        if self._file is not None:
            self._file.seek(0)
            while block := self._file.read(form.size * 4096):
                yield from form.iter_unpack(block)
        yield from form.iter_unpack(bytes(self._fresh))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


class Replays:
    """The rows of a history go in one by one; `ends` gives where each job stands after them."""

    def __init__(self) -> None:
        self._heaps = [_Heap() for _ in range(_HEAPS)]

    def __enter__(self) -> Replays:
        return self

    def __exit__(self, *_: object) -> None:
        for heap in self._heaps:
            heap.close()

    def add(
        self, job_id: int, line: int, at: int, before: str | None, after: str | None, fence: int | None,
        attempts: int | None,
    ) -> None:  # fmt: skip
        """Raises ValueError where a word is no state, or a number none that a ledger writes."""
        try:
            record = _ROW.pack(
                job_id, line, at, _NONE if fence is None else fence, _NONE if attempts is None else attempts,
                _NUMBER[before], _NUMBER[after],
            )  # fmt: skip
        except (struct.error, KeyError, TypeError):
            raise ValueError(f"job {job_id!r} goes from {before!r} to {after!r}, which no ledger writes") from None
        self._heaps[job_id % _HEAPS].add(record)

    def ends(self, wrong: Callable[[int, str], None]) -> Iterator[JobEnd]:
        """Every job once, by its id. `wrong` is told of each line that cannot follow the one before it."""
        sorted_heaps = []
        for number, heap in enumerate(self._heaps):
            ended = _Heap()
            for record in _followed(heap, wrong):
                ended.add(record)
            heap.close()
            self._heaps[number] = ended
            sorted_heaps.append(ended.records(_END))
        for job_id, rows, last_at, fence, attempts, before, after in merge(*sorted_heaps):
            yield JobEnd(job_id, rows, last_at, _some(fence), _some(attempts), _word(before), _word(after))


def _followed(heap: _Heap, wrong: Callable[[int, str], None]) -> Iterator[bytes]:
    """The ends of one heap's jobs, by id."""
    jobs: dict[int, list[int]] = {}
    for job_id, line, at, fence, attempts, before, after in heap.records(_ROW):
        known = jobs.setdefault(job_id, [0, at, _NONE, _NONE, _NONE, _NONE, 0])
        known[0], known[1] = known[0] + 1, max(known[1], at)
        if after == _NONE:
            continue
        if known[6] == 0:
            known[4], known[6] = before, 1
        elif before != known[5]:
            wrong(line, f"job {job_id} goes on from {_word(before)}, but was {_word(known[5])}")
        if fence != _NONE and fence < known[2]:
            wrong(line, f"the fence of job {job_id} falls from {known[2]} to {fence}")
        if before != after and not _lawful(before, after):
            wrong(line, f"job {job_id} cannot go from {_word(before)} to {_word(after)}")
        known[2], known[3], known[5] = max(known[2], fence), attempts, after
    for job_id, (rows, last_at, fence, attempts, before, after, _) in sorted(jobs.items()):
        yield _END.pack(job_id, rows, last_at, fence, attempts, before, after)


def _lawful(before: int, after: int) -> bool:
    if before == _NONE:
        return _STATES[after] in (JobState.QUEUED, JobState.PENDING)
    return may_become(_STATES[before], _STATES[after])


def _some(number: int) -> int | None:
    return None if number == _NONE else number


def _word(number: int) -> str | None:
    return None if number == _NONE else _STATES[number].value
