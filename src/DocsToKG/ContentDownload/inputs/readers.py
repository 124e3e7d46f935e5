"""Read what the user gave: identifiers, files and standard input, entry by entry and in order.

Promises: one `InputLine` per entry; an entry that cannot be read has a problem that says why and never
stops the rest; the second mention of a work is marked with the first. Streams: no file is held in memory, except a JSON
document, which is capped.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.inputs.entries import Entry, entry_of_mapping, without_marker, work_of_entry
from DocsToKG.ContentDownload.inputs.jsonl import entry_of_line, is_json, opens_json, read_document, read_jsonl
from DocsToKG.ContentDownload.inputs.lines import Line, TextSource, looks_binary, mend, open_text
from DocsToKG.ContentDownload.inputs.tables import is_header, read_table
from DocsToKG.ContentDownload.resolvers.ids.identifier import BadIdentifier
from DocsToKG.core.urls import mask_text

_MAX_DOCUMENT_CHARS = 32 * 1024 * 1024
_MAX_SHOWN_CHARS = 2000
_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".bib": "bibtex",
    ".bibtex": "bibtex",
    ".ris": "ris",
}
_FILE_NAME = re.compile(r".*\.(?:txt|csv|tsv|tab|jsonl?|ndjson|bib|bibtex|ris|ids|lst|list|md|xlsx?)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class InputLine:
    """One entry as given. Exactly one of `work` and `problem` is set.

    `line_no` counts in `source` (a file, `-`, or `arguments`); `duplicate_of` is the line of the first mention, in
    `duplicate_source`.
    """

    line_no: int
    source: str
    text: str
    work: WorkArtifact | None = None
    problem: str | None = None
    duplicate_of: int | None = None
    duplicate_source: str | None = None


def read_inputs(sources: Sequence[str], *, stdin: IO[bytes] | IO[str]) -> Iterator[InputLine]:
    """The entries of identifiers, file paths and `-`, in order. A file that is not there is an `InputError` at once."""
    parts = [_part(number, source, stdin) for number, source in enumerate(sources, start=1)]
    return _mark_duplicates(line for part in parts for line in part())


def coerce_works(items: Iterable[str | Mapping[str, object] | WorkArtifact]) -> Iterator[InputLine]:
    """The same for values of a program: identifiers, mappings and works, mixed, from any iterable."""
    return _mark_duplicates(_coerced(number, item) for number, item in enumerate(items, start=1))


def _coerced(number: int, item: object) -> InputLine:
    if isinstance(item, WorkArtifact):
        return InputLine(number, "arguments", mask_text(item.work_id)[:_MAX_SHOWN_CHARS], work=item)
    if isinstance(item, str):
        return _line(Entry(number, item), "arguments")
    if isinstance(item, Mapping):
        return _line(entry_of_mapping(number, mask_text(str(dict(item)))[:200], item), "arguments")
    problem = f"a {type(item).__name__} names no work; give an identifier, a mapping or a WorkArtifact"
    return InputLine(number, "arguments", mask_text(repr(item))[:200], problem=problem)


def _part(number: int, source: str, stdin: IO[bytes] | IO[str]) -> Callable[[], Iterator[InputLine]]:
    if source == "-":
        return lambda: _read_stream(stdin, "-", suffix="")
    if not source:  # else it would be the folder that one stands in
        raise InputError("a word is empty, as a variable without a value leaves it; give an identifier or a file")
    path = Path(source)
    if _exists(path):
        _check_file(path)
        return lambda: _read_file(path)
    line = _line(Entry(number, source), "arguments")
    if line.problem is not None and _looks_like_a_file(source):
        raise InputError(f"no such file: {mask_text(source)}; check the path, or give an identifier")
    if line.problem is not None:
        line = replace(line, problem=f"{line.problem}; nor is it a file")
    return lambda: iter((line,))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # too long or with a NUL: no path
        return False


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a directory; give a file in it, such as {path / 'ids.txt'}")
    if not os.access(path, os.R_OK):
        raise InputError(f"{path} cannot be read; check its permissions")


def _looks_like_a_file(source: str) -> bool:
    return source.startswith(("/", "./", "../", "~")) or _FILE_NAME.fullmatch(source) is not None


def _read_file(path: Path) -> Iterator[InputLine]:
    try:
        with path.open("rb") as stream:
            yield from _read_stream(stream, _shown(path), suffix=path.suffix.lower())
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from error


def _shown(path: Path) -> str:
    """The name of the file as the record can hold it: bytes that are not UTF-8 are written as `\\xe9`."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def _read_stream(stream: IO[bytes] | IO[str], name: str, *, suffix: str) -> Iterator[InputLine]:
    with open_text(stream) as source:
        kind = looks_binary(source.raw_head)
        if kind is not None:
            raise InputError(f"{name} is {kind}, not a list; export it as CSV or as one identifier per line")
        for entry in _entries(source, _BY_SUFFIX.get(suffix), name):
            yield _line(entry, name)


def sniff(head: str) -> str:
    """The format of a text by its beginning. `json` is a guess that only the whole text can prove."""
    first = _first_line(head)
    if first.startswith("{") and is_json(first):
        return "jsonl"
    if opens_json(first):
        return "json"
    if re.match(r"[%@]\s*\w+\s*[{(]", first) or re.search(r"^@\w+\s*[{(]", head, re.MULTILINE):
        return "bibtex"
    if re.match(r"TY\s{1,2}-", first):
        return "ris"
    return "csv" if "\t" in first or is_header(first) else "text"


def _first_line(text: str) -> str:
    lines = (match[0].strip() for match in re.finditer(r"[^\r\n]+", text))
    return next((line for line in lines if line and not line.startswith("#")), "")


def _entries(source: TextSource, named: str | None, name: str) -> Iterator[Entry]:
    """`named` is the format that the name of the file tells, if any."""
    kind = named or sniff(source.head)
    if kind == "json":
        return _read_json(source, name, is_named=named is not None)
    if kind == "bibtex":
        from DocsToKG.ContentDownload.inputs.bibtex import read_bibtex

        return read_bibtex(source.lines())
    if kind == "ris":
        from DocsToKG.ContentDownload.inputs.ris import read_ris

        return read_ris(source.lines())
    readers: dict[str, Callable[[Iterable[Line]], Iterator[Entry]]] = {
        "csv": read_table,
        "tsv": lambda lines: read_table(lines, delimiter="\t"),
        "jsonl": read_jsonl,
    }
    return readers.get(kind, _read_list)(source.lines())


def _read_json(source: TextSource, name: str, *, is_named: bool) -> Iterator[Entry]:
    """A document; else one value per line when the first line is one; else a list that merely begins like JSON."""
    if sniff(source.head) == "jsonl":
        return read_jsonl(source.lines())
    held = source.held(_MAX_DOCUMENT_CHARS)
    if held is None:
        raise InputError(f"{name} is larger than 32 MiB; write one object per line (.jsonl) instead")
    text = mend(held.head)
    if is_json(text):
        return read_document(text)
    if entry_of_line(Line(1, _first_line(text))) is not None:
        return read_jsonl(held.lines())
    return read_document(text) if is_named else _read_list(held.lines())


def _read_list(lines: Iterable[Line]) -> Iterator[Entry]:
    """One identifier per line. DOIs may hold a `#`, so a comment begins at the start of a line or after a blank."""
    for line in lines:
        if line.too_long:
            yield Entry(line.number, "", problem="the line is longer than 64 KiB; write one identifier per line")
            continue
        entry = entry_of_line(line)
        text = re.split(r"(?:^|\s)#", line.text, maxsplit=1)[0].strip()
        if entry is not None:
            yield entry
        elif text:
            yield Entry(line.number, without_marker(text))


def _line(entry: Entry, source: str) -> InputLine:
    # The text goes into the run's record, where a password or key of a URL must not be.
    text = mask_text(entry.text.replace("\0", "\ufffd"))[:_MAX_SHOWN_CHARS]
    if entry.problem is not None:
        return InputLine(entry.line_no, source, text, problem=mask_text(entry.problem))
    try:
        return InputLine(entry.line_no, source, text, work=work_of_entry(entry))
    except BadIdentifier as problem:
        return InputLine(entry.line_no, source, text, problem=mask_text(str(problem)))


def _mark_duplicates(lines: Iterable[InputLine]) -> Iterator[InputLine]:
    first: dict[str, tuple[int, str]] = {}
    for line in lines:
        if line.work is not None:
            earlier = first.get(line.work.work_id)
            if earlier is None:
                first[line.work.work_id] = (line.line_no, line.source)
            else:
                line = replace(line, duplicate_of=earlier[0], duplicate_source=earlier[1])
        yield line
