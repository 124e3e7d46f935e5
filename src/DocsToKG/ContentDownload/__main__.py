"""`python -m DocsToKG.ContentDownload`: the same program as `contentdownload`."""

from __future__ import annotations

from DocsToKG.ContentDownload.cli.app import app

if __name__ == "__main__":
    app(prog_name="python -m DocsToKG.ContentDownload")
