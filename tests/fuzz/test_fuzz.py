"""Whatever comes from outside, a reader gives its answer or an error of its kind, in bounded time and memory.

Seeds and what was once found lie in `corpus/`, one folder per target. `make fuzz` looks longer and keeps what it finds.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests import needs
from tests.fuzz.changing import ODD, inputs
from tests.fuzz.target import Target
from tests.fuzz.targets import ASKED, TARGETS, answered
from tests.largest import can_forget, grown_mb

from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings

CORPUS = Path(__file__).parent / "corpus"
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "15"))
LONGEST_S = 5.0  # of processor time
LONGEST_WAIT_S = 30.0  # of any time: generous, for a machine that is busy with other things
LARGEST_MB = 300
TRIED = "tried"  # the input that is being looked at


class Overdue(BaseException):
    """Raised within a reader that does not come back; none of them may take it for an error of its own."""


def seeds(name: str) -> list[bytes]:
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir()) if path.name != TRIED]


def check(name: str, data: bytes) -> None:
    # On a busy machine a thread's own time grows too, so what seems slow is looked at once more.
    with grown_mb() as grown:
        if took_s(name, data) > LONGEST_S:
            assert took_s(name, data) < LONGEST_S, f"{name} took too long over {len(data)} bytes"
    assert grown() < LARGEST_MB, f"{name} took {grown():.0f} MB for {len(data)} bytes"


def took_s(name: str, data: bytes) -> float:
    began_s = time.thread_time()
    try:
        with cut_off(LONGEST_WAIT_S), contextlib.suppress(*TARGETS[name].allowed):
            TARGETS[name].check(data)
    except Overdue:
        raise AssertionError(f"{name} did not come back in {LONGEST_WAIT_S:g} s from {len(data)} bytes") from None
    return time.thread_time() - began_s


@contextlib.contextmanager
def cut_off(after_s: float) -> Iterator[None]:
    """One that hangs or sleeps ends like one that crashes, so that its input is kept. The time limit of the whole test
    uses the same timer, and has it back afterwards; where less than that is left of it, it goes first."""
    left_s, _ = signal.getitimer(signal.ITIMER_REAL)
    if threading.current_thread() is not threading.main_thread() or 0 < left_s <= after_s:
        yield
        return

    def end(number: int, frame: object) -> None:
        raise Overdue

    former, began = signal.getsignal(signal.SIGALRM), time.monotonic()
    try:
        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, after_s)
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
        if left_s:
            signal.setitimer(signal.ITIMER_REAL, max(0.01, left_s - (time.monotonic() - began)))


def test_every_target_has_seeds_and_every_seed_a_target() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(TARGETS)
    assert all(seeds(name) for name in TARGETS)


@pytest.mark.parametrize("name", ASKED)
def test_a_seed_of_each_source_is_read_to_its_end(name: str) -> None:
    """Not refused at once, as an answer about another work or about none: then nothing behind that is looked at."""
    source = registry.build([name], settings={name: ResolverSettings(email="who@uni.example.edu", api_key="x")})[name]
    found = [answered(source, data) for data in seeds(f"source-{name}")]
    assert any(result.plans or result.work for result in found), [result.notes for result in found]


@pytest.mark.parametrize("name", TARGETS)
def test_what_was_kept_is_read_or_refused(name: str) -> None:
    for data in seeds(name):
        check(name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_what_surprises_readers_is_read_or_refused(name: str) -> None:
    for data in ODD:
        check(name, data)


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_what_is_nearly_right_is_read_or_refused(name: str) -> None:
    look_for_trouble(name, keeps="FUZZ_EXAMPLES" in os.environ)


def look_for_trouble(name: str, *, keeps: bool) -> None:
    last: list[bytes] = []
    tried = CORPUS / name / TRIED
    if tried.exists():  # a parser in C has taken the process with it
        keep(name, tried.read_bytes())
    # An input may be long, and hypothesis shows it when it fails.
    warnings.filterwarnings("ignore", "Generating overly large repr")

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=not keeps,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
    )
    @given(inputs(seeds(name), is_json=TARGETS[name].is_json))
    def look(data: bytes) -> None:
        last[:] = [data]
        if keeps:
            tried.write_bytes(data)
        check(name, data)

    try:
        look()
    except Exception:
        if keeps:  # the smallest input that fails
            keep(name, last[0])
        raise
    finally:
        tried.unlink(missing_ok=True)


def keep(name: str, data: bytes) -> None:
    """The next run begins with it."""
    (CORPUS / name / f"found-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)


# that trouble would be noticed


def crash(data: bytes) -> None:
    raise ValueError(data)


def compute(data: bytes) -> None:
    began_s = time.thread_time()
    while time.thread_time() - began_s < 0.1:
        pass


def hang(data: bytes) -> None:
    """In a reader that takes everything for a bad input, as some do."""
    with contextlib.suppress(Exception):
        time.sleep(60.0)


def vanish(data: bytes) -> None:
    os._exit(9)


def grab(data: bytes) -> None:
    assert len(b"x" * (64 << 20)) > len(data)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of one target, `odd`, which each test makes."""
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "seed-1").write_bytes(b"a word")
    monkeypatch.setattr(f"{__name__}.CORPUS", tmp_path)
    return tmp_path / "odd"


def test_a_crash_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "odd", Target(crash))
    with pytest.raises(ValueError, match="a word"):
        check("odd", b"a word")
    monkeypatch.setitem(TARGETS, "odd", Target(crash, (ValueError,)))
    check("odd", b"a word")


def test_one_that_computes_for_long_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "odd", Target(compute))
    check("odd", b"a word")
    monkeypatch.setattr(f"{__name__}.LONGEST_S", 0.05)
    with pytest.raises(AssertionError, match="odd took too long over 6 bytes"):
        check("odd", b"a word")


def test_one_that_takes_much_would_be_noticed_in_a_process_that_was_larger_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not can_forget():
        needs.lacks("Linux, which forgets the largest size of a process")
    assert len(b"x" * (100 << 20))
    monkeypatch.setitem(TARGETS, "odd", Target(grab))
    check("odd", b"a word")
    monkeypatch.setattr(f"{__name__}.LARGEST_MB", 30)
    with pytest.raises(AssertionError, match=r"odd took \d+ MB for 6 bytes"):
        check("odd", b"a word")


def test_the_input_of_one_that_hangs_is_kept(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TARGETS, "odd", Target(hang))
    monkeypatch.setattr(f"{__name__}.LONGEST_WAIT_S", 0.01)
    with pytest.raises(AssertionError, match="odd did not come back"):
        look_for_trouble("odd", keeps=True)
    assert len(list(corpus.glob("found-*"))) == 1


def test_the_input_of_one_that_takes_the_process_with_it_is_kept_by_the_next_run(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(TARGETS, "odd", Target(vanish))
    child = os.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            look_for_trouble("odd", keeps=True)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert len(list(corpus.iterdir())) == 2
    monkeypatch.setitem(TARGETS, "odd", Target(bool))
    look_for_trouble("odd", keeps=True)
    assert {path.name.partition("-")[0] for path in corpus.iterdir()} == {"seed", "found"}


def test_a_reader_that_is_cut_off_leaves_the_limit_of_the_test_as_it_was() -> None:
    def ring(number: int, frame: object) -> None:
        rung.append(number)

    rung: list[int] = []
    left, former = signal.setitimer(signal.ITIMER_REAL, 0)[0], signal.signal(signal.SIGALRM, ring)
    try:
        signal.setitimer(signal.ITIMER_REAL, 20.0)
        with pytest.raises(Overdue), cut_off(0.01):
            time.sleep(10.0)
        assert 5.0 < signal.getitimer(signal.ITIMER_REAL)[0] < 20.0
        with cut_off(100.0):  # the limit of the test comes first
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            time.sleep(0.5)
        assert rung == [signal.SIGALRM]
    finally:
        signal.signal(signal.SIGALRM, former)
        signal.setitimer(signal.ITIMER_REAL, left)
