"""NET-11: certificates are proved for the logical host, each failure has its name, and kept connections are clean."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from tests.transport.certificates import make_certificate
from tests.transport.curl_support import OK, ask, get, open_engine, run

from DocsToKG.transport.curl.trust import TrustStore, machine_trust_store
from DocsToKG.transport.errors import (
    BodyTooShort,
    CertificateExpired,
    CertificateForAnotherName,
    CertificateUntrusted,
    ConnectionWentStale,
    DeadlineExceeded,
    TlsHandshakeFailed,
    TrustStoreUnreadable,
)
from DocsToKG.transport.proxy import Proxies

URL = "https://papers.example.org/a.pdf"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return make_certificate(tmp_path_factory.mktemp("tls"), "papers.example.org")


def secure(certificate, answer=OK, *, cut=False):
    def script(talk):
        talk.start_tls(certificate.server_side())
        while talk.read_request():
            talk.send(answer)
            if cut:
                talk.cut()
                return

    return script


def fetch(server, *, url=URL, count=1, **options):
    async def main():
        async with open_engine(server, tls=True, **options) as engine:
            return [await get(engine, url) for _ in range(count)]

    return run(main())


def test_the_right_name_is_accepted_and_the_connection_kept(serve, certificate):
    server = serve(secure(certificate))
    assert fetch(server, count=3, trust=certificate.trust) == [b"hello"] * 3
    assert server.connections == 1


def test_a_certificate_for_another_name_is_refused(serve, certificate):
    server = serve(secure(certificate))
    with pytest.raises(CertificateForAnotherName, match=r"other\.example\.org"):
        fetch(server, url="https://other.example.org/", trust=certificate.trust)
    assert server.requests == []


@pytest.mark.parametrize(("starts", "ends"), [(-9, -1), (1, 9)], ids=["expired", "not-yet"])
def test_a_certificate_out_of_date_is_refused(serve, tmp_path, starts, ends):
    old = make_certificate(tmp_path, "papers.example.org", starts_in_days=starts, ends_in_days=ends)
    server = serve(secure(old))
    with pytest.raises(CertificateExpired):
        fetch(server, trust=old.trust)
    assert server.requests == []


def test_an_unknown_authority_is_refused_by_default(serve, certificate):
    server = serve(secure(certificate))
    with pytest.raises(CertificateUntrusted):
        fetch(server)
    assert server.requests == []


def test_a_server_that_speaks_no_tls_is_a_handshake_failure(serve, certificate):
    server = serve(lambda talk: talk.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with pytest.raises(TlsHandshakeFailed):
        fetch(server, trust=certificate.trust)


def test_a_missing_file_of_authorities_is_named(serve, certificate, tmp_path):
    with pytest.raises(TrustStoreUnreadable):
        fetch(serve(secure(certificate)), trust=TrustStore(str(tmp_path / "none.pem")))


def test_the_machines_store_is_used_where_there_is_one_else_certifis(monkeypatch, tmp_path):
    own = tmp_path / "own.pem"
    own.write_text("")
    monkeypatch.setenv("SSL_CERT_FILE", str(own))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path / "none"))
    assert machine_trust_store() == TrustStore(str(own), None)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    assert machine_trust_store().file.endswith("cacert.pem")


def test_a_large_body_comes_through_whole(serve, certificate):
    body = bytes(range(256)) * 8000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    assert fetch(serve(secure(certificate, answer)), trust=certificate.trust) == [body]


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n50\r\n",
    ],
    ids=["until-close", "length", "chunked"],
)
def test_a_stream_cut_below_tls_is_too_short(serve, certificate, head):
    with pytest.raises(BodyTooShort):
        fetch(serve(secure(certificate, head + b"part", cut=True)), trust=certificate.trust)


def test_a_body_until_a_clean_close_is_whole(serve, certificate):
    def script(talk):
        talk.start_tls(certificate.server_side())
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        talk.sock.unwrap()

    assert fetch(serve(script), trust=certificate.trust) == [b"all of it"]


def test_a_handshake_that_never_ends_meets_the_deadline(serve, certificate):
    server = serve(lambda talk: talk.wait_until_client_leaves())

    async def main():
        async with open_engine(server, tls=True, trust=certificate.trust) as engine:
            with pytest.raises(DeadlineExceeded):
                await engine.fetch(ask(URL, deadline=time.monotonic() + 0.1))
            assert await asyncio.to_thread(server.client_left.wait, 5)

    run(main())


def test_a_reader_that_waits_in_tls_is_freed_by_cancel(serve, certificate):
    def script(talk):
        talk.start_tls(certificate.server_side())
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\npart")
        talk.wait_until_client_leaves()

    server = serve(script)

    async def main():
        async with open_engine(server, tls=True, trust=certificate.trust) as engine:
            response = await engine.fetch(ask(URL))
            assert await anext(response) == b"part"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await anext(response)
            assert await asyncio.to_thread(server.client_left.wait, 5)

    run(main())


@pytest.fixture
def far(monkeypatch):
    """The server of the test counts as one on another machine."""
    monkeypatch.setattr("DocsToKG.transport.curl.connections.is_near", lambda address: False)


@pytest.mark.parametrize("size", [5, 50_000])
@pytest.mark.parametrize("how", ["one-record", "same-flight", "late"])
def test_bytes_left_over_in_a_kept_tls_connection_never_become_the_next_response(far, serve, certificate, size, how):
    """They may be decrypted already, where no look at the socket shows them. No server a network away answers within
    the call that asks."""
    evil = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL"
    whole = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size
    said = threading.Semaphore(0)

    def script(talk):
        talk.start_tls(certificate.server_side())
        while talk.read_request():
            time.sleep(0.002)
            if how == "one-record":
                talk.send(whole[:-3])
                time.sleep(0.002)
                talk.arrive(whole[-3:] + evil)
            else:
                talk.send(whole)
                if how == "late":
                    time.sleep(0.002)
                talk.arrive(evil)
            said.release()

    async def main():
        async with open_engine(serve(script), tls=True, trust=certificate.trust) as engine:
            for _ in range(20):
                assert await get(engine, URL) == b"x" * size
                assert await asyncio.to_thread(said.acquire, timeout=5)

    run(main())


def test_a_post_is_not_repeated_where_the_connection_held_left_over_bytes(far, serve, certificate):
    said = threading.Semaphore(0)

    def script(talk):
        talk.start_tls(certificate.server_side())
        while talk.read_request():
            time.sleep(0.002)
            talk.send(OK[:-2])
            time.sleep(0.002)
            talk.arrive(OK[-2:] + OK)
            said.release()

    server = serve(script)

    async def main():
        async with open_engine(server, tls=True, trust=certificate.trust) as engine:
            await get(engine, URL)
            assert await asyncio.to_thread(said.acquire, timeout=5)
            with pytest.raises(ConnectionWentStale):
                await get(engine, URL, "POST", body=b"x")

    run(main())
    assert sum(request.startswith(b"POST") for request in server.requests) <= 1


def test_tls_runs_inside_a_proxys_tunnel(serve, certificate):
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 Connection established\r\nX-Proxy: 1\r\n\r\n")
        secure(certificate)(talk)

    server = serve(script)

    async def main():
        proxies = Proxies({"https_proxy": f"127.0.0.1:{server.port}"})
        async with open_engine(proxies=proxies, trust=certificate.trust) as engine:
            for _ in range(2):
                response = await engine.fetch(ask(URL))
                assert await response.read() == b"hello"
                assert "x-proxy" not in response.headers

    run(main())
    assert server.connections == 1
    assert server.requests[0].startswith(b"CONNECT papers.example.org:443 ")
    assert server.requests[1].startswith(b"GET /a.pdf ")


def test_authorities_are_read_once_for_all_connections_of_an_engine(serve, tmp_path):
    """They take some 5 ms and 6 MB to read."""
    own = make_certificate(tmp_path, "papers.example.org")
    answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello"
    server = serve(secure(own, answer))
    trusted = tmp_path / "trusted.pem"
    trusted.write_bytes(own.file.read_bytes())
    trust = TrustStore(str(trusted))

    async def main():
        async with open_engine(server, tls=True, trust=trust) as engine:
            held = [await engine.fetch(ask(URL)) for _ in range(2)]
            assert [await response.read() for response in held] == [b"hello"] * 2
            trusted.unlink()
            assert await get(engine, URL) == b"hello"
        async with open_engine(server, tls=True, trust=trust) as engine:
            with pytest.raises(TrustStoreUnreadable):
                await get(engine, URL)

    run(main())
