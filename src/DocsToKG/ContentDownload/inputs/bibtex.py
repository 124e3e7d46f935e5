"""BibTeX: doi, eprint, pmcid, pmid and url name the paper, title and year describe it.

Reads entry by entry with bounded memory: nested braces, quotes, `#` and `@string` are understood, a broken
entry is reported and the next one read. No TeX is run; escapes and accents are undone as far as names need it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from DocsToKG.ContentDownload.inputs.entries import Entry
from DocsToKG.ContentDownload.inputs.lines import Line
from DocsToKG.core.urls import mask_text

_MAX_ENTRY_CHARS = 256 * 1024
_MAX_MACROS = 10_000
_START = re.compile(r"@\s*([A-Za-z]{1,40})\s*([{(])")
_FIELD = re.compile(r"[\s,]*([A-Za-z][\w:.+/-]{0,60})\s*=\s*")
_KINDS = {
    "doi": "doi",
    "pmcid": "pmcid",
    "pmc": "pmcid",
    "pmid": "pmid",
    "url": "url",
    "howpublished": "url",
    "title": "title",
    "year": "year",
    "date": "year",
}
_ACCENTS = {"'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "c": "\u0327", "v": "\u030c"}
_ACCENT = re.compile(r"\\(?:(['`^\"~])\s*|([cv])\s+|([cv])(?=\{))\{?\\?([A-Za-z])\}?")
_COMMANDS = {"\\textless": "<", "\\textgreater": ">", "\\&": "&", "\\_": "_", "\\%": "%", "\\#": "#", "\\$": "$"}


def read_bibtex(lines: Iterable[Line]) -> Iterator[Entry]:
    macros: dict[str, str] = {}
    for block in _blocks(lines):
        if block.problem is not None:
            yield Entry(block.number, mask_text(block.text)[:80], problem=block.problem)
        elif block.kind == "string":
            if len(macros) < _MAX_MACROS:
                macros.update(_fields(block.text, macros))
        elif block.kind not in ("comment", "preamble"):
            yield _entry(block, macros)


class _Block:
    """The text of one `@kind{...}`, without its outer brackets once it is closed."""

    def __init__(self, number: int, kind: str, closer: str) -> None:
        self.number = number
        self.kind = kind
        self.problem: str | None = None
        self._closer = closer
        self._depth = 0
        self._parts: list[str] = []
        self._size = 0

    @property
    def text(self) -> str:
        return "".join(self._parts)

    @property
    def is_too_long(self) -> bool:
        return self._size > _MAX_ENTRY_CHARS

    def take(self, text: str) -> str | None:
        """Read on; the rest of the line once the block is closed, None while it is open."""
        for match in re.finditer(r"[{})]", text):
            sign = match[0]
            if self._depth == 0 and sign == self._closer:
                self._keep(text[: match.start()])
                return text[match.end() :]
            if sign != ")":
                self._depth = max(0, self._depth + (1 if sign == "{" else -1))
        self._keep(text + "\n")
        return None

    def _keep(self, text: str) -> None:
        self._size += len(text)
        if not self.is_too_long:
            self._parts.append(text)


def _blocks(lines: Iterable[Line]) -> Iterator[_Block]:
    block: _Block | None = None
    for line in lines:
        if block is None and line.text.lstrip().startswith("%"):
            continue
        rest: str | None = line.text
        while rest is not None:
            start = _START.match(rest.lstrip()) if block is not None else _START.search(rest)
            if start is not None:
                if block is not None:
                    # An entry that begins a line inside another: the other was never closed.
                    block.problem = "the entry is not closed; check its braces"
                    yield block
                    rest = rest.lstrip()
                block = _Block(line.number, start[1].lower(), "}" if start[2] == "{" else ")")
                rest = rest[start.end() :]
            if block is None:
                break
            rest = block.take(rest)
            if rest is not None:
                if block.is_too_long:
                    block.problem = "the entry is longer than 256 KiB; shorten it"
                yield block
                block = None
    if block is not None:
        block.problem = "the entry is not closed; check its braces"
        yield block


def _entry(block: _Block, macros: dict[str, str]) -> Entry:
    key, _, body = block.text.partition(",")
    values = _fields(body, macros)
    fields: dict[str, list[str]] = {}
    for name, value in values.items():
        if name in _KINDS and value:
            fields.setdefault(_KINDS[name], []).append(value)
    _add_eprint(fields, values)
    if "url" in fields and len(fields) > 1:
        fields["url"] = [url for url in fields["url"] if url.startswith("http")]
    return Entry(block.number, key.strip()[:200] or f"@{block.kind}", fields)


def _add_eprint(fields: dict[str, list[str]], values: dict[str, str]) -> None:
    archive = (values.get("archiveprefix") or values.get("eprinttype") or "arxiv").lower()
    kind = {"arxiv": "arxiv", "pubmed": "pmid", "pmcid": "pmcid", "pmc": "pmcid"}.get(archive)
    if kind is not None and values.get("eprint"):
        fields.setdefault(kind, []).append(values["eprint"])


def _fields(body: str, macros: dict[str, str]) -> dict[str, str]:
    """Names in lower case to values without TeX; what cannot be read up to the next comma is passed over."""
    found: dict[str, str] = {}
    position = 0
    while position < len(body):
        match = _FIELD.match(body, position)
        if match is None:
            comma = body.find(",", position)
            if comma < 0:
                break
            position = comma + 1
            continue
        value, position = _value(body, match.end(), macros)
        found.setdefault(match[1].lower(), value)
    return found


def _value(body: str, position: int, macros: dict[str, str]) -> tuple[str, int]:
    """Pieces joined by `#`, each in braces, in quotes, a number or a macro."""
    pieces: list[str] = []
    while position < len(body):
        if body[position] == "{":
            end = _closing(body, position + 1, "}")
            pieces.append(_plain(body[position + 1 : end]))
            position = end + 1
        elif body[position] == '"':
            end = _closing(body, position + 1, '"')
            pieces.append(_plain(body[position + 1 : end]))
            position = end + 1
        else:
            word = re.compile(r"[^\s,#{}\"]*").match(body, position)
            name = word[0] if word is not None else ""
            pieces.append(macros.get(name.lower(), name))
            position += len(name)
        joint = re.compile(r"\s*#\s*").match(body, position)
        if joint is None:
            break
        position = joint.end()
    return "".join(pieces).strip()[:20_000], position


def _closing(body: str, position: int, closer: str) -> int:
    """Where the value that began before `position` ends; the end of the body when nothing closes it."""
    depth = 0
    for match in re.compile(r"[{}\"]").finditer(body, position):
        if depth == 0 and match[0] == closer:
            return match.start()
        if match[0] != '"':
            depth = max(0, depth + (1 if match[0] == "{" else -1))
    return len(body)


def _plain(text: str) -> str:
    text = re.sub(r"\\url\s*\{([^{}]*)\}", r"\1", text)
    text = _ACCENT.sub(_accented, text)
    for command, sign in _COMMANDS.items():
        text = text.replace(command, sign)
    return " ".join(text.replace("{", "").replace("}", "").replace("$<$", "<").replace("$>$", ">").split())


def _accented(match: re.Match[str]) -> str:
    accent = match[1] or match[2] or match[3]
    return unicodedata.normalize("NFC", match[4] + _ACCENTS[accent])
