"""The statements of the catalog in PostgreSQL's words.

They are written once, for SQLite; what differs is little and is listed here: placeholders, the schema before each
table, some names of functions, and LIKE, which makes no difference between small and capital letters there.
"""

from __future__ import annotations

import re
from functools import lru_cache

TABLES = (
    "manifests",
    "downloads",
    "http_events",
    "rate_events",
    "breaker_transitions",
    "fallback_attempts",
    "run_summary",
    "summaries",
    "catalog_entries",
)
_LITERAL = re.compile(r"('(?:[^']|'')*')")
_NAMED = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_TABLE = re.compile(rf"\b(FROM|JOIN|INTO|UPDATE)\s+({'|'.join(TABLES)})\b")
_FUNCTION = re.compile(r"\b(host_of_copies|copies_at)\(")
_WORDS = (
    (re.compile(r"\btemp\."), "pg_temp."),
    (re.compile(r"\bCROSS JOIN\b"), "JOIN"),
    (re.compile(r"\bINSTR\("), "strpos("),
    (re.compile(r"\bLIKE\b"), "ILIKE"),
    (re.compile(r"\bjson_group_array\("), "json_agg("),
    (re.compile(r"\browid\b"), "ctid"),
    (re.compile(r"\bINTEGER\b"), "BIGINT"),
    (re.compile(r"\bORDER BY \+"), "ORDER BY "),
)
_IGNORE = "INSERT OR IGNORE INTO"


@lru_cache(maxsize=512)
def translated(sql: str, schema: str) -> str:
    """The statement for the tables in `schema`, with the driver's placeholders."""
    parts = _LITERAL.split(sql)
    text = "".join(part.replace("%", "%%") if place % 2 else _plain(part, schema) for place, part in enumerate(parts))
    text = _call(text, "json_each(", "json_array_elements_text((", ")::json)")
    if text.lstrip().startswith(_IGNORE):
        return text.replace(_IGNORE, "INSERT INTO", 1) + " ON CONFLICT DO NOTHING"
    return text


def _plain(part: str, schema: str) -> str:
    part = _NAMED.sub(r"%(\1)s", part.replace("%", "%%").replace("?", "%s"))
    for pattern, word in _WORDS:
        part = pattern.sub(word, part)
    return _FUNCTION.sub(rf"{schema}.\1(", _TABLE.sub(rf"\1 {schema}.\2", part))


def _call(text: str, name: str, begin: str, end: str) -> str:
    """Every call of a function, with other words before and behind what it is given."""
    while (start := text.find(name)) >= 0:
        inner = start + len(name)
        close = _closing(text, inner)
        text = f"{text[:start]}{begin}{text[inner:close]}{end}{text[close + 1 :]}"
    return text


def _closing(text: str, start: int) -> int:
    depth = 1
    for place in range(start, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if depth == 0:
            return place
    raise ValueError("a bracket is not closed")
