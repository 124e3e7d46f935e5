"""Rules for the whole suite: what cannot be had is skipped aloud, and fails where `CI` is set."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

_EXCEPTED = "recorded"  # answers of real services lie beside a checkout or they do not


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if os.environ.get("CI") and report.skipped and _EXCEPTED not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped where CI must run it: {report.longrepr}"
    return report
