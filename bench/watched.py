"""A command watched from outside: how long, how much of the processor, how much memory with all its children."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_SAMPLE_S = 0.2
_FIRST_S = 0.02  # a quick command is over before the second look


class Seen(NamedTuple):
    """What one command took. Memory is that of the whole family, what they share counted once."""

    output: str
    ended: float
    cpu_s: float
    half_mb: float
    most_mb: float


def watch(
    command: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: Path | None = None, timeout_s: float = 600
) -> Seen:
    """Run it to its end; its own and its children's processor time, seconds of the epoch at its end."""
    before_s = _children_cpu_s()
    process = subprocess.Popen(command, env=env, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with Memory(lambda: family_mb(process.pid)) as memory:
        try:
            output, complaints = process.communicate(timeout=timeout_s)
        except BaseException:
            process.kill()
            process.wait()
            raise
        ended = time.time()
    if process.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name} ended with {process.returncode}: {complaints[-500:]}")
    samples = memory.samples or [0.0]
    return Seen(output, ended, _children_cpu_s() - before_s, samples[len(samples) // 2], max(samples))


def _children_cpu_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


class Memory:
    """Asks `look` in even steps how many megabytes are held."""

    def __init__(self, look: Callable[[], float]) -> None:
        self.samples: list[float] = []
        self._look = look
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._over.set()
        self._thread.join()

    def thinned(self, most: int = 20) -> list[float]:
        step = max(1, len(self.samples) // most)
        return self.samples[::step]

    def _sample(self) -> None:
        pause_s = _FIRST_S
        while not self._over.wait(pause_s):
            pause_s = _SAMPLE_S
            self.samples.append(self._look())


def family_mb(pid: int) -> float:
    """What a process and all below it hold."""
    return round(sum(map(_held_mb, family(pid))), 1)


def family(pid: int) -> list[int]:
    """The process and all that descend from it."""
    below: dict[int, list[int]] = defaultdict(list)
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                parent = (entry / "stat").read_text().rpartition(")")[2].split()[1]
                below[int(parent)].append(int(entry.name))
    found = [pid]
    for one in found:
        found.extend(below[one])
    return found


def _held_mb(pid: int) -> float:
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("Pss:")).split()[1]) / 1000
    return 0.0
