"""Leader election: of many instances one holds a name, by a row with an expiry in ledger time.

Promises: at no moment of ledger time do two instances hold the same name; when a leader dies, another can take over
after the expiry. A leader must renew its hold before it expires: check it often.
"""

from __future__ import annotations

from secrets import token_hex

from DocsToKG.Orchestrator.control.inputs import plain_name
from DocsToKG.Orchestrator.errors import BadJob
from DocsToKG.Orchestrator.ledger.control import ControlLedger, ControlTx


class Leader:
    """One instance's claim on a name. `ttl_s` is how long others wait after it was last heard of."""

    def __init__(self, ledger: ControlLedger, name: str, *, holder: str | None = None, ttl_s: float = 15.0) -> None:
        if not 0.1 <= ttl_s <= 3600:
            raise BadJob("a leader's time must be between 0.1 s and an hour")
        self._ledger = ledger
        self.name = plain_name("name", name)
        self.holder = plain_name("holder", holder or f"instance_{token_hex(8)}")
        self._ttl_ms = int(ttl_s * 1000)

    def hold(self) -> bool:
        """Take the name, or keep it; whether it is ours now, for `ttl_s` from this moment."""

        def take(tx: ControlTx) -> bool:
            values = {"name": self.name, "holder": self.holder, "now": tx.now_ms, "until": tx.now_ms + self._ttl_ms}
            return bool(
                tx.execute(
                    "INSERT INTO leaders (name, holder, until_at) VALUES (:name, :holder, :until)"
                    " ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_at = excluded.until_at"
                    " WHERE leaders.holder = excluded.holder OR leaders.until_at <= :now RETURNING holder",
                    values,
                )
            )

        return self._ledger.write(take)

    def resign(self) -> None:
        """Let the name go, if it is ours."""
        values = {"name": self.name, "holder": self.holder}
        self._ledger.write(lambda tx: tx.execute("DELETE FROM leaders WHERE name = :name AND holder = :holder", values))

    def leading(self) -> str | None:
        """Who holds the name now."""
        statement = "SELECT holder FROM leaders WHERE name = :name AND until_at > :now"
        found = self._ledger.read(lambda tx: tx.execute(statement, {"name": self.name, "now": tx.now_ms}))
        return str(found[0][0]) if found else None
