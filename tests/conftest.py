"""Rules for the whole suite: its surroundings, its order, and what the end of a run says of skips and leftovers."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import random
import re
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import HealthCheck, settings
from tests import needs
from tests.browsing import opened_browser
from tests.conformance.postgres_server import PostgresServer
from tests.leftovers import Surroundings, live_in
from tests.warm import WarmPrograms

from DocsToKG.core.clock import ManualClock

# A busy machine is slow at examples, and at making them; how long a test may take in all is bounded.
settings.register_profile("any machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

# `./dev test-fast` asks for this one; `tests/examples.py` takes its part of the number that a test names.
settings.register_profile("few examples", settings.default, max_examples=15)

_SURROUNDINGS = pytest.StashKey[Surroundings]()
_LEFT = pytest.StashKey[list[str]]()
_NOT_QUICK = re.compile(r"^pytestmark = \[?pytest\.mark\.(slow|long)\b", re.MULTILINE)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--shuffle", type=int, metavar="SEED", help="modules, and tests in each, in random order")


def pytest_configure(config: pytest.Config) -> None:
    """Before anything looks for a home or for temporary files. A worker has those that its controller made."""
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    given = getattr(config, "workerinput", None)
    if given is not None:
        live_in(Path(given["home"]), patch)
        return
    config.stash[_SURROUNDINGS] = surroundings = Surroundings(patch)
    config.add_cleanup(surroundings.remove)
    live_in(surroundings.home("main"), patch)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    node.workerinput["home"] = str(node.config.stash[_SURROUNDINGS].home(node.gateway.id))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """When workers have ended, and what they started with them."""
    PostgresServer.forget()
    if (pool := sys.modules.get("DocsToKG.ContentDownload.validation.pdf.worker_pool")) is not None:
        pool.shared_engine().close(kill=True)  # by itself it ends with this process
    if _SURROUNDINGS not in session.config.stash:
        return
    session.config.stash[_LEFT] = left = list(session.config.stash[_SURROUNDINGS].left())
    if left and os.environ.get("CI") and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Modules stay together, for what they set up; pytest groups by parameters of wider scopes afterwards."""
    if (seed := config.getoption("--shuffle")) is None:
        return
    chance = random.Random(seed)
    modules: dict[str, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.nodeid.partition("::")[0], []).append(item)
    names = sorted(modules)
    chance.shuffle(names)
    for name in names:
        chance.shuffle(modules[name])
    items[:] = [item for name in names for item in modules[name]]


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """What was compressed holds the second in which it was: workers that named a test by it would not agree."""
    return argname if isinstance(val, bytes) and len(val) > 40 else None


def pytest_report_header(config: pytest.Config) -> str | None:
    return _order(config)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    skipped = [report.longrepr for report in terminalreporter.stats.get("skipped", ())]
    left = config.stash.get(_LEFT, [])
    terminalreporter.ensure_newline()
    if skipped:
        terminalreporter.section(f"skipped: {len(skipped):,} test{'s' * (len(skipped) > 1)}")
        for line in needs.told(reason.removeprefix("Skipped: ") for _, _, reason in skipped):
            terminalreporter.write_line(line)
    if left:
        terminalreporter.section("left behind by the tests, and removed now")
        for line in left:
            terminalreporter.write_line(line)
    if order := _order(config):
        terminalreporter.write_line(order)


def _order(config: pytest.Config) -> str | None:
    seed = config.getoption("--shuffle")
    return None if seed is None else f"order shuffled by seed {seed}; --shuffle={seed} repeats it"


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


@pytest.fixture
def clock() -> ManualClock:
    """A time that stands still until the test moves it."""
    return ManualClock()


@pytest.fixture(scope="session")
def blank_ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new ledger, to be copied: making the tables takes longer than what most tests do with them."""
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
    if os.environ.get("CI") and isinstance(report.longrepr, tuple) and not needs.may_be_missing(report.longrepr[2]):
        path, line, reason = report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: skipped where CI is set, which must run it. {reason}"
    return report
