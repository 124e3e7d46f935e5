"""Pages that are not the paper are told apart by their first bytes."""

from __future__ import annotations

import time

import pytest

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.api.walls import SIGNS, Sight, Wall, first_wall
from DocsToKG.ContentDownload.resolvers.landing.page import extract
from DocsToKG.ContentDownload.validation.page_kinds import classify_body


def page(body: str, title: str = "x") -> bytes:
    return f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body>{body}</body></html>".encode()


ARTICLE = "<p>Long words of a landing page. </p>" * 1000

CASES = [
    (page("", "Just a moment..."), Reason.CHALLENGE),
    (page('<script src="https://challenges.cloudflare.com/x.js"></script>'), Reason.CHALLENGE),
    (page("Reference #18 https://errors.edgesuite.net/18.1", "Access Denied"), Reason.CHALLENGE),
    (page('<div class="h-captcha hcaptcha"></div>'), Reason.CHALLENGE),
    (page("", "Making sure you&#39;re not a bot!"), Reason.CHALLENGE),
    (page("Are you a robot? Please confirm."), Reason.CHALLENGE),
    (page('<a href="/action/cookieAbsent">go</a>'), Reason.COOKIE_WALL),
    (page("Please enable JavaScript to view this page."), Reason.COOKIE_WALL),
    (page('<div id="root"></div><script src="/main.js"></script>'), Reason.COOKIE_WALL),
    (page('<form><input type="hidden" name="SAMLRequest" value="x"></form>'), Reason.LOGIN_WALL),
    (page('<form><input type="password" name="p"></form>'), Reason.LOGIN_WALL),
    (page(ARTICLE + "Purchase article or Get access"), Reason.PAYWALL),
    (page("Preparing to download ..."), Reason.INTERSTITIAL),
    (page('<meta http-equiv="refresh" content="0; url=/next">'), Reason.INTERSTITIAL),
    (page('<iframe src="/doi/pdfdirect/10.1/x"></iframe>'), Reason.INTERSTITIAL),
    (page(ARTICLE), Reason.HTML_INSTEAD_OF_PDF),
]


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_each_kind_of_page_has_its_reason(body, expected):
    assert classify_body(body, content_type="text/html") == expected


@pytest.mark.parametrize(("body", "expected"), CASES)
def test_the_bytes_decide_when_the_header_says_pdf(body, expected):
    assert classify_body(b"\xef\xbb\xbf  \r\n" + body, content_type="application/pdf") == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://idp.example.org/sso?SAMLRequest=abc", Reason.LOGIN_WALL),
        ("https://example.org/login?next=/pdf", Reason.LOGIN_WALL),
        ("https://example.org/action/cookieAbsent", Reason.COOKIE_WALL),
        ("https://example.org/a?error=cookies_not_supported&code=1", Reason.COOKIE_WALL),
        ("https://linkinghub.elsevier.com/retrieve/pii/S1", Reason.INTERSTITIAL),
        ("https://example.org/doi/epdf/10.1/x", Reason.INTERSTITIAL),
        ("https://example.org/article/blogin", Reason.HTML_INSTEAD_OF_PDF),
    ],
)
def test_the_address_where_the_page_was_met_tells(url, expected):
    assert classify_body(page(ARTICLE), content_type="text/html", url=url) == expected


def test_headers_and_status_tell_what_the_page_hides():
    plain = page(ARTICLE)
    assert classify_body(plain, headers={"cf-mitigated": "challenge"}) == Reason.CHALLENGE
    assert classify_body(plain, status=403, headers={"server": "cloudflare"}) == Reason.CHALLENGE
    assert classify_body(plain, status=202) == Reason.CHALLENGE
    assert classify_body(plain, status=403, headers={"server": "nginx"}) == Reason.HTML_INSTEAD_OF_PDF


def test_an_article_page_with_a_captcha_script_and_a_login_form_is_an_ordinary_page():
    body = page(ARTICLE + '<script src="/recaptcha/api.js"></script><input type="password"><noscript>Enable JavaScript')
    assert classify_body(body) == Reason.HTML_INSTEAD_OF_PDF


def test_a_page_that_offers_a_pdf_is_not_a_paywall():
    body = page(ARTICLE + '<meta name="citation_pdf_url" content="/x.pdf">Get access')
    assert classify_body(body) == Reason.HTML_INSTEAD_OF_PDF


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"%PDF-1.7\n<html>",
        b"\r\n\r\n%PDF-1.4\n",
        b"\x89PNG\r\n",
        b'<?xml version="1.0"?><article><front/></article>',
        b'{"error": "not found"}',
    ],
)
def test_what_is_no_page_gets_no_name(body):
    assert classify_body(body, content_type="application/pdf") is None


def test_a_pdf_is_never_a_page_whatever_the_header_says():
    assert classify_body(b"%PDF-1.7\n...", content_type="text/html") is None


def test_text_sent_as_html_without_markup_is_a_page():
    assert classify_body(b"Not available.", content_type="text/html; charset=utf-8") == Reason.HTML_INSTEAD_OF_PDF


def test_wide_characters_are_read():
    body = "<html><title>Just a moment...</title>".encode("utf-16")
    assert classify_body(body) == Reason.CHALLENGE


@pytest.mark.parametrize(
    "hostile",
    [
        b"<!---->" * 10_000,
        b"<!--" * 20_000,
        b"<div>" * 40_000,
        b"<iframe " * 9000,
        b"<meta" * 14_000,
        b"<title>" * 9999,
    ],
)
def test_hostile_markup_costs_little(hostile):
    """SEC-07: no nesting or repetition makes the look at a page slow."""
    begun = time.thread_time()
    classify_body(hostile, content_type="text/html")
    classify_body(b"<html>" + hostile, content_type="text/html")
    assert time.thread_time() - begun < 4


@pytest.mark.parametrize(
    ("body", "url", "kind"),
    [
        (page("", "Client Challenge"), "", "challenge"),
        (page("", "Human Verification"), "", "challenge"),
        (page('<script src="https://token.awswaf.com/x.js"></script>'), "", "challenge"),
        (page("Our systems saw unusual traffic."), "", "challenge"),
        (page('<iframe src="/_Incapsula_Resource?x"></iframe>'), "", "challenge"),
        (page("Cookies are disabled in your browser."), "", "cookie-wall"),
        (page("This site requires JavaScript."), "", "cookie-wall"),
        (page("words"), "https://a.org/login/institution", "login-wall"),
        (page("words"), "https://auth.a.org/start", "login-wall"),
        (page("words"), "https://a.org/Shibboleth.sso/x", "login-wall"),
        (page("Your download should begin at once."), "", "interstitial"),
        (page("words"), "https://a.org/doi/reader/10.1/x", "interstitial"),
        (page(ARTICLE + '<script src="/cdn-cgi/challenge-platform/scripts/jsd/main.js"></script>'), "", None),
        (page(ARTICLE + '<script src="https://js.datadome.co/tags.js"></script>'), "", None),
        (page(ARTICLE, "Defending hosts against DDoS and CAPTCHA farms"), "", None),
    ],
)
def test_both_judges_of_pages_see_the_same_walls(body, url, kind):
    """One meets pages where a file was asked for, the other where a landing page was."""
    url = url or "https://a.org/x"
    judged = classify_body(body, content_type="text/html", url=url)
    assert judged == (kind or Reason.HTML_INSTEAD_OF_PDF)
    landed = extract(url, body, {"content-type": "text/html"}, status=200).kind
    assert landed == (kind or "other")


def test_a_paywall_is_a_paywall_to_both_judges():
    body = page(ARTICLE + "Rent this article, or log in to access it.")
    assert classify_body(body, content_type="text/html") == Reason.PAYWALL
    assert extract("https://a.org/x", body, {"content-type": "text/html"}, status=200).kind == "paywall"


def test_every_kind_of_wall_is_a_reason_of_the_record():
    assert {Reason(wall.value) for wall in Wall} <= set(Reason)


def test_doubtful_signs_count_on_short_pages_of_a_guard_and_not_on_honest_errors():
    captcha = page('<div class="g-recaptcha"></div>')
    assert classify_body(captcha, status=403) == Reason.CHALLENGE
    assert classify_body(captcha, status=404) == Reason.HTML_INSTEAD_OF_PDF


def test_every_kind_of_wall_has_signs_and_signs_are_written_as_they_are_compared():
    assert {sign.wall for sign in SIGNS} == set(Wall)
    nothing = Sight(text="", url="", title="", short=True, bare=True)
    assert first_wall(nothing) is None
    assert all(sign.pattern == sign.pattern.lower() for sign in SIGNS)
