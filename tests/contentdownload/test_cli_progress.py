"""What people see while a run goes on, on narrow terminals and in logs."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from DocsToKG.ContentDownload.cli.progress import Progress, line_of, panel_of
from DocsToKG.ContentDownload.runner import RunStatus

WAITS = {"api.crossref.org to allow a request": 12, "www.example-publisher.org": 3, "third": 2, "fourth": 1}


def status(**changes: Any) -> RunStatus:
    given: dict[str, Any] = {"total": 200, "present": 0, "done": 175, "skipped": 1, "failed": 20}
    return RunStatus(**(given | {"bytes": 3_200_000_000, "active": 2, "waits": WAITS} | changes))


def drawn(seen: RunStatus, *, width: int, elapsed_s: float = 60.0) -> list[str]:
    file = io.StringIO()
    console = Console(width=width, file=file, force_terminal=True, color_system=None, legacy_windows=False)
    console.print(panel_of(seen, elapsed_s))
    return file.getvalue().splitlines()


def test_80_columns_show_a_bar_and_three_whole_lines() -> None:
    bar, counts, speed, waiting = drawn(status(waits={"api.crossref.org": 12, "core.ac.uk": 3}), width=80)
    assert set(bar.strip()) <= set("━╸╺ ")
    assert cell_len(bar) == 80
    assert counts.strip() == "196/200 · 175 done · 1 skipped · 20 failed"
    assert speed.strip() == "3.2 GB · 3.3/s, 53.3 MB/s · 0:01 left"
    assert waiting.strip() == "2 in progress; waiting for: api.crossref.org (12), core.ac.uk (3)"


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_a_line_that_does_not_fit_is_cut_not_wrapped(width: int) -> None:
    lines = drawn(status(waits={"a very long reason " * 12: 1}), width=width)
    assert len(lines) == 4
    assert all(cell_len(line) <= width for line in lines)
    assert lines[3].rstrip().endswith("…")


def test_a_run_that_can_only_go_on_later_says_so_and_what_to_do() -> None:
    """As without the network: nothing runs, no host is waited for, and yet it is not over."""
    offline = status(total=2, done=0, skipped=0, failed=0, bytes=0, active=0, waits={})
    assert "retried later" in line_of(offline, 30.0)
    assert "content resume" in drawn(offline, width=200, elapsed_s=30.0)[3]
    assert "retried later" not in line_of(offline, 0.0)
    assert "retried later" not in line_of(status(total=196, active=0, waits={}), 30.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"active": 0}, "waiting"),
        ({"active": 0, "waits": {}}, "waiting"),
        ({"active": 1}, "0:01 left"),
        ({"active": 1, "done": 5}, "6:42 left"),
        ({"active": 1, "done": 179, "waits": {}}, "-"),
        ({"active": 0, "done": 0, "skipped": 0, "failed": 0, "waits": {}}, "-"),
    ],
)
def test_the_time_left_is_told_only_of_what_moves(changes: dict[str, Any], said: str) -> None:
    line = line_of(status(**changes), 60.0)
    assert said in line.split(" · ")
    assert "0:00" not in line
    assert drawn(status(**changes), width=80)[2].rstrip().endswith(f" · {said}")


def test_a_line_for_logs_names_the_first_two_waits(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress(quiet=False) as watch:
        assert watch is not None
        watch(status())
        watch(status())
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("196/200 · 175 done · 1 skipped · 20 failed · 3.2 GB · ")
    assert line.endswith(" · waiting for: api.crossref.org to allow a request (12), www.example-publisher.org (3)")


def test_no_control_code_comes_through_a_reason() -> None:
    shown = drawn(status(waits={"a\x1b[2J[red]b": 1}), width=80)
    assert "waiting for: a [2J[red]b (1)" in shown[3]
    assert "\x1b[2J" not in "".join(shown) + line_of(status(waits={"a\x1b[2Jb": 1}), 1.0)


def test_quiet_shows_nothing() -> None:
    with Progress(quiet=True) as watch:
        assert watch is None


PROGRAM = """
from DocsToKG.ContentDownload.cli.progress import Progress
from DocsToKG.ContentDownload.runner import RunStatus
with Progress(quiet=False) as watch:
    watch(RunStatus(200, 0, 175, 1, 20, 3_200_000_000, 2, {"x" * 100: 12}))
"""


@pytest.mark.slow
def test_a_real_terminal_of_80_columns_gets_four_lines() -> None:
    main, side = pty.openpty()
    try:
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        command = [sys.executable, "-c", PROGRAM]
        environ |= {"TERM": "xterm", "PYTHONIOENCODING": "utf-8"}
        ran = subprocess.run(command, stdin=side, stderr=side, env=environ, timeout=60, check=False)
        shown = os.read(main, 65_536).decode()
    finally:
        os.close(main)
        os.close(side)
    assert ran.returncode == 0
    lines = shown.split("\r\n")
    at = next(number for number, line in enumerate(lines) if "196/200 · 175 done · 1 skipped · 20 failed" in line)
    assert "━" in lines[at - 1]
    assert "3.2 GB · " in lines[at + 1]
    assert "2 in progress; waiting for: xxx" in lines[at + 2]
    assert "…" in lines[at + 2]
