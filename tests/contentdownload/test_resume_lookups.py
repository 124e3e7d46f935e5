"""What an earlier run has finished, from whichever form of the record is left."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.run_folder import RunFolder
from DocsToKG.ContentDownload.telemetry import (
    CsvResumeLookup,
    JsonlResumeLookup,
    ManifestRecord,
    ResumeController,
    RunTelemetry,
    SqliteResumeLookup,
    load_previous_manifest,
)
from DocsToKG.core.clock import ManualClock

LINES = (
    {"outcome": "success", "sha256": "ab" * 32, "path": "a.pdf"},
    {"outcome": "error", "reason": "timeout"},
    {"outcome": "skip", "reason": "already-present"},
    {"outcome": "skip", "reason": "robots"},
)


def written(root: Path, seed: int, count: int = 60) -> frozenset[str]:
    """A random history in two runs; returns the works that were obtained."""
    chance = random.Random(seed)
    finished = set()
    for run_id in ("r1", "r2"):
        with RunTelemetry(root, run_id=run_id, config_hash="c", clock=ManualClock()) as record:
            for _ in range(count):
                doc_id = f'doi:10.1/{chance.randrange(20)},"q"'
                line = chance.choice(LINES)
                record.finish(ManifestRecord(doc_id=doc_id, **line))  # type: ignore[arg-type]
                finished |= {doc_id} if line["outcome"] == "success" else set()
    return frozenset(finished)


@pytest.mark.parametrize("seed", range(4))
def test_the_three_lookups_agree(tmp_path: Path, seed: int) -> None:
    """TEST-10, CAT-18."""
    finished = written(tmp_path, seed)
    assert 0 < len(finished) < 20
    assert SqliteResumeLookup(tmp_path / "manifest.sqlite").completed_ids() == finished
    assert JsonlResumeLookup(tmp_path / "manifest.jsonl").completed_ids() == finished
    assert CsvResumeLookup(tmp_path / "last.csv").completed_ids() == finished


def test_the_first_form_that_exists_is_used(tmp_path: Path) -> None:
    """CAT-17: database, then manifest, then last.csv; each alone is enough."""
    finished = written(tmp_path, 1)
    manifest = tmp_path / "manifest.jsonl"
    for source, name in (("sqlite", "manifest.sqlite"), ("jsonl", "manifest.jsonl"), ("csv", "last.csv")):
        found = ResumeController(manifest)
        assert (found.source, found.completed_ids) == (source, finished)
        (tmp_path / name).unlink()
    found = ResumeController(manifest)
    assert (found.source, found.completed_ids) == (None, frozenset())


def test_the_controller_takes_a_folder_or_a_moved_database(tmp_path: Path) -> None:
    finished = written(tmp_path, 1)
    assert ResumeController(tmp_path).completed_ids == finished
    (tmp_path / "manifest.sqlite").rename(tmp_path / "catalog.db")
    (tmp_path / "manifest.jsonl").unlink()
    found = ResumeController(tmp_path / "manifest.jsonl", database=tmp_path / "catalog.db")
    assert (found.source, found.completed_ids) == ("sqlite", finished)


def test_finished_works_are_taken_out_of_the_input(tmp_path: Path) -> None:
    """CAT-19."""
    with RunTelemetry(tmp_path, run_id="r", config_hash="c", clock=ManualClock()) as record:
        record.finish(ManifestRecord(doc_id="doi:a", outcome="success", sha256="ab", path="a.pdf"))
        record.finish(ManifestRecord(doc_id="doi:b", outcome="error"))
    works = [WorkArtifact("doi:c"), WorkArtifact("doi:a"), WorkArtifact("doi:b")]
    left = ResumeController(tmp_path / "manifest.jsonl").filter_works(iter(works))
    assert [work.work_id for work in left] == ["doi:c", "doi:b"]


def test_a_torn_or_broken_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    path.write_bytes(b'{"doc_id":"a","status":"ok"}\n\xff\xfe\n[1]\n\n{"doc_id":7,"status":"ok"}\n{"doc_id":"b","sta')
    assert [line["doc_id"] for line in load_previous_manifest(path)] == ["a", 7]
    assert JsonlResumeLookup(path).completed_ids() == {"a"}


def test_the_manifest_is_streamed(tmp_path: Path) -> None:
    path = tmp_path / "manifest.jsonl"
    path.write_bytes(b'{"doc_id":"a"}\n' * 3)
    lines = load_previous_manifest(path)
    assert next(lines) == {"doc_id": "a"}
    lines.close()  # type: ignore[attr-defined]


def test_a_damaged_last_csv_gives_what_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "last.csv"
    path.write_bytes(b"doc_id,path\ndoi:a,x\ndoi:\xff,y\n\0\n,z\ndoi:b")
    assert CsvResumeLookup(path).completed_ids() == {"doi:a", "doi:�"}, "half an id is another work's"


def test_a_quote_that_lost_its_end_spoils_its_own_row_alone(tmp_path: Path) -> None:
    """The reader of the csv module refuses cells of more than 128 KiB, and would take all that follows for one."""
    rows = [f"doi:{number},{'words ' * 20}" for number in range(2_000)]
    (tmp_path / "last.csv").write_text("\n".join(["doc_id,title", 'doi:torn,"A title, half', *rows, ""]))
    assert CsvResumeLookup(tmp_path / "last.csv").completed_ids() >= {f"doi:{number}" for number in range(2_000)}


def test_a_new_database_passes_over_what_last_csv_cannot_mean(tmp_path: Path) -> None:
    written(tmp_path, 1)
    for path in (*tmp_path.glob("manifest.*"), *tmp_path.glob("attempts.*")):
        path.unlink()
    with (tmp_path / "last.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    rows[0] |= {"size_bytes": "9" * 5_000}
    with (tmp_path / "last.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        table.writeheader()
        table.writerows(rows)
    with RunTelemetry(tmp_path, run_id="r2", config_hash="c", clock=ManualClock()) as record:
        assert record.restored == len(rows)


def test_a_damaged_database_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "manifest.sqlite").write_bytes(b"rubbish " * 200)
    with pytest.raises(RecordError, match="move it away"):
        ResumeController(tmp_path)


@pytest.mark.parametrize(
    "said", [b"\xff\x00\xfe\n", b"[1]\n", b'{"colour": 1}\n', b'{"source": "f", "line": 1}\n', b"{\n"]
)
def test_a_list_of_inputs_that_is_something_else_names_the_way_on(tmp_path: Path, said: bytes) -> None:
    folder = RunFolder(tmp_path)
    folder.state.mkdir()
    (folder.state / "inputs.jsonl").write_bytes(said)
    with pytest.raises(RecordError, match="run the original `content pull` again"):
        list(folder.asked())
