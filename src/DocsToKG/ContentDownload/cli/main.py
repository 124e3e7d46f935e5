"""Where the console scripts `content` and `contentdownload` begin."""

from __future__ import annotations


def content() -> None:
    from DocsToKG.ContentDownload.cli.app import content_app

    content_app(prog_name="content")


def contentdownload() -> None:
    from DocsToKG.ContentDownload.cli.app import app

    app(prog_name="contentdownload")
