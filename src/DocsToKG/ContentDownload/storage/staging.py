"""A bounded place on the local disk for files that are on their way to a bucket.

Knows how many bytes wait there and who brought them. Whoever would go over the budget waits until others have left.
Promises: the bytes on disk stay within the budget, except for a file that is larger than all of it, which goes alone;
nobody waits for ever, because the thread that came first always has room to finish.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from DocsToKG.ContentDownload.errors import DiskFull
from DocsToKG.ContentDownload.storage.temp import IN_MEMORY, TempFile
from DocsToKG.core.turns import giving_way


class Budget:
    """`total` bytes for all threads together; `largest` is what one thread may need before it is done."""

    def __init__(self, total: int, *, largest: int) -> None:
        self._total = total
        self._largest = min(largest, total)
        self._held: dict[int, int] = {}  # bytes by thread, in the order in which they came
        self._used = 0
        self._changed = threading.Condition()
        self.peak = 0
        self.waits = 0

    @property
    def used(self) -> int:
        return self._used

    def take(self, thread: int, size: int) -> None:
        """Return when `thread` may write `size` bytes more."""
        with self._changed:
            self._held.setdefault(thread, 0)
            if not self._fits(thread, size):
                self.waits += 1
                with giving_way():
                    self._changed.wait_for(lambda: self._fits(thread, size))
            self._held[thread] += size
            self._used += size
            self.peak = max(self.peak, self._used)

    def give_back(self, thread: int, size: int) -> None:
        with self._changed:
            self._used -= size
            self._held[thread] -= size
            if self._held[thread] <= 0:
                del self._held[thread]
            self._changed.notify_all()

    def _fits(self, thread: int, size: int) -> bool:
        """The first in line needs only what is free. The others leave it the room to become as large as any: so it
        ends, and the next is the first."""
        free = self._total - self._used
        first = next(iter(self._held))
        if thread == first:
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
    ) -> None:
        """`refused` makes the error of a disk that is full, by the size that the file has come to."""
        super().__init__(open_file, where=where, in_memory=in_memory)
        self._budget = budget
        self._thread = threading.get_ident()
        self._on_disk = 0
        self._refused = refused

    def restart(self) -> None:
        super().restart()
        self._give_back()

    def discard(self) -> None:
        try:
            super().discard()
        finally:
            self._give_back()

    def _write_out(self, data: bytes) -> None:
        self._budget.take(self._thread, len(data))
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
        if self._on_disk:
            size, self._on_disk = self._on_disk, 0
            self._budget.give_back(self._thread, size)
