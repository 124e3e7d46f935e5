"""The polite client on its way: every hop has a gate, rules and credentials of its own."""

from __future__ import annotations

import httpx2
import pytest
from tests.contentdownload.polite_rig import PDF, URL, Answer, Rig, given_rig, not_found, pdf, redirect  # noqa: F401

from DocsToKG.ContentDownload.api.types import Reason
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.net.policy import HostCredentials


def test_every_redirect_hop_passes_its_own_hosts_gate_and_robots(rig: Rig) -> None:
    """NET-12: the commonest path is doi.org to a publisher."""

    def site(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/robots.txt":
            return not_found()
        return redirect("https://pub.org/landing") if request.url.host == "doi.org" else pdf()

    rig.site = site
    client = rig.client(robots=True)
    opened = rig.open(client, "https://doi.org/10.1/x")
    rig.close(opened)
    assert [gate.url for gate in rig.gates] == [
        "https://doi.org/robots.txt",
        "https://doi.org/10.1/x",
        "https://pub.org/robots.txt",
        "https://pub.org/landing",
    ]
    assert [(hop.url, hop.status) for hop in opened.hops] == [
        ("https://doi.org/10.1/x", 302),
        ("https://pub.org/landing", 200),
    ]
    assert rig.slots_are_free()


def test_a_redirect_to_a_disallowed_page_is_not_followed(rig: Rig) -> None:
    """ROB-03"""

    def site(request: httpx2.Request) -> httpx2.Response:
        if request.url.path == "/robots.txt":
            rules = b"User-agent: *\nDisallow: /private" if request.url.host == "pub.org" else b""
            return httpx2.Response(200, content=rules)
        return redirect("https://pub.org/private/a.pdf")

    rig.site = site
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(robots=True), "https://doi.org/10.1/x")
    assert caught.value.reason == Reason.ROBOTS
    assert "https://pub.org/private/a.pdf" not in [str(request.url) for request in rig.requests]
    assert rig.tokens()[-1] == ("robots-disallowed", None, "robots")


def test_a_redirect_loop_is_named(rig: Rig) -> None:
    rig.site = lambda request: redirect("https://a.org/2" if request.url.path == "/1" else "https://a.org/1")
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(), "https://a.org/1")
    assert caught.value.reason == Reason.REDIRECT_LOOP
    assert len(rig.requests) == 2
    assert rig.slots_are_free()


def test_ten_redirects_are_followed_and_eleven_are_too_many(rig: Rig) -> None:
    """NET-09"""

    def site(request: httpx2.Request) -> httpx2.Response:
        step = int(request.url.path[1:])
        return pdf() if step == 0 else redirect(f"https://a.org/{step - 1}")

    rig.site = site
    assert rig.download(rig.client(), "https://a.org/10") == PDF
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(), "https://a.org/11")
    assert caught.value.reason == Reason.TOO_MANY_REDIRECTS


@pytest.mark.parametrize("most", [0, 3])
def test_the_number_of_redirects_can_be_set(rig: Rig, most: int) -> None:
    def site(request: httpx2.Request) -> httpx2.Response:
        number = int(request.url.path.strip("/"))
        return redirect(f"https://a.org/{number - 1}") if number else pdf()

    rig.site = site
    client = rig.client(max_redirects=most)
    assert rig.download(client, f"https://a.org/{most}") == PDF
    with pytest.raises(CandidateRejected) as caught:
        rig.download(client, f"https://a.org/{most + 1}")
    assert caught.value.reason == Reason.TOO_MANY_REDIRECTS


def test_a_site_may_set_a_cookie_and_send_us_back_to_the_same_url(rig: Rig) -> None:
    def site(request: httpx2.Request) -> httpx2.Response:
        return pdf() if "seen=1" in request.headers.get("cookie", "") else redirect(URL, **{"set-cookie": "seen=1"})

    rig.site = site
    client = rig.client()
    assert rig.download(client) == PDF
    assert rig.download(client) == PDF
    assert ["cookie" in request.headers for request in rig.requests] == [False, True, False, True]


def test_credentials_stay_on_their_host(rig: Rig) -> None:
    """NET-13: neither the key we add, nor the headers of the source, nor a key copied into the redirect."""
    held = {"api.org": HostCredentials(headers={"x-api-key": "s3cret"}, params={"api_key": "t0psecret"})}
    rig.site = lambda request: (
        redirect("https://cdn.org/f.pdf?api_key=t0psecret&email=me%40x.org&v=2")
        if request.url.host == "api.org"
        else pdf()
    )
    client = rig.client(credentials=held, headers={"X-Token": "s3cret"})
    rig.download(client, "https://api.org/f?email=me%40x.org")
    first, second = rig.requests
    assert first.headers["x-api-key"] == "s3cret"
    assert "api_key=t0psecret" in str(first.url)
    assert str(second.url) == "https://cdn.org/f.pdf?v=2"
    assert not {"x-api-key", "x-token"} & set(second.headers)
    assert second.headers["user-agent"].startswith("DocsToKG/")


def test_an_http_link_is_asked_as_https_first(rig: Rig) -> None:
    """NET-10"""
    rig.site = lambda request: pdf()
    rig.download(rig.client(), "http://old.org:8080/a.pdf")
    assert str(rig.requests[0].url) == "https://old.org:8080/a.pdf"


def test_plain_http_is_tried_only_for_listed_hosts(rig: Rig) -> None:
    """NET-10"""
    rig.site = lambda request: pdf() if request.url.scheme == "http" else httpx2.ConnectError("refused")
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(), "http://old.org/a.pdf")
    assert caught.value.reason == Reason.SECURITY_POLICY
    assert {request.url.scheme for request in rig.requests} == {"https"}
    assert rig.download(rig.client(http_hosts=("old.org",)), "http://old.org/a.pdf") == PDF


def test_a_listed_host_without_https_is_reached_although_its_https_rules_are_not(rig: Rig) -> None:
    """NET-10, ROB-07"""

    def site(request: httpx2.Request) -> Answer:
        if request.url.scheme == "https":
            return httpx2.ConnectError("refused")
        return not_found() if request.url.path == "/robots.txt" else pdf()

    rig.site = site
    assert rig.download(rig.client(robots=True, http_hosts=("old.org",)), "http://old.org/a.pdf") == PDF
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(robots=True), "http://old.org/a.pdf")
    assert caught.value.reason == Reason.SECURITY_POLICY


def test_an_unreadable_robots_file_sends_the_work_back_for_later(rig: Rig) -> None:
    """ROB-07"""
    rig.site = lambda request: httpx2.Response(503)
    with pytest.raises(TransientFailure) as caught:
        rig.download(rig.client(robots=True))
    assert (caught.value.reason, caught.value.retry_after_s) == (Reason.ROBOTS, pytest.approx(300.0))
    assert {request.url.path for request in rig.requests} == {"/robots.txt"}


def test_a_site_that_turns_https_into_http_is_refused_unless_listed(rig: Rig) -> None:
    rig.site = lambda request: pdf() if request.url.scheme == "http" else redirect("http://old.org/a.pdf")
    with pytest.raises(CandidateRejected) as caught:
        rig.download(rig.client(), "https://old.org/a.pdf")
    assert caught.value.reason == Reason.SECURITY_POLICY
    assert rig.download(rig.client(http_hosts=("old.org",)), "https://old.org/a.pdf") == PDF
