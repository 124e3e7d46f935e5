"""A real browser: Debian's `chromium` (`make servers`). Tests without it are skipped aloud, and fail with CI set."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
]


@contextmanager
def opened_browser() -> Iterator[Any]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None or importlib.util.find_spec("playwright") is None:
        pytest.skip("chromium or playwright is not here: run `make servers`")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=program, args=_FLAGS)
        yield opened
        opened.close()
