"""Envelopes and keys: what is believed, what is not, and that private keys stay private."""

from __future__ import annotations

import json
import stat
import sys

import pytest
from tests.orchestrator.second_dsse import check

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.errors import BadKey, NotVerified, SigningUnavailable
from DocsToKG.Orchestrator.signing.current import CurrentSigners
from DocsToKG.Orchestrator.signing.dsse import sign, verify
from DocsToKG.Orchestrator.signing.keyring import KeyFolder, read_trust, record_of, write_trust
from DocsToKG.Orchestrator.signing.keys import Reason, library, new_signer

NOW = 1_790_000_000.0
KIND = "application/vnd.docstokg.test+json"
A, B, C = new_signer("a", NOW), new_signer("b", NOW), new_signer("c", NOW, NOW + 100)


def _reason(envelope, *keys, now=NOW, **more) -> Reason:
    with pytest.raises(NotVerified) as caught:
        verify(envelope, keys, now, **more)
    return caught.value.reason


def test_what_is_signed_is_believed_by_us_and_by_a_second_implementation():
    for payload in (b"", b"{}", bytes(range(256)) * 100):
        envelope = json.loads(json.dumps(sign(payload, KIND, [A, B])))
        assert verify(envelope, [A.key, B.key], NOW, 2, payload_type=KIND) == payload
        assert check(envelope, {A.key.key_id: A.key.public, B.key.key_id: B.key.public}) == payload


def test_signatures_do_not_depend_on_the_order_of_the_signers():
    assert sign(b"x", KIND, [A, B, C]) == sign(b"x", KIND, [C, B, A])


def test_each_way_to_be_wrong_has_its_reason():
    good = sign(b"x", KIND, [A])
    assert _reason(good, B.key) is Reason.UNTRUSTED
    assert _reason(good, A.key, payload_type="other") is Reason.WRONG_TYPE
    assert _reason(good, A.key, B.key, threshold=2) is Reason.TOO_FEW
    assert _reason({**good, "signatures": []}, A.key) is Reason.NOT_SIGNED
    assert _reason({**good, "payload": "eQ=="}, A.key) is Reason.BAD_SIGNATURE
    assert _reason({**good, "payloadType": KIND + "2"}, A.key) is Reason.BAD_SIGNATURE
    assert _reason({**good, "payload": "eB=="}, A.key) is Reason.MALFORMED  # the same byte, in another spelling
    assert _reason({**good, "more": 1}, A.key) is Reason.MALFORMED
    assert _reason({**good, "signatures": good["signatures"] * 2}, A.key) is Reason.MALFORMED
    assert _reason([], A.key) is Reason.MALFORMED


def test_a_signature_in_the_name_of_a_trusted_key_spoils_the_whole():
    good, other = sign(b"x", KIND, [A, B]), sign(b"y", KIND, [A, B])
    mixed = {**good, "signatures": [good["signatures"][0], other["signatures"][1]]}
    assert _reason(mixed, A.key, B.key) is Reason.BAD_SIGNATURE


def test_an_expired_key_counts_only_for_moments_before_its_end():
    envelope = sign(b"x", KIND, [C])
    assert verify(envelope, [C.key], NOW + 99) == b"x"
    assert _reason(envelope, C.key, now=NOW + 100) is Reason.EXPIRED


def test_private_keys_are_for_their_owner_and_are_never_shown(tmp_path):
    folder = KeyFolder(tmp_path / "keys")
    key = folder.new("ops", NOW)
    [private] = folder.path.glob("*.key")
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    secret = private.read_text().splitlines()[1]
    assert secret not in repr(folder.signer(key)) + str(folder.signer(key)) + json.dumps(record_of(key))
    private.chmod(0o640)
    with pytest.raises(BadKey, match="chmod 600"):
        folder.signer(key)
    private.chmod(0o600)
    private.write_text(f"nothing like a key {secret}")
    with pytest.raises(BadKey) as caught:
        folder.signer(key)
    assert secret not in str(caught.value)


def test_a_private_file_of_another_key_is_refused(tmp_path):
    folder = KeyFolder(tmp_path)
    first, second = folder.new("one", NOW), folder.new("two", NOW)
    one, two = (next(tmp_path.glob(f"{name}.*.key")) for name in ("one", "two"))
    one.write_bytes(two.read_bytes())
    with pytest.raises(BadKey, match="another key"):
        folder.signer(first)
    assert folder.signer(second).key == second


def test_the_newest_key_of_each_name_signs(tmp_path):
    folder = KeyFolder(tmp_path)
    with pytest.raises(BadKey, match="audit keys new"):
        folder.signers(NOW)
    folder.new("ops", NOW)
    newest, other = folder.new("ops", NOW + 1), folder.new("audit", NOW, NOW + 10)
    assert {signer.key for signer in folder.signers(NOW + 1)} == {newest, other}
    assert [signer.key for signer in folder.signers(NOW + 1, ["ops"])] == [newest]
    assert [signer.key for signer in folder.signers(NOW + 1, [other.key_id[:16]])] == [other]
    with pytest.raises(BadKey, match="expired"):
        folder.signers(NOW + 10)


def test_a_trust_file_holds_what_was_put_in(tmp_path):
    write_trust(tmp_path / "trust.json", [C.key, A.key, B.key, A.key])
    assert set(read_trust(tmp_path / "trust.json")) == {A.key, B.key, C.key}
    assert set(read_trust(tmp_path)) == {A.key, B.key, C.key}


@pytest.mark.parametrize(
    "change",
    [
        {"keyid": B.key.key_id},
        {"keyval": {"public": "00"}},
        {"keyval": {"public": A.key.public.upper()}},
        {"keytype": "rsa"},
        {"createdAt": "2026-01-01"},
        {"name": "../up"},
        {"expiresAt": 7},
    ],
)
def test_a_trust_file_that_was_tampered_with_is_refused(tmp_path, change):
    path = tmp_path / "trust.json"
    path.write_text(json.dumps({"keys": [{**record_of(A.key), **change}]}))
    with pytest.raises(BadKey, match=r"trust\.json"):
        read_trust(path)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"keys": []}', b"[" * 100_000, b"x" * 2_000_000])
def test_a_file_that_is_no_trust_file_is_named(tmp_path, content):
    path = tmp_path / "trust.json"
    path.write_bytes(content)
    with pytest.raises(BadKey, match=r"trust\.json"):
        read_trust(path)


def test_a_key_that_has_expired_or_was_rotated_is_signed_with_no_longer_than_a_moment(tmp_path):
    clock, folder = ManualClock(NOW), KeyFolder(tmp_path)
    first = folder.new("a", NOW, NOW + 100)
    current = CurrentSigners(folder, clock=clock)
    assert [signer.key for signer in current()] == [first]
    second = folder.new("a", NOW + 1, NOW + 200)
    clock.advance(5)
    assert [signer.key for signer in current()] == [second]
    clock.advance(200)
    for _ in range(2):
        with pytest.raises(BadKey, match="has expired"):
            current()
    third = folder.new("a", NOW + 205)
    clock.advance(5)
    assert [signer.key for signer in current()] == [third]


def test_without_the_libraries_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(SigningUnavailable, match=r"docstokg\[audit\]"):
        library("signer")
