"""Bytes, proof elsewhere, then into a bucket: a store whose objects every machine sees.

Files wait on the local disk, within a budget, until they are proved; then they are uploaded to the key that is their
digest, and the service is asked what it has. There are no readable names in a bucket: records name the key. Promises:
no reader sees a part of a file; two machines that store the same bytes write the same key; what was stored is young
enough that nobody removes it before it is on record; a service that is away, and a staging disk that is full, make
works wait, and stop nothing.
"""

from __future__ import annotations

import asyncio
import logging
import random
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PosixPath
from typing import BinaryIO, TypeVar

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import DiskFull, StorageAway, StorageError, TransientFailure
from DocsToKG.ContentDownload.storage.bucket import SETTLED_S, Bucket, BucketAway, BucketObject, Tags
from DocsToKG.ContentDownload.storage.cas import cas_key
from DocsToKG.ContentDownload.storage.local import LocalStore, Stored
from DocsToKG.ContentDownload.storage.outage import Hold, Outage
from DocsToKG.ContentDownload.storage.paths import is_plain
from DocsToKG.ContentDownload.storage.staging import Budget, StagedFile
from DocsToKG.ContentDownload.storage.temp import IN_MEMORY, TempFile
from DocsToKG.ContentDownload.storage.uploads import abort_orphans
from DocsToKG.core.tasks import finished

_T = TypeVar("_T")
_LOG = logging.getLogger(__name__)
_COME_BACK_S = 1.0  # then it waits for the store, not before some host
_MIB = 1 << 20
_SLOW_S = 10.0  # so few leases should be held as if each file took so long
_ORPHAN_S = 3600.0
_MOST_UPLOADS = 16


class BucketPath(PosixPath):
    """A place in a bucket, where callers expect a path: it is shown and joined; no disk knows it."""

    def __str__(self) -> str:
        text = super().__str__()
        return f"s3://{text[4:]}" if text.startswith("s3:/") and not text.startswith("s3://") else text


class BucketStore(LocalStore):
    """Objects in `bucket`; `staging` is the folder for files on their way.

    `tries` and `pause_s`: how often an upload is begun, and the first wait between two tries, doubled each time. An
    object older than `fresh_s` is written again; the rest of the time is for the way to the record and for clocks.
    """

    def __init__(
        self,
        bucket: Bucket,
        *,
        staging: Path,
        staging_bytes: int,
        largest: int,
        min_free_bytes: int = 0,
        in_memory: int = IN_MEMORY,
        tries: int = 5,
        pause_s: float = 0.5,
        orphan_s: float = _ORPHAN_S,
        sleep: Callable[[float], None] = time.sleep,
        fresh_s: float = SETTLED_S / 3,
    ) -> None:
        super().__init__(staging, cas_enabled=False, min_free_bytes=min_free_bytes, in_memory=in_memory)
        self.bucket = bucket
        self.budget = Budget(staging_bytes, largest=largest)
        self._tries = tries
        self._pause_s = pause_s
        self._orphan_s = orphan_s
        self._sleep = sleep
        self._fresh_s = fresh_s
        self._staging = self.root
        self._service = Outage(self._ask_service)
        self._disk = Outage(self._ask_disk)
        self._need = 2 * _MIB  # bytes, for the disk to count as usable again
        self._uploads = ThreadPoolExecutor(_MOST_UPLOADS, thread_name_prefix="upload")
        self.root = BucketPath(bucket.url)

    def check_space(self, need_bytes: int = 0) -> None:
        """Raise `DiskFull` unless the disk of the staging folder has the reserve and `need_bytes` more."""
        LocalStore(self._staging, min_free_bytes=self._min_free_bytes).check_space(need_bytes)

    def prepare(self, *, joining: bool = False) -> int:
        """Make the staging folder, see that the bucket can be used, and drop uploads that nobody will finish."""
        swept = super().prepare(joining=joining)
        if joining:
            # The run has seen that the bucket can be used; that it is away now is no reason to end, files wait for it.
            return swept
        self.bucket.check()
        try:
            return swept + abort_orphans(self.bucket, older_than_s=self._orphan_s)
        except (OSError, ValueError) as error:
            # They cost money, not truth: a run does not stop for them.
            _LOG.warning("%s: unfinished uploads were not looked for (%s)", self.bucket.url, type(error).__name__)
            return swept

    def temp(self, suffix: str = ".part") -> TempFile:
        return StagedFile(
            lambda: self._open_temp(suffix),
            where=self._temp_dir,
            budget=self.budget,
            in_memory=self._in_memory,
            refused=self._no_room,
        )

    def held_up(self) -> Hold | None:
        hold = self._service.hold() or self._disk.hold()
        if hold is not None:
            self._on_stored(_SLOW_S)
        return hold

    async def storing(self, temp: TempFile, *, human: str) -> Stored:
        upload = partial(self.store, temp, human=human)
        return await finished(asyncio.get_running_loop().run_in_executor(self._uploads, upload))

    def store(self, temp: TempFile, *, human: str) -> Stored:
        """Upload the bytes to their digest's key, unless they are there. Consumes `temp`."""
        began = time.monotonic()
        try:
            duplicate = self._upload(temp, human)
        finally:
            self._on_stored(time.monotonic() - began)
            sha256, size = temp.sha256, temp.size
            temp.discard()
        return Stored(sha256, size, str(self.at(cas_key(sha256))), duplicate, "none")

    def adopt(self, sha256: str, human: str) -> Stored | None:
        found = self._asked(lambda: self.bucket.find(cas_key(sha256)))
        if found is None:
            return None
        return Stored(sha256, found.size, str(self.at(found.key)), True, "none")

    def has(self, sha256: str) -> bool:
        return self._asked(lambda: self.bucket.find(cas_key(sha256))) is not None

    def open(self, sha256: str) -> BinaryIO | None:
        """The object for reading; None when it is not here or cannot be asked for, so that it is fetched instead."""
        try:
            return self.bucket.open(cas_key(sha256), broke_off=lambda why: TransientFailure(Reason.BACKOFF, why))
        except BucketAway:
            return None

    def verify(self, sha256: str, human: str | None = None) -> bool:
        return self._asked(lambda: self.bucket.digest(cas_key(sha256))) == sha256

    def drop_damaged(self, sha256: str, human: str) -> None:
        key = cas_key(sha256)
        if self._asked(lambda: self.bucket.digest(key)) not in (None, sha256):
            self._asked(lambda: self.bucket.delete(key))

    def release(self, relative: str) -> None:
        """Nothing: a bucket has no readable names."""

    def size_of(self, relative: str) -> int | None:
        found = self._asked(lambda: self.bucket.find(relative))
        return None if found is None else found.size

    def relative(self, path: str | Path) -> str:
        text = str(path)
        for below in (f"{self.bucket.url}/", f"{self.bucket.url.replace('s3://', 's3:/')}/"):
            if text.startswith(below):
                return text[len(below) :]
        raise ValueError(f"not in {self.bucket.url}: {text[:200]!r}")

    def at(self, relative: str) -> Path:
        if not all(map(is_plain, relative.split("/"))):
            raise StorageError(f"{relative[:200]!r} is not the name of a stored file")
        return self.root / relative

    # an upload

    def _upload(self, temp: TempFile, human: str) -> bool:
        """True when the object was there before."""
        for attempt in range(1, self._tries + 1):
            try:
                duplicate = self._try_upload(temp, human)
                self._service.end()
                return duplicate
            except (BucketAway, FileNotFoundError) as error:
                # What is not found is an upload that somebody has aborted, or a bucket that is being made again.
                trouble = str(error) if isinstance(error, BucketAway) else f"{self.bucket.url}: not found"
                _LOG.info("try %d of %d to store a file failed: %s", attempt, self._tries, trouble)
                if attempt < self._tries:
                    self._sleep(self._pause_s * 2 ** (attempt - 1) * random.uniform(0.75, 1.25))
        _LOG.warning("a file was not stored and its work comes back later: %s", trouble)
        raise self._away(trouble)

    def _away(self, trouble: str) -> StorageAway:
        self._service.begin(trouble)
        return StorageAway(Reason.BACKOFF, f"not stored: {trouble}", retry_after_s=_COME_BACK_S)

    def _ask_service(self) -> str | None:
        try:
            self.bucket.find("cas")
        except BucketAway as error:
            return str(error)
        return None

    # the disk

    def _no_room(self, size: int, full: DiskFull) -> TransientFailure:
        """What a full disk means for a file that has come to `size` bytes: others may leave, unless it never fits."""
        total = shutil.disk_usage(self._staging).total
        if 2 * size > total:
            return TransientFailure(Reason.BACKOFF, f"{size} bytes do not fit on the disk of {self._staging}")
        self._need = min(size + _MIB, total // 2)
        if self._disk.begin(f"{self._staging}: no space left"):
            _LOG.warning("%s: no space left; files wait until there is", self._staging)
        return StorageAway(Reason.BACKOFF, f"not stored: {full}", retry_after_s=_COME_BACK_S)

    def _ask_disk(self) -> str | None:
        free = shutil.disk_usage(self._staging).free
        return None if free >= self._need else f"{self._staging}: no space left"

    def _try_upload(self, temp: TempFile, human: str) -> bool:
        key = cas_key(temp.sha256)
        found = self.bucket.find(key)
        tags = self._tags(temp)
        duplicate = found is not None and self._is_whole(found, temp, tags)
        if duplicate and found is not None and time.time() - found.modified < self._fresh_s:
            return True
        # An old one may be nobody's and about to be removed: written again it is young.
        data = temp.data
        name = human.rpartition("/")[2]
        if data is not None:
            self.bucket.put(key, data, temp.size, name=name)
        else:
            with open(temp.source, "rb") as file:
                self.bucket.put(key, file, temp.size, name=name)
        found = self.bucket.find(key)
        if found is None or not self._is_whole(found, temp, tags):
            # Nobody may take it for the file; the next try writes it again.
            self.bucket.delete(key)
            raise BucketAway(f"{self.bucket.url}/{key}: what came back is not what was sent")
        return duplicate

    def _is_whole(self, found: BucketObject, temp: TempFile, tags: Tags) -> bool:
        """By the service's own tag where that tells something, else by reading it back."""
        if found.size != temp.size:
            return False
        return tags.prove(found.tag) or self.bucket.digest(found.key) == temp.sha256

    def _tags(self, temp: TempFile) -> Tags:
        data = temp.data
        if data is not None:
            return Tags(data, temp.size)
        with open(temp.source, "rb") as file:
            return Tags(file, temp.size)

    def _asked(self, ask: Callable[[], _T]) -> _T:
        try:
            return ask()
        except BucketAway as error:
            raise self._away(str(error)) from None
