"""Stored responses of idempotent requests.

Knows requests by tenant, path and key, and their digest. Does not know what a request does. Promises: of two requests
at once one acts and the other is refused until it has ended; a key with another body is refused; a request whose server
died may be sent again a minute after it was last held; responses are kept for a day.
"""

from __future__ import annotations

from dataclasses import dataclass

from DocsToKG.Orchestrator.control.inputs import plain_name
from DocsToKG.Orchestrator.control.records import LedgerService
from DocsToKG.Orchestrator.errors import BadJob, Conflict
from DocsToKG.Orchestrator.ledger.control import ControlTx

KEPT_MS = 24 * 3600 * 1000
ABANDONED_MS = 60 * 1000
MAX_BODY_CHARS = 1024 * 1024
_PURGED = 500


@dataclass(frozen=True, slots=True)
class Answer:
    """What was answered the first time."""

    status: int
    body: str


class IdempotencyService(LedgerService):
    """The answers of one ledger. Safe to share between threads and instances."""

    def remember(self, tenant: str, path: str, key: str, request_digest: str) -> Answer | None:
        """The first answer to this request; None for whoever is the first and so must act, then `keep` or `forget`.

        `Conflict` when the key came with another body, or while the first is still at work.
        """
        names = _names(tenant, path, key)
        return self._ledger.write(lambda tx: _first(tx, names, request_digest))

    def hold(self, tenant: str, path: str, key: str) -> None:
        """The request is still at work. To be said more than once a minute, or it counts as abandoned."""
        names = _names(tenant, path, key)
        self._ledger.write(
            lambda tx: tx.execute(
                "UPDATE idempotency_keys SET at = :now"
                " WHERE tenant = :tenant AND path = :path AND key = :key AND status IS NULL",
                {**names, "now": tx.now_ms},
            )
        )

    def keep(self, tenant: str, path: str, key: str, answer: Answer) -> None:
        """The answer to a request that has acted. One that is too long to keep is forgotten."""
        if len(answer.body) > MAX_BODY_CHARS:
            self.forget(tenant, path, key)
            return
        values = {**_names(tenant, path, key), "status": answer.status, "body": answer.body}
        self._ledger.write(
            lambda tx: tx.execute(
                "UPDATE idempotency_keys SET status = :status, body = :body"
                " WHERE tenant = :tenant AND path = :path AND key = :key AND status IS NULL",
                values,
            )
        )

    def forget(self, tenant: str, path: str, key: str) -> None:
        """The request did not act: the same key may be tried again. An answer that was kept stays."""
        names = _names(tenant, path, key)
        self._ledger.write(
            lambda tx: tx.execute(
                "DELETE FROM idempotency_keys"
                " WHERE tenant = :tenant AND path = :path AND key = :key AND status IS NULL",
                names,
            )
        )

    def purge(self) -> int:
        """Drop some of what is older than a day; how many there were. Any instance may do so at any time."""
        return self._ledger.write(_purge)


def _names(tenant: str, path: str, key: str) -> dict[str, str]:
    if len(path) > 2048 or "\0" in path:
        raise BadJob("the path of a request has at most 2048 characters")
    return {"tenant": plain_name("tenant", tenant), "path": path, "key": plain_name("Idempotency-Key", key)}


def _first(tx: ControlTx, names: dict[str, str], digest: str) -> Answer | None:
    values = {**names, "digest": digest, "now": tx.now_ms}
    added = tx.execute(
        "INSERT INTO idempotency_keys (tenant, path, key, request_digest, at)"
        " VALUES (:tenant, :path, :key, :digest, :now) ON CONFLICT (tenant, path, key) DO NOTHING RETURNING at",
        values,
    )
    if added:
        return None
    found = tx.execute(
        "SELECT request_digest, status, body, at FROM idempotency_keys"
        " WHERE tenant = :tenant AND path = :path AND key = :key /* lock */",
        names,
    )
    if not found:  # whoever was first has let go of it between the two
        return _first(tx, names, digest)
    [(known, status, body, at)] = found
    age = tx.now_ms - at
    if age >= KEPT_MS or (status is None and known == digest and age >= ABANDONED_MS):
        tx.execute(
            "UPDATE idempotency_keys SET request_digest = :digest, status = NULL, body = NULL, at = :now"
            " WHERE tenant = :tenant AND path = :path AND key = :key",
            values,
        )
        return None
    if known != digest:
        raise Conflict("this Idempotency-Key came with another request before; use a new one")
    if status is None:
        raise Conflict("the first request with this Idempotency-Key is still at work; try again soon")
    return Answer(int(status), str(body))


def _purge(tx: ControlTx) -> int:
    gone = tx.execute(
        "SELECT tenant, path, key FROM idempotency_keys WHERE at <= :old ORDER BY at LIMIT :limit /* lock */",
        {"old": tx.now_ms - KEPT_MS, "limit": _PURGED},
    )
    for tenant, path, key in gone:
        tx.execute(
            "DELETE FROM idempotency_keys WHERE tenant = :tenant AND path = :path AND key = :key",
            {"tenant": tenant, "path": path, "key": key},
        )
    return len(gone)
