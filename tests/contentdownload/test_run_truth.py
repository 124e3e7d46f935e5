"""A whole run on the sandbox's default world, judged by what the server knows (two promises, CLI-08, BOOT-09/10)."""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.api.types import DownloadOutcome
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.runner import DownloadRun, RunResult
from DocsToKG.Sandbox.profile import SandboxServer

MakeConfig = Callable[..., ContentDownloadConfig]
WORKS = 60


@dataclass
class Told:
    result: RunResult
    root: Path
    truth: list[dict[str, Any]]
    outcomes: dict[str, DownloadOutcome]
    server: SandboxServer


@pytest.fixture(scope="module")
def told(sandbox: SandboxServer, make_config: MakeConfig, tmp_path_factory: pytest.TempPathFactory) -> Told:
    root = tmp_path_factory.mktemp("corpus")
    outcomes: dict[str, DownloadOutcome] = {}
    with DownloadRun(make_config(sandbox, root), on_outcome=outcomes.__setitem__) as run:
        result = run.process_artifacts(sandbox.identifiers(WORKS))
    return Told(result, root, sandbox.truth()["works"], outcomes, sandbox)


@pytest.fixture
def copy(told: Told, tmp_path: Path) -> Path:
    """The same corpus, for a test that changes it."""
    return shutil.copytree(told.root, tmp_path / "copy", symlinks=True)


def rows(root: Path) -> list[dict[str, str]]:
    with open(root / "results.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_every_stored_file_is_the_paper(told: Told) -> None:
    """SLO-04: corruption is 0, by SHA-256 against the server's truth."""
    checked = 0
    for row in rows(told.root):
        if row["outcome"] == "success":
            digest = hashlib.sha256((told.root / row["path"]).read_bytes()).hexdigest()
            assert digest in told.truth[int(row["line"]) - 1]["sha256"], row
            checked += 1
    assert checked >= 0.8 * WORKS


def test_every_paper_that_the_default_sources_reach_is_obtained(told: Told) -> None:
    """Never lose one: what Unpaywall, arXiv or the DOI lead to unchallenged is there."""
    missed = [
        (row["input"], row["reason"])
        for row in rows(told.root)
        if row["outcome"] not in ("success", "duplicate")
        and {"unpaywall", "arxiv", "doi"} & set(told.truth[int(row["line"]) - 1]["reachable_by"])
    ]
    assert missed == []


def test_no_host_was_asked_impolitely(told: Told) -> None:
    """No impolite request: concurrency, spacing, robots and Retry-After, counted by the server."""
    assert told.server.violations() == []


def test_every_line_has_one_row_in_order(told: Told) -> None:
    listed = rows(told.root)
    assert [int(row["line"]) for row in listed] == list(range(1, WORKS + 1))
    assert [row["input"] for row in listed] == told.server.identifiers(WORKS)
    assert all(bool(row["path"]) != bool(row["reason"]) for row in listed if row["outcome"] in ("success", "error"))


def test_each_final_outcome_is_told_once(told: Told) -> None:
    assert len(told.outcomes) == told.result.total_processed
    assert told.result.successful == sum(outcome.ok for outcome in told.outcomes.values())


def test_the_record_agrees_with_the_files(told: Told) -> None:
    """CAT-01, CAT-05, CAT-24: one manifest line per ending; the last one of a work is its outcome."""
    last: dict[str, dict[str, Any]] = {}
    for line in (told.root / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        last[entry["doc_id"]] = entry
    good = [entry for entry in last.values() if entry["status"] == "ok"]
    assert len(good) == told.result.successful
    for entry in good:
        assert (told.root / entry["path"]).stat().st_size == entry["size_bytes"]
        assert entry["resolver"] in entry["fallback_chain"]
    assert {entry["license"] for entry in good} - {None}
    for name in ("manifest.sqlite", "attempts.csv", "summary.json", "last.csv", "index.json", "results.csv"):
        assert (told.root / name).stat().st_size > 0


def test_names_are_readable_and_contents_are_kept_once(told: Told) -> None:
    """STO-02, STO-04: the readable name is a link to the object named by its digest."""
    names = sorted((told.root / "PDF").iterdir())
    assert all(name.name.count("__") >= 2 and name.suffix == ".pdf" for name in names)
    for name in names:
        digest = hashlib.sha256(name.read_bytes()).hexdigest()
        assert (told.root / "cas" / "sha256" / digest[:2] / digest[2:]).samefile(name)


def test_nothing_temporary_is_left(told: Told) -> None:
    """DL-12."""
    assert list((told.root / ".tmp").iterdir()) == []
    assert not list((told.root / "state").glob("**/*.lock.tmp"))


def test_a_second_run_fetches_nothing(told: Told, copy: Path, make_config: MakeConfig) -> None:
    """CAT-20: same inputs, same catalog, no body fetched anew."""
    before = told.server.counters()["requests"]
    with DownloadRun(make_config(told.server, copy)) as run:
        again = run.process_artifacts(told.server.identifiers(WORKS), retry_failed=False)
    assert told.server.counters()["requests"] == before
    assert (again.successful, again.already) == (told.result.successful, told.result.successful)
    assert [row.path for row in again.rows] == [row.path for row in told.result.rows]


def test_a_file_that_was_deleted_comes_back_from_the_store(told: Told, copy: Path, make_config: MakeConfig) -> None:
    row = next(row for row in rows(copy) if row["outcome"] == "success")
    (copy / row["path"]).unlink()
    before = told.server.counters()["requests"]
    with DownloadRun(make_config(told.server, copy)) as run:
        result = run.process_artifacts([row["input"]])
    assert result.complete
    assert (copy / row["path"]).exists()
    assert told.server.counters()["requests"] == before


@pytest.mark.slow
def test_the_python_interface_takes_what_users_have(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    """BOOT-09, BOOT-10: strings, dicts and WorkArtifacts, mixed, with duplicates and rubbish."""
    truth = calm_sandbox.truth()["works"]
    open_works = [work for work in truth if "unpaywall" in work["reachable_by"]]
    first, second, third = open_works[:3]
    given = [
        first["doi"],
        {"doi": second["doi"]},
        next(coerce_works([third["doi"]])).work,
        first["doi"].upper(),
        "rubbish",
    ]
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        result = run.process_artifacts(given)
    assert (result.successful, result.total_processed, result.invalid) == (3, 3, 1)
    assert [row.outcome for row in result.rows] == ["success", "success", "success", "duplicate", "invalid"]
    assert not result.complete


def test_one_work_may_be_given_alone(calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path) -> None:
    doi = next(work["doi"] for work in calm_sandbox.truth()["works"] if "unpaywall" in work["reachable_by"])
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        assert run.process_artifacts(doi).successful == 1


def test_an_emptied_file_is_put_right(calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path) -> None:
    """The readable name is a link to the stored object, so emptying it empties both: it is fetched again."""
    doi = next(work["doi"] for work in calm_sandbox.truth()["works"] if "unpaywall" in work["reachable_by"])
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        first = run.process_artifacts([doi])
    path = tmp_path / str(first.rows[0].path)
    good = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(b"")
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        again = run.process_artifacts([doi])
    assert again.complete
    assert (tmp_path / str(again.rows[0].path)).read_bytes() == good


def test_head_is_asked_first_when_wanted(calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path) -> None:
    """CFG-18, DL-02: the probe is an attempt of its own; off by default."""
    doi = next(work["doi"] for work in calm_sandbox.truth()["works"] if "unpaywall" in work["reachable_by"])
    for name, wanted in (("without", False), ("with", True)):
        config = make_config(calm_sandbox, tmp_path / name, download={"head_enabled": wanted})
        with DownloadRun(config) as run:
            assert run.process_artifacts([doi]).successful == 1
        attempts = (tmp_path / name / "attempts.csv").read_text()
        assert ("http-head" in attempts) == wanted


def test_a_file_announced_as_too_large_is_not_asked_for(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    """DL-01, DL-09."""
    doi = next(work["doi"] for work in calm_sandbox.truth()["works"] if "unpaywall" in work["reachable_by"])
    before = calm_sandbox.counters()["files"]
    config = make_config(calm_sandbox, tmp_path, download={"head_enabled": True, "max_bytes": 2048})
    with DownloadRun(config) as run:
        result = run.process_artifacts([doi])
    assert "policy-size" in (result.rows[0].reason or "")
    assert calm_sandbox.counters()["files"] == before
