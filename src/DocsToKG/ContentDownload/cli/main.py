"""Where the console scripts `content` and `contentdownload` begin."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from DocsToKG.core.interrupts import INTERRUPTED, end_at_once_while_modules_are_read


def content() -> None:
    with _interruptible():
        from DocsToKG.ContentDownload.cli.app import content_app

        content_app(prog_name="content")


def contentdownload() -> None:
    with _interruptible():
        from DocsToKG.ContentDownload.cli.app import app

        app(prog_name="contentdownload")


@contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl+C while the modules are read ends as it does later, where the commands see to it."""
    end_at_once_while_modules_are_read()
    try:
        yield
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)
