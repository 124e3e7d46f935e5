"""What every command does when something goes wrong, and which exit code it leaves.

Translates our errors and Ctrl+C, once, for both command lines; lost output is `core.streams`' business. Promises: one
message on standard error, no traceback unless `--debug` was given, no value that could be a secret.
"""

from __future__ import annotations

import errno
import os
import traceback
from enum import IntEnum
from typing import Any

import typer
from typer.core import TyperGroup

from DocsToKG.core import streams


class ExitCode(IntEnum):
    OK = 0
    FAILED = 1  # the run failed, or what was given is invalid
    USAGE = 2  # wrong command, option or input
    INCOMPLETE = 3  # the run ended well, some works were not obtained
    GATES = 4  # a service level was missed
    INTERRUPTED = 130  # Ctrl+C, as the shell writes it
    CLOSED_PIPE = streams.CLOSED_PIPE  # the reader of our output went away


EXIT_CODES_HELP = (
    "Exit codes: 0 ok, 1 failed or invalid, 2 wrong usage, 3 some works not obtained, 4 a service level missed, "
    "130 interrupted."
)


class CommandGroup(TyperGroup):
    """A group whose commands fail politely."""

    def main(self, *args: Any, **options: Any) -> Any:
        with streams.heard():
            return super().main(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        # Only the outermost group speaks; inner groups let the error pass.
        if ctx.parent is not None:
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # for whoever sees to the streams
            raise
        except KeyboardInterrupt:
            typer.echo("Interrupted.", err=True)
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except Exception as error:
            code = _explain(error, debug=_debug(ctx))
            if code is None:
                raise
            raise typer.Exit(code) from None


def _explain(error: Exception, *, debug: bool) -> ExitCode | None:
    """Say what went wrong; None when it is the command framework's own business."""
    from DocsToKG.ContentDownload.errors import InputError

    if type(error).__module__.partition(".")[0] in ("typer", "click"):
        return None
    if debug:
        typer.echo("".join(traceback.format_exception(error)), err=True, nl=False)
    elif type(error).__module__.startswith("DocsToKG."):
        typer.echo(f"Error: {error}", err=True)
    elif isinstance(error, OSError):
        typer.echo(f"Error: {_system_trouble(error)}", err=True)
    else:
        # The text of an unforeseen error may hold anything, so only its kind is shown.
        typer.echo(f"Error: unexpected {type(error).__name__}. Run again with --debug to see where.", err=True)
    return ExitCode.USAGE if isinstance(error, InputError) else ExitCode.FAILED


_WAYS_OUT = {
    errno.EACCES: "check who may read and write there, or name another place",
    errno.EPERM: "check who may read and write there, or name another place",
    errno.EROFS: "name a place that can be written",
    errno.ENOSPC: "make room, then run the same command again",
    errno.EDQUOT: "make room, then run the same command again",
    errno.ENOENT: "check the path",
    errno.ENOTDIR: "a part of the path is a file; check the path",
    errno.EISDIR: "it is a folder; name a file",
    errno.EEXIST: "name another place",
    errno.ENAMETOOLONG: "name a shorter path",
    errno.EMFILE: "allow more open files with `ulimit -n 4096`, or use fewer --workers",
    errno.ENFILE: "close other programs, or use fewer --workers",
    errno.EIO: "the disk does not answer as it should; check it, then run the same command again",
    errno.EADDRINUSE: "another program has that port; choose another",
}


def _system_trouble(error: OSError) -> str:
    """What the system says, of which file, and the way out."""
    said = (error.strerror or str(error) or type(error).__name__).rstrip(".")
    where = f"{os.fsdecode(error.filename)}: " if isinstance(error.filename, str | bytes) else ""
    return f"{where}{said}; {_WAYS_OUT.get(error.errno or 0, 'run again with --debug before the command to see where')}"


def _debug(ctx: Any) -> bool:
    return bool(ctx.params.get("debug"))
