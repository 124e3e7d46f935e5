"""Exit codes, and the group that gives them to errors."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from DocsToKG.core import streams
from DocsToKG.Orchestrator.cli import options as command_line


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1  # the run failed, or what was given is invalid
    USAGE = 2  # wrong command, option or input
    INCOMPLETE = 3  # the run ended well, some works were not obtained
    GATES = 4  # a service level was missed
    INTERRUPTED = command_line.INTERRUPTED  # Ctrl+C
    CLOSED_PIPE = streams.CLOSED_PIPE  # the reader of our output went away


EXIT_CODES_HELP = (
    "Exit codes: 0 ok, 1 failed or invalid, 2 wrong usage, 3 some works not obtained, 4 a service level missed, "
    "130 interrupted."
)


class CommandGroup(command_line.CommandGroup):
    """A group of commands; what was given wrongly is wrong usage."""

    title: ClassVar[str] = "ContentDownload"
    shown_errors: ClassVar[tuple[type[Exception], ...]] = ()

    def exit_code(self, error: Exception) -> int:
        from DocsToKG.ContentDownload.errors import InputError

        return ExitCode.USAGE if isinstance(error, InputError) else ExitCode.FAILED
