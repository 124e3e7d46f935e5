"""Proxies of every kind: what they are told, with whose name, and what the guard still judges."""

from __future__ import annotations

import base64
import socket

import httpx2
import pytest
from tests.transport.curl_support import OK, ask, get, open_engine, run

from DocsToKG.transport.errors import AddressRefused
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.names import StaticNames
from DocsToKG.transport.proxy import Proxies


def fetch(proxies, url, *, count=1, **options):
    async def main():
        found = Proxies(proxies)
        async with open_engine(proxies=found, **options) as engine:
            return [await get(engine, url) for _ in range(count)]

    return run(main())


def answer_all(talk):
    while talk.read_request():
        talk.send(OK)


def test_http_goes_to_the_proxy_in_absolute_form(serve):
    server = serve(answer_all)
    proxies = {"http_proxy": f"http://u:p%40ss@127.0.0.1:{server.port}"}
    assert fetch(proxies, "http://papers.example.org:8080/a?b=1", count=2) == [b"hello"] * 2
    lines = server.requests[0].split(b"\r\n")
    assert lines[0] == b"GET http://papers.example.org:8080/a?b=1 HTTP/1.1"
    assert b"Host: papers.example.org:8080" in lines
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"u:p@ss") in lines
    assert server.connections == 1


def test_a_proxy_with_a_name_is_looked_up_by_us(serve):
    server = serve(answer_all)
    names = StaticNames({"proxy.intern": ["127.0.0.1"]})
    assert fetch({"http_proxy": f"proxy.intern:{server.port}"}, "http://papers.example.org/", names=names) == [b"hello"]


def test_https_asks_the_proxy_for_a_tunnel_and_a_refusal_is_a_proxy_error(serve):
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")

    server = serve(script)

    async def main():
        async with open_engine(proxies=Proxies({"https_proxy": f"http://127.0.0.1:{server.port}"})) as engine:
            secret = [("Authorization", "Bearer hunter2")]
            await engine.fetch(ask("https://papers.example.org/secret-path", headers=secret))

    with pytest.raises(httpx2.ProxyError, match="407") as error:
        run(main())
    assert "secret-path" not in str(error.value)
    assert server.requests[0].split(b"\r\n")[0] == b"CONNECT papers.example.org:443 HTTP/1.1"
    assert b"hunter2" not in server.requests[0]


def test_bytes_before_the_tunnel_is_secured_are_refused(serve):
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 Connection established\r\n\r\n" + OK)
        talk.wait_until_client_leaves()

    with pytest.raises(httpx2.TransportError):
        fetch({"https_proxy": f"http://127.0.0.1:{serve(script).port}"}, "https://papers.example.org/")


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_cannot_be_reached_or_says_nothing_is_an_error(serve, scheme):
    silent = serve(lambda talk: talk.read_request() and None)
    with pytest.raises(httpx2.TransportError):
        fetch({"all_proxy": f"http://127.0.0.1:{silent.port}"}, f"{scheme}://papers.example.org/")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(httpx2.ProxyError):
        fetch({"all_proxy": f"http://127.0.0.1:{port}"}, f"{scheme}://papers.example.org/")


@pytest.mark.parametrize("url", ["http://127.0.0.1/", "https://0x7f.1/", "http://localhost/", "http://vault.internal/"])
@pytest.mark.parametrize("kind", ["http", "socks5h", "socks5"])
def test_private_hosts_are_not_asked_of_a_proxy(serve, kind, url):
    """SEC-05: behind a proxy that looks names up, the name or literal is all there is to judge."""
    server = serve(answer_all)
    names = StaticNames({"localhost": ["127.0.0.1"], "vault.internal": ["10.0.0.1"]})
    with pytest.raises(AddressRefused):
        fetch({"all_proxy": f"{kind}://127.0.0.1:{server.port}"}, url, names=names)
    assert server.connections == 0


def socks5(asked, *, user=None):
    """A SOCKS5 proxy that answers the request itself."""

    def script(talk):
        _, count = talk.read_bytes(2)
        methods = talk.read_bytes(count)
        if user is not None:
            assert 2 in methods
            talk.send(b"\x05\x02")
            talk.read_bytes(1)
            name = talk.read_bytes(talk.read_bytes(1)[0])
            password = talk.read_bytes(talk.read_bytes(1)[0])
            asked.append((name, password))
            talk.send(b"\x01\x00")
        else:
            talk.send(b"\x05\x00")
        _, _, _, kind = talk.read_bytes(4)
        host = talk.read_bytes(4) if kind == 1 else talk.read_bytes(talk.read_bytes(1)[0])
        asked.append((kind, host, int.from_bytes(talk.read_bytes(2), "big")))
        talk.send(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50")
        answer_all(talk)

    return script


def test_socks5h_is_given_the_name_and_our_credentials(serve):
    asked = []
    server = serve(socks5(asked, user="u"))
    proxies = {"http_proxy": f"socks5h://u:p%40ss@127.0.0.1:{server.port}"}
    assert fetch(proxies, "http://papers.example.org:8080/a", count=2) == [b"hello"] * 2
    assert asked == [(b"u", b"p@ss"), (3, b"papers.example.org", 8080)]
    assert server.requests[0].startswith(b"GET /a HTTP/1.1")
    assert server.connections == 1


def test_socks5_is_given_an_address_that_we_looked_up_and_judged(serve):
    asked = []
    server = serve(socks5(asked))
    names = StaticNames({"*": ["93.184.216.34"]})
    assert fetch({"http_proxy": f"socks5://127.0.0.1:{server.port}"}, "http://papers.example.org/", names=names)
    assert asked == [(1, bytes([93, 184, 216, 34]), 80)]
    private = StaticNames({"*": ["10.0.0.1"]})
    with pytest.raises(AddressRefused):
        fetch({"http_proxy": f"socks5://127.0.0.1:{server.port}"}, "http://papers.example.org/", names=private)


def test_the_environment_is_not_read(serve, monkeypatch):
    """NOPROXY of the environment would count even where a proxy is set by us."""
    server, proxy = serve(answer_all), serve(answer_all)
    for name in ("http_proxy", "all_proxy", "ALL_PROXY", "https_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    url = f"http://papers.example.org:{server.port}/"
    direct = {"names": StaticNames({"*": ["127.0.0.1"]}), "guard": AddressGuard(allow_networks=["127.0.0.0/8"])}
    assert fetch({}, url, **direct) == [b"hello"]
    assert (server.connections, proxy.connections) == (1, 0)
    monkeypatch.setenv("no_proxy", "*")
    assert fetch({"http_proxy": f"127.0.0.1:{proxy.port}"}, url, **direct) == [b"hello"]
    assert (server.connections, proxy.connections) == (1, 1)


def test_hosts_that_the_operator_exempts_are_reached_directly(serve):
    server, proxy = serve(answer_all), serve(answer_all)
    url = f"http://papers.example.org:{server.port}/"
    proxies = {"http_proxy": f"127.0.0.1:{proxy.port}", "no_proxy": "example.org"}
    direct = {"names": StaticNames({"*": ["127.0.0.1"]}), "guard": AddressGuard(allow_networks=["127.0.0.0/8"])}
    assert fetch(proxies, url, **direct) == [b"hello"]
    assert (server.connections, proxy.connections) == (1, 0)


@pytest.mark.parametrize("value", ["ftp://u:hunter2@p:1", "socks5://u:hunter2@p:port", "socks5://"])
def test_a_proxy_that_libcurl_cannot_use_is_refused_without_its_password(value):
    with pytest.raises(ValueError, match="https_proxy") as error:
        Proxies({"HTTPS_PROXY": value})
    assert "hunter2" not in str(error.value)
