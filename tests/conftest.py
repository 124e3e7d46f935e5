"""Rules for the whole suite: what cannot be had is skipped aloud, and fails where `CI` is set."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator

import pytest

_EXCEPTED = "recorded"  # answers of real services lie beside a checkout or they do not


@pytest.fixture(autouse=True, scope="session")
def limits_of_this_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Limits hold for the whole machine; those of a test run are its own, for child processes too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") and report.skipped and _EXCEPTED not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped where CI must run it: {report.longrepr}"
    return report
