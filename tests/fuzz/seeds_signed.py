"""The seeds of what others sign: a bundle of a small ledger, an attestation, keys and tokens."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from joserfc.jwk import ECKey, OKPKey, RSAKey
from tests.fuzz.signed import MARK, SIGNER
from tests.fuzz.target import NOW
from tests.orchestrator.eventful import afternoon, bundle, morning, ms

from DocsToKG.ContentDownload.attestation.statement import AttestedFile, Corpus, Part, Sums, payload, work_of
from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.audit import layout
from DocsToKG.Orchestrator.audit.archive import read_trailer
from DocsToKG.Orchestrator.audit.replay_manifest import manifest_of
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.signing.dsse import sign
from DocsToKG.Orchestrator.signing.keyring import KeyFolder, record_of
from DocsToKG.Orchestrator.signing.rotation import rotate
from DocsToKG.Orchestrator.signing.statements import ANSWER
from DocsToKG.Orchestrator.signing.statements import signed as with_signatures

CLAIMS = {
    "sub": "worker-1", "exp": NOW + 600, "nbf": NOW - 5, "iss": "https://id.example.org", "aud": ["docstokg"],
    "tenant": "a", "tenants": ["a", "b"], "scope": "orch:read orch:operate", "roles": ["operator"],
}  # fmt: skip


def signed() -> dict[str, list[bytes]]:
    answer = with_signatures({"jobId": 7, "status": "queued", "items": [{"a": 1}]}, ANSWER, [SIGNER])
    with tempfile.TemporaryDirectory() as folder:
        return {
            "envelope": [_json(sign(b'{"a": 1}', "application/json", [SIGNER]))],
            "trust": [_json({"keys": [record_of(SIGNER.key)]})],
            "token": [_json(CLAIMS)],
            "saved-answer": [_json(answer)],
            "attestation": [b"\n".join(_statements())],
            **_rotation(Path(folder)),
            **_keys(),
            **_bundles(Path(folder)),
        }


def _statements() -> list[bytes]:
    corpus = Corpus("papers", "2026-01-01T00:00:00Z", "docstokg 0.1.0", ("PDF",))
    work = work_of("doi:10.5555/a", url="https://e.org/a.pdf", licence="cc-by", version="published", at="2026-01-01")
    files = (AttestedFile("PDF/a.pdf", "0" * 64, 3, [work]), AttestedFile("PDF/b.pdf", "1" * 64, 4))
    return [payload(Part(1, None, corpus, files, Sums(1, 2, 7)))]


def _rotation(folder: Path) -> dict[str, list[bytes]]:
    keys = KeyFolder(folder / "keys")
    keys.new("ours", NOW)
    _, statement = rotate(keys, "ours", NOW, None)
    return {"rotation": [statement.read_bytes()]}


def _keys() -> dict[str, list[bytes]]:
    made = [RSAKey.generate_key(2048), ECKey.generate_key("P-256"), OKPKey.generate_key("Ed25519")]
    public: list[dict[str, Any]] = [{**key.as_dict(private=False), "kid": f"k{n}"} for n, key in enumerate(made)]
    return {"jwk-set": [_json({"keys": public})], "key-file": [key.as_pem(private=False) for key in made]}


def _bundles(folder: Path) -> dict[str, list[bytes]]:
    clock = ManualClock()
    with SqliteLedger(folder / "ledger.sqlite", clock=clock) as ledger:
        start = ms(clock)
        morning(ledger, clock)
        afternoon(ledger, clock)
        for target in ("plain", "packed.tar.zst"):
            bundle(ledger, start, ms(clock), folder / target, [SIGNER])
        jobs = manifest_of(ledger, [SIGNER])
    rows = b"".join(MARK + name.encode() + b"\n" + (folder / "plain" / name).read_bytes() for name in layout.CONTENT)
    with (folder / "packed.tar.zst").open("rb") as file:
        packed = read_trailer(file, "packed")[1]
        file.seek(0)
        archived = file.read(packed)
    return {"audit-rows": [rows], "audit-bundle": [archived], "replay-manifest": [_json(jobs)]}


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
