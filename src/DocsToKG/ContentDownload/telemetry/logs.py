"""The log of a run: one event per line, for people on a terminal and as JSON for everything else.

Knows how a line is made safe: secrets masked, control characters escaped, length bounded; every line names its run and
its job. Does not know what is worth saying: `job_log` does. structlog is loaded with the first line that is written, so
that a quiet run does not pay for it. Promises: a line is written whole, and no failure of the log stops a run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, Literal, TextIO

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.core.urls import mask_text

LEVELS: Mapping[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40, "off": 100}
LONGEST_VALUE = 500
LONGEST_LINE = 8_000
_MOST_FIELDS = 40
_FOR_PROGRAMS = frozenset({"workerId", "jobId", "jobType", "tenant", "leaseId"})
_MOST_ITEMS = 20

# No address, no pair of a name and a value: nothing in it that could be masked.
_PLAIN = re.compile(r"[A-Za-z0-9_.-]{0,100}")

LogFormat = Literal["auto", "human", "json"]
# Control characters, line separators of Unicode, and marks that turn the direction of what follows.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")


class Log:
    """Takes events from any thread. What is `bound` is on every line."""

    def __init__(
        self,
        stream: TextIO | io.TextIOBase,
        *,
        level: str = "warning",
        form: LogFormat = "auto",
        bound: Mapping[str, Any] | None = None,
    ) -> None:
        self._stream = stream
        self._least = LEVELS[level]
        self._is_human = form == "human" or (form == "auto" and stream.isatty())
        self._bound = {"run_id": None, "job_id": None, **(bound or {})}
        self._lock = threading.Lock()
        self._logger: Any = None

    def wants(self, level: str) -> bool:
        return LEVELS[level] >= self._least

    def say(self, level: str, event: str, **fields: Any) -> None:
        if LEVELS[level] < self._least:
            return
        with contextlib.suppress(Exception):  # a full disk or a closed terminal is no reason to stop
            getattr(self._open(), level)(event, **fields)

    def _open(self) -> Any:
        with self._lock:
            if self._logger is None:
                self._logger = self._build()
            return self._logger

    def _build(self) -> Any:
        import structlog

        colours = self._stream.isatty() and "NO_COLOR" not in os.environ
        render: Any = _as_json
        if self._is_human:
            render = structlog.dev.ConsoleRenderer(colors=colours, pad_event_to=16, sort_keys=False)
        logger = structlog.wrap_logger(
            _Lines(self._stream),
            processors=[
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                safe,
                *([_for_people] if self._is_human else []),
                render,
            ],
            wrapper_class=structlog.make_filtering_bound_logger(0),
            cache_logger_on_first_use=False,
        )
        return logger.bind(**self._bound)


class _StandardError(io.TextIOBase):
    """Whatever standard error is at the moment of writing: a progress display puts itself in its place."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return sys.stderr.isatty()


class _Lines:
    """Writes each line in one piece, whatever its level."""

    def __init__(self, stream: TextIO | io.TextIOBase) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def msg(self, line: str) -> None:
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()

    debug = info = warning = error = msg


def safe(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The event with every value masked, escaped and bounded. What does not fit into a line is left out."""
    kept: dict[str, Any] = {}
    room = LONGEST_LINE
    # The names of the run and the job stay, whatever else is said.
    first = ("timestamp", "level", "event", "run_id", "job_id")
    ordered = [key for key in first if key in event] + [key for key in event if key not in first]
    for key in ordered:
        value = _plain(event[key])
        room -= len(str(key)) + 6 * len(str(value)) + 8 if isinstance(value, str) else len(str(value)) + 40
        if key not in first and (room < 0 or len(kept) >= _MOST_FIELDS):
            kept["left_out"] = True
            continue
        kept[clean(str(key))[:60]] = value
    return kept


def clean(text: str) -> str:
    """The text in one line, without secrets and without anything that acts on a terminal."""
    if _PLAIN.fullmatch(text):  # most values are one word of ours
        return text
    shown = _UNSAFE.sub(_escaped, mask_text(text[: 4 * LONGEST_VALUE]))
    return shown if len(shown) <= LONGEST_VALUE else shown[:LONGEST_VALUE] + "..."


def _escaped(match: re.Match[str]) -> str:
    number = ord(match[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in list(value)[:_MOST_ITEMS]]
    if isinstance(value, Mapping):
        return {clean(str(key)): _plain(item) for key, item in list(value.items())[:_MOST_ITEMS]}
    return clean(str(value))


def _for_people(logger: Any, method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The time of day, what happened, and of the names only those of the run and the job, at the end."""
    shown = {key: value for key, value in event.items() if key not in _FOR_PROGRAMS}
    shown["timestamp"] = str(event["timestamp"])[11:19]
    for name in ("job_id", "run_id"):
        if (value := shown.pop(name, None)) is not None:
            shown[name] = value
    return shown


def _as_json(logger: Any, method: str, event: MutableMapping[str, Any]) -> str:
    import orjson

    return orjson.dumps(dict(event), default=str).decode()


@contextlib.contextmanager
def open_log(
    *, level: str, form: LogFormat, path: Path | None, bound: Mapping[str, Any] | None = None
) -> Iterator[Log]:
    """The log of this process: into the file, which several processes may share, or to standard error."""
    if path is None:
        yield Log(_StandardError(), level=level, form=form, bound=bound)
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"telemetry.log_file: {path} cannot be written: {error.strerror or error}") from None
    with file:
        yield Log(file, level=level, form=form, bound=bound)
