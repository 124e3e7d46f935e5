"""Options that several commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

from typing import Annotated

import typer

ConfigOption = Annotated[
    str | None,
    typer.Option("--config", "-c", metavar="FILE", help="Settings, as YAML or JSON.", show_default=False),
]
JsonOption = Annotated[bool, typer.Option("--json", help="For programs: JSON on standard output.")]
