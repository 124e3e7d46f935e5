"""Canonical URLs: one address, one spelling."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from DocsToKG.core.urls import BadUrl, host_key, index_url, join_url, mask_url, request_url

PARTS = st.text(alphabet="abcXYZ019%/.?&=+~:@#é\\ -_", max_size=30)
URLS = st.builds(
    lambda scheme, host, port, rest: f"{scheme}://{host}{port}/{rest}",
    st.sampled_from(["http", "https", "HTTPS"]),
    st.sampled_from(["Example.ORG", "bücher.example", "xn--bcher-kva.example", "127.1", "a.b-c.org."]),
    st.sampled_from(["", ":80", ":443", ":8080"]),
    PARTS,
)


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
    """URL-02, URL-03, URL-04: the request keeps its order."""
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
    """URL-04, URL-05."""
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
