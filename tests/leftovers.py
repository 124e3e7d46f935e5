"""Surroundings of the tests' own, and what a run leaves in them: files, and processes, which alone can hold a port.

Every test and every process it starts has a home and a folder for temporary files that are made for the run and removed
after it. Knows nothing of single tests: what is left is told at the end of the run, and fails it where `CI` is set.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# What the README says is kept in a home.
KEPT = (".cache/uv", ".cache/docstokg", ".config/docstokg", ".local/state/docstokg")
_MARK = "TESTS_RUN_IN"
_ENDS_WITHIN_S = 5.0


class Surroundings:
    """The folder of one run, with a home for each process that runs tests."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        patch.setenv("PYTEST_DEBUG_TEMPROOT", os.environ.get("PYTEST_DEBUG_TEMPROOT") or tempfile.gettempdir())
        self.folder = Path(tempfile.mkdtemp(prefix="dt-"))
        self.folder.chmod(0o755)  # PostgreSQL runs as somebody else than root
        self._homes, self._temporary = self.folder / "homes", self.folder / "tmp"
        for folder in (self._homes, self._temporary):
            folder.mkdir()
        self._temporary.chmod(0o1777)
        patch.setenv(_MARK, str(self.folder))
        patch.setenv("TMPDIR", str(self._temporary))
        patch.setattr(tempfile, "tempdir", None)

    def home(self, name: str) -> Path:
        return self._homes / name

    def left(self) -> Iterator[str]:
        """Each thing in a line. Processes are given the time to end that servers need, and are ended then."""
        processes = self._processes()
        until = time.monotonic() + _ENDS_WITHIN_S
        while processes and time.monotonic() < until:
            time.sleep(0.05)
            processes = self._processes()
        for pid, command in processes.items():
            yield f"process {pid}: {command}"
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        while any(map(is_running, processes)) and time.monotonic() < until + _ENDS_WITHIN_S:
            time.sleep(0.01)
        for home in sorted(self._homes.iterdir()):
            yield from (f"in the home: {path}" for path in strangers(home))
        yield from (f"temporary file: {path.name}" for path in sorted(self._temporary.iterdir()))

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _processes(self) -> dict[int, str]:
        """Those that were started with the environment of this run, lie in its folder, or are children of this process;
        where there is no /proc, none is found."""
        return {
            int(folder.name): command
            for folder in Path("/proc").glob("[0-9]*")
            if int(folder.name) != os.getpid() and self._is_ours(folder) and (command := _command(folder))
        }

    def _is_ours(self, process: Path) -> bool:
        with contextlib.suppress(OSError):
            if f"{_MARK}={self.folder}".encode() in (process / "environ").read_bytes().split(b"\0"):
                return True
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            return int(parent) == os.getpid() or Path(os.readlink(process / "cwd")).is_relative_to(self.folder)
        return False


def live_in(home: Path, patch: pytest.MonkeyPatch) -> None:
    """Make it the home of this process and of those it starts. Limits hold for a whole machine: they stay those of
    the run where a test names a home of its own."""
    home.mkdir()
    for name in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"):
        patch.delenv(name, raising=False)
    patch.setenv("HOME", str(home))
    patch.setenv("XDG_STATE_HOME", str(home / ".local" / "state"))


def strangers(home: Path) -> Iterator[Path]:
    """Files in a home where the README says there are none."""
    for path in sorted(home.rglob("*")):
        where = path.relative_to(home)
        if (path.is_symlink() or not path.is_dir()) and not any(where.is_relative_to(kept) for kept in KEPT):
            yield where


def is_running(pid: int) -> bool:
    """One that has ended and that nobody has asked for yet does not run."""
    with contextlib.suppress(FileNotFoundError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _command(process: Path) -> str:
    """What it was started with; nothing for one that has ended, and for Python's own, which ends after this process."""
    with contextlib.suppress(OSError):
        words = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return "" if "multiprocessing.resource_tracker" in words else words[:150]
    return ""
