"""Files in a bucket: whole or not there, the same from every machine, and never more on the local disk than agreed."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import pytest
from tests.waiting import eventually

from DocsToKG.ContentDownload.errors import ConfigError, StorageAway, StorageError, TransientFailure
from DocsToKG.ContentDownload.maintenance.cleanup import unnamed
from DocsToKG.ContentDownload.maintenance.verification import Verifier
from DocsToKG.ContentDownload.storage.bucket import PART_BYTES, Bucket, Tags
from DocsToKG.ContentDownload.storage.bucket_files import BucketFiles
from DocsToKG.ContentDownload.storage.cas import cas_key
from DocsToKG.ContentDownload.storage.s3 import BucketStore
from DocsToKG.ContentDownload.storage.uploads import abort_orphans

pytestmark = pytest.mark.slow  # real servers; part of `make test`

MIB = 1 << 20
SMALL = b"%PDF-1.4 " + random.Random(1).randbytes(50_000)
LARGE = b"%PDF-1.4 " + random.Random(2).randbytes(2 * PART_BYTES + 12_345)
HUMAN = "PDF/2021__deep-nets__doi-1.pdf"
NAMES = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION")
Open = Callable[..., BucketStore]


class Server(Protocol):
    """See conftest."""

    port: int

    def stop(self) -> None: ...
    def start(self) -> None: ...


def use(monkeypatch: pytest.MonkeyPatch, url: str) -> str:
    """Let the environment lead to the server; returns the bucket."""
    parts = urlsplit(url)
    values = (
        f"http://{parts.hostname}:{parts.port}",
        (parts.username or "").replace("%3A", ":"),
        parts.password or "",
        "us-east-1",
    )
    for name, value in zip(NAMES, values, strict=True):
        monkeypatch.setenv(name, value)
    return parts.path.strip("/")


@pytest.fixture(params=["s3", "swift"])
def bucket(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    name = use(monkeypatch, request.getfixturevalue(f"{request.param}_url"))
    return Bucket(name, prefix=f"t-{uuid.uuid4().hex}")


@pytest.fixture
def swift(swift_url: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    return Bucket(use(monkeypatch, swift_url), prefix=f"t-{uuid.uuid4().hex}")


@pytest.fixture
def quick(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    return Bucket(use(monkeypatch, s3_url), prefix=f"t-{uuid.uuid4().hex}")


def opened(bucket: Bucket, folder: Path, **settings: Any) -> BucketStore:
    settings = {"staging_bytes": 512 * MIB, "largest": 256 * MIB, "pause_s": 0.01} | settings
    store = BucketStore(bucket, staging=folder / "staging", **settings)
    store.prepare()
    return store


def put(store: BucketStore, content: bytes, human: str = HUMAN) -> Any:
    with store.temp() as temp:
        for start in range(0, len(content), 64 * 1024):
            temp.write(content[start : start + 64 * 1024])
        return store.store(temp, human=human)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def keys(bucket: Bucket) -> list[str]:
    return [found.key for found in bucket.list("cas")]


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["one request", "in parts"])
def test_bytes_are_kept_once_under_their_digest_and_come_back_whole(
    bucket: Bucket, tmp_path: Path, content: bytes
) -> None:
    """STO-02, STO-03, STO-06."""
    store = opened(bucket, tmp_path)
    first, second = put(store, content), put(store, content, "PDF/other.pdf")
    assert (first.sha256, first.size, first.duplicate) == (digest(content), len(content), False)
    assert second.duplicate
    assert keys(bucket) == [cas_key(digest(content))]
    file = store.open(digest(content))
    assert file is not None
    with file:
        assert file.seek(0, os.SEEK_END) == len(content)
        file.seek(0)
        assert file.read() == content
    assert store.verify(digest(content))
    assert first.place == f"{bucket.url}/{cas_key(digest(content))}"
    assert store.relative(first.place) == cas_key(digest(content))
    assert store.size_of(cas_key(digest(content))) == len(content)
    assert not list((tmp_path / "staging" / ".tmp").iterdir())


def test_the_service_tells_by_its_tag_that_it_has_every_byte(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(bucket, tmp_path)
    monkeypatch.setattr(bucket, "digest", lambda key: pytest.fail("no reading back is needed"))
    assert not put(store, SMALL).duplicate
    assert not put(store, LARGE).duplicate
    assert put(store, LARGE).duplicate


def test_an_object_whose_tag_tells_nothing_is_read_back(quick: Bucket, tmp_path: Path) -> None:
    """As for objects that the service encrypts, or that came in parts of another size."""
    store = opened(quick, tmp_path)
    asked: list[str] = []
    real = quick.digest
    quick.digest = lambda key: asked.append(key) or real(key)  # type: ignore[method-assign, func-returns-value]
    real_find = quick.find

    def find(key: str) -> Any:
        from dataclasses import replace

        found = real_find(key)
        return None if found is None else replace(found, tag="0" * 32)

    quick.find = find  # type: ignore[method-assign]
    assert not put(store, SMALL).duplicate
    assert asked == [cas_key(digest(SMALL))]


def test_a_damaged_object_is_written_again_and_a_whole_one_never(bucket: Bucket, tmp_path: Path) -> None:
    store = opened(bucket, tmp_path)
    bucket.put(cas_key(digest(SMALL)), b"x" * len(SMALL), len(SMALL), name="x.pdf")
    assert not store.verify(digest(SMALL))
    assert not put(store, SMALL).duplicate
    assert store.verify(digest(SMALL))
    store.drop_damaged(digest(SMALL), HUMAN)
    assert store.has(digest(SMALL))


def test_two_writers_of_the_same_bytes_leave_one_whole_object(bucket: Bucket, tmp_path: Path) -> None:
    """STO-07: nothing rests on conditional puts."""
    stores = [opened(bucket, tmp_path / str(number)) for number in range(2)]
    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(put, stores[number % 2], LARGE) for number in range(8)]
        assert {future.result().sha256 for future in futures} == {digest(LARGE)}
    assert keys(bucket) == [cas_key(digest(LARGE))]
    assert stores[0].verify(digest(LARGE))


@contextlib.contextmanager
def stalling(port: int, after: int) -> Iterator[tuple[int, threading.Event]]:
    """A way to the server that takes `after` bytes and then no more; the event tells when."""
    stalled = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))
    ends: list[socket.socket] = [listener]
    passed = 0

    def pump(source: socket.socket, target: socket.socket, counts: bool) -> None:
        nonlocal passed
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if counts:
                    passed += len(data)
                    if passed > after:
                        stalled.set()
                        return
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.create_connection(("127.0.0.1", port))
                ends.extend((client, server))
                for source, target, counts in ((client, server, True), (server, client, False)):
                    threading.Thread(target=pump, args=(source, target, counts), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield listener.getsockname()[1], stalled
    finally:
        for end in ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


UPLOAD = """
import random, sys
from pathlib import Path
from DocsToKG.ContentDownload.storage.bucket import Bucket
from DocsToKG.ContentDownload.storage.s3 import BucketStore
bucket = Bucket(sys.argv[1], prefix=sys.argv[2])
store = BucketStore(bucket, staging=Path(sys.argv[3]), staging_bytes=1 << 30, largest=1 << 28)
store.prepare()
with store.temp() as temp:
    temp.write(b"%PDF-1.4 " + random.Random(2).randbytes(40 << 20))
    store.store(temp, human="PDF/a.pdf")
"""


def test_a_kill_in_the_middle_of_an_upload_leaves_nothing_visible(
    bucket: Bucket, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """And what the service keeps unseen is dropped by the next `prepare`, once it is old enough to be nobody's."""
    port = urlsplit(bucket.endpoint).port
    assert port is not None
    with stalling(port, 20 * MIB) as (way, stalled):
        command = [sys.executable, "-c", UPLOAD, bucket.name, bucket.prefix, str(tmp_path / "s")]
        environment = os.environ | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{way}"}
        with subprocess.Popen(command, env=environment) as process:
            assert stalled.wait(60)
            process.send_signal(signal.SIGKILL)
    assert keys(bucket) == []
    assert not list((tmp_path / "s" / ".tmp").iterdir())
    if request.node.callspec.params["bucket"] == "swift":  # moto says of every upload that it was begun in 2010
        assert abort_orphans(bucket, older_than_s=3600) == 0
    assert abort_orphans(bucket, older_than_s=-60) == 1
    assert abort_orphans(bucket, older_than_s=-60) == 0
    assert keys(bucket) == []


def test_refused_credentials_are_named_with_their_settings(
    swift: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-secret")
    with pytest.raises(ConfigError) as caught:
        opened(Bucket(swift.name), tmp_path)
    said = str(caught.value)
    assert "storage.s3_bucket" in said
    assert "credentials are refused" in said
    assert "AWS_SECRET_ACCESS_KEY" in said
    assert "planted-secret" not in said


def test_a_bucket_that_is_not_there_is_named(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"storage\.s3_bucket: 'no-such-bucket' cannot be used at http://127"):
        opened(Bucket("no-such-bucket"), tmp_path)


def test_a_process_that_joins_a_run_does_not_end_it_while_the_bucket_is_away(
    quick: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    words: dict[str, Any] = {"staging": tmp_path, "staging_bytes": MIB, "largest": MIB, "pause_s": 0.01}
    store = BucketStore(Bucket(quick.name), **words)
    with pytest.raises(ConfigError, match="cannot be used"):
        store.prepare()
    assert store.prepare(joining=True) == 0
    with pytest.raises(StorageAway):
        put(store, b"%PDF- waits for the bucket")


def test_credentials_that_are_taken_away_stop_the_run_with_a_clear_word(
    swift: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "planted-secret")
    store = BucketStore(Bucket(swift.name), staging=tmp_path, staging_bytes=MIB, largest=MIB)
    with pytest.raises(StorageError, match="credentials are refused"):
        put(store, SMALL)


def test_a_server_that_is_away_for_a_while_costs_time_alone(
    own_s3: tuple[Server, str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    from tests.conformance.conftest import make_bucket

    server, name = own_s3
    waits: list[float] = []

    def back_at_the_second_wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            server.start()
            make_bucket(server)  # type: ignore[arg-type]

    store = opened(Bucket(name, retry_s=0.5), tmp_path, sleep=back_at_the_second_wait, pause_s=1.0)
    server.stop()
    assert not put(store, LARGE).duplicate
    assert 0.7 < waits[0] < 1.3 < waits[1] < 2.6
    assert store.verify(digest(LARGE))
    assert "planted-password" not in caplog.text


def test_a_server_that_stays_away_makes_the_work_come_back_later(own_s3: tuple[Server, str], tmp_path: Path) -> None:
    server, name = own_s3
    waits: list[float] = []
    store = opened(Bucket(name, retry_s=0.5), tmp_path, sleep=waits.append, tries=3)
    server.stop()
    with pytest.raises(TransientFailure, match="does not answer") as caught:
        put(store, SMALL)
    assert caught.value.retry_after_s
    assert len(waits) == 2
    assert store.open(digest(SMALL)) is None
    with pytest.raises(TransientFailure):
        store.adopt(digest(SMALL), HUMAN)
    assert store.budget.used == 0


def test_while_the_server_is_away_nobody_should_bring_files_and_once_it_is_back_everybody_may(
    own_s3: tuple[Server, str], tmp_path: Path
) -> None:
    from tests.conformance.conftest import make_bucket

    server, name = own_s3
    store = opened(Bucket(name, retry_s=0.5), tmp_path, sleep=lambda seconds: None, tries=2)
    slow: list[float] = []
    store.on_stored(slow.append)
    assert store.held_up() is None
    server.stop()
    with pytest.raises(StorageAway, match="does not answer"):
        put(store, SMALL)
    hold = store.held_up()
    assert hold is not None
    assert "does not answer" in hold.why
    assert "planted-password" not in hold.why
    assert max(slow) > 1, "so that fewer leases are held"
    server.start()
    make_bucket(server)  # type: ignore[arg-type]
    eventually(lambda: store.held_up() is None)
    assert not put(store, SMALL).duplicate


def test_a_staging_disk_that_is_full_makes_files_wait_and_stops_nothing(
    quick: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(quick, tmp_path)
    is_full, real, usage = threading.Event(), os.write, shutil.disk_usage
    is_full.set()

    def write(fd: int, data: Any) -> int:
        if is_full.is_set():
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        patch.setattr(shutil, "disk_usage", lambda path: usage(path)._replace(free=0 if is_full.is_set() else 1 << 40))
        with pytest.raises(StorageAway, match="no space left"):
            put(store, LARGE)
        assert put(store, SMALL).size == len(SMALL), "what fits in memory needs no disk"
        hold = store.held_up()
        assert hold is not None
        assert "no space left" in hold.why
        assert store.budget.used == 0
        is_full.clear()
        eventually(lambda: store.held_up() is None)
        assert put(store, LARGE).size == len(LARGE)
    assert not list((tmp_path / "staging" / ".tmp").iterdir())


def test_a_file_that_is_larger_than_the_staging_disk_is_not_waited_for(
    quick: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, usage = opened(quick, tmp_path), shutil.disk_usage(tmp_path)
    truly_write, written = os.write, 0

    def write(fd: int, data: Any) -> int:
        nonlocal written
        written += len(data)
        if written > MIB:
            raise OSError(errno.ENOSPC, "No space left on device")
        return truly_write(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write)
        patch.setattr(shutil, "disk_usage", lambda path: usage._replace(total=MIB, free=MIB))
        with pytest.raises(TransientFailure, match="do not fit") as caught:
            put(store, LARGE)
    assert not isinstance(caught.value, StorageAway)
    assert store.held_up() is None


def test_many_large_files_at_once_stay_within_the_staging_budget(quick: Bucket, tmp_path: Path) -> None:
    """Who would go over it waits; everybody ends."""
    store = opened(quick, tmp_path, staging_bytes=12 * MIB, largest=4 * MIB)
    contents = [random.Random(number).randbytes(3 * MIB) for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda content: put(store, content), contents))
    assert [result.sha256 for result in results] == [digest(content) for content in contents]
    assert 3 * MIB <= store.budget.peak <= 12 * MIB
    assert store.budget.waits > 0
    assert store.budget.used == 0
    assert len(keys(quick)) == 16


def test_a_file_is_written_to_the_local_disk_once_and_a_small_one_never(
    quick: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(quick, tmp_path)
    written: list[int] = []
    real = os.write

    def counted(fd: int, data: Any) -> int:
        count = real(fd, data)
        written.append(count)
        return count

    monkeypatch.setattr(os, "write", counted)
    put(store, SMALL)
    assert sum(written) < 1000
    put(store, LARGE)
    assert len(LARGE) <= sum(written) < len(LARGE) + 1000


def test_looking_after_a_bucket_finds_what_is_damaged_missing_and_nobodys(bucket: Bucket, tmp_path: Path) -> None:
    """STO-09."""
    from DocsToKG.ContentDownload.catalog.store import Download

    store, files = opened(bucket, tmp_path), BucketFiles(bucket)
    other, lost, spare = (f"%PDF-1.4 {word}".encode() * 3000 for word in ("other", "lost", "spare"))
    for content in (SMALL, other, spare):
        put(store, content)
    bucket.put(cas_key(digest(other)), b"damaged", 7, name="x.pdf")
    held = [
        Download(
            f"doi:{n}", digest(content), cas_key(digest(content)), len(content), *[None] * 5, run_id="r", created_at=""
        )
        for n, content in enumerate((SMALL, other, lost))
    ]
    verifier = Verifier(files, on_record=lambda shard: [one for one in held if one.sha256.startswith(shard)])
    findings = verifier.run()
    assert [found["sha256"] for found in findings.damaged] == [digest(other)]
    assert {found["sha256"] for found in findings.missing} == {digest(lost)}
    assert findings.foreign == [cas_key(digest(spare))]
    named = {one.sha256 for one in held}
    assert [file.key for file in unnamed(files, named.__contains__)] == [cas_key(digest(spare))]
    # What is young may be about to be recorded by another machine.
    assert list(unnamed(BucketFiles(bucket, settled_s=3600), named.__contains__)) == []
    assert files.delete(cas_key(digest(spare)))
    assert not files.delete(cas_key(digest(spare)))
    assert not files.exists(cas_key(digest(spare)))


def test_bytes_that_are_stored_again_are_not_removed_as_nobodys_before_they_are_on_record(
    bucket: Bucket, tmp_path: Path
) -> None:
    """Whoever removes has listed an old object that no record names, when a machine brings the same bytes."""
    store, key = opened(bucket, tmp_path, fresh_s=1.0), cas_key(digest(SMALL))
    assert not put(store, SMALL).duplicate
    stored = bucket.find(key)
    assert stored is not None
    sweeping = BucketFiles(bucket, settled_s=3.0, now=lambda: stored.modified + 4.0)
    assert [file.key for file in unnamed(sweeping, lambda digest: False)] == [key]
    eventually(lambda: time.time() - stored.modified > 2.0)
    assert put(store, SMALL).duplicate
    assert not sweeping.delete(key)
    assert bucket.digest(key) == digest(SMALL)
    untouched = BucketFiles(bucket, settled_s=3.0, now=lambda: time.time() + 3600)
    assert untouched.delete(key)  # nobody has brought them for so long


@pytest.mark.parametrize("key", ["../other", "cas//x", "a/./b", ""])
def test_no_name_leads_out_of_the_prefix(quick: Bucket, tmp_path: Path, key: str) -> None:
    with pytest.raises(StorageError):
        BucketFiles(quick).size(key)
    with pytest.raises(StorageError):
        opened(quick, tmp_path).at(key)


def test_tags_of_whole_bytes_and_of_parts() -> None:
    md5 = hashlib.md5(SMALL).hexdigest()
    tags = Tags(SMALL, len(SMALL))
    assert tags.prove(md5)
    assert not tags.prove("0" * 32)
    assert not tags.prove("")
    parts = b"".join(hashlib.md5(LARGE[at : at + PART_BYTES]).digest() for at in range(0, len(LARGE), PART_BYTES))
    assert Tags(LARGE, len(LARGE)).prove(f"{hashlib.md5(parts).hexdigest()}-3")
