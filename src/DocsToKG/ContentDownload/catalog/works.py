"""The works of a record, each by the line that decides about it.

Knows which of a work's lines that is: its latest success or takedown, else its latest line. Reads only, on a connection
that it is given. Promises: a page is had without reading the rest; counting a million works reads the table once, in
its own order, and holds only the numbers of lines that another one has overtaken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from DocsToKG.ContentDownload.catalog import aggregates
from DocsToKG.ContentDownload.catalog.aggregates import GROUPED, count_groups
from DocsToKG.ContentDownload.catalog.connection import Db, stream
from DocsToKG.ContentDownload.catalog.counts import Scope, find_superseded, read_transaction
from DocsToKG.ContentDownload.catalog.rollups import Pieces, count_among
from DocsToKG.ContentDownload.catalog.selection import HOST, STATE, TAKEDOWN_STAGE, Selection, add_functions

GROUPS = ("tier", "source", "resolver", "license", "year", "reason", "host", "version", "state", "run_id")
COLUMNS = (
    "doc_id",
    "state",
    "title",
    "year",
    "license",
    "license_raw",
    "oa_status",
    "version",
    "is_retracted",
    "path",
    "sha256",
    "size_bytes",
    "mime",
    "resolver",
    "tier",
    "host",
    "host_type",
    "evidence",
    "is_guess",
    "url",
    "canonical_url",
    "http_status",
    "doi_seen",
    "dedupe",
    "reason",
    "cause",
    "explanation",
    "proof",
    "damaged",
    "doi",
    "version_doi",
    "run_id",
    "config_hash",
    "created_at",
)
_SELECTED = ", ".join(
    f"({STATE}) AS state" if name == "state" else f"({HOST}) AS host" if name == "host" else name for name in COLUMNS
)
_OURS = f"(m.status = 'ok' OR m.stage = '{TAKEDOWN_STAGE}')"
_THEIRS = f"(n.status = 'ok' OR n.stage = '{TAKEDOWN_STAGE}')"
# A later line overtakes; so does any decisive line one that is not. The ids come from the index alone.
_SUPERSEDED = f"""EXISTS (SELECT 1 FROM manifests n WHERE n.doc_id = m.doc_id AND n.id <> m.id
    AND CASE WHEN {_OURS} THEN n.id > m.id AND {_THEIRS} ELSE n.id > m.id OR {_THEIRS} END)"""
_COUNTED = ("works", "obtained", "present", "left_out", "taken_down", "skipped_robots", "failed", "bytes")
_PLACE_OF = {"obtained": 1, "present": 2, "left-out": 3, "taken-down": 4, "robots": 5, "failed": 6}


@dataclass(frozen=True, slots=True)
class Page:
    """Some works in the order of their lines; `after` asks for the next page, None when this was the last."""

    works: list[dict[str, Any]]
    after: int | None


def page(db: Db, chosen: Selection, *, after: int = 0, limit: int = 50) -> Page:
    """The next works behind line `after`."""
    add_functions(db)
    where, values = chosen.where(db)
    cursor = db.execute(
        f"SELECT id, {_SELECTED} FROM manifests m WHERE id > ? AND {where} AND NOT {_SUPERSEDED} ORDER BY id LIMIT ?",
        (after, *values, limit + 1),
    )
    rows = cursor.fetchall()
    works = [_work(row[1:]) for row in rows[:limit]]
    return Page(works, rows[limit - 1][0] if len(rows) > limit else None)


def each(db: Db, chosen: Selection) -> Iterator[dict[str, Any]]:
    """Every work, one at a time; `db` serves nothing else meanwhile."""
    add_functions(db)
    find_superseded(db, Scope())
    where, values = chosen.where(db)
    sql = (
        f"SELECT {_SELECTED} FROM manifests m WHERE {where} AND id NOT IN (SELECT id FROM temp.superseded) ORDER BY id"
    )
    yield from map(_work, stream(db, sql, values))


def count(
    db: Db, chosen: Selection, group_by: str | None, *, another: Callable[[], Db] | None = None
) -> list[dict[str, Any]]:
    """Works, and what became of them, in all or for each value of `group_by`; `another` as for `Pieces.with_help`."""
    column = {"source": "resolver", "state": "tier", None: "tier"}.get(group_by) or str(group_by)
    question = replace(GROUPED, count=partial(count_groups, names=(column,)))
    with read_transaction(db):
        lines = Pieces(db, question, chosen=chosen)
        with lines.with_help(another) as counted:
            find_superseded(db, Scope())
            undecided = count_among(db, question, "temp.superseded", *chosen.where(db))
            found = counted(db)
    aggregates.add(found, undecided, times=-1)
    rows: dict[str | None, list[int]] = {}

    def row_of(value: str | None, state: str) -> list[int]:
        # A state is counted with every grouping, so any will do where only states are asked for.
        name = "all" if group_by is None else state if group_by == "state" else value
        return rows.setdefault(name, [0] * len(_COUNTED))

    for (value, state), works in (+found[column]).items():
        row = row_of(value, state)
        row[0] += works
        row[_PLACE_OF[state]] += works
    for value, size in (+found[f"{column} bytes"]).items():
        row_of(value, "obtained")[-1] += size
    named = [
        {group_by or "scope": name or "unknown", **dict(zip(_COUNTED, row, strict=True))} for name, row in rows.items()
    ]
    return sorted(named, key=lambda row: (-row["works"], row[group_by or "scope"])) or _nothing(group_by)


def _nothing(group_by: str | None) -> list[dict[str, Any]]:
    return [] if group_by else [{"scope": "all", **dict.fromkeys(_COUNTED, 0)}]


def _work(row: tuple[Any, ...]) -> dict[str, Any]:
    work = dict(zip(COLUMNS, row, strict=True))
    work["host"] = work["host"] or None
    for flag in ("is_retracted", "is_guess", "damaged"):
        work[flag] = None if work[flag] is None else bool(work[flag])
    return work
