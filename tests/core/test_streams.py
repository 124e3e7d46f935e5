"""Standard streams that were closed before the program began."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

_CHILD = "import sys; sys.exit(0 if sys.stderr is not None else 7)"
_PROGRAM = f"""
import subprocess, sys
from DocsToKG.core.streams import open_what_is_closed
open_what_is_closed()
assert sys.stderr.fileno() == 2
sys.exit(subprocess.run([sys.executable, "-c", {_CHILD!r}]).returncode)
"""


def test_processes_of_ours_have_the_streams_that_were_closed() -> None:
    """Else the first file that one opens gets the number of a stream, and whatever is said there."""
    script = 'exec "$0" -c "$1" 2>&-'
    assert subprocess.run(["sh", "-c", script, sys.executable, _PROGRAM], timeout=60).returncode == 0


# Answered before any command of ours begins.
ASIDE = [
    [program, *words]
    for program, group in (("contentdownload", "config"), ("docstokg-orchestrator", "jobs"))
    for words in (["--version"], ["--help"], [group, "--help"])
]


def closed(*words: str, stream: str = ">&-") -> subprocess.CompletedProcess[str]:
    """A program of ours whose output was closed before it began."""
    program = Path(sys.executable).with_name(words[0])
    return subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {stream}', str(program), *words[1:]], capture_output=True, text=True, timeout=60
    )


@pytest.mark.slow
def test_output_that_was_asked_for_and_has_nowhere_to_go_is_an_error(tmp_path: Path) -> None:
    with SqliteLedger(tmp_path / "l.sqlite"):
        pass
    content, status = ["contentdownload", "schema"], ["docstokg-orchestrator", "status"]
    for words in (content, [*status, "--ledger", f"{tmp_path}/l.sqlite"], *ASIDE):
        done = closed(*words)
        assert (done.returncode, "standard output is closed" in done.stderr) == (1, True), words
        assert closed(*words, stream=">/dev/null").returncode == 0, words
        assert closed(*words, stream="2>&-").returncode == 0, words


@pytest.mark.slow
@pytest.mark.parametrize("words", ASIDE)
def test_a_reader_that_goes_away_is_no_error_to_be_told(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    program = Path(sys.executable).with_name(words[0])
    done = subprocess.run([program, *words[1:]], stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
def test_a_command_that_writes_nothing_or_to_a_file_needs_no_output(tmp_path: Path) -> None:
    done = closed("contentdownload", "schema", "-o", str(tmp_path / "schema.json"))
    assert (done.returncode, (tmp_path / "schema.json").stat().st_size > 0) == (0, True)


@pytest.mark.slow
def test_what_is_told_besides_may_go_nowhere() -> None:
    for spoken, lost in (
        ("print('a'); assert output_is_lost()", True),
        ("nobody_has_to_read(); print('b')", False),
        ("print('a'); nobody_has_to_read(); print('b')", True),
    ):
        program = (
            f"from DocsToKG.core.streams import *; open_what_is_closed(); {spoken}; assert output_is_lost() is {lost}"
        )
        done = subprocess.run(["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, program], timeout=60)
        assert done.returncode == 0, spoken
