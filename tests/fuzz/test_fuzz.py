"""Whatever comes from outside, a reader gives its answer or an error of its kind, in bounded time and memory.

Seeds and what was once found lie in `corpus/`, one folder per target. `make fuzz` looks longer and keeps what it finds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.fuzz.changing import inputs
from tests.fuzz.targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "15"))
LONGEST_S = 5.0  # of processor time
LARGEST_MB = 300


def seeds(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def check(name: str, data: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # On a busy machine a thread's own time grows too, so what seems slow is looked at once more.
    if took_s(name, data) > LONGEST_S:
        assert took_s(name, data) < LONGEST_S, f"{name} took too long over {len(data)} bytes"
    grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    assert grown_mb < LARGEST_MB, f"{name} took {grown_mb:.0f} MB for {len(data)} bytes"


def took_s(name: str, data: bytes) -> float:
    began_s = time.thread_time()
    with contextlib.suppress(*TARGETS[name].allowed):
        TARGETS[name].check(data)
    return time.thread_time() - began_s


def test_every_target_has_seeds_and_every_seed_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert all(seeds(name) for name in TARGETS)


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_kept_is_read_or_refused(name: str) -> None:
    for data in seeds(name):
        check(name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_nearly_right_is_read_or_refused(name: str) -> None:
    last: list[bytes] = []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize="FUZZ_EXAMPLES" not in os.environ,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(inputs(seeds(name), is_json=TARGETS[name].is_json))
    def look(data: bytes) -> None:
        last[:] = [data]
        check(name, data)

    try:
        look()
    except Exception:
        if "FUZZ_EXAMPLES" in os.environ:  # the smallest input that fails, so that the next run begins with it
            kept = CORPUS / name / f"found-{hashlib.sha256(last[0]).hexdigest()[:12]}"
            kept.write_bytes(last[0])
        raise


def test_a_crash_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "rate", TARGETS["rate"]._replace(allowed=()))
    with pytest.raises(ValueError, match="rate"):
        check("rate", b"nonsense")
