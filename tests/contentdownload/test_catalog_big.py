"""A record of a million lines: counted in under five seconds and under 300 MB, a page of it at once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.contentdownload.big_record import measured, write_big_record

LINES = 1_000_000


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_big_record(tmp_path_factory.mktemp("big"), works=LINES, with_events=False).parent


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", [(), ("--group-by", "tier"), ("--group-by", "host"), ("--license", "cc-by")])
def test_a_million_lines_are_counted(big: Path, group: tuple[str, ...]) -> None:
    told = measured(big, "catalog", "stats", "--json", *group)
    if "--license" not in group:
        assert sum(row["works"] for row in json.loads(told["out"])) == LINES
    assert told["cpu_s"] < 5, told["cpu_s"]
    assert told["mb"] < 300, told["mb"]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_page_of_a_million_is_there_at_once(big: Path) -> None:
    nothing = measured(big, "takedown", "list", "--json")
    told = measured(big, "catalog", "query", "--json", "--after", 900_000, "--state", "obtained")
    assert len(json.loads(told["out"])["works"]) == 50
    assert told["cpu_s"] < nothing["cpu_s"] + 0.3


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_million_lines_are_exported_in_a_stream(big: Path, tmp_path: Path) -> None:
    told = measured(big, "catalog", "export", "--format", "jsonl", "--out", tmp_path / "works.jsonl")
    assert told["mb"] < 300, told["mb"]
    with (tmp_path / "works.jsonl").open("rb") as file:
        assert sum(1 for _ in file) == 700_000
