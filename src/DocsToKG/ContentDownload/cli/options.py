"""Options that several commands share, so that they read and mean the same everywhere."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from pydantic import ValidationError


def wrong_word(error: ValidationError) -> str:
    """What is wrong with the value of an option, in the words of the setting behind it."""
    from DocsToKG.ContentDownload.config.spoken import in_our_words

    return in_our_words(error.errors(include_url=False)[0])


def _is_there(file: str | None) -> str | None:
    """A settings file that is not there is wrong usage; what is in it is not."""
    if file is not None and not Path(file).expanduser().exists():
        raise typer.BadParameter(f"there is no file {file}; check the path")
    return file


def _folder(word: str | Path) -> Path:
    if not str(word):
        raise typer.BadParameter("it is empty, as a variable without a value leaves it; name a folder")
    return Path(word)


def _no_file(folder: Path | None) -> Path | None:
    if folder is not None:
        _check_utf8(folder.absolute())
        nearest = next((place for place in (folder, *folder.absolute().parents) if place.exists()), None)
        if nearest is not None and not nearest.is_dir():
            raise typer.BadParameter(f"{nearest} is a file; name the folder that the papers go to")
    return folder


def _check_utf8(folder: Path) -> None:
    """The record and the settings are UTF-8, so that they could not name a file in there."""
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        shown = os.fsencode(folder).decode("utf-8", "backslashreplace")
        raise typer.BadParameter(f"{shown} is not UTF-8, which the record is written in; name another folder") from None


def _checked(check: Callable[[list[str]], Any]) -> Callable[[str | None], str | None]:
    """Looks at the words of an option as its setting would, so that a wrong one is wrong usage."""

    def callback(text: str | None) -> str | None:
        from pydantic import ValidationError

        words = None if text is None else [word.strip() for word in text.split(",") if word.strip()]
        if words == []:
            raise typer.BadParameter("it is empty; name what is wanted, or leave it out")
        try:
            if words is not None:
                check(words)
        except ValidationError as error:
            raise typer.BadParameter(wrong_word(error)) from None
        return text

    return callback


def _check_formats(words: list[str]) -> None:
    from DocsToKG.ContentDownload.config.models import DownloadConfig

    DownloadConfig.model_validate({"formats": words})


def _check_order(words: list[str]) -> None:
    from DocsToKG.ContentDownload.config.sources import ResolversConfig

    ResolversConfig.model_validate({"order": words})


ConfigOption = Annotated[
    str | None,
    typer.Option(
        "--config",
        "-c",
        metavar="FILE",
        help="Settings, as YAML or JSON.",
        show_default=False,
        callback=_is_there,
    ),
]
Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Folder of the corpus and of its record; {run_id} stands for the run's id.",
        parser=_folder,
        callback=_no_file,
    ),
]
OutAsConfigured = Annotated[
    Path | None,
    typer.Option(
        "--out",
        "-o",
        metavar="DIR",
        help="Default: as configured.",
        show_default=False,
        parser=_folder,
        callback=_no_file,
    ),
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes", min=1, max=64, metavar="N", help="Processes that work together; limits hold for all of them."
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="For programs: JSON on standard output.")]
PullJson = Annotated[
    bool, typer.Option("--json", help="For programs: one JSON document; with --dry-run a line of JSON per work.")
]
ResumeJson = Annotated[bool, typer.Option("--json", help="For programs: one JSON document.")]
PlanJson = Annotated[bool, typer.Option("--json", help="For programs: a line of JSON per work.")]
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
    typer.Option(
        "--resolver-order",
        metavar="A,B,...",
        help="Sources to ask first, in order.",
        show_default=False,
        callback=_checked(_check_order),
    ),
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
    typer.Option(
        "--formats",
        metavar="A,B,...",
        help="Forms to take, best first: pdf, xml, html.",
        show_default=False,
        callback=_checked(_check_formats),
    ),
]


Supplements = Annotated[
    bool, typer.Option("--supplements", help="Store the files beside each paper too: supporting information, data.")
]


IndexDir = Annotated[
    Path | None,
    typer.Option(
        "--index",
        metavar="DIR",
        help="Offline index of open copies (`content index build`), looked into before any service is asked.",
        show_default=False,
    ),
]


class RetractedChoice(StrEnum):
    INCLUDE = "include"
    EXCLUDE = "exclude"
    ONLY = "only"


Retracted = Annotated[
    RetractedChoice | None,
    typer.Option("--retracted", help="Works that are known to be retracted.", show_default=False),
]


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


def parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a size; write it like 500MB or 2GB")
    if float(match[1]) == 0:
        raise typer.BadParameter("a limit of nothing leaves nothing to do")
    return int(float(match[1]) * 1000 ** ["", "k", "m", "g", "t"].index(match[2].lower()))
