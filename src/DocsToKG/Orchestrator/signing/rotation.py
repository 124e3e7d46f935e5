"""Key rotation: a new key that the old one vouches for, so that those who trust the old one need not be asked again.

The statement is an envelope over the new key's record, signed by the old key and by the new.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from DocsToKG.core.digest import canonical_json
from DocsToKG.Orchestrator.errors import BadKey, NotVerified
from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keyring import KeyFolder, find_key, key_of, read_small, record_of, write_new
from DocsToKG.Orchestrator.signing.keys import PublicKey

SUFFIX = ".rotation.dsse.json"
_TYPE = "application/vnd.docstokg.key-rotation+json"


def rotate(
    folder: KeyFolder, word: str, now: float, expires_at: float | None, *, keep: bool = False
) -> tuple[PublicKey, Path]:
    """A new key of the same name, and the statement that the old one vouches for it."""
    old = folder.signer(find_key([key for key in folder.all() if folder.can_sign(key)], word))
    if not old.key.is_good_at(now):
        raise BadKey(f"{old.key.shown} has expired and can vouch for nothing; make a new one: audit keys new")
    key = folder.new(old.key.name, now, expires_at)
    payload = canonical_json({"new": record_of(key), "old": old.key.key_id})
    envelope = dsse.sign(payload, _TYPE, [old, folder.signer(key)])
    statement = folder.path / f"{key.name}.{key.key_id[:16]}{SUFFIX}"
    write_new(statement, canonical_json(envelope) + b"\n", 0o644)
    if not keep:
        folder.retire(old.key)
    return key, statement


def is_rotation(path: Path) -> bool:
    return path.name.endswith(SUFFIX)


def vouched(path: Path, trusted: Sequence[PublicKey], now: float) -> list[PublicKey]:
    """The new key of a statement, once a trusted key that is good at `now` vouches for it."""
    try:
        envelope = json.loads(read_small(path))
        payload = json.loads(dsse.verify(envelope, trusted, now, payload_type=_TYPE))
        key = key_of(payload["new"])
        dsse.verify(envelope, [key], key.created_at, payload_type=_TYPE)
    except NotVerified as error:
        raise BadKey(f"{path} is not to be believed ({error.reason}): {error}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise BadKey(f"{path} is no statement of a rotation") from None
    if payload["old"] not in {one.key_id for one in trusted}:
        raise BadKey(f"{path}: the old key is not among the trusted ones")
    return [key]
