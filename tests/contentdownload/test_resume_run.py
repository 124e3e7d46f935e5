"""Whole runs that go on from what is left of the record: only what is missing or failed is done again."""

from __future__ import annotations

import csv
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import InputError, RecordError
from DocsToKG.ContentDownload.run_folder import RunFolder
from DocsToKG.ContentDownload.runner import DownloadRun, RunResult
from DocsToKG.ContentDownload.runner.again import Again
from DocsToKG.ContentDownload.runner.status import counted
from DocsToKG.ContentDownload.telemetry import ResultRow, ResumeController
from DocsToKG.Orchestrator.errors import LedgerDamaged
from DocsToKG.Orchestrator.jobs.states import JobState
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow  # each test is one run or several on a real server

MakeConfig = Callable[..., ContentDownloadConfig]
RECORDS = ("manifest.sqlite", "manifest.jsonl", "last.csv")
NOWHERE = "10.9999/nothing.here"


@pytest.fixture(scope="module")
def asked(calm_sandbox: SandboxServer) -> list[str]:
    """Seven works that can be had, and one that nobody knows."""
    works = [work["doi"] for work in calm_sandbox.truth()["works"] if "unpaywall" in work["reachable_by"]]
    return [*works[:7], NOWHERE]


@pytest.fixture(scope="module")
def finished(
    calm_sandbox: SandboxServer, make_config: MakeConfig, asked: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    root = tmp_path_factory.mktemp("finished") / "run"
    result = obtain(calm_sandbox, make_config, root, asked)
    assert (result.successful, result.failed) == (7, 1)
    return root


def obtain(server: SandboxServer, make_config: MakeConfig, root: Path, works: list[str], **how: Any) -> RunResult:
    with DownloadRun(make_config(server, root)) as run:
        return run.process_artifacts(works, **how)


def taken_up(server: SandboxServer, make_config: MakeConfig, root: Path) -> RunResult:
    with DownloadRun(make_config(server, root)) as run:
        run.take_up()
        run.start()
        run.wait()
        run.stop()
        return run.result()


def catalog(root: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Everything that says what is held, in one order."""
    db = sqlite3.connect(root / "manifest.sqlite")
    held = "SELECT doc_id, sha256, size_bytes, path, mime, license, version, corrupt FROM downloads ORDER BY 1, 2"
    state = "SELECT doc_id, status FROM catalog_entries ORDER BY 1"
    found = {"downloads": db.execute(held).fetchall(), "catalog_entries": db.execute(state).fetchall()}
    db.close()
    with open(root / "last.csv", encoding="utf-8", newline="") as file:
        found["last.csv"] = sorted((row["doc_id"], row["sha256"], row["path"]) for row in csv.DictReader(file))
    return found


def dump(root: Path) -> list[str]:
    """The catalog down to the last byte; what tells of runs and of how far files have come is left out."""
    db = sqlite3.connect(root / "manifest.sqlite")
    about_runs = ('INSERT INTO "run_summary"', 'INSERT INTO "summaries"', 'INSERT INTO "projections"')
    lines = [line for line in db.iterdump() if not line.startswith(about_runs)]
    db.close()
    texts = [(root / name).read_text() for name in ("manifest.jsonl", "attempts.csv", "last.csv", "index.json")]
    return lines + texts


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted((root / "PDF").rglob("*.pdf"))}


def test_unchanged_inputs_leave_an_identical_catalog(
    finished: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, asked: list[str], tmp_path: Path
) -> None:
    """CAT-20: compared as dumps, with the text files byte by byte, after two more runs."""
    root = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    before, stored, requests = dump(root), files(root), calm_sandbox.counters()["requests"]
    for _ in range(2):
        result = obtain(calm_sandbox, make_config, root, asked, retry_failed=False)
        assert (result.successful, result.already, result.failed) == (7, 7, 1)
    assert calm_sandbox.counters()["requests"] == requests
    assert dump(root) == before
    assert files(root) == stored


@pytest.mark.parametrize("kept", RECORDS)
def test_one_of_the_three_records_alone_is_enough(
    kept: str, finished: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, asked: list[str], tmp_path: Path
) -> None:
    """CAT-17, CAT-19: the ledger and the other records are gone; nothing that is held is fetched again."""
    root = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    shutil.rmtree(root / "state")
    for name in {*RECORDS, "attempts.csv", "index.json", "summary.json", "results.csv"} - {kept}:
        (root / name).unlink()
    calm_sandbox.reset()
    result = obtain(calm_sandbox, make_config, root, asked)
    assert (result.successful, result.already, result.failed) == (7, 7, 1)
    assert calm_sandbox.counters()["files"] == 0
    assert catalog(root) == catalog(finished)
    assert files(root) == files(finished)


def test_a_record_cut_anywhere_ends_with_the_same_catalog(
    finished: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, asked: list[str], tmp_path: Path
) -> None:
    """TEST-11, CAT-21: one record is left, and it was cut; what it lost is obtained again, and nothing else."""
    for name in RECORDS:
        whole = (finished / name).read_bytes()
        for share in (0.0, 0.35, 0.8):
            root = Path(shutil.copytree(finished, tmp_path / f"{name}-{share}", symlinks=True))
            shutil.rmtree(root / "state")
            for other in set(RECORDS) - {name}:
                (root / other).unlink()
            (root / name).write_bytes(whole[: int(len(whole) * share)])
            known = len(ResumeController(root).completed_ids)
            calm_sandbox.reset()
            result = obtain(calm_sandbox, make_config, root, asked)
            assert (result.successful, result.already, result.failed) == (7, known, 1), (name, share)
            assert calm_sandbox.counters()["files"] == 7 - known, (name, share)
            assert catalog(root)["catalog_entries"] == catalog(finished)["catalog_entries"], (name, share)
            assert [row[:3] for row in catalog(root)["downloads"]] == [
                row[:3] for row in catalog(finished)["downloads"]
            ]


@pytest.mark.parametrize("what", ["cut", "rubbish"])
def test_a_damaged_database_beside_its_ledger_costs_no_request(
    finished: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, asked: list[str], tmp_path: Path, what: str
) -> None:
    root = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    database = root / "manifest.sqlite"
    half = database.read_bytes()[: database.stat().st_size // 2]
    database.write_bytes(half if what == "cut" else bytes(255 - byte for byte in half))
    requests = calm_sandbox.counters()["requests"]
    with DownloadRun(make_config(calm_sandbox, root)) as run:
        assert any("is kept as manifest.sqlite.damaged-1" in repair for repair in run.repairs)
        result = run.process_artifacts(asked, retry_failed=False)
    assert (result.successful, result.already) == (7, 7)
    assert calm_sandbox.counters()["requests"] == requests
    assert catalog(root) == catalog(finished)


def test_a_ledger_that_is_none_names_the_way_out_which_costs_no_request(
    finished: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    ledger, requests = root / "state" / "ledger.sqlite", calm_sandbox.counters()["requests"]
    ledger.write_bytes(b"rubbish " * 400)
    with pytest.raises(LedgerDamaged, match=r"Moving it away.*is safe here"):
        taken_up(calm_sandbox, make_config, root)
    for file in ledger.parent.glob("ledger.sqlite*"):
        file.rename(tmp_path / file.name)
    result = taken_up(calm_sandbox, make_config, root)
    assert (result.successful, result.already, result.failed, result.pending) == (7, 7, 1, 0)
    assert calm_sandbox.counters()["requests"] == requests


def test_a_lost_ledger_learns_from_the_record_how_works_ended(
    finished: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    """What was obtained is held, what failed stays failed, and nobody is asked."""
    root = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    before, requests = (root / "results.csv").read_text(), calm_sandbox.counters()["requests"]
    (root / "state" / "ledger.sqlite").unlink()
    result = taken_up(calm_sandbox, make_config, root)
    assert (result.successful, result.already, result.failed, result.pending) == (7, 7, 1, 0)
    assert calm_sandbox.counters()["requests"] == requests
    assert (root / "results.csv").read_text() == before


def test_works_that_no_record_knows_are_obtained_again(
    finished: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    before, stored = (root / "results.csv").read_text(), files(root)
    for name in RECORDS:
        (root / name).unlink()
    result = taken_up(calm_sandbox, make_config, root)
    assert (result.successful, result.already, result.failed) == (7, 0, 1)
    assert (root / "results.csv").read_text() == before
    assert files(root) == stored


def test_what_failed_stays_failed_without_the_state_folder(
    finished: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, asked: list[str], tmp_path: Path
) -> None:
    """And is tried again when that is wanted."""
    root = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    requests = calm_sandbox.counters()["requests"]
    shutil.rmtree(root / "state")
    result = obtain(calm_sandbox, make_config, root, asked, retry_failed=False)
    assert (result.successful, result.failed, calm_sandbox.counters()["requests"]) == (7, 1, requests)
    result = obtain(calm_sandbox, make_config, root, asked)
    assert (result.successful, result.failed) == (7, 1)
    assert calm_sandbox.counters()["requests"] > requests


def test_a_miss_that_was_temporary_is_tried_again_also_without_the_ledger(
    finished: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    (root / "state" / "ledger.sqlite").unlink()
    db = sqlite3.connect(root / "manifest.sqlite")
    db.execute("UPDATE manifests SET explanation = 'Temporary: x could not be reached' WHERE status = 'error'")
    db.commit()
    db.close()
    requests = calm_sandbox.counters()["requests"]
    assert taken_up(calm_sandbox, make_config, root).failed == 1
    assert calm_sandbox.counters()["requests"] > requests


def test_a_folder_that_lost_its_state_names_the_way_on(finished: Path, tmp_path: Path) -> None:
    root = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    shutil.rmtree(root / "state")
    with pytest.raises(RecordError, match="run the original `content pull` again"):
        RunFolder(root).saved()
    with pytest.raises(RecordError, match="is not the folder of a run"):
        RunFolder(tmp_path).saved()


def test_chosen_works_are_done_again(
    finished: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    root = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    db = sqlite3.connect(root / "manifest.sqlite")
    [(year, of_year)] = db.execute(
        "SELECT year, COUNT(*) FROM manifests WHERE status = 'ok' GROUP BY year ORDER BY COUNT(*) LIMIT 1"
    ).fetchall()
    db.close()

    def repeated(*words: str) -> int:
        with DownloadRun(make_config(calm_sandbox, root)) as run:
            assert run.take_up(again=Again.read(words, now=0.0)) == 8
            run.start()
            run.wait()
            run.stop()
            result = run.result()
            assert (result.successful, result.already) == (7, 7 - (run.repeated if "failed" not in words[0] else 0))
            return run.repeated

    assert repeated(f"year={year}") == of_year
    assert repeated(f"year={year}", "state=failed") == 0
    assert repeated("status=failed") == 1
    assert repeated("state=obtained", "text=10.9999") == 0
    assert repeated("status=ok") == 7


def test_the_words_of_a_filter() -> None:
    again = Again.read(["status=failed,ok", "source=arxiv", "source=pmc", "license=cc-by, cc0", "year=2020-"], now=0.0)
    assert again.states == (JobState.ERROR, JobState.DONE)
    assert again.chosen is not None
    assert (again.chosen.sources, again.chosen.licences) == (("arxiv", "pmc"), ("cc-by", "cc0"))
    assert again.chosen.years == (2020, None)
    assert Again.read(["status=ok"], now=0.0).chosen is None


@pytest.mark.parametrize(
    "words",
    [["nonsense"], ["colour=red"], ["status=gone"], ["year="], ["year=x"], ["year=2020", "year=2021"], ["state=odd"]],
)
def test_a_filter_that_means_nothing_is_told(words: list[str]) -> None:
    with pytest.raises(InputError):
        Again.read(words, now=0.0)


def test_what_robots_txt_forbids_is_skipped_and_no_failure(tmp_path: Path) -> None:
    rows = [
        ResultRow(1, "a", "doi:a", "success", "a.pdf"),
        ResultRow(2, "b", "doi:b", "skip", None, "robots: the only copy is forbidden"),
        ResultRow(3, "c", "doi:c", "skip", None, "filtered: year"),
        ResultRow(4, "d", "doi:d", "error", None, "timeout"),
    ]
    result = counted(rows, {"doi:a"}, tmp_path, tmp_path)
    assert (result.successful, result.skipped, result.left_out, result.failed) == (1, 1, 1, 1)
    assert result.total_processed == 3
    assert not counted(rows[:2], (), tmp_path, tmp_path).complete
    assert counted([rows[0], rows[2]], (), tmp_path, tmp_path).complete
