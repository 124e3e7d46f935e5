"""Rules for the whole suite: what cannot be had is skipped aloud, and fails where `CI` is set."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import re
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import HealthCheck, settings
from tests.browsing import opened_browser
from tests.warm import WarmPrograms

# A busy machine is slow at examples, and at making them; how long a test may take in all is bounded.
settings.register_profile("any machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# `./dev test-fast` asks for this one; `tests/examples.py` takes its part of the number that a test names.
settings.register_profile("few examples", settings.default, max_examples=15)

_EXCEPTED = "recorded"  # answers of real services lie beside a checkout or they do not


_NOT_QUICK = re.compile(r"^pytestmark = \[?pytest\.mark\.(slow|long)\b", re.MULTILINE)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Half a million objects come here to stay: to look through them for cycles, here and in every test afterwards, was
    a twelfth of all work."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of which nothing will run need not be read, nor what it imports."""
    if collection_path.suffix != ".py" or config.option.markexpr != "not slow and not long":
        return None
    return True if _NOT_QUICK.search(collection_path.read_text("utf-8")) else None


@pytest.fixture(autouse=True, scope="session")
def limits_of_this_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Limits hold for the whole machine; those of a test run are its own, for child processes too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True, scope="session")
def commands_built_once() -> Iterator[None]:
    """The tree of a program's commands takes longer to build than most commands take to run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(autouse=True, scope="session")
def collected_stays_frozen() -> Iterator[None]:
    """A command that runs in this process thaws at its end what it froze, and would thaw all that was collected."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gc, "unfreeze", lambda: None)
        yield


@pytest.fixture(scope="session")
def blank_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new ledger, to be copied: making the tables takes longer than what most tests do with them."""
    from DocsToKG.core.clock import ManualClock
    from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger

    path = tmp_path_factory.mktemp("blank") / "ledger.sqlite"
    with SqliteLedger(path, clock=ManualClock()):
        return path


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with opened_browser() as opened:
        yield opened


@pytest.fixture(autouse=True)
def no_loop_of_a_browser(request: pytest.FixtureRequest) -> Iterator[None]:
    """A browser that an earlier test opened has a loop running in this thread; who needs none may run its own."""
    loop = asyncio._get_running_loop()
    if loop is None or "browser" in request.fixturenames:
        yield
        return
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(loop)


@pytest.fixture(scope="session")
def warm() -> Iterator[WarmPrograms]:
    """The programs of the product, without their start-up."""
    with tempfile.TemporaryDirectory(prefix="warm") as folder:
        programs = WarmPrograms(Path(folder))
        try:
            yield programs
        finally:
            programs.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") and report.skipped and _EXCEPTED not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped where CI must run it: {report.longrepr}"
    return report
