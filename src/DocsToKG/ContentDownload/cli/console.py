"""Serve the console over the ledger of a run, on this machine only, until the run ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig

Console = Annotated[
    bool, typer.Option("--console", help="Show the run in a browser while it works; its address is printed.")
]


@contextmanager
def console_of(cfg: ContentDownloadConfig, wanted: bool) -> Iterator[None]:
    """Serve the console where it is wanted, and say where it is. The run's ledger must be there already."""
    with ExitStack() as stack:
        if wanted:
            typer.echo(f"Console: {stack.enter_context(_served(cfg))}", err=True)
        yield


@contextmanager
def _served(cfg: ContentDownloadConfig) -> Iterator[str]:
    from DocsToKG.Orchestrator.errors import LedgerError
    from DocsToKG.Orchestrator.settings import BadSettings, load_settings

    try:
        import_module("DocsToKG.Orchestrator.api.app")  # says at once whether its libraries are there
        from DocsToKG.Orchestrator.bootstrap import console_beside
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "DocsToKG":
            raise
        raise typer.BadParameter("--console needs the server extra: pip install 'docstokg[server]'") from None
    changes: dict[str, object] = {"ledger": cfg.queue.path, "port": 0, "drain_seconds": 1.0}
    if cfg.queue.url is not None:
        changes |= {"connection_string": cfg.queue.url, "listen_connection_string": cfg.queue.listen_url}
    try:
        with console_beside(load_settings(None, changes)) as address:
            yield address
    except (BadSettings, LedgerError) as error:
        raise typer.BadParameter(f"the console cannot be shown: {error}") from None
