"""What a check of the files finds is counted by the report; a work's latest file is the one that stands for it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from tests.contentdownload.stored_corpus import Corpus, make_corpus
from typer.testing import CliRunner

from DocsToKG.ContentDownload.catalog.slo import gates
from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.maintenance import verification
from DocsToKG.ContentDownload.maintenance.cleanup import superseded_names, unnamed
from DocsToKG.ContentDownload.maintenance.verification import Findings, Verifier, mark
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.ContentDownload.storage.paths import numbered
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock

A, B, C = "doi:10.1/a", "doi:10.1/b", "doi:10.1/c"
BODIES = {A: b"%PDF-1.4 a", B: b"%PDF-1.4 bb", C: b"%PDF-1.4 ccc"}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path / "corpus", BODIES)


def checked(corpus: Corpus) -> Findings:
    with corpus.catalog() as catalog:
        findings = Verifier(corpus.files, on_record=catalog.files).run()
    assert mark(corpus.database, findings, clock=ManualClock())
    return findings


def corruption(corpus: Corpus) -> tuple[int, bool]:
    """The figure, and whether the service level is kept."""
    with corpus.catalog() as catalog:
        figures = catalog.figures()
    [gate] = [gate for gate in gates(figures) if gate.name == "corruption"]
    return figures.corruption, gate.ok


def obtain_again(corpus: Corpus, doc_id: str, body: bytes) -> str:
    """The work gets another file, as a forced run would store it."""
    store = LocalStore(corpus.root, min_free_bytes=0, fsync=False)
    with store.temp() as temp:
        temp.write(body)
        stored = store.store(temp, human=corpus.paths[doc_id])
    path = store.relative(stored.path)
    with RunTelemetry(corpus.root, run_id="r2", config_hash="c", clock=ManualClock()) as record:
        record.finish(
            ManifestRecord(
                doc_id=doc_id, outcome="success", sha256=stored.sha256, path=path, size_bytes=len(body), title="x"
            )
        )
    return path


@pytest.mark.slow
def test_the_gate_sees_what_a_check_found_until_it_is_whole_again(corpus: Corpus) -> None:
    """SLO-04: damaged and missing files alike, each once however many of its names are concerned."""
    assert corruption(corpus) == (0, True)
    whole = corpus.object_of(A).read_bytes()
    corpus.damage(A)
    corpus.object_of(B).unlink()
    corpus.name_of(B).unlink()
    findings = checked(corpus)
    assert (len(findings.damaged), len(findings.missing)) == (1, 2)
    assert corruption(corpus) == (2, False)
    with corpus.catalog() as catalog:
        assert [file.doc_id for file in catalog.damaged()] == sorted([A, B], key=corpus.digests.__getitem__)
        assert catalog.find_download(A) is None
        damaged = catalog.find_damaged(A)
        assert damaged is not None
        assert damaged.path == corpus.paths[A]
        assert catalog.find_damaged(C) is None
    corpus.object_of(A).write_bytes(whole)
    checked(corpus)
    assert corruption(corpus) == (1, False), "what a whole check finds good is good"


@pytest.mark.slow
def test_a_check_that_found_nothing_new_writes_nothing(corpus: Corpus) -> None:
    corpus.damage(A)
    checked(corpus)
    before = corpus.database.stat().st_mtime_ns
    checked(corpus)
    assert corpus.database.stat().st_mtime_ns == before


def test_a_check_that_was_cut_off_clears_no_marks(corpus: Corpus) -> None:
    corpus.damage(A)
    checked(corpus)
    assert mark(corpus.database, Findings(parts=["00"]), clock=ManualClock())
    assert corruption(corpus) == (1, False)


@pytest.mark.slow
def test_a_record_that_cannot_be_written_is_no_failure(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> sqlite3.Connection:
        return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)

    corpus.damage(A)
    with corpus.catalog() as catalog:
        findings = Verifier(corpus.files, on_record=catalog.files).run()
    monkeypatch.setattr(verification, "open_database", refuse)  # a disk that even root cannot write
    assert not mark(corpus.database, findings, clock=ManualClock())
    assert corruption(corpus) == (0, True)


def test_a_damaged_file_that_another_one_replaced_counts_no_more(corpus: Corpus) -> None:
    corpus.damage(A)
    checked(corpus)
    obtain_again(corpus, A, b"%PDF-1.4 other bytes of a")
    assert corruption(corpus) == (0, True)


@pytest.mark.slow
def test_only_the_latest_file_stands_for_a_work(corpus: Corpus) -> None:
    """A forced run brought other bytes: nobody takes the earlier file for a work of its own (CAT-15, STO-09)."""
    path = obtain_again(corpus, A, b"%PDF-1.4 other bytes of a")
    assert path == numbered(corpus.paths[A], 2)
    with corpus.catalog() as catalog:
        assert sorted(file.path for file in catalog.files()) == sorted([path, corpus.paths[B], corpus.paths[C]])
        assert catalog.holders(corpus.digests[A]) == []
        totals, shared = catalog.duplicates()
        assert (totals["works"], totals["files"], shared) == (3, 3, [])
        named = {file.sha256 for file in catalog.files()}
        assert catalog.earlier_names() == catalog.earlier_names(A) == [(corpus.digests[A], corpus.paths[A])]
        assert catalog.earlier_names(B) == []
        assert [file.key for file in superseded_names(corpus.files, [catalog])] == [corpus.paths[A]]
    key = str(corpus.object_of(A).relative_to(corpus.root))
    assert [file.key for file in unnamed(corpus.files, named.__contains__)] == [key]
    findings = checked(corpus)
    assert findings.is_good
    assert sorted(findings.foreign) == sorted([corpus.paths[A], key])


@pytest.mark.slow
def test_a_superseded_file_that_is_gone_is_not_missing(corpus: Corpus) -> None:
    obtain_again(corpus, A, b"%PDF-1.4 other bytes of a")
    corpus.name_of(A).unlink()
    corpus.object_of(A).unlink()
    findings = checked(corpus)
    assert findings.is_good
    assert findings.foreign == []


def test_a_superseded_name_is_only_removed_where_it_holds_what_was_superseded(corpus: Corpus) -> None:
    path = obtain_again(corpus, A, b"%PDF-1.4 other bytes of a")
    store = LocalStore(corpus.root, min_free_bytes=0, fsync=False)
    corpus.name_of(A).unlink()
    corpus.name_of(A).write_bytes(b"the user's own")
    assert not store.drop_name(corpus.digests[A], corpus.paths[A])
    with corpus.catalog() as catalog:
        assert list(superseded_names(corpus.files, [catalog])) == []
    corpus.name_of(A).unlink()
    corpus.name_of(A).mkdir()  # cannot be read as a file
    with corpus.catalog() as catalog:
        assert list(superseded_names(corpus.files, [catalog])) == []
    corpus.name_of(A).rmdir()
    assert not store.drop_name(corpus.digests[A], corpus.paths[A])
    assert store.adopt(corpus.digests[A], corpus.paths[A]) is not None
    corpus.object_of(A).unlink()
    assert not store.drop_name(corpus.digests[A], corpus.paths[A]), "a name that is all there is of the bytes stays"
    assert (corpus.root / path).is_file()


def test_the_name_of_bytes_that_came_back_under_another_one_is_superseded_too(corpus: Corpus) -> None:
    """First file, second file as `__2`, its first name put away, and the second bytes come once more."""
    second = obtain_again(corpus, A, b"%PDF-1.4 other bytes of a")
    store = LocalStore(corpus.root, min_free_bytes=0, fsync=False)
    assert store.drop_name(corpus.digests[A], corpus.paths[A])
    assert corpus.object_of(A).is_file()
    assert obtain_again(corpus, A, b"%PDF-1.4 other bytes of a") == corpus.paths[A]
    with corpus.catalog() as catalog:
        assert [file.key for file in superseded_names(corpus.files, [catalog])] == [second]


def run(*words: Any) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.mark.slow
def test_a_report_counts_what_the_command_found(corpus: Corpus) -> None:
    corpus.damage(A)
    corpus.name_of(B).unlink()
    assert run("catalog", "verify", "--run", corpus.root, "--quiet").exit_code == 1
    report = run("report", "--run", corpus.root, "--format", "json")
    assert report.exit_code == 4
    [gate] = [gate for gate in json.loads(report.stdout)["gates"] if gate["gate"] == "corruption"]
    assert (gate["value"], gate["ok"]) == (2, False)


@pytest.mark.slow
def test_gc_removes_superseded_objects_and_names_when_told(corpus: Corpus) -> None:
    path = obtain_again(corpus, A, b"%PDF-1.4 other bytes of a")
    keys = [str(corpus.object_of(A).relative_to(corpus.root)), corpus.paths[A]]
    assert run("catalog", "gc", "--run", corpus.root).stdout.splitlines() == keys
    assert corpus.name_of(A).exists()
    told = json.loads(run("catalog", "gc", "--run", corpus.root, "--delete", "--json").stdout)
    assert told["removed"] == 2
    assert not corpus.name_of(A).exists()
    assert (corpus.root / path).is_file()
    assert checked(corpus).is_good
