"""Where the console scripts `content` and `contentdownload` begin."""

from __future__ import annotations

from DocsToKG.core.interrupts import interruptible
from DocsToKG.core.process import declare_ours


def content(prog_name: str = "content") -> None:
    declare_ours()
    with interruptible():
        from DocsToKG.ContentDownload.cli.app import app

        app(prog_name=prog_name)


def contentdownload() -> None:
    content("contentdownload")
