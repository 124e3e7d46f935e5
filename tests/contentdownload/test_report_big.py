"""A report on a record of a million lines: under five seconds of a processor and under 300 MB, in every form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.big_record import measured, write_big_record


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_big_record(tmp_path_factory.mktemp("big")).parent


def report(root: Path, format: str) -> dict[str, Any]:
    return measured(root, "report", "--no-gates", "--format", format)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("format", ["table", "md", "html", "json"])
def test_a_million_works_are_reported(big: Path, format: str) -> None:
    told = report(big, format)
    assert told["cpu_s"] < 5, told["cpu_s"]
    assert told["mb"] < 300, told["mb"]
    if format == "json":
        figures = json.loads(told["out"])
        assert (figures["obtained"], figures["failed"], figures["skipped"]) == (700_000, 200_000, 100_000)
        assert (figures["requests"], figures["http_429"]) == (960_000, 2_500)


@pytest.mark.slow
def test_what_a_report_costs_grows_no_faster_than_the_record(tmp_path: Path) -> None:
    """Measured in processor time and memory, which other work on the machine does not lengthen much."""
    small, large = (report(write_big_record(tmp_path / str(n), works=n).parent, "json") for n in (2_000, 20_000))
    assert json.loads(large["out"])["obtained"] == 14_000
    assert large["mb"] < small["mb"] + 40
    assert large["cpu_s"] < small["cpu_s"] + 2.0
