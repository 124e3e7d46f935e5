"""Proxies: which one, what it is told, and what the guard still judges."""

from __future__ import annotations

import base64

import httpx2
import pytest

from DocsToKG.transport.errors import AddressRefused
from DocsToKG.transport.proxy import Proxies, Proxy

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def test_each_scheme_has_its_proxy():
    proxies = Proxies({"HTTP_PROXY": "http://one:3128", "https_proxy": "two:8080", "HTTPS_PROXY": "http://three:1"})
    assert proxies.proxy_for("http", "a.org", 80) == Proxy("one", 3128)
    assert proxies.proxy_for("https", "a.org", 443) == Proxy("two", 8080)


def test_all_proxy_stands_in_and_nothing_set_means_no_proxy():
    assert Proxies({"ALL_PROXY": "http://p:1"}).proxy_for("https", "a.org", 443) == Proxy("p", 1)
    assert Proxies({}).proxy_for("http", "a.org", 80) is None


@pytest.mark.parametrize(
    ("exceptions", "host", "port", "direct"),
    [
        ("example.org", "example.org", 80, True),
        ("example.org", "a.example.org", 80, True),
        (".example.org", "a.example.org", 80, True),
        ("*.example.org", "a.example.org", 80, True),
        ("example.org", "badexample.org", 80, False),
        ("example.org:8080", "example.org", 8080, True),
        ("example.org:8080", "example.org", 80, False),
        ("10.0.0.0/8, ::1", "10.3.2.1", 80, True),
        ("10.0.0.0/8, ::1", "::1", 80, True),
        ("10.0.0.0/8", "11.0.0.1", 80, False),
        ("a.org, *", "b.org", 80, True),
        (" , ", "b.org", 80, False),
    ],
)
def test_no_proxy_names_hosts_that_are_reached_directly(exceptions, host, port, direct):
    proxies = Proxies({"http_proxy": "http://p:1", "NO_PROXY": exceptions})
    assert (proxies.proxy_for("http", host, port) is None) is direct


@pytest.mark.parametrize(
    "value", ["https://u:hunter2@p:1", "socks5://u:hunter2@p:1", "http://u:hunter2@p:port", "http://"]
)
def test_a_proxy_we_cannot_use_is_refused_without_its_password(value):
    with pytest.raises(ValueError, match="https_proxy") as error:
        Proxies({"HTTPS_PROXY": value})
    assert "hunter2" not in str(error.value)


def test_the_variable_at_fault_is_named():
    with pytest.raises(ValueError, match="all_proxy must be an http:// proxy URL"):
        Proxies({"HTTP_PROXY": "http://p:1", "ALL_PROXY": "socks5://p:1080"})


def test_a_proxy_does_not_show_its_password():
    assert "aHVudGVy" not in repr(Proxies({"http_proxy": "http://u:hunter2@p:1"}).proxy_for("http", "a.org", 80))
    assert "Basic" not in repr(Proxies({"http_proxy": "http://u:hunter2@p:1"}).proxy_for("http", "a.org", 80))


def test_http_goes_to_the_proxy_in_absolute_form(serve, reach):
    def script(talk):
        while talk.read_request():
            talk.send(OK)

    server = serve(script)
    client = reach(proxies=Proxies({"http_proxy": f"http://u:p%40ss@127.0.0.1:{server.port}"}))
    for _ in range(2):
        assert client.get("http://papers.example.org:8080/a?b=1").content == b"ok"
    lines = server.requests[0].split(b"\r\n")
    assert lines[0] == b"GET http://papers.example.org:8080/a?b=1 HTTP/1.1"
    assert b"Host: papers.example.org:8080" in lines
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"u:p@ss") in lines
    assert server.connections == 1


def test_https_asks_the_proxy_for_a_tunnel_and_a_refusal_is_a_proxy_error(serve, reach):
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    server = serve(script)
    client = reach(proxies=Proxies({"https_proxy": f"http://127.0.0.1:{server.port}"}))
    with pytest.raises(httpx2.ProxyError, match="407"):
        client.get("https://papers.example.org/secret-path", headers={"Authorization": "Bearer hunter2"})
    assert server.requests[0].split(b"\r\n")[0] == b"CONNECT papers.example.org:443 HTTP/1.1"
    assert b"hunter2" not in server.requests[0]


def test_bytes_before_the_tunnel_is_secured_are_refused(serve, reach):
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 Connection established\r\n\r\n" + OK)
        talk.wait_until_client_leaves()

    client = reach(proxies=Proxies({"https_proxy": f"http://127.0.0.1:{serve(script).port}"}))
    with pytest.raises(httpx2.ProxyError):
        client.get("https://papers.example.org/")


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "https://0x7f.1/", "http://localhost/", "http://vault.internal/"])
def test_private_hosts_are_not_asked_of_a_proxy(packets, reach, url):
    """SEC-05: behind a proxy the name or literal is all there is to judge."""
    client = reach(proxies=Proxies({"all_proxy": "http://127.0.0.1:9"}))
    with pytest.raises(AddressRefused):
        client.get(url)
    assert packets == []


def test_the_tunnel_is_closed_to_a_proxy_that_says_nothing(serve, reach):
    client = reach(proxies=Proxies({"https_proxy": f"http://127.0.0.1:{serve(lambda talk: talk.read_request()).port}"}))
    with pytest.raises(httpx2.ProxyError):
        client.get("https://papers.example.org/")
