"""The exchanges of a corpus as WARC, read back by warcio, which checks every digest."""

from __future__ import annotations

import errno
import io
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.stored_corpus import Corpus, make_corpus
from typer.testing import CliRunner
from warcio.archiveiterator import ArchiveIterator

from DocsToKG.ContentDownload.catalog.selection import Selection
from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.export.rows import rows
from DocsToKG.ContentDownload.export.warc import Written, write_warc
from DocsToKG.ContentDownload.net.cache import CacheSettings, entry_key, open_entries
from DocsToKG.ContentDownload.net.entries import EntryStore, StoredAnswer
from DocsToKG.ContentDownload.net.held import CachedAnswers
from DocsToKG.core.digest import sha256_hex

BODIES = {"doi:10.1/a": b"%PDF-1.4 one", "doi:10.1/b": b"%PDF-1.4 two" * 1000, "arxiv:2001.00001": b"%PDF-1.4 three"}
PAGE = "https://host0.example.org/landing?a=1"
INFO = {"date": "2026-01-02T03:04:05.000Z", "software": "DocsToKG 1"}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path / "corpus", BODIES)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[EntryStore]:
    with closing(open_entries(CacheSettings(base_path=tmp_path / "cache"), open_cas=lambda sha256: None)) as entries:
        yield entries


def keep(cache: EntryStore, url: str, content: bytes, *, in_cas: bool, **headers: str) -> None:
    answer = StoredAnswer(
        url, "GET", {}, 200, {name.replace("_", "-"): [value] for name, value in headers.items()},
        sha256=sha256_hex(content), size=len(content), in_cas=in_cas,
    )  # fmt: skip
    body = None
    if not in_cas:
        body = cache.new_body()
        assert body is not None
        body.keep(content)
        body.finish()
    cache.publish(entry_key(url), answer, body)
    if body is not None:
        body.discard()


def tried(url: str, status: int, ts: str = "2026-01-01T00:00:00.000Z") -> dict[str, Any]:
    return {"ts": ts, "verb": "GET", "url": url, "status": "http-get", "http_status": status, "role": "landing"}


def written(corpus: Corpus, cache: EntryStore | None, tries: list[dict[str, Any]]) -> tuple[bytes, Written]:
    out = io.BytesIO()
    with corpus.catalog() as catalog:
        done = write_warc(
            rows(catalog.each(Selection())), out, files=corpus.files, answers=CachedAnswers(cache),
            tries_of=lambda doc_id: tries, compressed=True, info=INFO,
        )  # fmt: skip
    return out.getvalue(), done


def records(content: bytes) -> list[tuple[str, str | None, Any, bytes, str]]:
    """Type, address, head of the answer, body and id of every record; a digest that is wrong is an error."""
    found = []
    for record in ArchiveIterator(io.BytesIO(content), check_digests="raise"):
        heads = record.rec_headers
        body = record.content_stream().read()
        found.append(
            (record.rec_type, heads.get_header("WARC-Target-URI"), record.http_headers, body,
             heads.get_header("WARC-Record-ID"))
        )  # fmt: skip
    return found


def test_a_file_whose_head_is_held_is_a_response_and_another_a_resource(corpus: Corpus, cache: EntryStore) -> None:
    keep(cache, "https://host0.example.org/0.pdf", BODIES["doi:10.1/a"], in_cas=True, etag='"x"', connection="close")
    content, done = written(corpus, cache, [])
    assert (done.works, done.files, done.responses, done.spoiled) == (3, 3, 1, [])
    found = records(content)
    assert [kind for kind, *_ in found] == [
        "warcinfo", "request", "response", "metadata", "resource", "metadata", "resource", "metadata",
    ]  # fmt: skip
    [(_, url, head, body, _)] = [one for one in found if one[0] == "response"]
    assert (url, body) == ("https://host0.example.org/0.pdf", BODIES["doi:10.1/a"])
    assert head.get_statuscode() == "200"
    assert head.get_header("etag") == '"x"'
    assert head.get_header("connection") is None
    [(_, _, asked, _, _)] = [one for one in found if one[0] == "request"]
    assert asked.statusline == "/0.pdf HTTP/1.1"
    assert asked.headers == [("Host", "host0.example.org")]
    assert [body for kind, _, _, body, _ in found if kind == "resource"] == [
        BODIES["doi:10.1/b"],
        BODIES["arxiv:2001.00001"],
    ]


def test_what_was_answered_on_the_way_is_there_once_and_each_work_tells_all_it_knows(
    corpus: Corpus, cache: EntryStore
) -> None:
    keep(cache, PAGE, b"<html>", in_cas=False, content_type="text/html")
    content, done = written(corpus, cache, [tried(PAGE, 200), tried("https://host0.example.org/gone", 404)])
    assert done.responses == 1
    found = records(content)
    [(_, url, _, body, name)] = [one for one in found if one[0] == "response"]
    assert (url, body) == (PAGE, b"<html>")
    told = [json.loads(body) for kind, _, _, body, _ in found if kind == "metadata"]
    assert [one["work"]["doc_id"] for one in told] == list(BODIES)
    for one in told:
        assert one["work"]["license"] == "CC-BY-4.0"
        assert one["work"]["sha256"] == sha256_hex(BODIES[one["work"]["doc_id"]])
        assert [request["http_status"] for request in one["requests"]] == [200, 404]
        assert name in one["records"]


def test_the_same_corpus_gives_the_same_records(corpus: Corpus, cache: EntryStore) -> None:
    keep(cache, PAGE, b"<html>", in_cas=False)
    assert written(corpus, cache, [tried(PAGE, 200)])[0] == written(corpus, cache, [tried(PAGE, 200)])[0]


def test_damaged_files_and_addresses_that_are_none_are_left_out(corpus: Corpus, cache: EntryStore) -> None:
    corpus.damage("doi:10.1/a")
    corpus.name_of("doi:10.1/b").unlink()
    keep(cache, "https://host0.example.org/x\r\nSet-Cookie: a", b"x", in_cas=False)
    content, done = written(corpus, cache, [tried("https://host0.example.org/x\r\nSet-Cookie: a", 200, ts="yesterday")])
    assert dict(done.spoiled) == {corpus.paths["doi:10.1/a"]: "damaged", corpus.paths["doi:10.1/b"]: "missing"}
    found = records(content)
    assert [kind for kind, *_ in found] == ["warcinfo", "metadata", "metadata", "resource", "metadata"]


class Broken(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError(errno.EIO, "Input/output error")


def test_what_cannot_be_read_is_left_out(corpus: Corpus, cache: EntryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is named; an answer of the cache is as good as not held."""
    corpus.name_of("doi:10.1/a").unlink()
    corpus.name_of("doi:10.1/a").mkdir()
    keep(cache, PAGE, b"<html>", in_cas=False)
    monkeypatch.setattr(CachedAnswers, "body", lambda self, url, answer: Broken())
    content, done = written(corpus, cache, [tried(PAGE, 200)])
    assert done.spoiled == [(corpus.paths["doi:10.1/a"], "unreadable")]
    assert [kind for kind, *_ in records(content)] == ["warcinfo", "metadata", *["resource", "metadata"] * 2]


def test_a_work_names_no_record_that_could_not_be_written(tmp_path: Path) -> None:
    """Two works have one file from one address; what is missing of the first is there for the second."""
    url = "https://host.example.org/same.pdf"
    corpus = make_corpus(tmp_path, {"doi:10.1/a": b"%PDF-1.4 same", "doi:10.1/b": b"%PDF-1.4 same"}, url=url)
    corpus.name_of("doi:10.1/a").unlink()
    content, done = written(corpus, None, [])
    assert (done.files, done.spoiled) == (1, [(corpus.paths["doi:10.1/a"], "missing")])
    found = records(content)
    told = [json.loads(body)["records"] for kind, _, _, body, _ in found if kind == "metadata"]
    assert told == [[], [name for kind, _, _, _, name in found if kind == "resource"]]


def test_what_may_be_secret_is_in_no_record(corpus: Corpus, cache: EntryStore) -> None:
    """Cookies that were set are not even kept, and a masked address finds nothing."""
    keep(cache, "https://api.example.org/v2?email=me@example.org", b"{}", in_cas=False)
    keep(cache, PAGE, b"<html>", in_cas=False, set_cookie="session=4711", www_authenticate="Bearer realm=4711")
    content, _ = written(corpus, cache, [tried("https://api.example.org/v2?email=***", 200), tried(PAGE, 200)])
    plain = b"".join(str((one[1], one[2] and one[2].headers, one[3])).encode() for one in records(content))
    assert b"landing" in plain
    for secret in (b"me@example.org", b"4711"):
        assert secret not in plain


@pytest.mark.slow
def test_the_command_writes_an_archive_and_says_what_is_in_it(corpus: Corpus, tmp_path: Path) -> None:
    for name in ("a.warc", "a.warc.gz"):
        out = tmp_path / name
        done = CliRunner().invoke(
            app, ["catalog", "export", "--run", str(corpus.root), "--out", str(out)], env={"COLUMNS": "200"}
        )
        assert done.exit_code == 0, done.output
        assert "3 files" in done.output
        assert (out.read_bytes()[:2] == b"\x1f\x8b") == name.endswith(".gz")
        assert len(records(out.read_bytes())) == 7
