"""Open the configured queue for a command, and find the jobs that a command line names.

A job is named by its number or by the id of its work. Promises: a command that only reads creates no queue, and an
error names what was not found and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from DocsToKG.Orchestrator.cli.options import CommandFailed

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.orchestrator.models import JobState
    from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
    from DocsToKG.Orchestrator.ledger.base import JobRecord, Ledger

_NUMBER = re.compile(r"[0-9]{1,18}")


@contextmanager
def open_queue(
    config: str | None, *, must_exist: bool = False, changes: Mapping[str, Any] | None = None
) -> Iterator[WorkQueue]:
    """The queue of the settings, with `changes` of the command line; with `must_exist` one that is missing ends it."""
    from DocsToKG.ContentDownload.config import load_config
    from DocsToKG.ContentDownload.orchestrator.queue import configured_queue

    cfg = load_config(config, changes)
    if must_exist and cfg.queue.is_file and not Path(cfg.queue.path).is_file():
        raise CommandFailed(
            f"there is no queue at {cfg.queue.path}; `queue import FILE` or `queue enqueue ID` makes it, "
            "and -c names other settings"
        )
    with configured_queue(cfg.queue, max_attempts=cfg.orchestrator.max_job_attempts) as queue:
        yield queue


def find_job(ledger: Ledger, name: str) -> JobRecord:
    """The job of a number (`17`) or of a work (`doi:10.1371/...`, also in other spellings)."""
    from DocsToKG.Orchestrator.errors import UnknownJob

    if _NUMBER.fullmatch(name):
        try:
            return ledger.job(int(name))
        except UnknownJob:
            raise CommandFailed(f"there is no job {name}; `queue list` shows the numbers") from None
    for artifact_id in _artifact_ids(name):
        found = ledger.find(artifact_id)
        if found is not None:
            return found
    raise CommandFailed(f"there is no job for {name[:200]}; `queue enqueue` adds one, `queue list` shows all jobs")


def find_jobs(ledger: Ledger, names: Iterable[str]) -> list[JobRecord]:
    """Every job that is named, each once. All are found before anything is done."""
    return list({job.job_id: job for job in (find_job(ledger, name) for name in names)}.values())


def _artifact_ids(name: str) -> list[str]:
    """As it was given, and as the queue would spell it."""
    from DocsToKG.ContentDownload.inputs.queue_lines import named_work

    return list(dict.fromkeys([name, named_work(name, {})[0]]))


def job_state(word: str | None) -> JobState | None:
    from DocsToKG.ContentDownload.orchestrator.models import JobState

    if word is None:
        return None
    try:
        return JobState("in_progress" if word == "leased" else word)
    except ValueError:
        raise typer.BadParameter(f"{word[:40]!r} is not a state; use one of {', '.join(JobState)}") from None
