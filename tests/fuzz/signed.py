"""What others sign, or say that they signed: keys, tokens, bundles, attestations, saved answers.

A signature keeps strangers out, so that a change of its bytes alone would never come past it: what lies behind one is
changed first and signed here after that.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import tempfile
from pathlib import Path

from joserfc import jws
from joserfc.jwk import OctKey
from tests.fuzz.target import NOW, Target, in_a_file, text

from DocsToKG.ContentDownload.attestation.checking import parts
from DocsToKG.ContentDownload.attestation.statement import PAYLOAD_TYPE, AttestationBad
from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.api.auth.bearer import Authority
from DocsToKG.Orchestrator.api.auth.keys import BadKey, KeyRing, TrustedKey, key_from_file, keys_from_set
from DocsToKG.Orchestrator.audit import archive, layout
from DocsToKG.Orchestrator.audit import replay_manifest as replay
from DocsToKG.Orchestrator.audit import saved_responses as answers
from DocsToKG.Orchestrator.audit.verify import MAX_PROBLEMS, Report, verify
from DocsToKG.Orchestrator.errors import BadBundle, SigningError
from DocsToKG.Orchestrator.signing import dsse, statements
from DocsToKG.Orchestrator.signing.keyring import read_trust, record_of
from DocsToKG.Orchestrator.signing.keys import Trust, new_signer
from DocsToKG.Orchestrator.signing.rotation import SUFFIX, vouched

SIGNER = new_signer("ours", NOW)
TRUST = Trust([SIGNER.key], NOW)
SECRET = OctKey.import_key(b"a secret of thirty-two bytes or more")
MOST_UNPACKED = 50_000_000
MARK = b"=== "  # before the name of each file of a bundle


def envelope(data: bytes) -> None:
    with contextlib.suppress(ValueError, RecursionError):
        dsse.verify(json.loads(data), [], NOW)


def token(data: bytes) -> None:
    """As it comes, with the same bytes as the head of a token, and as the claims of one that is signed well."""
    authority = Authority(keys=KeyRing([TrustedKey(SECRET, "HS256", None)]), clock=ManualClock(NOW))
    head = base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    for word in (text(data), f"{head}.e30.x", jws.serialize_compact({"alg": "HS256"}, data, SECRET)):
        authority.needs_fetch(word)
        found = authority.principal(word)
        assert found is None or (found.subject and len(found.token_id) <= 600)


def key_file(path: Path) -> None:
    for algorithm in ("HS256", "RS256", "ES256", "EdDSA"):
        with contextlib.suppress(BadKey):
            key_from_file(path, algorithm, None)


def packed_bundle(path: Path) -> None:
    """As it comes, and with a trailer that signs these very bytes."""
    bounded(verify(path, TRUST))
    data = path.read_bytes()
    said = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "unpackedBytes": MOST_UNPACKED}
    path.write_bytes(data + archive.trailer(dsse.sign(layout.line(said), archive.TRAILER_TYPE, [SIGNER])))
    bounded(verify(path, TRUST))


def bundle_content(data: bytes) -> None:
    """The files of a bundle behind a manifest that names them as they are."""
    files = files_of(data)
    told = [
        {"name": name, "sha256": hashlib.sha256(rows).hexdigest(), "bytes": len(rows), "rows": rows.count(b"\n")}
        for name, rows in files.items()
    ]
    manifest = layout.line(
        {
            "schema": layout.SCHEMA, "producer": {}, "tenant": None, "files": told, "signers": [record_of(SIGNER.key)],
            "range": {"from": "2020-01-01T00:00:00.000Z", "to": "2030-01-01T00:00:00.000Z"},
        }
    )  # fmt: skip
    signature = layout.line(dsse.sign(manifest, layout.MANIFEST_TYPE, [SIGNER]))
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {layout.MANIFEST: manifest, layout.SIGNATURE: signature, **files}.items():
            path = Path(folder) / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)
        bounded(verify(Path(folder), TRUST))


def files_of(data: bytes) -> dict[str, bytes]:
    """The rows behind each name; a name that is not there has none."""
    parts_by_name = dict(part.partition(b"\n")[::2] for part in data.split(MARK))
    return {name: parts_by_name.get(name.encode(), b"") for name in layout.CONTENT}


def saved_answer(path: Path) -> None:
    """As it comes, and signed anew."""
    bounded(answers.verify_answer(path, TRUST))
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(path.read_bytes())
        if isinstance(value, dict):
            value.pop(statements.FIELD, None)
            path.write_text(json.dumps(statements.signed(value, statements.ANSWER, [SIGNER])), encoding="utf-8")
            bounded(answers.verify_answer(path, TRUST))


def replay_manifest(data: bytes) -> None:
    with contextlib.suppress(ValueError, RecursionError):
        replay.checked(json.loads(data), "given.json")


def attestation(data: bytes) -> None:
    """Lines as they come, and each line as a statement that is signed well."""
    signed = [json.dumps(dsse.sign(line, PAYLOAD_TYPE, [SIGNER])).encode() + b"\n" for line in data.split(b"\n")[:20]]
    for content in (data, b"".join(signed)):
        with contextlib.suppress(AttestationBad, SigningError):
            for part in parts(io.BytesIO(content), TRUST):
                assert all(".." not in file.path.split("/") for file in part.files)


def bounded(report: Report) -> None:
    assert len(report.problems) <= MAX_PROBLEMS + 1
    assert all(len(problem) < 2000 for problem in report.problems)


TARGETS = {
    "envelope": Target(envelope, (SigningError,), is_json=True),
    "trust": Target(in_a_file("keys.json", read_trust), (SigningError,), is_json=True),
    "rotation": Target(
        in_a_file(f"given{SUFFIX}", lambda path: vouched(path, [SIGNER.key], NOW)), (SigningError,), is_json=True
    ),
    "token": Target(token, is_json=True),
    "jwk-set": Target(in_a_file("keys.json", keys_from_set), (BadKey,), is_json=True),
    "key-file": Target(in_a_file("given.pem", key_file)),
    "audit-bundle": Target(in_a_file("given.tar.zst", packed_bundle)),
    "audit-rows": Target(bundle_content),
    "saved-answer": Target(in_a_file("given.json", saved_answer), is_json=True),
    "replay-manifest": Target(replay_manifest, (BadBundle,), is_json=True),
    "attestation": Target(attestation, is_json=True),
}
