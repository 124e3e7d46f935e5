"""The history as a feed: what has happened to a tenant since a cursor.

Knows the chains of the history and a reader's position in each. Promises: nothing is missed and nothing comes twice,
however many write at once; a reader that returns too late learns that rows were removed meanwhile; a cursor of another
tenant, or one that was never handed out, is refused.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from DocsToKG.Orchestrator.control.history.chains import Chains, Row, chains_of
from DocsToKG.Orchestrator.control.jobs.reads import history_row
from DocsToKG.Orchestrator.control.jobs.service import ServedLedger
from DocsToKG.Orchestrator.control.paging import MAX_PAGE_SIZE
from DocsToKG.Orchestrator.errors import BadPage
from DocsToKG.Orchestrator.ledger.base import HistoryRow
from DocsToKG.Orchestrator.ledger.control import ControlTx

_MAX_TEXT = 16 * 1024
_TEXT = re.compile(r"h1\.([A-Za-z0-9_-]{1,2800})((?:\.[0-9]{1,10}-[0-9]{1,19}){0,1000})")


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a reader has got: a position in every chain that has rows of its tenant."""

    tenant: str
    positions: Mapping[int, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """The text for `Last-Event-ID`."""
        name = base64.urlsafe_b64encode(self.tenant.encode()).decode().rstrip("=")
        places = "".join(f".{shard}-{place}" for shard, place in sorted(self.positions.items()) if place)
        return f"h1.{name}{places}"


def parse_cursor(text: str) -> Cursor:
    """The cursor that a text stands for, or `BadPage`."""
    found = _TEXT.fullmatch(text) if len(text) <= _MAX_TEXT else None
    if found is None:
        raise BadPage("this place in the feed was not handed out here; begin again without one")
    try:
        tenant = base64.urlsafe_b64decode(found[1] + "=" * (-len(found[1]) % 4)).decode()
    except (binascii.Error, UnicodeDecodeError):
        raise BadPage("this place in the feed was not handed out here; begin again without one") from None
    places = (part.split("-") for part in found[2].split(".")[1:])
    return Cursor(tenant, {int(shard): int(place) for shard, place in places})


@dataclass(frozen=True, slots=True)
class FeedEvent:
    """A row of the history, and the cursor of a reader who has read up to it."""

    row: HistoryRow
    cursor: Cursor


@dataclass(frozen=True, slots=True)
class FeedPage:
    """What happened next. `more` says that there is more to read now; `passed` that rows between the cursor given and
    the first one here are no longer kept."""

    events: Sequence[FeedEvent]
    cursor: Cursor
    more: bool
    passed: bool


class HistoryFeed:
    """The history of one ledger. Safe to share between threads."""

    def __init__(self, ledger: ServedLedger) -> None:
        self._ledger = ledger
        self._chains: Chains = chains_of(ledger)

    def now(self, tenant: str) -> Cursor:
        """The place from which only what happens from now on is read."""
        return self._ledger.read(lambda tx: Cursor(tenant, self._chains.ends(tx, tenant)))

    def start(self, tenant: str) -> Cursor:
        """The place from which all that is kept is read."""
        return self._ledger.read(lambda tx: Cursor(tenant, self._chains.begins(tx, tenant)))

    def after(self, cursor: Cursor, tenant: str, limit: int = MAX_PAGE_SIZE) -> FeedPage:
        """What happened after a place, in order; at most `limit` rows."""
        if cursor.tenant != tenant:
            raise BadPage("this place in the feed is not one of this tenant; begin again without one")
        return self._ledger.read(lambda tx: self._page(tx, cursor, max(1, min(limit, MAX_PAGE_SIZE))))

    def _page(self, tx: ControlTx, cursor: Cursor, limit: int) -> FeedPage:
        ends = self._chains.ends(tx, cursor.tenant)
        if any(place > ends.get(shard, -1) for shard, place in cursor.positions.items()):
            raise BadPage("this place in the feed lies beyond the history; begin again without one")
        begins = self._chains.begins(tx, cursor.tenant)
        after = {shard: max(begins.get(shard, 0), cursor.positions.get(shard, 0)) for shard in ends}
        passed = any(after[shard] > cursor.positions.get(shard, 0) for shard in after)
        rows, places = self._chains.rows(tx, cursor.tenant, after, ends, limit)
        more = any(end > places.get(shard, 0) for shard, end in ends.items())
        return FeedPage(self._events(cursor.tenant, after, rows), Cursor(cursor.tenant, places), more, passed)

    def _events(self, tenant: str, after: Mapping[int, int], rows: Sequence[Row]) -> list[FeedEvent]:
        places, events = dict(after), list[FeedEvent]()
        for row in rows:
            shard, place = self._chains.position(row)
            places = {**places, shard: place}
            events.append(FeedEvent(history_row(row), Cursor(tenant, places)))
        return events
