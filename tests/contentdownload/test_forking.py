"""Copies of a process go on by themselves, and never of somebody else's program (EXT-07)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import needs

pytestmark = needs.system(sys.platform == "linux", "Linux, where processes are copied")

COPY = """
import os, sys, time
from DocsToKG.ContentDownload.orchestrator.forking import Forked, fork_many, may_fork
from DocsToKG.core.process import declare_ours
declare_ours()
def main():
    for line in sys.stdin.buffer:
        word = line.strip().decode()
        if word.startswith("end"):
            return int(word[3:])
        os.write(1, f"{word} {os.getpid()} {os.getpgrp()} {secret}\\n".encode())
    return 7
secret = "loaded before"
"""


def run(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", COPY + script, *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)


def test_a_copy_has_what_was_loaded_and_its_own_pipes_group_and_exit_code() -> None:
    done = run("""
copies = fork_many(main, 2)
for copy in copies:
    copy.admit([])
    copy.stdin.write(b"hello\\n"); copy.stdin.flush()
    print(copy.stdout.readline().decode().strip() == f"hello {copy.pid} {copy.pid} loaded before")
for code, copy in enumerate(copies):
    copy.stdin.write(b"end%d\\n" % code); copy.stdin.flush()
    print(copy.wait(), copy.stdout.read())
    copy.close()
""")
    assert done.stdout.split("\n") == ["True", "True", "0 b''", "1 b''", ""]


def test_a_copy_that_nobody_needs_is_gone_without_having_begun() -> None:
    done = run("""
[copy] = fork_many(lambda: os.write(2, b"begun"), 1)
copy.dismiss()
print(copy.returncode)
""")
    assert (done.stdout, done.stderr) == ("-9\n", "")


def test_an_error_in_a_copy_is_shown_and_does_not_come_back_to_the_caller() -> None:
    done = run("""
def spoiled():
    raise ValueError("spoiled")
[copy] = fork_many(spoiled, 1)
copy.admit([])
print("once", copy.wait())
""")
    assert done.stdout == "once 1\n"
    assert "ValueError: spoiled" in done.stderr


def test_files_that_a_copy_is_given_stay_open_in_it(tmp_path: Path) -> None:
    done = run(
        """
import fcntl
def locked():
    with open(sys.argv[1]) as again:
        try:
            fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.flock(again, fcntl.LOCK_UN)
            return False
        except BlockingIOError:
            return True
[copy] = fork_many(main, 1)
with open(sys.argv[1], "w") as lock:  # opened after the copy was made
    fcntl.flock(lock, fcntl.LOCK_EX)
    copy.admit([lock.fileno()])
copy.stdin.write(b"hello\\n"); copy.stdin.flush(); copy.stdout.readline()
print(locked())
copy.kill(); copy.wait()
print(locked())
""",
        str(tmp_path / "lock"),
    )
    assert done.stdout == "True\nFalse\n"


def test_when_the_process_that_made_them_is_killed_copies_end(tmp_path: Path) -> None:
    script = """
copies = fork_many(main, 3)
copies[0].admit([]); copies[1].admit([])
copies[0].stdin.write(b"hello\\n"); copies[0].stdin.flush()  # and dies with the answer unread
print(*(copy.pid for copy in copies), flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", COPY + script], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert all(_lives(pid) for pid in pids)
        parent.kill()
    until = time.monotonic() + 20
    while any(map(_lives, pids)) and time.monotonic() < until:
        time.sleep(0.02)
    left = [pid for pid in pids if _lives(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@pytest.mark.parametrize(
    ("script", "verdict"),
    [
        ("", True),
        ("import threading; threading.Thread(target=time.sleep, args=(5,), daemon=True).start()", False),
        ("import DocsToKG.core.process as process; process.is_ours = lambda: False", False),
    ],
)
def test_only_a_program_of_ours_with_one_thread_is_copied(script: str, verdict: bool) -> None:
    assert run(f"{script}\nprint(may_fork())").stdout == f"{verdict}\n"
