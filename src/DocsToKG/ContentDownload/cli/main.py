"""Where the console scripts `content` and `contentdownload` begin."""

from __future__ import annotations

from DocsToKG.core.interrupts import interruptible


def content() -> None:
    with interruptible():
        from DocsToKG.ContentDownload.cli.app import content_app

        content_app(prog_name="content")


def contentdownload() -> None:
    with interruptible():
        from DocsToKG.ContentDownload.cli.app import app

        app(prog_name="contentdownload")
