"""Progress of a run: a live display on a terminal, a plain line every ten seconds elsewhere.

The display is a bar and three lines, each cut to the width of the terminal rather than wrapped.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from DocsToKG.ContentDownload.cli.tables import printable, size_text

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.runner import RunStatus

_QUIET_EVERY_S = 10.0
_BEGUN_S = 5.0  # by then work has begun, if it can
_LATER = (
    "papers that are retried later (--patience); content doctor checks the network; "
    "after Ctrl+C, content resume continues"
)

Watch = Callable[["RunStatus"], None]


class Progress:
    """`with Progress(...) as watch`: `watch(status)` shows the status."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._began = time.monotonic()
        self._live: AbstractContextManager[Any] = nullcontext()

    def __enter__(self) -> Watch | None:
        if self._quiet:
            return None
        if not sys.stderr.isatty():
            return _Lines(self._began)
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), refresh_per_second=8, transient=True)
        live = self._live.__enter__()
        return lambda status: live.update(panel_of(status, time.monotonic() - self._began))

    def __exit__(self, *exc_info: Any) -> None:
        self._live.__exit__(*exc_info)


class _Lines:
    """Progress for a log file: one line at the first look, then one every ten seconds."""

    def __init__(self, began: float) -> None:
        self._began = began
        self._next = 0.0

    def __call__(self, status: RunStatus) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _QUIET_EVERY_S
            print(line_of(status, now - self._began), file=sys.stderr, flush=True)


def panel_of(status: RunStatus, elapsed_s: float) -> Any:
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    # A bar ends no line by itself; as a row of a grid it does, and the grid gives every row the console's width.
    rows = Table.grid(expand=True)
    rows.add_column(no_wrap=True, overflow="ellipsis")
    rows.add_row(ProgressBar(total=max(1, status.total), completed=status.total - status.left))
    rows.add_row(Text(_counts(status)))
    rows.add_row(Text(_speed(status, elapsed_s)))
    rows.add_row(Text(_waiting(status, elapsed_s), style="dim"))
    return rows


def line_of(status: RunStatus, elapsed_s: float) -> str:
    named = _named(status, 2) if status.waits else _LATER if _only_later(status, elapsed_s) else ""
    waits = f" · waiting for: {named}" if named else ""
    return f"{_counts(status)} · {_speed(status, elapsed_s)}{waits}"


def _counts(status: RunStatus) -> str:
    return " · ".join(
        (
            f"{status.total - status.left}/{status.total}",
            f"{status.done} done",
            f"{status.present + status.skipped} skipped",
            f"{status.failed} failed",
        )
    )


def _speed(status: RunStatus, elapsed_s: float) -> str:
    ended = status.done + status.skipped + status.failed
    rate = ended / elapsed_s if elapsed_s > 0 else 0.0
    bytes_rate = status.bytes / elapsed_s if elapsed_s > 0 else 0.0
    return f"{size_text(status.bytes)} · {rate:.1f}/s, {size_text(bytes_rate)}/s · {_time_left(status, rate)}"


def _time_left(status: RunStatus, rate: float) -> str:
    """The time the rest takes at the rate so far, which says nothing about works that only wait."""
    if status.left and not status.active and (status.waits or rate > 0):
        return "waiting"
    return f"{_span(max(1.0, status.left / rate))} left" if rate > 0 and status.left else "-"


def _only_later(status: RunStatus, elapsed_s: float) -> bool:
    """Whether the rest can only go on at a later time: without the network, a run looks idle and is not."""
    return bool(status.left and not status.active and not status.waits and elapsed_s > _BEGUN_S)


def _waiting(status: RunStatus, elapsed_s: float) -> str:
    if _only_later(status, elapsed_s):
        return f"waiting for: {_LATER}"
    if not status.waits:
        return f"{status.active} in progress" if status.active else "waiting" if status.left else "finishing"
    return f"{status.active} in progress; waiting for: {_named(status, 3)}"


def _named(status: RunStatus, most: int) -> str:
    return ", ".join(f"{printable(why)} ({count})" for why, count in list(status.waits.items())[:most])


def _span(seconds: float) -> str:
    minutes, secs = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{secs:02d}" if hours else f"{minutes}:{secs:02d}"
