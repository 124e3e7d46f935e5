"""`queue stats`: how many jobs are in each state; with `--watch` again and again, with the rate and the time left.

On a terminal the table is drawn over the last one; elsewhere each look is a plain line. Ctrl+C is how a watch ends.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption
from DocsToKG.ContentDownload.cli.queue.opening import open_queue
from DocsToKG.ContentDownload.cli.tables import new_table, print_table, span_text

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.ledger.base import Ledger

_WINDOW_S = 60.0
_MOST_HELD = 10_000
_OPEN = ("queued", "pending", "in_progress")
_ENDED = ("done", "skipped", "error", "canceled", "timed_out")
_PAUSED = "The queue is paused; `queue resume` continues."


def stats(
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Repeat until Ctrl+C.")] = False,
    every: Annotated[
        float,
        typer.Option("--every", metavar="SECONDS", min=0.1, max=3600.0, help="Time between two updates of --watch."),
    ] = 2.0,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how many jobs are in each state; with --watch also how fast they end and how long the rest takes.

    Example: contentdownload queue stats --watch -c corpus.yaml
    """
    with open_queue(config, must_exist=True) as queue:

        def look() -> Look:
            return Look(queue.stats(), queue.ledger.is_paused(), held_by_nodes(queue.ledger))

        if watch:
            _watch(look, every, as_json)
            return
        seen = look()
    if as_json:
        typer.echo(json.dumps({**seen.counts, "paused": seen.paused, "nodes": seen.nodes}))
        return
    print_table(("state", "jobs"), _rows(seen))
    if seen.nodes:
        print_table(("node", "jobs held"), [(node, str(count)) for node, count in seen.nodes.items()])
    if seen.paused:
        typer.echo(_PAUSED, err=True)


@dataclass(frozen=True, slots=True)
class Look:
    """The queue at one moment."""

    counts: Mapping[str, int]
    paused: bool
    nodes: Mapping[str, int] = field(default_factory=dict)  # jobs that each holds, running and waiting ones

    @property
    def left(self) -> int:
        return sum(self.counts[state] for state in _OPEN)

    @property
    def ended(self) -> int:
        return sum(self.counts[state] for state in _ENDED)


def held_by_nodes(ledger: Ledger) -> dict[str, int]:
    """How many jobs each node holds, by name; workers that name no node are left out. Read from the jobs themselves,
    so of very many only the first."""
    from DocsToKG.core.ids import node_of
    from DocsToKG.Orchestrator.ledger.base import JobState

    held = ledger.list_jobs(JobState.IN_PROGRESS, limit=_MOST_HELD)
    return dict(sorted(Counter(node for job in held if (node := node_of(job.worker_id)) is not None).items()))


@dataclass(slots=True)
class Pace:
    """How many jobs end in a second, over the last minute of looks."""

    _looks: deque[tuple[float, int]] = field(default_factory=deque)

    def see(self, now: float, ended: int) -> float | None:
        """Jobs a second; None before there are two looks. Failed jobs that were queued again are no pace."""
        if self._looks and ended < self._looks[-1][1]:
            self._looks.clear()
        self._looks.append((now, ended))
        while now - self._looks[0][0] > _WINDOW_S and len(self._looks) > 2:
            self._looks.popleft()
        seconds = now - self._looks[0][0]
        return (ended - self._looks[0][1]) / seconds if seconds > 0 else None


def _watch(look: Callable[[], Look], every_s: float, as_json: bool) -> None:
    pace = Pace()
    with _Shown(as_json) as shown:
        try:
            while True:
                seen = look()
                shown.update(seen, pace.see(time.monotonic(), seen.ended))
                time.sleep(every_s)
        except KeyboardInterrupt:
            return


class _Shown:
    """The looks as a person or a program sees them."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._live: Any = None

    def __enter__(self) -> _Shown:
        if not self._as_json and sys.stdout.isatty():
            from rich.live import Live

            self._live = Live(auto_refresh=False)
            self._live.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        if self._live is not None:
            self._live.__exit__(*exc_info)

    def update(self, seen: Look, rate: float | None) -> None:
        left_s = seen.left / rate if rate else None
        if self._as_json:
            figures = {
                **seen.counts,
                "paused": seen.paused,
                "nodes": seen.nodes,
                "jobs_per_s": rate,
                "seconds_left": left_s,
            }
            typer.echo(json.dumps(figures))
        elif self._live is None:
            typer.echo(line_of(seen, rate))
        else:
            nodes = [(f"held by {node}", str(count)) for node, count in seen.nodes.items()]
            rows = [*_rows(seen), *nodes, ("ended a second", _rate(rate)), ("time left", _time_left(seen, rate))]
            self._live.update(new_table(("state", "jobs"), rows), refresh=True)
            return
        sys.stdout.flush()


def _rows(seen: Look) -> list[tuple[str, str]]:
    return [(state, str(count)) for state, count in seen.counts.items() if state != "leased"]


def line_of(seen: Look, rate: float | None) -> str:
    counts = ", ".join(f"{state} {seen.counts[state]}" for state in (*_OPEN, *_ENDED) if seen.counts[state])
    return f"{counts or 'empty'}; {_rate(rate)}/s, {_time_left(seen, rate)}"


def _rate(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1f}"


def _time_left(seen: Look, rate: float | None) -> str:
    """At the pace of the last minute, which says nothing about jobs that wait for a later time."""
    if not seen.left:
        return "nothing left to do"
    if seen.paused:
        return "paused"
    return f"{span_text(seen.left / rate)} left" if rate else "time left unknown"
