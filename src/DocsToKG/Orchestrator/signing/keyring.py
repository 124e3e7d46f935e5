"""Keys on disk: a folder of signing keys, and trust files.

Promises: private keys are readable by their owner alone, and are refused when others may read them; no file is half
written; nothing larger than a key file is read.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from DocsToKG.core.clock import utc_iso
from DocsToKG.Orchestrator.errors import BadKey
from DocsToKG.Orchestrator.signing.keys import KIND, PublicKey, Signer, new_signer, signer_from_pem

TRUST_SCHEMA = "docstokg.trust.v1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}")
_MAX_FILE_BYTES = 1_048_576
_MAX_KEYS = 1000


class KeyFolder:
    """The keys that are signed with here: `NAME.ID.key` (private) and `NAME.ID.pub.json` for each."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def new(self, name: str, now: float, expires_at: float | None = None) -> PublicKey:
        """A new key, both halves on disk, the private one first and for its owner alone."""
        if not _NAME.fullmatch(name):
            raise BadKey(f"{name[:64]!r} is no name for a key: letters, digits and . _ @ + - only, 64 at most")
        signer = new_signer(name, _as_written(now), None if expires_at is None else _as_written(expires_at))
        self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_new(self._private(signer.key), signer.pem(), 0o600)
        write_new(self._public(signer.key), _dumped(record_of(signer.key)), 0o644)
        return signer.key

    def all(self) -> list[PublicKey]:
        """All keys of the folder, oldest first."""
        found = [key for path in sorted(self.path.glob("*.pub.json"))[:_MAX_KEYS] for key in read_trust(path)]
        return sorted(found, key=lambda key: (key.created_at, key.key_id))

    def can_sign(self, key: PublicKey) -> bool:
        return self._private(key).is_file()

    def signer(self, key: PublicKey) -> Signer:
        return signer_from_pem(_read_private(self._private(key)), key)

    def signers(self, now: float, chosen: Sequence[str] = ()) -> list[Signer]:
        """Those to sign with: the chosen ones (name, or beginning of an id), else the newest of every name."""
        able = [key for key in self.all() if self.can_sign(key)]
        if not able:
            raise BadKey(f"there is no key to sign with in {self.path}; make one: docstokg-orchestrator audit keys new")
        wanted = [find_key(able, word) for word in chosen] or list({key.name: key for key in able}.values())
        late = [key for key in wanted if not key.is_good_at(now)]
        if late:
            raise BadKey(f"{late[0].shown} has expired ({late[0].span}); make a new one: audit keys new {late[0].name}")
        return [self.signer(key) for key in {key.key_id: key for key in wanted}.values()]

    def retire(self, key: PublicKey) -> None:
        """Throw the private half away: nothing new can be signed with it; what it signed stays provable."""
        self._private(key).unlink(missing_ok=True)

    def _private(self, key: PublicKey) -> Path:
        return self.path / f"{key.name}.{key.key_id[:16]}.key"

    def _public(self, key: PublicKey) -> Path:
        return self.path / f"{key.name}.{key.key_id[:16]}.pub.json"


def find_key(keys: Iterable[PublicKey], word: str) -> PublicKey:
    """The newest key of that name, or the one whose id begins so."""
    fits = [key for key in keys if key.name == word or (len(word) >= 8 and key.key_id.startswith(word))]
    if not fits:
        raise BadKey(f"there is no key {word[:64]!r} here; see: docstokg-orchestrator audit keys list")
    return fits[-1]


def read_trust(path: Path) -> list[PublicKey]:
    """The keys of a trust file, of one public key file, or of every such file in a folder."""
    if path.is_dir():
        files = sorted(file for file in path.glob("*.json") if not file.name.endswith(".dsse.json"))[:_MAX_KEYS]
        if not files:
            raise BadKey(f"there is no public key (*.json) in {path}")
        return _once(key for file in files for key in read_trust(file))
    keys = _keys_in(path)
    if not keys:
        raise BadKey(f"{path} holds no public keys")
    return keys


def trust_file(path: Path) -> list[PublicKey]:
    """The keys of a trust file that is to be changed: none where it is not there, or all were taken out."""
    return _keys_in(path) if path.exists() else []


def _keys_in(path: Path) -> list[PublicKey]:
    content = read_small(path)
    try:
        value = json.loads(content)
        rows = value.get("keys", [value])
        if len(rows) > _MAX_KEYS:
            raise ValueError
        return _once(key_of(row) for row in rows)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        raise BadKey(f"{path} holds no public keys") from None
    except BadKey as error:
        raise BadKey(f"{path}: {error}") from None


def write_trust(path: Path, keys: Iterable[PublicKey]) -> None:
    rows = [record_of(key) for key in sorted(_once(keys), key=lambda key: (key.created_at, key.key_id))]
    path.parent.mkdir(parents=True, exist_ok=True)
    spare = path.with_name(f"{path.name}.{os.getpid()}.new")
    write_new(spare, _dumped({"schema": TRUST_SCHEMA, "keys": rows}), 0o644)
    spare.replace(path)


def record_of(key: PublicKey) -> dict[str, Any]:
    """A public key as files and manifests write it."""
    return {
        "keyid": key.key_id,
        "keytype": KIND,
        "scheme": KIND,
        "keyval": {"public": key.public},
        "name": key.name,
        "createdAt": utc_iso(key.created_at),
        "expiresAt": None if key.expires_at is None else utc_iso(key.expires_at),
    }


def key_of(row: Any) -> PublicKey:
    """The key of a record; raises `BadKey` where the id is not the key's own."""
    if (row["keytype"], row["scheme"]) != (KIND, KIND) or not _NAME.fullmatch(row["name"]):
        raise ValueError
    end = row["expiresAt"]
    key = PublicKey(
        row["keyval"]["public"], row["name"], _moment(row["createdAt"]), None if end is None else _moment(end)
    )
    if row["keyid"] != key.key_id:
        raise BadKey(f"the id {str(row['keyid'])[:16]!r} is not the id of its key")
    return key


def _once(keys: Iterable[PublicKey]) -> list[PublicKey]:
    """Each key once. Told twice with different ends, the earlier end counts."""
    found: dict[str, PublicKey] = {}
    for key in keys:
        other = found.get(key.key_id)
        if other is None or _end(key) < _end(other):
            found[key.key_id] = key
    return list(found.values())


def _end(key: PublicKey) -> float:
    return float("inf") if key.expires_at is None else key.expires_at


def _as_written(moment: float) -> float:
    """Files know milliseconds; a key must equal what is read of it."""
    return _moment(utc_iso(moment))


def _moment(text: str) -> float:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError
    return moment.timestamp()


def _dumped(value: Any) -> bytes:
    return (json.dumps(value, indent=2) + "\n").encode()


def read_small(path: Path) -> bytes:
    """The content of a file that holds keys or a statement of them."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadKey(f"cannot read {path}: {error.strerror}") from None
    if len(content) > _MAX_FILE_BYTES:
        raise BadKey(f"{path} is too large for a file of keys")
    return content


def _read_private(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read(_MAX_FILE_BYTES)
    except OSError as error:
        raise BadKey(f"cannot read {path}: {error.strerror}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise BadKey(f"{path} can be read by others: chmod 600 {path}")
    return content


def write_new(path: Path, content: bytes, mode: int) -> None:
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, mode)
    except OSError as error:
        raise BadKey(f"cannot write {path}: {error.strerror}") from None
    with os.fdopen(file, "wb") as out:
        out.write(content)
        out.flush()
        os.fsync(out.fileno())
