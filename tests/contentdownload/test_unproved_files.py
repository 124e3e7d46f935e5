"""Files in which nothing shows that they are the paper: marked where they are kept, settled where they wait."""

from __future__ import annotations

import csv
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.files import Files
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow  # a small web, and programs

Command = Callable[..., subprocess.CompletedProcess[str]]
ConfigFile = Callable[..., Path]


@pytest.fixture(scope="module")
def scans() -> Iterator[SandboxServer]:
    """A world in which every paper is a scan without text."""
    files = Files(renderings={"scan": 1.0}, cover=0.0)
    with SandboxServer(works=60, seed=7, faults=Faults.none(), files=files) as server:
        yield server


@pytest.fixture
def dois(scans: SandboxServer) -> list[str]:
    works = [work["doi"] for work in scans.truth()["works"] if "unpaywall" in work["reachable_by"]]
    return works[:3]


def results(root: Path) -> list[dict[str, str]]:
    with open(root / "results.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def listed(content: Command) -> list[dict[str, Any]]:
    files: list[dict[str, Any]] = json.loads(content("catalog", "unproved", "--run", "out", "--json").stdout)
    return files


def lines(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "manifest.jsonl").read_text().splitlines()]


def test_a_file_that_the_record_names_is_kept_and_marked_everywhere(
    content: Command, config_file: ConfigFile, scans: SandboxServer, dois: list[str], tmp_path: Path
) -> None:
    done = content("pull", *dois, "--out", "out", "-c", str(config_file(scans)))
    assert done.returncode == 0, done.stderr
    assert "Unproved: 3 kept, 0 works whose files wait in quarantine" in done.stdout
    root = tmp_path / "out"
    assert {row["mark"] for row in results(root)} == {"unproved"}
    [line, *_] = lines(root)
    assert line["proof"] == "unproved"
    assert line["validation"]["read"]["scan"] is True
    assert line["validation"]["read"]["pages"]
    assert line["validation"]["streams"]["complete"] is True
    assert "scan" in line["validation"]["evidence"]
    figures = json.loads(content("report", "--run", "out", "--json").stdout)
    assert json.dumps(figures).count('"unproved": 3') == 1
    files = listed(content)
    assert [file["state"] for file in files] == ["kept"] * 3
    one = files[0]
    told = content("catalog", "unproved", one["doc_id"], "--accept", "--run", "out")
    assert told.returncode == 0, told.stderr
    assert lines(root)[-1]["proof"] == "accepted"
    assert {row["id"]: row["mark"] for row in results(root)}[one["doc_id"]] == ""
    assert [file["doc_id"] for file in listed(content)] == [file["doc_id"] for file in files[1:]]
    assert Path(one["file"]).read_bytes().startswith(b"%PDF-")


def test_a_kept_file_that_is_rejected_goes_and_is_not_taken_again(
    content: Command, config_file: ConfigFile, scans: SandboxServer, dois: list[str], tmp_path: Path
) -> None:
    config = str(config_file(scans))
    content("pull", dois[0], "--out", "out", "-c", config)
    [one] = listed(content)
    assert content("catalog", "unproved", one["sha256"][:12], "--reject", "--run", "out").returncode == 0
    assert not Path(one["file"]).exists()
    assert not list((tmp_path / "out" / "cas" / "sha256").rglob("*" + one["sha256"][2:]))
    [row] = results(tmp_path / "out")
    assert (row["outcome"], row["path"]) == ("error", "")
    assert "rejected" in row["reason"]
    assert content("pull", dois[0], "--out", "out", "-c", config).returncode != 0
    tried = [copy for line in lines(tmp_path / "out") for copy in line["candidates"]]
    assert "wrong-article" in {copy["reason"] for copy in tried}
    assert one["sha256"] not in {line["sha256"] for line in lines(tmp_path / "out")[-1:]}


def test_files_in_quarantine_wait_until_a_person_settles_them(
    content: Command, config_file: ConfigFile, scans: SandboxServer, dois: list[str], tmp_path: Path
) -> None:
    config = str(config_file(scans, proof={"unproved": "quarantine"}))
    done = content("pull", *dois, "--out", "out", "-c", config)
    assert done.returncode != 0
    assert "Unproved: 0 kept, 3 works whose files wait in quarantine" in done.stdout
    root = tmp_path / "out"
    assert {row["outcome"] for row in results(root)} == {"error"}
    assert all("in quarantine" in row["reason"] for row in results(root))
    files = listed(content)
    assert {(file["doc_id"], file["state"]) for file in files} == {(f"doi:{doi}", "quarantined") for doi in dois}
    assert all(Path(file["file"]).is_file() for file in files)
    # Neither a check of the store nor its tidying takes them for nobody's.
    assert json.loads(content("catalog", "verify", "--run", "out", "--json").stdout)["foreign"] == []
    assert json.loads(content("catalog", "gc", "--run", "out", "--json").stdout)["unnamed"] == []
    [table] = [content("catalog", "unproved", "--run", "out").stdout]
    assert all(file["doc_id"] in table for file in files)

    by_work = {f"doi:{doi}": [file for file in files if file["doc_id"] == f"doi:{doi}"] for doi in dois}
    (right, [one, *_]), (wrong, rejected), (left, _) = by_work.items()
    assert content("catalog", "unproved", one["sha256"][:12], "--accept", "--run", "out").returncode == 0
    where = content("catalog", "where", right, "--run", "out")
    assert where.returncode == 0
    place = Path(where.stdout.strip())
    assert "/PDF/" in str(place)
    assert place.read_bytes().startswith(b"%PDF-")
    assert not any(Path(file["file"]).exists() for file in by_work[right])
    row = {row["id"]: row for row in results(root)}[right]
    assert (row["outcome"], row["path"], row["mark"]) == ("success", str(place.relative_to(root)), "")

    assert content("catalog", "unproved", wrong, "--reject", "--run", "out").returncode == 0
    assert not any(Path(file["file"]).exists() for file in rejected)
    assert {file["doc_id"] for file in listed(content)} == {left}
    assert content("catalog", "unproved", "doi:10.1/none", "--accept", "--run", "out").returncode == 1
    assert content("catalog", "unproved", "--accept", "--run", "out").returncode == 2

    # A later run neither asks for what was accepted nor takes what was rejected.
    content("pull", *dois, "--out", "out", "-c", config)
    later = {row["id"]: row["outcome"] for row in results(root)}
    assert later == {right: "success", wrong: "error", left: "error"}
    assert {file["doc_id"] for file in listed(content)} == {left}


def test_a_takedown_takes_the_file_in_quarantine_along(
    content: Command, config_file: ConfigFile, scans: SandboxServer, dois: list[str], tmp_path: Path
) -> None:
    config = str(config_file(scans, proof={"unproved": "quarantine"}))
    content("pull", dois[0], "--out", "out", "-c", config)
    one, *_ = listed(content)
    assert content("takedown", dois[0], "--run", "out", "--reason", "asked").returncode == 0
    assert not Path(one["file"]).exists()
    assert not list((tmp_path / "out" / "cas" / "sha256").rglob("*" + one["sha256"][2:]))
    assert listed(content) == []
