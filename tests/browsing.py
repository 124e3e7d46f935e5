"""A real browser: Debian's `chromium`, which `make servers` fetches."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests import needs

_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
]


@contextmanager
def opened_browser() -> Iterator[Any]:
    program = needs.program("chromium", "chromium-browser")
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(prefix="browser") as home, sync_playwright() as play:
        # It keeps certificates, fonts and reports in the home that it is given.
        opened = play.chromium.launch(executable_path=program, args=_FLAGS, env={**os.environ, "HOME": home})
        yield opened
        opened.close()
