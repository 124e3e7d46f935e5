"""The server itself: bounded, correct on the wire, and honest in its counts."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time

import pytest

from DocsToKG.Sandbox import Faults, SandboxServer
from DocsToKG.Sandbox.messages import MAX_BODY_BYTES, MAX_HEAD_BYTES

AGENT = b"User-Agent: t (mailto:t@t.t)\r\n"


def _talk(port, data, *, until=None):
    """Send bytes, read until the server closes (or `until` is in what it said)."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as sock:
        sock.sendall(data)
        said = b""
        while piece := sock.recv(65536):
            said += piece
            if until is not None and said.count(until[0]) >= until[1]:
                break
        return said


def test_one_connection_serves_many_requests_in_order(calm):
    connection = http.client.HTTPConnection("127.0.0.1", calm.port, timeout=10)
    try:
        connection.request("GET", "/robots.txt", headers={"Host": "arxiv.org", "User-Agent": "t (mailto:t@t.t)"})
        first = connection.getresponse()
        first.read()
        sock = connection.sock
        connection.request("GET", "/", headers={"Host": "sandbox.local"})
        assert connection.getresponse().read().startswith(b"The sandbox web")
        assert connection.sock is sock
    finally:
        connection.close()


def test_requests_sent_at_once_are_answered_in_turn(calm):
    one = b"GET /10.9999/a HTTP/1.1\r\nHost: doi.org\r\n" + AGENT + b"\r\n"
    two = b"GET /nothing HTTP/1.1\r\nHost: doi.org\r\n" + AGENT + b"Connection: close\r\n\r\n"
    said = _talk(calm.port, one + two)
    assert said.index(b"HTTP/1.1 404") < said.index(b"HTTP/1.1 400")


def test_the_absolute_form_names_the_host(calm):
    said = _talk(calm.port, b"GET http://doi.org/nothing HTTP/1.0\r\nHost: other.example\r\n" + AGENT + b"\r\n")
    assert b"Not a DOI" in said


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"NONSENSE\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET nowhere HTTP/1.1\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX: " + b"a" * MAX_HEAD_BYTES + b"\r\n\r\n", b"431"),
        (b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % (MAX_BODY_BYTES + 1), b"413"),
        (b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
    ],
)
def test_malformed_and_oversized_requests_are_refused(calm, sent, status):
    assert _talk(calm.port, sent).split()[1] == status


def test_an_unknown_host_is_said_to_be_unknown(get):
    assert get("https://unheard.example/").status == 502


def test_a_failure_of_the_sandbox_is_a_500_with_its_own_count(calm, get):
    before = calm.counters()["own_failures"]
    assert get(f"https://api.openalex.org/works/W{'9' * 5000}").status == 500
    assert calm.counters()["own_failures"] == before + 1
    calm.reset()


def test_whole_files_are_counted_once_per_body_sent(troubled, ask, first_with):
    sandbox = troubled()
    work, copy = first_with(sandbox, "publisher", lambda w, c: c.open)
    body = ask(sandbox, copy.pdf_url).body
    ask(sandbox, copy.pdf_url, method="HEAD")
    ask(sandbox, copy.pdf_url, Range="bytes=0-10")
    ask(sandbox, copy.landing_url if copy.publisher.style != "direct" else copy.pdf_url, If_None_Match="*")
    counted = sandbox.counters()
    assert counted["files_by_work"] == {work.doi: 1}
    assert counted["files_by_url"] == {copy.pdf_url: 1}
    assert counted["by_service"] == {"publishers": 4}
    assert counted["requests"] == sum(counted["by_status"].values()) == 4
    assert counted["bytes"] > len(body)


def test_a_body_that_was_not_taken_is_not_counted(troubled, first_with):
    sandbox = troubled(size_bytes=20_000_000, works=5)
    _, copy = first_with(sandbox, "publisher", lambda w, c: c.open)
    host, _, rest = copy.pdf_url.removeprefix("https://").partition("/")
    with socket.create_connection(("127.0.0.1", sandbox.port), timeout=10) as sock:
        sock.sendall(f"GET /{rest} HTTP/1.1\r\nHost: {host}\r\n".encode() + AGENT + b"\r\n")
        assert sock.recv(1000).startswith(b"HTTP/1.1 200")
    deadline = time.monotonic() + 30
    while not sandbox.counters()["by_status"]:
        assert time.monotonic() < deadline
    assert sandbox.counters()["files"] == 0


def test_a_thousand_small_requests_on_one_connection():
    """`./dev bench --only=web` says how fast it is."""
    with SandboxServer(works=50, faults=Faults.none()) as sandbox:
        one = b"GET /api/handles/10.9999/a HTTP/1.1\r\nHost: doi.org\r\n" + AGENT + b"\r\n"
        _talk(sandbox.port, one * 1000, until=(b'"responseCode"', 1000))
        assert sandbox.counters()["requests"] == 1000


def test_the_truth_is_what_is_served(troubled, ask):
    sandbox = troubled("html_as_pdf=0.3", "challenge_403=0.2")
    truth = sandbox.truth()
    assert truth["count"] == len(truth["works"]) == 60
    from hashlib import sha256

    for work in truth["works"][:25]:
        for copy in work["copies"]:
            answer = ask(sandbox, copy["url"])
            served = answer.status == 200 and sha256(answer.body).hexdigest() in work["sha256"]
            assert served == copy["good"], (work["doi"], copy)
        assert work["reachable"] == bool(work["reachable_by"])


def test_the_control_pages_answer_under_the_address_too(calm):
    said = _talk(calm.port, b"GET /ids.txt?n=3 HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n" % calm.port)
    assert said.count(calm.world.work(1).doi.encode()) == 1
    assert calm.ask("/truth.json?start=2&n=1").count(b'"index": 2') == 1


def test_identifiers_come_in_mixed_spellings(calm):
    mixed = calm.identifiers(400)
    assert len(mixed) == 400
    for start in (
        "10.",
        "doi:",
        "https://doi.org/",
        "arXiv:",
        "https://arxiv.org/abs/",
        "PMC",
        "pmid:",
        "W2",
        "https://openalex.org/W",
    ):
        assert any(line.startswith(start) for line in mixed), start
    assert any(line.startswith("https://www.") for line in mixed)
    plain = calm.identifiers(10, mix=False)
    assert plain == [calm.world.work(index).doi for index in range(10)]


@pytest.mark.slow
def test_a_process_is_ready_counts_and_ends_with_its_owner():
    with SandboxServer(works=20, seed=3) as sandbox:
        assert sandbox.pid != os.getpid()
        assert sandbox.truth()["seed"] == 3
        pid = sandbox.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.slow
def test_a_process_gets_the_same_world_as_its_owner_knows(ask):
    faults = Faults.none().with_settings(["slow=0.25"])
    with SandboxServer(works=20, seed=3, faults=faults, size_bytes=9_000, rate_factor=5) as sandbox:
        truth = sandbox.truth()
    assert [work["doi"] for work in truth["works"]] == [sandbox.world.work(index).doi for index in range(20)]
    assert truth["faults"]["slow"] == 0.25
    assert truth["rate_factor"] == 5
    assert truth["works"][4]["size"] == sandbox.world.work(4).size_bytes


def test_the_module_says_where_it_listens_and_obeys_a_signal():
    command = [sys.executable, "-m", "DocsToKG.Sandbox", "--works=5", "--no-faults"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("sandbox: http://127.0.0.1:")
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0


def test_the_module_explains_a_wrong_fault():
    command = [sys.executable, "-m", "DocsToKG.Sandbox", "--fault", "rain=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 2
    assert "'rain' is no fault; known are: rate_limited" in done.stderr


def test_a_taken_port_is_reported():
    with SandboxServer(works=1, thread=True) as first, pytest.raises(RuntimeError, match="did not start"):
        SandboxServer(works=1, port=first.port, thread=True).__enter__()


def test_the_profile_maps_every_name_to_loopback_and_keeps_private_names_private():
    with SandboxServer(works=1, thread=True, rate_factor=10) as sandbox:
        profile = sandbox.profile()
    assert profile["http"]["connect_to"] == {"*": f"plain://127.0.0.1:{sandbox.port}"}
    assert profile["http"]["names"]["intranet.sandbox.example"] == ["10.0.0.5"]
    assert profile["http"]["names"]["localhost"] == ["127.0.0.1"]
    assert profile["limits"] == {"rate_factor": 10.0}
    assert json.loads(json.dumps(profile)) == profile
