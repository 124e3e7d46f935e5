"""Options that several commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

ConfigOption = Annotated[
    str | None,
    typer.Option("--config", "-c", metavar="FILE", help="Settings, as YAML or JSON.", show_default=False),
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes", min=1, max=64, metavar="N", help="Processes that work together; limits hold for all of them."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="For programs: JSON on standard output.")]
Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID|FILE|-...",
        help="Identifiers (DOI, arXiv, PMCID, PMID, OpenAlex, URL), files of them (text, CSV, JSONL, BibTeX, RIS), "
        "or - for standard input.",
        show_default=False,
    ),
]
Order = Annotated[
    str | None,
    typer.Option("--resolver-order", metavar="A,B,...", help="Sources to ask first, in order.", show_default=False),
]
License = Annotated[
    str | None,
    typer.Option(
        "--license", "--licence", metavar="A,B,...", help="Only copies under these, like cc-by,cc0.", show_default=False
    ),
]
OaStatus = Annotated[
    str | None,
    typer.Option(
        "--oa-status",
        metavar="A,B,...",
        help="Only works of these: gold, diamond, hybrid, bronze, green, closed.",
        show_default=False,
    ),
]
Version = Annotated[
    str | None,
    typer.Option(
        "--version", metavar="A,B,...", help="Only these versions: published, accepted, submitted.", show_default=False
    ),
]
Year = Annotated[
    str | None,
    typer.Option("--year", metavar="YEARS", help="Only works of 2018, 2015-2020, 2015- or -2020.", show_default=False),
]
Formats = Annotated[
    str | None,
    typer.Option("--formats", metavar="A,B,...", help="Forms to take, best first: pdf, xml, html.", show_default=False),
]


class RetractedChoice(StrEnum):
    INCLUDE = "include"
    EXCLUDE = "exclude"
    ONLY = "only"


Retracted = Annotated[
    RetractedChoice | None,
    typer.Option("--retracted", help="Works that are known to be retracted.", show_default=False),
]
