"""Every option that more than one command has, declared once, and the groups in which they come.

A group is a dataclass whose fields are options. A command under `with_groups` names a group as one parameter; the
command line shows its fields. A group also says what its options mean: as settings, or as the works they select.
"""

from __future__ import annotations

import inspect
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

import typer

from DocsToKG.Orchestrator.cli.options import JsonOption as JsonOption

if TYPE_CHECKING:
    from pydantic import ValidationError

    from DocsToKG.ContentDownload.catalog.selection import Selection


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each group parameter replaced by the fields of the group."""
    shown: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        group: Any = parameter.annotation
        if not is_dataclass(group):
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group
        hints = get_type_hints(group, include_extras=True)
        for field in fields(group):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            shown.append(
                inspect.Parameter(
                    field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[field.name]
                )
            )

    @wraps(command)
    def spread(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    spread.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    return spread


def wrong_word(error: ValidationError) -> str:
    """What is wrong with the value of an option, in the words of the setting behind it."""
    from DocsToKG.ContentDownload.config.messages import setting_message

    return setting_message(error.errors(include_url=False)[0])


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

        words = None if text is None else comma_list(text)
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


def comma_list(words: str) -> list[str]:
    return [word.strip() for word in words.split(",") if word.strip()]


def absolute(path: Path | None) -> str | None:
    return None if path is None else str(path.expanduser().resolve())


def given(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that have a value; None stands for an option that was not used."""
    tables = {name: given(value) if isinstance(value, Mapping) else value for name, value in settings.items()}
    return {name: value for name, value in tables.items() if value is not None and value != {}}


ConfigOption = Annotated[
    str | None, typer.Option("--config", "-c", metavar="FILE", help="Settings, as YAML or JSON.", callback=_is_there)
]
JsonDocument = Annotated[bool, typer.Option("--json", help="For programs: one JSON document.")]
JsonLines = Annotated[bool, typer.Option("--json", help="For programs: a line of JSON per work.")]
JsonOfPull = Annotated[
    bool, typer.Option("--json", help="For programs: one JSON document; with --dry-run a line of JSON per work.")
]
Sources = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="ID|FILE|-...",
        help="Identifiers (DOI, arXiv, PMCID, PMID, OpenAlex, URL), files of them (text, CSV, JSONL, BibTeX, RIS), "
        "or - for standard input.",
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
    typer.Option("--out", "-o", metavar="DIR", help="Default: as configured.", parser=_folder, callback=_no_file),
]
RunOption = Annotated[Path, typer.Option("--run", metavar="DIR", help="The folder of the run.")]
Workers = Annotated[
    int | None, typer.Option("--workers", "-w", min=1, max=1024, help="Papers downloaded at the same time.")
]
Processes = Annotated[
    int | None,
    typer.Option(
        "--processes", min=1, max=64, metavar="N", help="Processes that work together; limits hold for all of them."
    ),
]
FileThreads = Annotated[
    int | None,
    typer.Option("--threads", min=1, max=64, help="Files read at the same time.", show_default="one per core"),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Show no progress.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
TrustOption = Annotated[
    Path | None,
    typer.Option("--trust", metavar="FILE|DIR", help="Public keys whose signatures are accepted, for --attestation."),
]


@dataclass(frozen=True, slots=True)
class PaperOptions:
    """Which papers and copies are wanted, and where to look for them."""

    license: Annotated[
        str | None,
        typer.Option("--license", "--licence", metavar="A,B,...", help="Only copies under these, like cc-by,cc0."),
    ] = None
    oa_status: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Only works of these: gold, diamond, hybrid, bronze, green, closed."),
    ] = None
    version: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Only these versions: published, accepted, submitted.")
    ] = None
    year: Annotated[
        str | None, typer.Option(metavar="YEARS", help="Only works of 2018, 2015-2020, 2015- or -2020.")
    ] = None
    retracted: Annotated[
        Literal["include", "exclude", "only"] | None, typer.Option(help="Works that are known to be retracted.")
    ] = None
    formats: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...", help="Formats to accept, best first: pdf, xml, html.", callback=_checked(_check_formats)
        ),
    ] = None
    index: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Offline index of open copies (`content index build`), searched before any service is asked.",
        ),
    ] = None
    resolver_order: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="Sources to ask first, in order.", callback=_checked(_check_order)),
    ] = None

    def filters(self) -> dict[str, str]:
        """The filters as settings; a wrong word is reported by the name of its option."""
        from pydantic import ValidationError

        from DocsToKG.ContentDownload.config.filters import FiltersConfig

        names = ("license", "oa_status", "version", "year", "retracted")
        settings = given({name: getattr(self, name) for name in names})
        for name, value in settings.items():
            # An empty variable of a script must not turn a filter off.
            if not comma_list(value):
                raise typer.BadParameter(f"--{name.replace('_', '-')} is empty; name what is wanted, or leave it out")
        try:
            FiltersConfig.model_validate(settings)
        except ValidationError as error:
            option = str(error.errors(include_url=False)[0]["loc"][0]).replace("_", "-")
            raise typer.BadParameter(f"--{option}: {wrong_word(error)}") from None
        return settings

    def settings(self) -> dict[str, Any]:
        order = self.resolver_order
        return given(
            {
                "resolvers": {"order": comma_list(order) if order else None},
                "filters": self.filters(),
                "download": {"formats": self.formats or None},
                "index": {"path": absolute(self.index)},
            }
        )


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How papers are downloaded."""

    supplements: Annotated[
        bool, typer.Option("--supplements", help="Also store each paper's supplements: supporting information, data.")
    ] = False
    workers: Workers = None
    processes: Processes = None
    no_robots: Annotated[
        bool, typer.Option("--no-robots", help="Do not read robots.txt. Only for hosts that have allowed you this.")
    ] = False

    def settings(self) -> dict[str, Any]:
        if self.no_robots:
            typer.echo("Warning: robots.txt is not read in this run; the record says so.", err=True)
        return given(
            {
                "orchestrator": {"max_workers": self.workers, "processes": self.processes},
                "download": {"supplements": self.supplements or None},
                "robots": {"enabled": False if self.no_robots else None},
            }
        )


@dataclass(frozen=True, slots=True)
class ObservabilityOptions:
    """Metrics and the log of this command. `resume` does not inherit them."""

    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65_535,
            metavar="PORT",
            help="Serve the run's metrics at http://127.0.0.1:PORT/metrics; 0 takes a free port and prints it.",
        ),
    ] = None
    metrics_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the metrics to a file, for node_exporter.")
    ] = None
    log_level: Annotated[
        Literal["debug", "info", "warning", "error", "off"] | None, typer.Option(help="Lowest level that is logged.")
    ] = None
    log_format: Annotated[
        Literal["auto", "human", "json"] | None,
        typer.Option(help="auto: for people on a terminal, lines of JSON everywhere else."),
    ] = None
    log_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Append the log to a file; missing folders are created.")
    ] = None

    def settings(self) -> dict[str, Any]:
        """A log file or a log format asks for a log, also where logging is off by default."""
        is_wanted = self.log_format is not None or self.log_file is not None
        level = self.log_level or ("info" if is_wanted else None)
        telemetry = {
            "metrics_port": self.metrics_port,
            "metrics_file": absolute(self.metrics_file),
            "log_level": level,
            "log_format": self.log_format,
            "log_file": absolute(self.log_file),
        }
        return given({"telemetry": telemetry})


Words = list[str] | None


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """Which works of a record are meant; an option may be repeated, or name several values with commas."""

    source: Annotated[Words, typer.Option(metavar="NAME", help="Only files that this source named.")] = None
    tier: Annotated[Words, typer.Option(metavar="NAME", help="Only of this tier.")] = None
    host: Annotated[
        Words, typer.Option(metavar="HOST", help="Only from this host; .example.org also means every host below it.")
    ] = None
    year: Annotated[str | None, typer.Option(metavar="YEARS", help="2018, 2015-2020, 2015- or -2020.")] = None
    licence: Annotated[
        Words,
        typer.Option(
            "--license",
            "--licence",
            metavar="NAME",
            help="cc-by is the whole family, CC-BY-4.0 that version, none unknown.",
        ),
    ] = None
    version: Annotated[Words, typer.Option(metavar="NAME", help="published, accepted or submitted.")] = None
    state: Annotated[
        Words, typer.Option(metavar="NAME", help="obtained, present, left-out, robots, failed or taken-down.")
    ] = None
    since: Annotated[str | None, typer.Option(metavar="WHEN", help="Ended since: 2026-03-01, a time, or 7d (ago).")] = (
        None
    )
    until: Annotated[str | None, typer.Option(metavar="WHEN", help="Ended up to and including.")] = None
    text: Annotated[
        str | None,
        typer.Option("--text", "-t", metavar="WORDS", help="All words, in id, title, path or address."),
    ] = None
    run_id: Annotated[str | None, typer.Option(metavar="ID", help="Only of this run.")] = None

    def selection(self) -> Selection:
        from DocsToKG.ContentDownload.catalog.selection import read_selection

        def several(words: Words) -> list[str]:
            return comma_list(",".join(words or ()))

        return read_selection(
            sources=several(self.source),
            tiers=several(self.tier),
            hosts=several(self.host),
            year=self.year,
            licences=several(self.licence),
            versions=several(self.version),
            states=several(self.state),
            since=self.since,
            until=self.until,
            text=self.text,
            run_id=self.run_id,
            now=time.time(),
        )


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)


def parse_size(text: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a size; write it like 500MB or 2GB")
    if float(match[1]) == 0:
        raise typer.BadParameter("a limit of zero leaves nothing to download")
    return int(float(match[1]) * 1000 ** ["", "k", "m", "g", "t"].index(match[2].lower()))
