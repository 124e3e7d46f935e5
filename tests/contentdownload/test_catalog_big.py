"""A record of a million lines: counted in under five seconds and under 300 MB, a page of it at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.big_record import write_big_record

LINES = 1_000_000
# The command in a process of its own, which tells what it took.
_MEASURE = """
import contextlib, io, json, resource, sys, time
from DocsToKG.ContentDownload.cli.main import content
out = io.StringIO()
sys.argv = ["content", *sys.argv[1:]]
began = time.monotonic()
with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
    content()
used = resource.getrusage(resource.RUSAGE_SELF)
told = {"s": used.ru_utime + used.ru_stime, "wall_s": time.monotonic() - began, "mb": used.ru_maxrss / 1024}
print(json.dumps({**told, "out": json.loads(out.getvalue())}))
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_big_record(tmp_path_factory.mktemp("big"), works=LINES, with_events=False).parent


def measured(*words: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, *map(str, words)], capture_output=True, text=True, timeout=300, check=True
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("group", [(), ("--group-by", "tier"), ("--group-by", "host"), ("--license", "cc-by")])
def test_a_million_lines_are_counted(big: Path, group: tuple[str, ...]) -> None:
    told = measured("catalog", "stats", "--run", big, "--json", *group)
    if "--license" not in group:
        assert sum(row["works"] for row in told["out"]) == LINES
    assert told["s"] < 5, told["s"]
    assert told["mb"] < 300, told["mb"]


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_page_of_a_million_is_there_at_once(big: Path) -> None:
    nothing = measured("takedown", "list", "--run", big, "--json")
    told = measured("catalog", "query", "--run", big, "--json", "--after", 900_000, "--state", "obtained")
    assert len(told["out"]["works"]) == 50
    assert told["s"] < nothing["s"] + 0.3


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_million_lines_are_exported_in_a_stream(big: Path, tmp_path: Path) -> None:
    code = _MEASURE.replace("json.loads(out.getvalue())", "None")
    words = ["catalog", "export", "--run", str(big), "--format", "jsonl", "--out", str(tmp_path / "works.jsonl")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=600, check=True)
    assert json.loads(done.stdout)["mb"] < 300
    with (tmp_path / "works.jsonl").open("rb") as file:
        assert sum(1 for _ in file) == 700_000
