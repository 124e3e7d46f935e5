"""`content catalog` and `content takedown` as people and programs call them."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import bagit
import pyarrow.parquet
import pytest
from click.testing import Result
from tests.contentdownload.stored_corpus import Corpus, make_corpus
from tests.warm import WarmPrograms
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.run_folder import RunFolder
from DocsToKG.ContentDownload.telemetry.snapshots import ResultRow, write_results

A, B, C = "doi:10.1/a", "doi:10.1/b", "arxiv:2001.00001"
BODIES = {A: b"%PDF-1.4 one", B: b"%PDF-1.4 two", C: b"%PDF-1.4 two"}


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Corpus:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return make_corpus(tmp_path / "papers", BODIES)


def run(*words: Any, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200", **(env or {})})


def test_works_are_listed_page_by_page(corpus: Corpus) -> None:
    first = run("catalog", "query", "--run", corpus.root, "--limit", 2)
    assert first.exit_code == 0
    assert A in first.stdout
    assert C not in first.stdout
    assert "--after 2" in first.stderr
    told = json.loads(run("catalog", "query", "--run", corpus.root, "--limit", 2, "--after", 2, "--json").stdout)
    assert [work["doc_id"] for work in told["works"]] == [C]
    assert told["after"] is None


@pytest.mark.slow
def test_filters_are_taken_with_commas_and_repeated(corpus: Corpus) -> None:
    def listed(*words: Any) -> list[str]:
        told = run("catalog", "query", "--run", corpus.root, "--json", *words)
        assert told.exit_code == 0, told.output
        return [work["doc_id"] for work in json.loads(told.stdout)["works"]]

    assert listed("--host", "host0.example.org,host1.example.org") == [A, B]
    assert listed("--host", "host0.example.org", "--host", "host2.example.org") == [A, C]
    assert listed("--licence", "cc-by", "--year", "2016-", "--version", "published") == [B, C]
    assert listed("--source", "arxiv") == listed("--tier", "nowhere") == listed("--state", "failed") == []
    assert listed("--text", "host1 paper") == [B]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("query", "--state", "nice"),
        ("query", "--year", "soon"),
        ("query", "--since", "once"),
        ("query", "--since", "2999-01-01"),
        ("query", "--year", "2020-2010"),
        ("query", "--sql", "SELECT nothing"),
        ("query", "--sql", "SELECT 1; SELECT 2"),
        ("export", "--out", "works.xyz"),
        ("export", "--out", "my-bag"),
        ("query", "--sql", "SELECT 1", "--state", "failed"),
        ("query", "--limit", "0"),
        ("export", "--format", "parquet"),
        ("export", "--format", "bagit", "--out", "x", "--state", "failed"),
        ("export", "--format", "tar"),
        ("verify", "--threads", "0"),
    ],
)
def test_wrong_usage_is_code_2(corpus: Corpus, words: tuple[str, ...]) -> None:
    assert run("catalog", *words, "--run", corpus.root).exit_code == 2


def test_stats_take_the_same_filters(corpus: Corpus) -> None:
    told = run("catalog", "stats", "--run", corpus.root, "--json", "-g", "host", "--year", "2016-")
    assert {row["host"]: row["obtained"] for row in json.loads(told.stdout)} == {
        "host1.example.org": 1,
        "host2.example.org": 1,
    }


@pytest.mark.slow
def test_where_prints_paths_for_a_pipe(corpus: Corpus) -> None:
    found = run("catalog", "where", "https://doi.org/10.1/A", "--run", corpus.root)
    assert (found.exit_code, found.stdout) == (0, f"{corpus.name_of(A)}\n")
    by_digest = run("catalog", "where", corpus.digests[B][:10], "--run", corpus.root)
    assert by_digest.stdout.split() == [str(corpus.name_of(C)), str(corpus.name_of(B))]
    nobody = run("catalog", "where", "10.1/nobody", "--run", corpus.root)
    assert (nobody.exit_code, nobody.stdout) == (1, "")
    corpus.name_of(A).unlink()
    gone = run("catalog", "where", A, "--run", corpus.root)
    assert (gone.exit_code, gone.stdout) == (1, "")
    assert "is gone" in gone.stderr
    [told] = json.loads(run("catalog", "where", A, "--run", corpus.root, "--json").stdout)
    assert told["exists"] is False


def test_duplicates_are_told(corpus: Corpus) -> None:
    told = json.loads(run("catalog", "dedup-report", "--run", corpus.root, "--json").stdout)
    assert (told["works"], told["files"], told["shared_files"], told["bytes_saved"]) == (3, 2, 1, len(BODIES[B]))
    assert told["bytes_stored"] == len(BODIES[A]) + len(BODIES[B])
    [shared] = told["shared"]
    assert shared["doc_ids"] == [C, B]
    assert "3 works, 2 files; 1 of them" in run("catalog", "dedup-report", "--run", corpus.root).stdout


@pytest.mark.slow
def test_verify_names_and_counts(corpus: Corpus) -> None:
    good = run("catalog", "verify", "--run", corpus.root)
    assert good.exit_code == 0
    assert "2 files, 24 B hashed: 0 damaged" in good.stdout
    corpus.damage(A)
    bad = run("catalog", "verify", "--run", corpus.root)
    assert bad.exit_code == 1
    assert bad.stdout.startswith("damaged: cas/sha256/")
    assert A in bad.stdout
    told = json.loads(run("catalog", "verify", "--run", corpus.root, "--json").stdout)
    assert told["ok"] is False
    assert "parts" not in told
    assert not (corpus.root / "state" / "verify.json").exists()


def test_gc_shows_first_and_removes_when_told(corpus: Corpus) -> None:
    lost = corpus.root / "cas" / "sha256" / "ab" / ("c" * 62)
    lost.parent.mkdir(exist_ok=True)
    lost.write_bytes(b"nobody's")
    shown = run("catalog", "gc", "--run", corpus.root)
    assert shown.exit_code == 0
    assert shown.stdout == f"cas/sha256/ab/{'c' * 62}\n"
    assert lost.exists()
    told = json.loads(run("catalog", "gc", "--run", corpus.root, "--delete", "--json").stdout)
    assert (told["removed"], told["bytes"]) == (1, 8)
    assert not lost.exists()
    assert all(corpus.object_of(doc_id).exists() for doc_id in BODIES)
    with RunFolder(corpus.root):
        assert run("catalog", "gc", "--run", corpus.root, "--delete").exit_code == 1


@pytest.mark.slow
def test_gc_does_not_empty_a_store_that_others_use(corpus: Corpus, tmp_path: Path) -> None:
    """Two runs with one store: what only the other one names stays."""
    other = tmp_path / "other"
    folder = RunFolder(other)
    with folder:
        settings = {
            "telemetry": {"manifest_path": str(other / "manifest.jsonl")},
            "storage": {"root_dir": str(corpus.root)},
        }
        from DocsToKG.ContentDownload.run_folder import SavedRun

        folder.remember(SavedRun(None, settings, False, "manifest.sqlite"))
    make_corpus(other, {})
    refused = run("catalog", "gc", "--run", other, "--delete")
    assert refused.exit_code == 2
    assert "--other-run" in refused.stderr
    # A run that stores the same bytes meanwhile would find them there, and they would be gone.
    with RunFolder(corpus.root):
        busy = run("catalog", "gc", "--run", other, "--other-run", corpus.root, "--delete")
    assert busy.exit_code == 1
    assert "in use" in str(busy.stderr or busy.exception)
    told = json.loads(run("catalog", "gc", "--run", other, "--other-run", corpus.root, "--delete", "--json").stdout)
    assert told["unnamed"] == []
    assert corpus.object_of(A).exists()


@pytest.mark.slow
def test_exports_are_read_by_others(corpus: Corpus, tmp_path: Path) -> None:
    table = run("catalog", "export", "--run", corpus.root)
    assert table.exit_code == 0
    read = list(csv.DictReader(io.StringIO(table.stdout)))
    assert [row["doc_id"] for row in read] == [A, B, C]
    lines = run("catalog", "export", "--run", corpus.root, "--format", "jsonl", "--out", "-", "--year", "2015")
    assert [json.loads(line)["doc_id"] for line in lines.stdout.splitlines()] == [A]
    assert "1 works exported." in lines.stderr
    parquet = tmp_path / "works.parquet"
    assert run("catalog", "export", "--run", corpus.root, "--format", "parquet", "--out", parquet).exit_code == 0
    assert pyarrow.parquet.read_table(parquet).column("doc_id").to_pylist() == [A, B, C]
    bag = tmp_path / "bag"
    assert run("catalog", "export", "--run", corpus.root, "--format", "bagit", "--out", bag).exit_code == 0
    bagit.Bag(str(bag)).validate()
    crate = tmp_path / "crate"
    assert run("catalog", "export", "--run", corpus.root, "--format", "ro-crate", "--out", crate).exit_code == 0
    assert len(json.loads((crate / "ro-crate-metadata.json").read_text())["@graph"][1]["hasPart"]) == 3


def test_a_package_without_a_damaged_file_is_code_3(corpus: Corpus, tmp_path: Path) -> None:
    corpus.damage(A)
    done = run("catalog", "export", "--run", corpus.root, "--format", "bagit", "--out", tmp_path / "bag")
    assert done.exit_code == 3
    assert "is damaged" in done.stderr
    bagit.Bag(str(tmp_path / "bag")).validate()


def test_a_package_without_an_unreadable_file_is_code_3_and_says_what_can_be_done(
    corpus: Corpus, tmp_path: Path
) -> None:
    corpus.name_of(A).unlink()
    corpus.name_of(A).mkdir()
    done = run("catalog", "export", "--run", corpus.root, "--format", "bagit", "--out", tmp_path / "bag")
    assert done.exit_code == 3
    assert f"Left out: {corpus.paths[A]} is unreadable." in done.stderr
    assert "see to the disk and to who may read what is unreadable" in done.stderr
    bagit.Bag(str(tmp_path / "bag")).validate()


def test_an_export_that_fails_leaves_the_old_file(corpus: Corpus, tmp_path: Path) -> None:
    place = tmp_path / "works.csv"
    place.write_text("mine")
    (corpus.root / "manifest.sqlite").write_bytes(b"not a database at all" * 100)
    assert run("catalog", "export", "--run", corpus.root, "--out", place).exit_code == 1
    assert place.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["papers", "works.csv"]


@pytest.mark.slow
def test_takedown_list_and_undo(corpus: Corpus) -> None:
    done = run("takedown", "--reason", "asked by\nthe author", "10.1/B", "--run", corpus.root, "--ticket", "T-1")
    assert done.exit_code == 0, done.output
    assert f"these works share them: {C}" in done.stderr
    again = run("takedown", "add", B, "--run", corpus.root, "--reason", "x")
    assert "already" in again.stdout
    [listed] = json.loads(run("takedown", "list", "--run", corpus.root, "--json").stdout)
    assert (listed["doc_id"], listed["reason"], listed["ticket"]) == (B, "asked by the author", "T-1")
    shown = run("catalog", "show", B, "--run", corpus.root)
    assert "Taken down on" in shown.stdout
    assert run("catalog", "where", B, "--run", corpus.root).exit_code == 1
    assert run("takedown", "undo", B, "--run", corpus.root).exit_code == 0
    assert run("takedown", "undo", B, "--run", corpus.root).exit_code == 1
    assert json.loads(run("takedown", "list", "--run", corpus.root, "--json").stdout) == []
    assert B in run("takedown", "list", "--run", corpus.root, "--all").stdout


@pytest.mark.slow
@pytest.mark.parametrize("words", [("takedown", A), ("takedown", A, "--reason", " "), ("takedown", "undo")])
def test_a_takedown_needs_a_work_and_a_reason(corpus: Corpus, words: tuple[str, ...]) -> None:
    assert run(*words, "--run", corpus.root).exit_code == 2
    assert corpus.object_of(A).exists()


def test_nothing_is_taken_down_in_a_folder_that_is_in_use(corpus: Corpus) -> None:
    with RunFolder(corpus.root):
        done = run("takedown", A, "--run", corpus.root, "--reason", "asked")
    assert done.exit_code == 1
    assert corpus.object_of(A).exists()


def test_a_folder_that_is_none_is_named(tmp_path: Path) -> None:
    for words in (("catalog", "verify"), ("takedown", "list"), ("catalog", "where", A)):
        done = run(*words, "--run", tmp_path / "nowhere")
        assert done.exit_code == 1
        assert "nowhere" in done.stderr


def test_a_command_that_is_not_run_costs_nothing() -> None:
    modules = ", ".join(
        f"DocsToKG.ContentDownload.cli.{name}"
        for name in ("catalog.works", "catalog.files", "catalog.export", "catalog.folder", "takedown")
    )
    heavy = ("sqlite3", "rich.table", "orjson", "pyarrow", "DocsToKG.ContentDownload.catalog")
    code = f"import sys, {modules}; sys.exit(', '.join(name for name in {heavy!r} if name in sys.modules) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_folder_that_holds_no_run_is_refused_and_stays_empty(tmp_path: Path) -> None:
    for words in (("takedown", A, "--reason", "x"), ("takedown", "undo", A), ("takedown", "list"), ("catalog", "gc")):
        done = run(*words, "--run", tmp_path)
        assert (done.exit_code, done.stdout) == (1, ""), words
        assert "holds no record" in done.stderr
        assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("text", ["nonsense", "abcdef123456", "123456", "x y"])
def test_what_names_no_work_is_not_taken_down(corpus: Corpus, text: str) -> None:
    done = run("takedown", text, "--reason", "x", "--run", corpus.root)
    assert (done.exit_code, done.stdout) == (2, "")
    assert "names no work" in done.stderr
    assert not (corpus.root / "takedowns.json").exists()


@pytest.mark.slow
def test_a_work_nobody_knows_is_refused_in_advance_with_a_warning(corpus: Corpus) -> None:
    done = run("takedown", "10.9/never", "--reason", "x", "--run", corpus.root)
    assert done.exit_code == 3
    assert "Warning: this folder has no such work, so nothing was removed" in done.stderr
    assert run("takedown", "10.9/never", "--reason", "x", "--run", corpus.root).exit_code == 0, "it stands already"
    told = run("takedown", "10.9/other", "--reason", "x", "--run", corpus.root, "--json")
    assert (told.exit_code, json.loads(told.stdout)["known"]) == (3, False)


def test_the_help_of_takedown_has_the_options_of_its_short_form() -> None:
    shown = run("takedown", "--help").stdout
    assert all(option in shown for option in ("--reason", "--run", "--ticket", "--json"))


@pytest.mark.slow
def test_the_results_tell_of_a_takedown_at_once(corpus: Corpus) -> None:
    results = corpus.root / "results.csv"
    others = [ResultRow(2, "b, too", B, "success", "PDF/b.pdf", None, "-"), ResultRow(4, "?", None, "invalid")]
    rows = [ResultRow(1, "a", A, "success", "PDF/a.pdf"), ResultRow(3, "A", A, "duplicate", "PDF/a.pdf", "same")]
    write_results(results, [rows[0], others[0], rows[1], others[1]])

    def told() -> list[tuple[str, str, str]]:
        with results.open(newline="") as file:
            return [(row["outcome"], row["path"], row["reason"]) for row in csv.DictReader(file)]

    assert run("takedown", A, "--reason", "asked", "--run", corpus.root).exit_code == 0
    first, *rest = told()
    assert first[:2] == ("skip", "")
    assert first[2].startswith("taken-down: Taken down on 2")
    assert rest == [("success", "PDF/b.pdf", ""), ("duplicate", "", "same"), ("invalid", "", "")]
    assert run("takedown", "undo", A, "--run", corpus.root).exit_code == 0
    assert told()[0] == ("pending", "", "may be had again; `content pull` fetches it")
    results.write_text("my,own\ntable,here\n")
    assert run("takedown", A, "--reason", "asked", "--run", corpus.root).exit_code == 3
    assert results.read_text() == "my,own\ntable,here\n"


def test_takedowns_are_counted_apart_from_filters(corpus: Corpus) -> None:
    run("takedown", A, "--reason", "asked", "--run", corpus.root)
    [told] = json.loads(run("catalog", "stats", "--run", corpus.root, "--json").stdout)
    assert (told["taken_down"], told["left_out"], told["obtained"]) == (1, 0, 2)
    [line] = json.loads(run("catalog", "show", A, "--run", corpus.root, "--json").stdout)["lines"][-1:]
    assert (line["reason"], line["cause"]) == ("taken-down", "taken-down")


def test_the_name_of_the_file_decides_on_the_form(corpus: Corpus, tmp_path: Path) -> None:
    for name in ("w.parquet", "w.jsonl", "w.csv"):
        assert run("catalog", "export", "--run", corpus.root, "--out", tmp_path / name).exit_code == 0
    assert pyarrow.parquet.read_table(tmp_path / "w.parquet").num_rows == 3
    assert len([json.loads(line) for line in (tmp_path / "w.jsonl").read_text().splitlines()]) == 3
    assert run("catalog", "export", "--run", corpus.root, "--out", tmp_path / "w", "-f", "csv").exit_code == 0
    assert (tmp_path / "w").read_bytes() == (tmp_path / "w.csv").read_bytes()


def test_nothing_is_printed_of_a_record_that_is_not_there(tmp_path: Path) -> None:
    done = run("catalog", "export", "--run", tmp_path / "nodir")
    assert (done.exit_code, done.stdout) == (1, "")


def test_lists_and_flags_are_shown_as_the_manifest_has_them(corpus: Corpus) -> None:
    [told] = json.loads(run("catalog", "show", A, "--run", corpus.root, "--json").stdout)["lines"]
    [line] = [
        json.loads(text) for text in (corpus.root / "manifest.jsonl").read_text().splitlines() if f'"{A}"' in text
    ]
    names = ("fallback_chain", "hops", "candidates", "cache_hit", "is_guess")
    assert {name: told[name] for name in names} == {name: line[name] for name in names}
    assert isinstance(told["hops"], list)
    assert told["cache_hit"] is False


@pytest.mark.slow
def test_a_table_for_a_pipe_breaks_no_word(corpus: Corpus, warm: WarmPrograms) -> None:
    program = [*warm.words("content"), "catalog", "show", A, "--run", str(corpus.root)]
    shown = subprocess.run(program, capture_output=True, text=True, timeout=60, env={"COLUMNS": "20"}).stdout
    assert A in shown
    assert corpus.digests[A] in shown


@pytest.mark.parametrize("command", ["query", "stats", "export"])
def test_a_name_that_no_work_carries_is_told(corpus: Corpus, command: str) -> None:
    done = run("catalog", command, "--run", corpus.root, "--tier", "nosuch", "--source", "neither")
    assert done.exit_code == 0
    assert "--tier nosuch: none here; there are " in done.stderr
    assert "--source neither: none here; there are " in done.stderr
