"""A work is taken down: its bytes are gone everywhere, the record says so, and it is refused from then on."""

from __future__ import annotations

import csv
import hashlib
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.stored_corpus import Corpus, make_corpus

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.bootstrap import open_removal
from DocsToKG.ContentDownload.catalog.selection import Selection
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import FolderInUse, InputError, RecordError
from DocsToKG.ContentDownload.maintenance import removal as removal_module
from DocsToKG.ContentDownload.maintenance.removal import Removal
from DocsToKG.ContentDownload.maintenance.takedowns import LIST, Takedowns, named_work, names_of
from DocsToKG.ContentDownload.net.cache import CacheSettings, open_entries
from DocsToKG.ContentDownload.net.entries import EntryStore, StoredAnswer
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.ContentDownload.telemetry.folder import locked
from DocsToKG.core.clock import ManualClock

A, B, C = "doi:10.1/a", "doi:10.1/b", "arxiv:2001.00001"
BODIES = {A: b"%PDF-1.4 one", B: b"%PDF-1.4 two", C: b"%PDF-1.4 three"}


class Crash(BaseException):
    pass


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path, BODIES)


def removal_of(corpus: Corpus, **parts: Any) -> Removal:
    return Removal(
        corpus.root,
        database=corpus.database,
        sinks=("jsonl", "csv", "sqlite"),
        run_id="t1",
        **{"files": corpus.files, "clock": ManualClock(1_760_000_000), **parts},
    )


def states(corpus: Corpus) -> dict[str, str]:
    with corpus.catalog() as catalog:
        return {work["doc_id"]: work["state"] for work in catalog.each(Selection())}


def lines(corpus: Corpus) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (corpus.root / "manifest.jsonl").read_text().splitlines()]


def is_gone(corpus: Corpus, doc_id: str) -> bool:
    body = BODIES[doc_id]
    return not any(body in path.read_bytes() for path in corpus.root.rglob("*.pdf")) and not any(
        path.read_bytes() == body for path in (corpus.root / "cas").rglob("*") if path.is_file()
    )


def test_the_bytes_are_gone_and_a_tombstone_stays(corpus: Corpus) -> None:
    copy = corpus.root / "PDF" / "my own name for it.pdf"
    copy.write_bytes(BODIES[A])
    before = lines(corpus)
    entry = removal_of(corpus).take_down("10.1/A", reason="asked", ticket="7")
    assert is_gone(corpus, A)
    assert not is_gone(corpus, B)
    assert not copy.exists(), "also under a name that no record knows"
    assert (entry.doc_id, entry.sha256, entry.pending) == (A, (corpus.digests[A],), False)
    assert states(corpus) == {A: "taken-down", B: "obtained", C: "obtained"}
    assert lines(corpus)[:-1] == before, "the manifest is only added to (CAT-04)"
    tombstone = lines(corpus)[-1]
    assert (tombstone["doc_id"], tombstone["stage"], tombstone["status"]) == (A, "takedown", "skipped")
    assert tombstone["sha256"] == corpus.digests[A]
    assert "asked, ticket 7" in tombstone["explanation"]
    with corpus.catalog() as catalog:
        assert catalog.find_download(A) is None
        ok = catalog.query("SELECT doc_id FROM catalog_entries WHERE status = 'ok' ORDER BY 1").rows
    assert ok == [(C,), (B,)]
    with (corpus.root / "last.csv").open() as file:
        assert {row["doc_id"] for row in csv.DictReader(file)} == {B, C}
    assert corpus.digests[A] not in (corpus.root / "index.json").read_text()


def test_the_line_fits_the_published_schema(corpus: Corpus) -> None:
    removal_of(corpus).take_down(A, reason="asked")
    assert set(lines(corpus)[-1]) == set(lines(corpus)[0])


def test_bytes_of_another_work_stay_and_are_refused_to_all_others(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, {A: b"%PDF-1.4 same", B: b"%PDF-1.4 same"})
    entry = removal_of(corpus).take_down(A, reason="asked")
    assert entry.kept_for == (B,)
    assert corpus.object_of(B).exists()
    assert corpus.name_of(B).read_bytes() == b"%PDF-1.4 same"
    assert not corpus.name_of(A).exists()
    takedowns = Takedowns.read(tmp_path)
    assert takedowns.refuses_bytes(corpus.digests[A], B) is None
    said = takedowns.refuses_bytes(corpus.digests[A], "url:https://example.org/other")
    assert said is not None
    assert A in said
    # The last work that has them takes them along.
    removal_of(corpus).take_down(B, reason="asked")
    assert not corpus.object_of(B).exists()


def test_a_work_is_known_by_every_identifier_it_had(corpus: Corpus) -> None:
    asked = WorkArtifact(A, doi="10.1/a", pmcid="PMC77", pmid="88", openalex_id="W99", arxiv_id="2002.00002")
    removal = removal_of(corpus, known_work=lambda doc_id: asked if doc_id == A else None)
    removal.take_down(A, reason="asked")
    takedowns = Takedowns.read(corpus.root)
    for text in ("10.1/A", "https://doi.org/10.1/a", "PMC77", "pmid:88", "W99", "arXiv:2002.00002v3"):
        assert takedowns.refuses(named_work(text)) is not None, text
    assert takedowns.refuses(WorkArtifact("url:https://x.org/1", doi="10.1/a")) is not None, "also when it is learned"
    for text in ("10.1/b", "PMC78", "https://example.org/a.pdf"):
        assert takedowns.refuses(named_work(text)) is None, text


def test_the_doi_of_a_preprint_and_its_number_are_one_name() -> None:
    assert set(names_of(named_work("10.48550/arXiv.2001.00001"))) & set(names_of(named_work("arXiv:2001.00001")))


def test_a_service_that_has_the_queue_is_not_asked_about_works(corpus: Corpus) -> None:
    """It answers workers; and a file of an earlier queue, which may still lie here, is no longer the queue."""
    path, token = corpus.root / "queue.sqlite", corpus.root / "token"
    WorkQueue(path).close()
    token.write_text("a-token")
    cfg = ContentDownloadConfig.model_validate(
        {
            "queue": {"path": str(path), "orchestrator_url": "http://127.0.0.1:9", "token_file": str(token)},
            "storage": {"root_dir": str(corpus.root)},
            "telemetry": {"manifest_path": str(corpus.root / "manifest.jsonl")},
        }
    )
    open_removal(cfg, clock=ManualClock()).take_down(A, reason="asked")
    assert is_gone(corpus, A)


def test_a_work_is_found_by_the_digits_of_its_file(corpus: Corpus) -> None:
    assert removal_of(corpus).take_down(corpus.digests[B][:12], reason="asked").doc_id == B
    assert is_gone(corpus, B)


def test_digits_of_a_file_of_several_works_do_not_choose(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, {A: b"%PDF-1.4 same", B: b"%PDF-1.4 same"})
    with pytest.raises(InputError, match="several works"):
        removal_of(corpus).take_down(corpus.digests[A][:12], reason="asked")
    assert corpus.object_of(A).exists()


def test_a_work_that_was_never_obtained_is_refused_too(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path, {}, {})
    removal_of(corpus).take_down("10.9/never", reason="asked")
    assert Takedowns.read(tmp_path).refuses(named_work("doi:10.9/never")) is not None
    assert states(corpus) == {"doi:10.9/never": "taken-down"}


def test_taking_down_twice_changes_nothing(corpus: Corpus) -> None:
    removal_of(corpus).take_down(A, reason="asked")
    after = lines(corpus)
    assert removal_of(corpus).take_down(A, reason="again").reason == "asked"
    assert lines(corpus) == after


def test_undo_lets_it_be_had_again_and_keeps_the_history(corpus: Corpus) -> None:
    removal_of(corpus).take_down(A, reason="asked")
    undone = removal_of(corpus).undo(A)
    assert undone is not None
    takedowns = Takedowns.read(corpus.root)
    assert takedowns.refuses(named_work(A)) is None
    assert takedowns.refuses_bytes(corpus.digests[A], A) is None
    assert [line["cause"] for line in lines(corpus)[-2:]] == ["taken-down", "takedown-undone"]
    assert states(corpus)[A] == "left-out"
    assert removal_of(corpus).undo(A) is None
    again = removal_of(corpus, clock=ManualClock(1_760_000_060))
    again.take_down(A, reason="once more")
    assert states(corpus)[A] == "taken-down"
    assert len(Takedowns.read(corpus.root).entries) == 2


def cached(root: Path) -> EntryStore:
    return open_entries(CacheSettings(base_path=root / "cache"), open_cas=lambda sha256: None)


def keep(entries: EntryStore, url: str, body: bytes, *, in_cas: bool) -> None:
    key = hashlib.sha256(url.encode()).hexdigest()
    digest = hashlib.sha256(body).hexdigest()
    pending = None
    if not in_cas:
        pending = entries.new_body()
        assert pending is not None
        pending.keep(body)
        pending.finish()
    answer = StoredAnswer(url, "GET", {}, 200, {}, sha256=digest, size=len(body), in_cas=in_cas)
    entries.publish(key, answer, pending)


def test_what_the_cache_holds_of_it_is_forgotten(corpus: Corpus) -> None:
    entries = cached(corpus.root)
    keep(entries, "https://host0.example.org/0.pdf", BODIES[A], in_cas=True)
    keep(entries, "https://mirror.example.net/a-copy", BODIES[A], in_cas=False)
    keep(entries, "https://host1.example.org/1.pdf", BODIES[B], in_cas=False)
    entries.close()
    removal_of(corpus, open_cache=lambda: cached(corpus.root)).take_down(A, reason="asked")
    entries = cached(corpus.root)
    assert [answer.url for answer in entries.walk() if answer] == ["https://host1.example.org/1.pdf"]
    entries.close()
    assert not any(BODIES[A] in path.read_bytes() for path in (corpus.root / "cache").rglob("*") if path.is_file())


def crash_after(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, calls: int, *, before: bool) -> None:
    """Die at the given call of a step, before or after it was done."""
    original: Callable[..., Any] = getattr(owner, name)
    count = 0

    def step(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count == calls and before:
            raise Crash
        result = original(*args, **kwargs)
        if count == calls:
            raise Crash
        return result

    monkeypatch.setattr(owner, name, step)


STEPS = [("delete", 1), ("delete", 2), ("delete", 3), ("add_line", 1), ("put", 1), ("put", 2), ("_forget_cached", 1)]


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize(("step", "call"), STEPS)
def test_a_takedown_that_was_cut_off_is_finished_by_the_next(
    corpus: Corpus, monkeypatch: pytest.MonkeyPatch, step: str, call: int, before: bool
) -> None:
    (corpus.root / "PDF" / "my own name for it.pdf").write_bytes(BODIES[A])
    owners: dict[str, Any] = {
        "delete": type(corpus.files),
        "add_line": removal_module,
        "put": Takedowns,
        "_forget_cached": Removal,
    }
    with monkeypatch.context() as patch:
        crash_after(patch, owners[step], step, call, before=before)
        with pytest.raises(Crash):
            removal_of(corpus).take_down(A, reason="asked")
    was_written = not (step == "put" and call == 1 and before)
    assert (Takedowns.read(corpus.root).refuses(named_work(A)) is not None) == was_written
    removal_of(corpus).finish()
    if not was_written:
        removal_of(corpus).take_down(A, reason="asked")
    assert is_gone(corpus, A)
    assert states(corpus) == {A: "taken-down", B: "obtained", C: "obtained"}
    assert [line["stage"] for line in lines(corpus)].count("takedown") == 1
    assert not any(entry.pending for entry in Takedowns.read(corpus.root).entries)


def test_a_database_filled_anew_from_the_files_does_not_bring_it_back(corpus: Corpus) -> None:
    removal_of(corpus).take_down(A, reason="asked")
    for path in corpus.root.glob("manifest.sqlite*"):
        path.unlink()
    with RunTelemetry(corpus.root, run_id="r2", config_hash="c", clock=ManualClock(1_770_000_000)):
        removal_of(corpus).uphold()
    with corpus.catalog() as catalog:
        assert catalog.find_download(A) is None
        assert catalog.find_download(B) is not None
    assert states(corpus)[A] == "taken-down"


def test_a_database_that_was_lost_is_filled_before_a_work_is_taken_down(corpus: Corpus) -> None:
    """Begun with the line about the takedown, it would stay without all the others, and so would `last.csv`."""
    for path in corpus.root.glob("manifest.sqlite*"):
        path.unlink()
    removal = removal_of(corpus)
    assert removal.knows(A)
    entry = removal.take_down(A, reason="asked")
    assert entry.sha256 == (corpus.digests[A],)
    assert is_gone(corpus, A)
    assert states(corpus) == {A: "taken-down", B: "obtained", C: "obtained"}
    assert [line["doc_id"] for line in lines(corpus)] == [A, B, C, A]
    with (corpus.root / "last.csv").open() as file:
        assert {row["doc_id"] for row in csv.DictReader(file)} == {B, C}


def test_nothing_is_taken_down_while_a_run_writes(corpus: Corpus) -> None:
    with locked(corpus.root), pytest.raises(FolderInUse):
        removal_of(corpus).take_down(A, reason="asked")
    # It is refused already, and the next one to come finishes it.
    assert Takedowns.read(corpus.root).refuses(named_work(A)) is not None
    removal_of(corpus).finish()
    assert is_gone(corpus, A)


def test_a_lost_list_is_made_anew_from_the_record(corpus: Corpus) -> None:
    """Also when the database had to be filled from the manifest first."""
    asked = WorkArtifact(A, pmcid="PMC77")
    removal = removal_of(corpus, known_work=lambda doc_id: asked if doc_id == A else None)
    removal.take_down(A, reason="asked (by letter)", ticket="T. 1")
    removal.take_down(B, reason="a slip")
    removal.undo(B)
    (corpus.root / LIST).unlink()
    for path in corpus.root.glob("manifest.sqlite*"):
        path.unlink()
    with RunTelemetry(corpus.root, run_id="r2", config_hash="c", clock=ManualClock(1_770_000_000)):
        removal_of(corpus).uphold()
    takedowns = Takedowns.read(corpus.root)
    assert [entry.doc_id for entry in takedowns.entries] == [A]
    said = takedowns.refuses(named_work("PMC77"))
    assert said is not None
    assert "asked (by letter), ticket T. 1" in said
    assert takedowns.refuses_bytes(corpus.digests[A], C) is not None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"takedowns": [{"doc_id": 1}]}', '{"takedowns": 3}'])
def test_a_list_that_cannot_be_read_lets_nothing_through(tmp_path: Path, text: str) -> None:
    (tmp_path / LIST).write_text(text)
    with pytest.raises(RecordError, match=r"cannot be read .* or move it away: the next run makes it anew"):
        Takedowns.read(tmp_path)


def test_a_record_of_before_learns_the_new_view(corpus: Corpus) -> None:
    with sqlite3.connect(corpus.database) as db:
        db.execute("DROP VIEW catalog_entries")
        db.execute("CREATE VIEW catalog_entries AS SELECT doc_id, 'ok' AS status FROM manifests")
    db.close()
    removal_of(corpus).take_down(A, reason="asked")
    with corpus.catalog() as catalog:
        rows = catalog.query("SELECT doc_id FROM catalog_entries WHERE status = 'ok' ORDER BY 1").rows
    assert rows == [(C,), (B,)]


def test_each_address_of_a_work_is_listed_once(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path, {A: BODIES[A]})
    url = "https://host0.example.org/0.pdf"
    with sqlite3.connect(corpus.database) as db:
        db.execute("UPDATE manifests SET hops = ?", (json.dumps([{"url": url}, {"url": url}]),))
    db.close()
    assert removal_of(corpus).take_down(A, reason="asked").urls.count(url) == 1
