"""How values become lines: bounded, storable, one row to a line.

Knows what hostile text can do to a record (newlines, lone surrogates, endless length, giant numbers).
Promises: the same values always give the same bytes, so that a file can be compared with the database.
"""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

import orjson

from DocsToKG.core.urls import mask_url

_TEXT_CAP = 2_000
_URL_CAP = 8_192
_ITEMS_CAP = 100
_INT_LIMIT = 2**63
_NEWLINE = orjson.Fragment(b"\n")
# JSON leaves these as they are, and readers that split lines generously would tear a line at them.
_LINE_ENDS = str.maketrans("\u0085\u2028\u2029", "   ")


def storable(text: str | None, cap: int = _TEXT_CAP) -> str | None:
    """The text as UTF-8 can hold it, cut at `cap` characters."""
    if text is None:
        return None
    plain = str(text) if len(text) <= cap else text[:cap]
    if plain.isascii():
        return plain
    return plain.encode("utf-8", "replace").decode("utf-8").translate(_LINE_ENDS)


def are_plain(texts: Iterable[str | None]) -> bool:
    """Whether `storable` would leave all of them as they are. Most rows are short and plain, and one check of all their
    texts together is cheaper than a check of each."""
    try:
        together = "".join(filter(None, texts))
    except TypeError:  # not a text
        return False
    return len(together) <= _TEXT_CAP and together.isascii()


def storable_url(url: str | None) -> str | None:
    """The URL as it may be written down: secrets masked, bounded."""
    if url is None:
        return None
    bounded = url[: 8 * _URL_CAP]
    if "?" in bounded or "@" in bounded:
        return storable(mask_url(bounded), _URL_CAP)
    return bounded if len(bounded) <= _URL_CAP and bounded.isascii() else storable(bounded, _URL_CAP)


def storable_int(number: int | None) -> int | None:
    """The number when 64 bits hold it; a server may claim any length, and what cannot be stored is unknown."""
    return int(number) if number is not None and -_INT_LIMIT <= number < _INT_LIMIT else None


def are_storable_ints(numbers: Sequence[int | None]) -> bool:
    """Whether `storable_int` would leave all of them as they are."""
    for number in numbers:
        if number is not None and not (type(number) is int and -_INT_LIMIT <= number < _INT_LIMIT):
            return False
    return True


def storable_json(items: Iterable[Any]) -> str:
    """The first items as a compact JSON array."""
    return orjson.dumps(list(islice(items, _ITEMS_CAP))).decode()


def storable_object(value: Any) -> Any:
    """Lists, mappings and what they hold, as a record can hold them."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, bool) or not isinstance(value, int | Mapping | list | tuple):
        return value
    if isinstance(value, int):
        return storable_int(value)
    if isinstance(value, Mapping):
        return {str(key): storable_object(item) for key, item in value.items()}
    return [storable_object(item) for item in value[:_ITEMS_CAP]]


def storable_object_json(value: Mapping[str, Any]) -> str:
    """The object as a record can hold it, as compact JSON. Most are short and plain, which shows in their JSON: no text
    and no list in it is longer than a record holds."""
    with contextlib.suppress(TypeError):  # what JSON does not know, or a text that UTF-8 cannot hold
        text = orjson.dumps(value)
        if len(text) <= _TEXT_CAP and text.isascii() and text.count(b",") < _ITEMS_CAP and b"\\u" not in text:
            return text.decode()
    return orjson.dumps(storable_object(value)).decode()


def json_lines(items: Iterable[Mapping[str, Any]]) -> bytes:
    """The items as JSON, each in one line. They are written with one call, since a call costs more than a line."""
    parts = [part for item in items for part in (item, _NEWLINE)]
    # An array with a newline for every second item; each line has a bracket or a comma before it and a comma behind it.
    lines = orjson.dumps(parts).split(b"\n")[:-1]
    return b"".join([line[1:-1] + b"\n" for line in lines])


def is_json_object(line: bytes) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def csv_line(values: Sequence[Any]) -> bytes:
    """One CSV row in one physical line, ended by a newline; None is empty."""
    return csv_lines([values])


def csv_lines(rows: Sequence[Sequence[Any]]) -> bytes:
    """The rows, each in one physical line."""
    if rows and (plain := _joined(rows)) is not None:
        return plain.encode()
    text = _csv(rows)
    if text.count("\n") != len(rows) or not text.replace("\n", "").isprintable():
        text = _csv([[one_line(value) if isinstance(value, str) else value for value in row] for row in rows])
    return text.encode()


def _joined(rows: Sequence[Sequence[Any]]) -> str | None:
    """The rows as the csv module would write them, where no cell needs quotes: most are so, and joining is quicker."""
    columns = len(rows[0])
    if columns < 2:
        return None
    line = ",".join(["%s"] * columns) + "\n"
    text = "".join([line % tuple(row) for row in rows])
    # A cell without a value is empty. Where a text says None as well, the count is too high.
    if (empty := text.count("None")) and empty != sum([tuple(row).count(None) for row in rows]):
        return None
    if '"' in text or (text.count(","), text.count("\n")) != (len(rows) * (columns - 1), len(rows)):
        return None
    return text.replace("None", "") if text.replace("\n", "").isprintable() else None


def one_line(text: str) -> str:
    """The text with everything that is no printable character, newlines and control codes first, made a space."""
    return "".join(char if char.isprintable() else " " for char in text)


def _csv(rows: Iterable[Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue()
