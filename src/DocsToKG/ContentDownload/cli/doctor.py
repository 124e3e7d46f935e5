"""`doctor`: look at everything that the settings name, and say what to do. A command parses, calls, prints."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption
from DocsToKG.ContentDownload.cli.tables import json_text, print_table

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.doctor.running import Answer
    from DocsToKG.core.checks import Level


def doctor(
    config: ConfigOption = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="For probes: check only what a run cannot do without; exit code 0 or 1."),
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", min=0.1, max=600.0, help="Time limit of each check.")
    ] = 10.0,
    as_json: JsonOption = False,
) -> None:
    """Check every server, folder and secret that the settings name, all at once, and say what to do.

    Exit code 0: no problem; 3: warnings; 1: something would stop a run. The checks change nothing: they roll back or
    remove what they write.

    Example: contentdownload doctor -c prod.yaml
    """
    from DocsToKG.ContentDownload.config.loader import load_config_verbose
    from DocsToKG.ContentDownload.doctor.checks import checks_for
    from DocsToKG.ContentDownload.doctor.running import look_at_all
    from DocsToKG.ContentDownload.doctor.settings import known_secrets

    loaded = load_config_verbose(config)
    secrets = known_secrets(loaded.config, os.environ)

    def hide(text: str) -> str:
        for word in secrets:
            text = text.replace(word, "***")
        return text

    checks = checks_for(loaded.config, origins=loaded.origins, environ=os.environ)
    answers = look_at_all(checks, each_s=timeout, quick=quick, hide=hide)
    worst = max(answer.worst for answer in answers)
    if as_json:
        typer.echo(json_text(_plain(answers, worst)))
    else:
        _print(answers)
    raise typer.Exit(_code(worst, quick))


def _code(worst: Level, quick: bool) -> ExitCode:
    from DocsToKG.core.checks import Level

    if worst == Level.FAILED:
        return ExitCode.FAILED
    return ExitCode.INCOMPLETE if worst == Level.WARNING and not quick else ExitCode.OK


def _plain(answers: Sequence[Answer], worst: Level) -> dict[str, Any]:
    return {
        "worst": worst.word,
        "checks": [
            {
                "check": answer.name,
                "level": answer.worst.word,
                "seconds": round(answer.seconds, 3),
                "findings": [
                    {"subject": one.subject, "level": one.level.word, "seen": one.seen, "advice": one.advice or None}
                    for one in answer.findings
                ],
            }
            for answer in answers
        ],
    }


def _print(answers: Sequence[Answer]) -> None:
    """What is seen in a table; below it, on lines that can be copied, what to do."""
    rows: list[tuple[str, ...]] = []
    loud = []
    for answer in answers:
        for place, one in enumerate(answer.findings):
            if one.level:
                loud.append(len(rows))
            rows.append((answer.name if place == 0 else "", one.subject, one.level.word, one.seen))
    print_table(("check", "what", "is", "seen"), rows, loud=loud)
    levels = [one.level.word for answer in answers for one in answer.findings]
    for answer in answers:
        for one in answer.findings:
            if one.advice:
                typer.echo(f"{one.level.word}: {answer.name}, {one.subject}: {one.advice}")
    told = ", ".join(f"{levels.count(word)} {word}" for word in ("ok", "warning", "failed") if word in levels)
    typer.echo(told or "nothing to check", err=True)
