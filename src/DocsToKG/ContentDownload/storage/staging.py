"""A bounded place on the local disk for files that are on their way to a bucket.

Knows how many bytes wait there and for which work. Whoever would go over the budget waits until others have left.
Promises: the bytes on disk stay within the budget, except for a file that is larger than all of it, which goes alone;
nobody waits for ever, because the work that came first always has room to finish.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable

from DocsToKG.ContentDownload.errors import DiskFull
from DocsToKG.ContentDownload.storage.temp import IN_MEMORY, TempFile

_LOOK_AGAIN_S = 0.05


class Budget:
    """`total` bytes for all works together; `largest` is what one of them may need before it is done."""

    def __init__(self, total: int, *, largest: int) -> None:
        self._total = total
        self._largest = min(largest, total)
        self._held: dict[Hashable, int] = {}  # bytes by work, in the order in which they came
        self._used = 0
        self._changed = threading.Condition()
        self.peak = 0
        self.waits = 0

    @property
    def used(self) -> int:
        return self._used

    def take(self, work: Hashable, size: int) -> None:
        """Return when `work` may write `size` bytes more."""
        with self._changed:
            self._held.setdefault(work, 0)
            if self._fits(work, size):
                self._count(work, size)
                return
            self.waits += 1
            self._changed.wait_for(lambda: self._fits(work, size))
            self._count(work, size)

    def fits(self, work: Hashable, size: int) -> bool:
        """Whether `take` would return at once; from now on `work` stands in line."""
        with self._changed:
            self._held.setdefault(work, 0)
            if self._fits(work, size):
                return True
            self.waits += 1
            return False

    def _count(self, work: Hashable, size: int) -> None:
        self._held[work] += size
        self._used += size
        self.peak = max(self.peak, self._used)

    def give_back(self, work: Hashable, size: int) -> None:
        with self._changed:
            self._used -= size
            left = self._held.get(work, 0) - size
            self._held[work] = left
            if left <= 0:
                del self._held[work]
            self._changed.notify_all()

    def _fits(self, work: Hashable, size: int) -> bool:
        """The first in line needs only what is free. The others leave it the room to become as large as any: so it
        ends, and the next is the first."""
        free = self._total - self._used
        first = next(iter(self._held))
        if work == first:
            return size <= free or self._used == self._held[first]
        return size <= free - max(0, self._largest - self._held[first])


class StagedFile(TempFile):
    """A temporary file whose bytes on disk count against a budget. In memory it costs nothing."""

    def __init__(
        self,
        open_file: Callable[[], tuple[int, str | None]],
        *,
        where: str,
        budget: Budget,
        in_memory: int = IN_MEMORY,
        refused: Callable[[int, DiskFull], Exception] = lambda size, full: full,
        work: Hashable | None = None,
    ) -> None:
        """`refused` makes the error of a disk that is full, by the size that the file has come to. `work`: for which
        the file is, where it is not the only one."""
        super().__init__(open_file, where=where, in_memory=in_memory)
        self._budget = budget
        self._work = work or object()
        self._on_disk = 0
        self._refused = refused

    def another(self) -> TempFile:
        return StagedFile(
            self._open_file,
            where=self._where,
            budget=self._budget,
            in_memory=self._in_memory,
            refused=self._refused,
            work=self._work,
        )

    async def wait_for_room(self, size: int) -> None:
        if self._fd < 0 and self.size + size <= self._in_memory:
            return
        needed = size if self._fd >= 0 else self.size + size
        while not self._budget.fits(self._work, needed):  # noqa: ASYNC110  # threads make room, when they have uploaded
            await asyncio.sleep(_LOOK_AGAIN_S)

    def discard(self) -> None:
        try:
            super().discard()
        finally:
            self._give_back()

    def _write_out(self, data: bytes) -> None:
        self._budget.take(self._work, len(data))
        self._on_disk += len(data)
        try:
            super()._write_out(data)
        except DiskFull as full:
            raise self._refused(self._on_disk, full) from None

    def _to_disk(self) -> None:
        try:
            super()._to_disk()
        except DiskFull as full:  # not even an empty file
            raise self._refused(self.size, full) from None

    def _give_back(self) -> None:
        size, self._on_disk = self._on_disk, 0
        self._budget.give_back(self._work, size)
