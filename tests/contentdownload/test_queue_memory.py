"""The memory of a run does not grow with the length of its queue: real runs in processes of their own."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_a_run_holds_as_much_for_a_short_queue_as_for_a_long_one(warm, tmp_path):
    """Sixty times the length; with only a hundred bytes kept for each job it would be 3 MB more."""
    out = tmp_path / "memory.json"
    words = ["--rows=500,30500", "--papers=100", f"--out={out}"]
    command = [*warm.words("python"), "-m", "bench.memory", *words]
    subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240, check=True)
    short, long = json.loads(out.read_text())["rows"]
    assert min(short["papers"], long["papers"]) >= 100
    assert long["most_mb"] - short["most_mb"] < 3
