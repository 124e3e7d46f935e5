"""NET-11: certificates are proved for the logical host, with real TLS on loopback."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import time

import pytest
from tests import needs

from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.transport.errors import BodyTooShort, DeadlineExceeded, TlsFailed
from DocsToKG.transport.proxy import Proxies

URL = "https://papers.example.org/a.pdf"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A self-signed certificate for papers.example.org, which is its own authority."""
    openssl = shutil.which("openssl")
    if openssl is None:
        needs.lacks("the openssl command, to make certificates")
    folder = tmp_path_factory.mktemp("tls")
    command = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=papers.example.org"
    command += " -addext subjectAltName=DNS:papers.example.org -keyout key.pem -out cert.pem"
    subprocess.run([openssl, *command.split()], cwd=folder, check=True, capture_output=True, timeout=30)
    return folder


@pytest.fixture
def server_side(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return context


@pytest.fixture
def trusting(certificate):
    return ssl.create_default_context(cafile=str(certificate / "cert.pem"))


def secure(server_side, answer=OK, *, cut=False):
    def script(talk):
        talk.start_tls(server_side)
        while talk.read_request():
            talk.send(answer)
            if cut:
                talk.cut()
                return

    return script


def test_the_right_name_is_accepted_and_the_connection_kept(serve, reach, server_side, trusting):
    server = serve(secure(server_side))
    client = reach(server, tls=True, ssl_context=trusting)
    assert [client.get(URL).content for _ in range(3)] == [b"ok"] * 3
    assert server.connections == 1


def test_a_certificate_for_another_name_is_refused(serve, reach, server_side, trusting):
    server = serve(secure(server_side))
    with pytest.raises(TlsFailed, match=r"other\.example\.org"):
        reach(server, tls=True, ssl_context=trusting).get("https://other.example.org/")
    assert server.requests == []


def test_an_unknown_authority_is_refused_by_default(serve, reach, server_side):
    server = serve(secure(server_side))
    with pytest.raises(TlsFailed):
        reach(server, tls=True).get(URL)
    assert server.requests == []


def test_a_server_that_speaks_no_tls_is_a_tls_failure(serve, reach, trusting):
    server = serve(lambda talk: talk.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    with pytest.raises(TlsFailed):
        reach(server, tls=True, ssl_context=trusting).get(URL)


def test_a_large_body_comes_through_whole(serve, reach, server_side, trusting):
    body = bytes(range(256)) * 8000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    server = serve(secure(server_side, answer))
    assert reach(server, tls=True, ssl_context=trusting).get(URL).content == body


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"])
def test_a_stream_cut_below_tls_is_too_short(serve, reach, server_side, trusting, head):
    server = serve(secure(server_side, head + b"part", cut=True))
    with pytest.raises(BodyTooShort):
        reach(server, tls=True, ssl_context=trusting).get(URL)


def test_a_body_until_a_clean_close_is_whole(serve, reach, server_side, trusting):
    def script(talk):
        talk.start_tls(server_side)
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\n\r\nall of it")
        talk.sock.unwrap()

    assert reach(serve(script), tls=True, ssl_context=trusting).get(URL).content == b"all of it"


def test_a_handshake_that_never_ends_meets_the_deadline(serve, reach, trusting):
    server = serve(lambda talk: talk.wait_until_client_leaves())
    client = reach(server, tls=True, ssl_context=trusting)
    with pytest.raises(DeadlineExceeded):
        client.get(URL, extensions={"deadline": time.monotonic() + 0.1})
    assert server.client_left.wait(5)


def test_a_reader_blocked_in_tls_is_freed_by_cancel(serve, reach, server_side, trusting):
    token = CancelToken()

    def script(talk):
        talk.start_tls(server_side)
        talk.read_request()
        talk.send(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\npart")
        time.sleep(0.05)
        token.cancel()
        talk.wait_until_client_leaves()

    server = serve(script)
    start = time.monotonic()
    with pytest.raises(Cancelled):
        reach(server, tls=True, ssl_context=trusting).get(URL, extensions={"cancel": token})
    assert time.monotonic() - start < 4.0  # left alone it reads for five seconds
    assert server.client_left.wait(5)


def test_tls_runs_inside_a_proxys_tunnel(serve, reach, server_side, trusting):
    def script(talk):
        talk.read_request()
        talk.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
        secure(server_side)(talk)

    server = serve(script)
    client = reach(proxies=Proxies({"https_proxy": f"127.0.0.1:{server.port}"}), ssl_context=trusting)
    assert [client.get(URL).content for _ in range(2)] == [b"ok"] * 2
    assert server.connections == 1
    assert server.requests[0].startswith(b"CONNECT papers.example.org:443 ")
    assert server.requests[1].startswith(b"GET /a.pdf ")
