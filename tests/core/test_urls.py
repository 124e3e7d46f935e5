"""Canonical URLs: one address, one spelling."""

from __future__ import annotations

import re
import string
import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from DocsToKG.core import urls
from DocsToKG.core.urls import BadUrl, has_secret, host_key, index_url, join_url, mask_text, mask_url, request_url

PARTS = st.text(alphabet="abcXYZ019%/.?&=+~:@#é\\ -_", max_size=30)
URLS = st.builds(
    lambda scheme, host, port, rest: f"{scheme}://{host}{port}/{rest}",
    st.sampled_from(["http", "https", "HTTPS"]),
    st.sampled_from(["Example.ORG", "bücher.example", "xn--bcher-kva.example", "127.1", "a.b-c.org."]),
    st.sampled_from(["", ":80", ":443", ":8080"]),
    PARTS,
)


@pytest.mark.parametrize("port", ["", ":8080"])
def test_a_host_that_is_longer_than_any_name_is_none(port: str) -> None:
    """A page may link to anything; ledgers and reports refuse keys of any length, and a run would end on one."""
    name = ".".join(["a" * 48] * 5)
    assert host_key(f"https://{name}.org{port}/x") == f"{name}.org{port}"
    for form in (request_url, index_url, host_key):
        with pytest.raises(BadUrl, match="longer than any"):
            form(f"https://{name}.example.org{port}/x")
    with pytest.raises(BadUrl):
        join_url("https://a.org/", f"//{name}.example.org{port}/x")


@pytest.mark.slow
@given(URLS)
@example("https://a.org/%%34%31")
@example("https://a.org/?a=%2525&b=%7e")
def test_both_forms_are_idempotent(url: str) -> None:
    """URL-01, TEST-12."""
    for form in (request_url, index_url):
        try:
            once = form(url)
        except BadUrl:
            continue
        assert form(once) == once


@given(st.text(alphabet="%%%23456aAeEfF/", max_size=60))
@example("%%33" + "3" * 5)
@example("%%34%31")
@example("%%%33%35af")
def test_escapes_made_of_escapes_come_out_as_if_read_again_and_again(text: str) -> None:
    again = text
    while (once := re.sub("%([0-9a-fA-F]{2})", unescaped, again)) != again:
        again = once
    assert request_url(f"https://a.org/?q={text}") == f"https://a.org/?q={again}"


def unescaped(escape: re.Match[str]) -> str:
    letter = chr(int(escape[1], 16))
    return letter if letter in string.ascii_letters + string.digits + "-._~" else escape[0].upper()


def test_escapes_nested_without_end_cost_little() -> None:
    """A redirect or a link may be as long as a page."""
    begun = time.thread_time()
    assert request_url("https://a.org/" + "%" * 200_000 + "3" * 200_001) == "https://a.org/3"
    assert time.thread_time() - begun < 3


@given(
    st.builds(
        lambda host, rest: f"https://{host}{rest}",
        st.sampled_from(["a.org", "a--b.c", "x-.y", "a.xn--b", "1.2.3.x", "1.2.3", "a.0x1", "a..b", "a_b.c", "a.b."])
        | st.text(alphabet="ax0n-.", min_size=1, max_size=12),
        st.text(alphabet="/abcXYZ01._~!$&()*+,;=:@-?%#'é^", max_size=20).map(lambda rest: f"/{rest}"),
    )
)
@example("https://" + "a" * 300 + ".org/x")
@example("https://a.org")
@example("https://a.org/x\n")
def test_what_is_not_parsed_would_come_out_as_it_is(url: str) -> None:
    """Most addresses are canonical when they come; the parser must agree on each that is passed by it."""
    if urls.PLAIN_URL.fullmatch(url):
        assert urls.parsed_url(url) == url


@pytest.mark.parametrize(
    ("given_url", "wanted"),
    [
        ("HTTPS://Example.ORG:443", "https://example.org/"),
        ("http://example.org:80/a", "http://example.org/a"),
        ("https://example.org:8443/a", "https://example.org:8443/a"),
        ("https://example.org/a#part", "https://example.org/a"),
        ("https://user:pw@example.org/a", "https://example.org/a"),
        ("https://bücher.example/ü", "https://xn--bcher-kva.example/%C3%BC"),
        ("https://example.org/a/../b/./c", "https://example.org/b/c"),
        ("https://example.org/%7euser/%2f", "https://example.org/~user/%2F"),
        ("https://example.org/a/", "https://example.org/a/"),
        ("https://example.org/?b=2&a=1", "https://example.org/?b=2&a=1"),
        ("https://example.org/?", "https://example.org/"),
    ],
)
def test_request_form(given_url: str, wanted: str) -> None:
    """TEST-10, URL-02, URL-03, URL-04: the request keeps its order."""
    assert request_url(given_url) == wanted


@pytest.mark.parametrize(
    ("given_url", "wanted"),
    [
        ("https://example.org/?b=2&a=1", "https://example.org/?a=1&b=2"),
        ("https://example.org/?utm_source=x&id=7&gclid=1", "https://example.org/?id=7"),
        ("https://example.org/?utm%5Fsource=x", "https://example.org/"),
        ("https://example.org/?version=2&lang=en&download=1", "https://example.org/?download=1&lang=en&version=2"),
    ],
)
def test_index_form_sorts_and_drops_trackers_only(given_url: str, wanted: str) -> None:
    """TEST-10, URL-04, URL-05."""
    assert index_url(given_url) == wanted


@pytest.mark.parametrize("text", ["", "example.org", "ftp://a.org/", "javascript:alert(1)", "https://", "//a.org/x"])
def test_what_is_no_web_address_is_refused(text: str) -> None:
    with pytest.raises(BadUrl):
        request_url(text)


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://A.org/x", "a.org"),
        ("https://a.org:443/x", "a.org"),
        ("http://a.org:80/", "a.org"),
        ("http://u:p@a.org:8080/", "a.org:8080"),
        ("https://[::1]:444/", "[::1]:444"),
        ("https://0x7f.1/", "127.0.0.1"),
    ],
)
def test_host_key(url: str, key: str) -> None:
    """LIM-03."""
    assert host_key(url) == key


def test_links_are_joined_with_their_page() -> None:
    assert join_url("https://a.org/x/y", " ../z.pdf#page=2 ") == "https://a.org/z.pdf"
    with pytest.raises(BadUrl):
        join_url("https://a.org/", "mailto:me@a.org")


def test_secrets_are_masked() -> None:
    """SEC-04."""
    shown = mask_url("https://u:pw@a.org/f?api_key=SECRET&id=7&X-Amz-Signature=SECRET&email=me@a.org#x")
    assert shown == "https://a.org/f?api_key=***&id=7&X-Amz-Signature=***&email=***#x"
    assert mask_url("not a url") == "not a url"


@pytest.mark.parametrize(
    "name",
    [
        "access_key",
        "apiKey",
        "api%5Fkey",
        "subscription-key",
        "Key-Pair-Id",
        "AWSAccessKeyId",
        "auth",
        "auth_token",
        "Authorization",
        "oauth",
        "authorisation",
        "jwt",
        "id_jwt",
        "code",
        "session",
        "session_id",
        "PHPSESSID",
        "sid",
        "credential",
        "X-Amz-Credential",
        "X-Goog-Date",
        "Policy",
        "hdnea",
        "hdnts",
        "__hdnea__",
        "passwd",
        "password",
        "pwd",
        "client_secret",
        "Signature",
        "sig",
        "hmac",
        "ticket",
        "SAMLResponse",
        "email",
        "e-mail",
        "contact_email",
        "mailto",
        "user%20email",
    ],
)
def test_values_that_open_doors_or_name_people_are_masked(name: str) -> None:
    """SEC-04."""
    assert mask_url(f"https://a.org/f?x=1&{name}=SESAME&y=2") == f"https://a.org/f?x=1&{name}=***&y=2"
    assert mask_url(f"/f?{name.upper()}=SESAME") == f"/f?{name.upper()}=***"


@pytest.mark.parametrize(
    "name",
    [
        "author",
        "authors",
        "authority",
        "keyword",
        "keywords",
        "key-words",
        "monkey",
        "donkeys",
        "turkey",
        "keynote",
        "id",
        "doi",
        "page",
        "lang",
        "version",
        "download",
        "type",
        "q",
        "design",
        "passage",
        "codec",
        "encode",
        "policyid",
        "isbn",
        "articleId",
    ],
)
def test_ordinary_names_stay_readable(name: str) -> None:
    url = f"https://a.org/f?{name}=value"
    assert mask_url(url) == url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.org/x;jsessionid=SESAME/y;v=1?z=1", "https://a.org/x;jsessionid=***/y;v=1?z=1"),
        ("https://a.org/#access_token=SESAME&page=2", "https://a.org/#access_token=***&page=2"),
        ("https://a.org/?a=1&amp;token=SESAME", "https://a.org/?a=1&amp;token=***"),
        ("https://a.org/?a=1;token=SESAME", "https://a.org/?a=1;token=***"),
        ("https://a.org/?to=https%3A%2F%2Fb.org%3Ftoken%3DSESAME&v=1", "https://a.org/?to=***&v=1"),
        ("https://a.org/?to=https%253A%252F%252Fb.org%253Ftoken%253DSESAME", "https://a.org/?to=***"),
        ("https://a.org/?to=https%3A%2F%2Fb.org%2Fx", "https://a.org/?to=https%3A%2F%2Fb.org%2Fx"),
        ("https://a.org/?a=1?token=SESAME", "https://a.org/?a=***"),
        ("https://me:SESA", "https://***"),
        ("https://a.org:8443", "https://a.org:8443"),
        ("https://[::1]:444/", "https://[::1]:444/"),
        ("https://doi.org/10.1002/(SICI)1097-0258(19980815)17:15<1661::AID>3.0.CO;2-2", None),
        ("https://a.org/?token=", None),
    ],
)
def test_secrets_are_found_in_every_corner_of_a_url(url: str, shown: str | None) -> None:
    assert mask_url(url) == (url if shown is None else shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://me:SESAME@a.org/?token=SESAME and", "see https://a.org/?token=*** and"),
        ("(http://a.org/?key=SESAME)", "(http://a.org/?key=***"),
        ('{"url": "https://a.org/?id=7&sig=SESAME", "n": 1}', '{"url": "https://a.org/?id=7&sig=***", "n": 1}'),
        (r'{"url":"https:\/\/a.org\/?id=7\u0026sig=SESAME"}', '{"url":"https://a.org/?id=7&sig=***"}'),
        ("a.org/x?api_key=SESAME", "a.org/x?api_key=***"),
        ("<https://a.org/?token=SESAME>; rel=item", "<https://a.org/?token=***>; rel=item"),
        ("10.1000/a;b=c d@e.org", "10.1000/a;b=c d@e.org"),
    ],
)
def test_urls_inside_a_text_are_masked(text: str, shown: str) -> None:
    """SEC-04."""
    assert mask_text(text) == shown


@given(st.one_of(URLS, st.text(alphabet="abkeytoken?&;#=/:@%3D \\u0026", max_size=60)))
@example("\\\\/")
def test_masking_twice_is_masking_once(text: str) -> None:
    assert mask_url(mask_url(text)) == mask_url(text)
    assert mask_text(mask_text(text)) == mask_text(text)


@pytest.mark.parametrize(
    "part", [":a", "://", "://a:", "?a", "?a=?", "%25", "key", "?k=%25", ";", "@", "?monkey=", "a"]
)
def test_masking_a_hostile_text_costs_little(part: str) -> None:
    """SEC-07."""
    begun = time.thread_time()
    shown = mask_text(part * 100_000)
    mask_url("https://a.org/?" + part * 20_000)
    assert time.thread_time() - begun < 4
    assert len(shown) < 300_000


@pytest.mark.parametrize("url", ["a.org/?token=SESAME", "ftp://me:SESAME@a.org/?token=SESAME", "https://me:SESAME@"])
def test_a_refusal_shows_no_secret(url: str) -> None:
    """SEC-04."""
    with pytest.raises(BadUrl) as caught:
        request_url(url)
    assert "SESAME" not in str(caught.value)
    with pytest.raises(BadUrl) as caught:
        join_url("nowhere", url)
    assert "SESAME" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.org/x?utm_source=q&id=1&gclid=2", "https://a.org/x?id=1"),
        ("https://a.org/x?utm_source=q#s", "https://a.org/x#s"),
        ("https://a.org/x?UTM%5Fmedium=q&b=%20&a=1", "https://a.org/x?b=%20&a=1"),
        ("https://a.org/x?fbclid=1&api_key=k", "https://a.org/x?api_key=***"),
        ("https://a.org/x?id=1&&b", "https://a.org/x?id=1&&b"),
        ("https://a.org/x?utmost=1", "https://a.org/x?utmost=1"),
        ("https://a.org/x#?utm_source=q", "https://a.org/x#?utm_source=q"),
    ],
)
def test_what_is_written_down_follows_no_reader_around(url: str, shown: str) -> None:
    """SEC-02: tracking parameters go, everything else stays as it was."""
    assert mask_url(url) == shown
    assert mask_url(shown) == shown
    assert has_secret(url) == ("***" in shown)


@given(st.text(alphabet="ab=?:/;&#@ \n<'%token", max_size=60))
@example("see ;token=a now")
@example("x?utm_source")
@example("http://u:p@h")
def test_a_word_is_masked_in_a_text_as_it_is_alone(text: str) -> None:
    words = re.split(r"([\s<>\"'`]+)", text)
    assert mask_text(text) == "".join(mask_url(word) if at % 2 == 0 else word for at, word in enumerate(words))
