"""Every stored file is hashed again: what is damaged, missing or nobody's is named (STO-09)."""

from __future__ import annotations

import errno
import io
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from tests.contentdownload.stored_corpus import Corpus, make_corpus

from DocsToKG.ContentDownload.errors import FileUnreadable, StorageError
from DocsToKG.ContentDownload.maintenance.cleanup import unnamed
from DocsToKG.ContentDownload.maintenance.verification import Findings, Verifier
from DocsToKG.ContentDownload.storage.files import LocalFiles, StoredFile, digest_of

BODIES = {f"doi:10.1/{number}": b"%PDF-1.4 " + bytes([number]) * (1000 + number) for number in range(40)}
A, B = "doi:10.1/0", "doi:10.1/1"


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path / "corpus", BODIES)


def check(corpus: Corpus, **options: object) -> Findings:
    with corpus.catalog() as catalog:
        return Verifier(corpus.files, on_record=catalog.files, **options).run()  # type: ignore[arg-type]


def test_a_whole_store_is_whole(corpus: Corpus) -> None:
    findings = check(corpus, threads=4)
    assert findings.is_good
    assert findings.is_whole
    assert (findings.files, findings.bytes) == (40, sum(map(len, BODIES.values()))), "two names of one file count once"
    assert findings.foreign == []


def test_every_trouble_is_named_with_its_work(corpus: Corpus) -> None:
    corpus.damage(A)
    corpus.object_of(B).unlink()
    corpus.name_of("doi:10.1/2").unlink()
    copy = corpus.name_of("doi:10.1/3")
    copy.unlink()
    copy.write_bytes(b"not a link, and not the same")
    foreign = [
        corpus.root / "PDF" / "mine.pdf",
        corpus.root / "cas" / "sha256" / "aa" / ("b" * 62),
        corpus.root / "cas" / "sha256" / "aa" / "note.txt",
        corpus.root / "cas" / "readme",
    ]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    findings = check(corpus)
    assert [found["doc_ids"] for found in findings.damaged] == [[A], ["doi:10.1/3"]]
    assert findings.damaged[0]["key"] == str(corpus.object_of(A).relative_to(corpus.root))
    assert {found["key"]: found["doc_ids"] for found in findings.missing} == {
        str(corpus.object_of(B).relative_to(corpus.root)): [B],
        corpus.paths["doi:10.1/2"]: ["doi:10.1/2"],
    }
    assert sorted(findings.foreign) == sorted(str(path.relative_to(corpus.root)) for path in foreign)
    assert findings.works == sorted([A, B, "doi:10.1/2", "doi:10.1/3"])
    assert not findings.is_good


def test_a_shared_file_that_is_damaged_names_all_its_works(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, {A: b"%PDF-1.4 same", B: b"%PDF-1.4 same"})
    corpus.damage(A)
    [found] = check(corpus).damaged
    assert found["doc_ids"] == [A, B]


class Stumbling(LocalFiles):
    """Stops the check, or refuses a file, at a given moment."""

    def __init__(self, root: Path, *, stop_at: int = 10**9, refuses: str = "") -> None:
        super().__init__(root)
        self.opened: list[str] = []
        self._stop_at = stop_at
        self._refuses = refuses
        self._lock = threading.Lock()

    def open(self, key: str) -> BinaryIO | None:
        with self._lock:
            self.opened.append(key)
            if len(self.opened) == self._stop_at:
                raise KeyboardInterrupt
        if self._refuses and self._refuses in key:
            raise StorageError(f"{key}: Input/output error")
        return super().open(key)


class Broken(io.BytesIO):
    def readinto(self, buffer: Any) -> int:
        raise OSError(errno.EIO, "Input/output error")


def test_a_file_that_breaks_off_is_named_to_whoever_wants_its_digest(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalFiles, "open", lambda self, key: Broken())
    with pytest.raises(FileUnreadable, match=f"{corpus.paths[A]}: Input/output error"):
        digest_of(corpus.files, corpus.paths[A])


@pytest.mark.slow
@pytest.mark.parametrize("stop_at", [1, 7, 39])
def test_a_check_that_was_cut_off_goes_on_and_finds_the_same(corpus: Corpus, tmp_path: Path, stop_at: int) -> None:
    corpus.damage(A)
    corpus.object_of(B).unlink()
    wanted = check(corpus)
    checkpoint = tmp_path / "state" / "verify.json"
    first = Stumbling(corpus.root, stop_at=stop_at)
    with corpus.catalog() as catalog:
        with pytest.raises(KeyboardInterrupt):
            Verifier(first, on_record=catalog.files, checkpoint=checkpoint, threads=1).run()
        assert checkpoint.exists()
        second = Stumbling(corpus.root)
        findings = Verifier(second, on_record=catalog.files, checkpoint=checkpoint, threads=1).run()
    assert findings == wanted
    assert not checkpoint.exists(), "the next check begins anew"
    # Only what was being read is read twice: a few parts of 257.
    assert len(first.opened) + len(second.opened) <= 39 + 12


@pytest.mark.slow
def test_a_check_may_be_begun_afresh_and_a_spoiled_checkpoint_is_none(corpus: Corpus, tmp_path: Path) -> None:
    checkpoint = tmp_path / "verify.json"
    for text in ("{", "[1]", '{"parts": ["00"], "colour": 1}'):
        checkpoint.write_text(text)
        assert check(corpus, checkpoint=checkpoint).files == 40
    checkpoint.write_text('{"parts": [], "files": 1000}')
    assert check(corpus, checkpoint=checkpoint).files == 1040
    checkpoint.write_text('{"parts": [], "files": 1000}')
    with corpus.catalog() as catalog:
        verifier = Verifier(corpus.files, on_record=catalog.files, checkpoint=checkpoint)
        assert verifier.run(afresh=True).files == 40


@pytest.mark.slow
def test_a_check_of_long_ago_is_begun_anew(corpus: Corpus, tmp_path: Path) -> None:
    """What was whole last month may be damaged by now."""
    checkpoint = tmp_path / "verify.json"
    checkpoint.write_text('{"parts": [], "files": 1000}')
    os.utime(checkpoint, (time.time() - 90_000,) * 2)
    assert check(corpus, checkpoint=checkpoint).files == 40


def test_where_nothing_can_be_written_the_check_is_made_all_the_same(corpus: Corpus, tmp_path: Path) -> None:
    """As on an archived disk: only how far it came cannot be kept."""
    (tmp_path / "state").write_text("a file where the folder should be")
    corpus.damage(A)
    with corpus.catalog() as catalog:
        checkpoint = tmp_path / "state" / "verify.json"
        verifier = Verifier(corpus.files, on_record=catalog.files, checkpoint=checkpoint, save_every_s=0.0)
        assert [file["doc_ids"] for file in verifier.run().damaged] == [[A]]


def test_a_file_that_cannot_be_read_is_named_and_the_rest_is_checked(corpus: Corpus) -> None:
    digest = corpus.digests[A]
    with corpus.catalog() as catalog:
        findings = Verifier(Stumbling(corpus.root, refuses=digest[2:]), on_record=catalog.files).run()
    assert [digest[2:] in said for said in findings.unreadable] == [True]
    assert findings.files == 40
    assert not findings.is_good


def test_several_files_are_read_at_once(corpus: Corpus) -> None:
    """The hashing runs beside the reading of others: two threads meet inside `open`."""
    meeting = threading.Barrier(2, timeout=60)
    met = threading.Event()

    class Meeting(LocalFiles):
        def open(self, key: str) -> BinaryIO | None:
            if not met.is_set():
                meeting.wait()
                met.set()
            return super().open(key)

    # A copy of each object would be two files of one part.
    for number in range(4):
        path = corpus.name_of(f"doi:10.1/{number}")
        body = path.read_bytes()
        path.unlink()
        path.write_bytes(body)
    files = Meeting(corpus.root)
    with corpus.catalog() as catalog:
        verifier = Verifier(files, on_record=catalog.files, threads=2, has_cas=False)
        assert verifier.run().is_good
    assert met.is_set()


def test_without_an_object_store_the_readable_files_are_checked(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, {A: b"%PDF-1.4 one", B: b"%PDF-1.4 two"})
    corpus.damage(A)
    findings = check(corpus, has_cas=False)
    assert [found["doc_ids"] for found in findings.damaged] == [[A]]
    assert findings.files == 2


def test_unnamed_objects_are_found(corpus: Corpus) -> None:
    named = set(corpus.digests.values()) - {corpus.digests[A]}
    junk = corpus.root / "cas" / "sha256" / "zz"
    junk.mkdir()
    (junk / "what").touch()
    found = [file.key for file in unnamed(corpus.files, named.__contains__)]
    assert found == sorted([str(corpus.object_of(A).relative_to(corpus.root)), "cas/sha256/zz/what"])


def test_a_digest_is_taken_from_any_kind_of_store() -> None:
    class Memory:
        """A store that gives plain readers, as one in a bucket would."""

        def open(self, key: str) -> BinaryIO | None:
            return io.BytesIO(b"abc") if key == "there" else None

        def exists(self, key: str) -> bool:
            return key == "there"

        def size(self, key: str) -> int | None:
            return 3

        def list(self, prefix: str) -> Iterator[StoredFile]:
            yield StoredFile("there", 3)

        def delete(self, key: str) -> bool:
            return False

    found = digest_of(Memory(), "there")
    assert found == ("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", 3)
    assert digest_of(Memory(), "gone") is None


@pytest.mark.parametrize("key", ["../outside", "/etc/passwd", "a//b", "a/./b", "", "a/\0b"])
def test_no_key_leads_out_of_the_store(tmp_path: Path, key: str) -> None:
    (tmp_path / "outside").write_text("secret")
    files = LocalFiles(tmp_path / "root")
    for ask in (files.open, files.size, files.delete, files.exists):
        with pytest.raises(StorageError):
            ask(key)
    assert (tmp_path / "outside").exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    root = tmp_path / "root"
    (root / "PDF").mkdir(parents=True)
    os.symlink(tmp_path / "outside", root / "PDF" / "link.pdf")
    os.symlink(tmp_path, root / "PDF" / "folder")
    files = LocalFiles(root)
    with pytest.raises(StorageError):
        files.open("PDF/link.pdf")
    assert [file.key for file in files.list("PDF")] == ["PDF/folder", "PDF/link.pdf"]
