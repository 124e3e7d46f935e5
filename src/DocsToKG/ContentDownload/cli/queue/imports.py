"""`queue enqueue` and `queue import`: works into the queue, one or a file of any length.

Promises: what is usable is queued whatever else the input holds; what is not is named with its line; long inputs say
how far they are.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption
from DocsToKG.ContentDownload.cli.queue.opening import open_queue
from DocsToKG.ContentDownload.cli.tables import Occasionally, printable

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.inputs.queue_lines import QueueLine

_SHOWN_PROBLEMS = 20
_CHUNK = 2000
SAY_EVERY_S = 2.0


def enqueue(
    artifact_id: Annotated[str | None, typer.Argument(metavar="[ID]", help="One work, by identifier.")] = None,
    body: Annotated[str | None, typer.Argument(metavar="[JSON]", help="What is known about the work, as JSON.")] = None,
    input_file: Annotated[
        str | None,
        typer.Option("--input", "-i", metavar="FILE", help="A JSON object per line; - reads standard input."),
    ] = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add works to the queue: one by ID, or many from a file. Works that are already queued stay as they are.

    Example: contentdownload queue enqueue 10.1371/journal.pone.0262026 -c corpus.yaml
    """
    if (artifact_id is None) == (input_file is None):
        raise typer.BadParameter("give either an ID (with an optional JSON body) or -i FILE")
    if input_file is not None:
        import_(input_file, config, as_json)
    else:
        _import([_given_line(str(artifact_id), body)], ImportProgress(), config, as_json)


def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A JSON object per line; - reads standard input.")],
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add every work of a JSONL file. The command reports lines that it cannot use, and queues the others.

    Example: contentdownload queue import works.jsonl -c corpus.yaml
    """
    from DocsToKG.ContentDownload.inputs.queue_lines import read_lines

    with _opened(file) as stream:
        _import(read_lines(stream), ImportProgress(stream), config, as_json)


@contextmanager
def _opened(file: str) -> Iterator[BinaryIO]:
    if file == "-":
        yield sys.stdin.buffer
        return
    try:
        stream = open(file, "rb")  # noqa: SIM115 - what is read from it must not be taken for its opening
    except OSError as error:
        from DocsToKG.ContentDownload.errors import InputError

        way_out = "give a JSONL file, or - for standard input"
        raise InputError(f"{file} cannot be read: {error.strerror}; {way_out}") from None
    with stream:
        yield stream


def _import(lines: Iterable[QueueLine], progress: ImportProgress, config: str | None, as_json: bool) -> None:
    """Enqueue what is usable and say what is not; anything unusable makes the command fail at its end."""
    from DocsToKG.ContentDownload.errors import InputError

    rest, good, new = iter(lines), 0, 0
    with open_queue(config) as queue:
        while chunk := list(islice(rest, _CHUNK)):
            usable = [line for line in chunk if line.artifact is not None]
            new += queue.bulk_import((line.artifact_id, line.artifact or {}, line.resolver_hint) for line in usable)
            good += len(usable)
            progress.update(chunk)
    counts = {"new": new, "present": good - new, "invalid": progress.bad}
    typer.echo(json.dumps(counts) if as_json else f"{new} new, {good - new} already present")
    if progress.bad > _SHOWN_PROBLEMS:
        typer.echo(f"... and {progress.bad - _SHOWN_PROBLEMS} more lines like these", err=True)
    if progress.bad:
        lines_were = "line was" if progress.bad == 1 else "lines were"
        raise InputError(f"{progress.bad} {lines_were} not usable; {'the others are' if good else 'nothing is'} queued")


@dataclass(slots=True)
class ImportProgress:
    """Prints what is wrong with the first bad lines, and now and then how far a long input is read."""

    stream: BinaryIO | None = None
    bad: int = 0
    _say: Occasionally = field(default_factory=lambda: Occasionally(at_once=False, every_s=SAY_EVERY_S))

    def update(self, chunk: list[QueueLine]) -> None:
        for line in chunk:
            if line.problem is not None:
                self.bad += 1
                if self.bad <= _SHOWN_PROBLEMS:
                    typer.echo(f"line {line.number}: {printable(line.problem)}", err=True)
        self._say(f"line {chunk[-1].number}{self._share()} ...")

    def _share(self) -> str:
        """The share of a file that is read; empty for a pipe, whose length is unknown."""
        try:
            if self.stream is None or not self.stream.seekable():
                return ""
            return f", {100 * self.stream.tell() // max(1, os.fstat(self.stream.fileno()).st_size)} %"
        except (OSError, ValueError):
            return ""


def _given_line(artifact_id: str, body: str | None) -> QueueLine:
    from DocsToKG.ContentDownload.inputs.queue_lines import QueueLine, named_work

    try:
        known = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        known = None
    if not isinstance(known, dict):
        raise typer.BadParameter('the body must be a JSON object, like \'{"title": "A paper"}\'')
    return QueueLine(1, *named_work(artifact_id, known))
