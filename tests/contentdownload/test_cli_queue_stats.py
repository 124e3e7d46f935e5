"""`queue stats` and its watch, and how long inputs report: on terminals, in pipes, for programs."""

from __future__ import annotations

import fcntl
import io
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time
from typing import BinaryIO

import pytest
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli.app import queue_app
from DocsToKG.ContentDownload.cli.queue import imports, stats
from DocsToKG.ContentDownload.cli.queue.stats import Look, Pace
from DocsToKG.ContentDownload.inputs.queue_lines import QueueLine
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue

STATES = ("pending", "queued", "in_progress", "done", "skipped", "error", "canceled", "timed_out")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "q.sqlite"


@pytest.fixture
def config(tmp_path, path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    file = tmp_path / "cd.yaml"
    file.write_text(f"queue:\n  path: {path}\n")
    return file


def fill(path, count: int) -> None:
    with WorkQueue(path) as queue:
        queue.bulk_import((f"local:{n}", {}, None) for n in range(count))


def look(*, paused: bool = False, **counts: int) -> Look:
    return Look({**dict.fromkeys(STATES, 0), **counts}, paused)


def watching(warm, config, *words: str, **streams):
    command = [*warm.words("contentdownload"), "queue", "stats", "--watch", "--every", "0.1"]
    return subprocess.Popen([*command, "-c", str(config), *words], stderr=subprocess.PIPE, **streams)


def ended(process: subprocess.Popen, rest: BinaryIO | None = None) -> tuple[int, str]:
    """The exit code after Ctrl+C, and what it said about it."""
    process.send_signal(signal.SIGINT)
    if rest is not None:
        rest.read()
    with process.stderr as errors:
        said = errors.read().decode()
    return process.wait(timeout=90), said


# the pace


def test_the_pace_is_that_of_the_last_minute():
    pace = Pace()
    assert pace.see(0.0, 100) is None
    assert pace.see(10.0, 150) == 5.0
    for second in range(20, 200, 10):
        rate = pace.see(float(second), 150)
    assert rate == 0.0


def test_failed_jobs_that_were_queued_again_do_not_make_the_pace_negative():
    pace = Pace()
    pace.see(0.0, 100)
    assert pace.see(1.0, 40) is None
    assert pace.see(3.0, 60) == 10.0


@pytest.mark.parametrize(
    ("seen", "rate", "words"),
    [
        (look(done=3), 1.0, "done 3; 1.0/s, nothing left to do"),
        (look(), None, "empty; -/s, nothing left to do"),
        (look(queued=100, in_progress=20, done=1), 2.0, "queued 100, in_progress 20, done 1; 2.0/s, 1 min left"),
        (look(queued=100), 0.0, "queued 100; 0.0/s, time left unknown"),
        (look(queued=100, paused=True), 5.0, "queued 100; 5.0/s, paused"),
    ],
)
def test_a_line_says_what_is_there_how_fast_and_how_long(seen, rate, words):
    assert stats.line_of(seen, rate) == words


# the watch, in real processes


@pytest.mark.slow
def test_a_watch_in_a_pipe_is_plain_lines_and_ends_with_zero(warm, config, path):
    fill(path, 3)
    process = watching(warm, config, stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as lines:
        assert lines.readline() == b"queued 3; -/s, time left unknown\n"
        with WorkQueue(path) as queue:
            [job] = queue.lease("w", 1, 60)
            queue.ack(job["id"], "done")
        while b"done 1" not in (line := lines.readline()):
            assert line
        assert b"\x1b" not in line
        assert ended(process, lines) == (0, "")


@pytest.mark.slow
def test_a_watch_for_programs_is_a_json_object_per_look(warm, config, path):
    fill(path, 2)
    process = watching(warm, config, "--json", stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process.stdout as lines:
        first, second = json.loads(lines.readline()), json.loads(lines.readline())
        assert ended(process, lines) == (0, "")
    assert (first["queued"], first["paused"], first["jobs_per_s"], first["seconds_left"]) == (2, False, None, None)
    assert second["jobs_per_s"] == 0.0


@pytest.mark.slow
def test_a_reader_that_goes_away_ends_the_watch(warm, config, path):
    fill(path, 1)
    process = watching(warm, config, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    _, errors = process.communicate(timeout=90)
    assert (process.returncode, errors) == (141, b"")


@pytest.mark.slow
def test_on_a_terminal_the_table_is_drawn_over_the_last_one(warm, config, path):
    fill(path, 3)
    main, side = pty.openpty()
    try:
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        environ = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
        process = watching(warm, config, stdin=side, stdout=side, env=environ | {"TERM": "xterm"})
        shown = read_until(main, lambda text: text.count("time left") >= 3)
        code, errors = ended(process)
    finally:
        os.close(main)
        os.close(side)
    assert (code, errors) == (0, "")
    assert "ended a second" in shown
    assert "\x1b[1A" in shown  # up, to draw over what is there


def read_until(file: int, enough, seconds: float = 90.0) -> str:
    text, until = "", time.monotonic() + seconds
    while not enough(text):
        assert time.monotonic() < until, text
        if select.select([file], [], [], 0.5)[0]:
            text += os.read(file, 65_536).decode(errors="replace")
    return text


# long inputs


def test_a_long_input_says_how_far_it_is(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(imports, "SAY_EVERY_S", 0.0)
    file = tmp_path / "x"
    file.write_bytes(b"a" * 100)
    with open(file, "rb") as stream:
        stream.read(25)
        imports.ImportProgress(stream).update([QueueLine(7, "local:7", {})])
    imports.ImportProgress(io.BytesIO(b"x")).update([QueueLine(8, "local:8", {})])
    imports.ImportProgress().update([QueueLine(9, "local:9", {})])
    assert capsys.readouterr().err.splitlines() == ["line 7, 25 % ...", "line 8 ...", "line 9 ..."]


def test_many_bad_lines_are_counted_after_the_first_ones(config, tmp_path):
    file = tmp_path / "bad.jsonl"
    file.write_text("no json\n" * 50 + '"arXiv:2101.00001"\n')
    result = CliRunner().invoke(queue_app, ["import", str(file), "-c", str(config), "--json"])
    assert result.exit_code == 2
    assert json.loads(result.stdout) == {"new": 1, "present": 0, "invalid": 50}
    assert len([line for line in result.stderr.splitlines() if line.startswith("line ")]) == 20
    assert "and 30 more lines like these" in result.stderr
    assert "50 lines were not usable; the others are queued" in result.stderr


def test_an_input_of_which_nothing_can_be_used_says_so(config):
    result = CliRunner().invoke(queue_app, ["import", "-", "-c", str(config)], input="[1]\n")
    assert result.exit_code == 2
    assert "1 line was not usable; nothing is queued" in result.stderr


def test_pause_and_resume_answer_programs(config):
    for verb, paused in (("pause", True), ("pause", True), ("resume", False), ("resume", False)):
        result = CliRunner().invoke(queue_app, [verb, "-c", str(config), "--json"])
        assert (result.exit_code, json.loads(result.stdout)) == (0, {"paused": paused})
