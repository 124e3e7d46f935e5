"""Where the console script `docstokg-orchestrator` begins."""

from __future__ import annotations

from DocsToKG.core.interrupts import interruptible


def main() -> None:
    with interruptible():
        from DocsToKG.Orchestrator.cli.app import app

        app(prog_name="docstokg-orchestrator")
