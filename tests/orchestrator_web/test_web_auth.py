"""Tokens: made here or signed elsewhere, good or not."""

from __future__ import annotations

import base64
import json
import stat
import threading

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.api.auth.bearer import Authority, bearer
from DocsToKG.Orchestrator.api.auth.keys import BadKey, KeyRing, TrustedKey, key_from_file, keys_from_set
from DocsToKG.Orchestrator.api.auth.tokens import BadTokenFile, TokenFile

SECRET = "s" * 40
CLOCK = ManualClock()
CLAIMS = {"sub": "ann", "exp": CLOCK.now() + 600, "tenant": "acme", "scope": "orch:read"}


def signed(claims: dict[str, object] | None = None, *, key=None, alg: str = "HS256", **head: str) -> str:
    return jwt.encode({"alg": alg, **head}, claims or CLAIMS, key or OctKey.import_key(SECRET), algorithms=[alg])


def authority(*keys: TrustedKey, **more) -> Authority:
    ring = KeyRing(keys or [TrustedKey(OctKey.import_key(SECRET), "HS256", None)], clock=CLOCK)
    return Authority(keys=ring, clock=CLOCK, **more)


def test_a_signed_token_stands_for_its_subject():
    found = authority().principal(signed())
    assert found is not None
    assert (found.subject, found.home, found.scopes) == ("ann", "acme", frozenset({"orch:read"}))


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")  # of the signer
@pytest.mark.parametrize("alg", ["RS256", "ES256", "EdDSA"])
def test_public_keys_are_known_from_files(tmp_path, alg):
    made = {"RS256": RSAKey, "ES256": ECKey, "EdDSA": OKPKey}[alg]
    size = {"RS256": 2048, "ES256": "P-256", "EdDSA": "Ed25519"}[alg]
    key = made.generate_key(size)
    (tmp_path / "key.pem").write_bytes(key.as_pem(private=False))
    (tmp_path / "set.json").write_text(json.dumps({"keys": [{**key.as_dict(private=False), "kid": "k1"}]}))
    for trusted in (key_from_file(tmp_path / "key.pem", alg, "k1"), *keys_from_set(tmp_path / "set.json")):
        judge = authority(trusted)
        assert judge.principal(signed(key=key, alg=alg, kid="k1")) is not None
        assert judge.principal(signed(key=made.generate_key(size), alg=alg, kid="k1")) is None


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": CLOCK.now() - 31},
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"nbf": CLOCK.now() + 31},
        {"sub": ""},
        {"sub": 7},
        {"iss": "somebody else"},
        {"aud": "another service"},
        {"aud": None},
    ],
)
def test_claims_that_do_not_hold_make_no_principal(claims):
    good = {**CLAIMS, "iss": "us", "aud": ["orchestrator", "more"]}
    judge = authority(issuer="us", audience="orchestrator")
    assert judge.principal(signed(good)) is not None
    assert judge.principal(signed({**good, **claims})) is None


def test_clocks_may_differ_by_the_leeway():
    assert authority().principal(signed({**CLAIMS, "exp": CLOCK.now() - 29, "nbf": CLOCK.now() + 29})) is not None


def test_the_algorithm_is_ours_to_choose(tmp_path):
    """No `none`, no key of one kind used as another."""
    rsa = RSAKey.generate_key(2048)
    judge = authority(TrustedKey(rsa, "RS256", None))
    parts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in
             ({"alg": "none"}, CLAIMS)]  # fmt: skip
    assert judge.principal(".".join([*parts, ""])) is None
    public = rsa.as_pem(private=False)
    confused = signed(key=OctKey.import_key(base64.b64encode(public)), alg="HS256")
    assert judge.principal(confused) is None
    assert authority().principal(signed(alg="HS512", key=OctKey.import_key(SECRET * 2))) is None


@pytest.mark.parametrize(
    "text", ["", ".", "..", "a.b", "a.b.c", "é.a.b", "x" * 9000, "e30.e30.", "W10.e30.e30", "dtk_"]
)
def test_nonsense_is_no_token(text):
    judge = Authority(tokens=None, keys=KeyRing([TrustedKey(OctKey.import_key(SECRET), "HS256", None)]))
    assert judge.principal(text) is None


def test_a_token_names_its_key_where_there_are_several():
    first, second = OctKey.import_key("1" * 40), OctKey.import_key("2" * 40)
    judge = authority(TrustedKey(first, "HS256", "a"), TrustedKey(second, "HS256", "b"))
    assert judge.principal(signed(key=second, kid="b")) is not None
    assert judge.principal(signed(key=second, kid="a")) is None
    assert judge.principal(signed(key=second)) is None


@pytest.mark.parametrize(
    ("claims", "home", "tenants"),
    [
        ({"tenant": "a", "tenants": ["b"]}, "a", {"a", "b"}),
        ({"tenant": None, "tenants": "b"}, "b", {"b"}),
        ({"tenant": None, "tenants": ["*"]}, None, {"*"}),
        ({"tenant": "a", "tenants": ["*"]}, "a", {"a", "*"}),
        ({"tenant": "../x", "tenants": [7, "b c"]}, None, set()),
    ],
)
def test_tenants_come_from_the_token(claims, home, tenants):
    found = authority().principal(signed({**CLAIMS, **claims}))
    assert found is not None
    assert (found.home, found.tenants) == (home, frozenset(tenants))


def test_a_published_key_set_is_fetched_once_and_kept_when_it_is_away():
    clock = ManualClock()
    key = ECKey.generate_key("P-256")
    answers = [json.dumps({"keys": [{**key.as_dict(private=False), "kid": "new"}]}).encode()]
    asked: list[int] = []

    def fetch() -> bytes:
        asked.append(1)
        return answers.pop()

    ring = KeyRing(fetch=fetch, fresh_s=300, clock=clock)
    judge = Authority(keys=ring, clock=CLOCK)
    token = signed(key=key, alg="ES256", kid="new")
    assert judge.principal(token) is None
    assert judge.needs_fetch(token)
    judge.fetch()
    assert judge.principal(token) is not None
    assert not judge.needs_fetch(signed(key=key, alg="ES256", kid="unknown"))  # asked a moment ago
    clock.advance(301)
    assert judge.needs_fetch(token)
    judge.fetch()  # the server is away now
    assert judge.principal(token) is not None
    judge.fetch()
    assert len(asked) == 2


@pytest.mark.parametrize("head", [{"kid": "k"}, {}])
def test_a_key_that_is_at_hand_and_published_is_one_key(head):
    key, other = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
    published = [{**key.as_dict(private=False), "kid": "k"}]
    ring = KeyRing([TrustedKey(key, "ES256", "k")], fetch=lambda: json.dumps({"keys": published}).encode())
    ring.refresh()
    judge = Authority(keys=ring, clock=CLOCK)
    assert judge.principal(signed(key=key, alg="ES256", **head)) is not None
    assert judge.principal(signed(key=other, alg="ES256", **head)) is None


def test_a_published_set_may_not_hold_secrets():
    secret = {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET.encode()).decode(), "alg": "HS256"}
    ring = KeyRing(fetch=lambda: json.dumps({"keys": [secret]}).encode())
    ring.refresh()
    assert Authority(keys=ring, clock=CLOCK).principal(signed()) is None


def test_weak_or_wrong_keys_are_refused_by_name(tmp_path):
    path = tmp_path / "key"
    path.write_text("short-secret")
    with pytest.raises(BadKey, match="32 bytes") as refused:
        key_from_file(path, "HS256", None)
    assert "short-secret" not in str(refused.value)
    with pytest.raises(BadKey, match="RS256"):
        key_from_file(path, "RS256", None)
    with pytest.raises(BadKey, match="JWK set"):
        keys_from_set(path)
    with pytest.raises(BadKey, match="cannot read"):
        key_from_file(tmp_path / "none", "HS256", None)


def test_a_made_token_is_kept_as_a_digest_only(tmp_path):
    tokens = TokenFile(tmp_path / "tokens.json")
    token, record = tokens.make("worker", scopes=["orch:read"], tenant="default")
    assert token not in (tmp_path / "tokens.json").read_text()
    assert stat.S_IMODE((tmp_path / "tokens.json").stat().st_mode) == 0o600
    assert tokens.find(token) == record
    assert tokens.find(token[:-1]) is None


def test_a_token_that_was_taken_back_or_ran_out_is_refused(tmp_path):
    clock = ManualClock()
    serving, command = TokenFile(tmp_path / "t.json", clock=clock), TokenFile(tmp_path / "t.json", clock=clock)
    token, record = command.make("a", scopes=["orch:read"], tenant=None)
    brief, _ = command.make("b", scopes=["orch:read"], tenant=None, ttl_s=60)
    assert serving.find(token)
    assert serving.find(brief)
    assert command.revoke(record.token_id)
    assert not command.revoke(record.token_id)
    clock.advance(61)
    assert serving.find(token) is None
    assert serving.find(brief) is None


def test_tokens_made_at_once_are_all_kept(tmp_path):
    files = [TokenFile(tmp_path / "t.json") for _ in range(8)]
    makers = [threading.Thread(target=file.make, args=(f"n{n}",), kwargs={"scopes": [], "tenant": None})
              for n, file in enumerate(files)]  # fmt: skip
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(30)
    assert len(files[0].list()) == 8


def test_a_file_that_holds_no_tokens_is_named(tmp_path):
    (tmp_path / "t.json").write_text("[]")
    with pytest.raises(BadTokenFile, match=r"t\.json"):
        TokenFile(tmp_path / "t.json").list()


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("Basic abc", None),
        ("Bearer", None),
        (None, None),
        ("abc", None),
    ],
)
def test_the_bearer_is_read_from_the_header(header, token):
    assert bearer(header) == token


def test_a_token_is_good_from_the_moment_it_is_made(tmp_path):
    """Also where the service has looked at its file just before."""
    served = TokenFile(tmp_path / "tokens.json", clock=ManualClock())
    assert served.find("dtk_unknown") is None
    token, made = TokenFile(tmp_path / "tokens.json").make("reader", scopes=["orch:read"], tenant="default")
    assert served.find(token) == made
