"""A whole run among hostile hosts: each work's best copy does harm, its second is the paper, and all are obtained."""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import sqlite3
import time
import urllib.request
import zlib
from contextlib import closing

import pytest

from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Sandbox.pdf import Paper, make_pdf

pytestmark = pytest.mark.slow  # seconds of real sockets and processes; part of `make test`

OK = b"HTTP/1.1 200 OK\r\n"
PUBLIC = "93.184.216.34"


def bomb() -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    return b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()


BOMB = bomb()


def drip(talk):
    talk.send(OK + b"Content-Length: 100000\r\n\r\n%PDF-1.7\n")
    talk.drip(b"x")


def endless(talk):
    talk.send(OK + b"\r\n%PDF-1.7\n")
    talk.flood(b"x" * 65536)


def reset_in_body(talk):
    talk.send(OK + b"Content-Length: 100000\r\n\r\n" + b"%PDF-1.7\n" * 50)
    talk.reset()


def move(place, *lines):
    return lambda talk: talk.answer(b"", b"Location: " + place, *lines, status=b"302 Found")


EVIL = {
    "slow-loris": drip,
    "silent": lambda talk: talk.hold(),
    "endless": endless,
    "bomb": lambda talk: talk.answer(BOMB, b"Content-Encoding: gzip"),
    "long-length": lambda talk: talk.send(OK + b"Content-Length: 99999\r\n\r\n%PDF-1.7\n"),
    "reset": lambda talk: talk.reset(),
    "reset-in-body": reset_in_body,
    "close": lambda talk: None,
    "chunk-cut": lambda talk: talk.send(OK + b"Transfer-Encoding: chunked\r\n\r\nfff\r\n%PDF-"),
    "garbage": lambda talk: talk.send(b"\xff\xfe\0\r\n\r\n"),
    "big-header": lambda talk: talk.send(OK + b"X: " + b"x" * 1_000_000 + b"\r\n\r\n"),
    "loop": move(b"/paper.pdf"),
    "metadata-address": move(b"http://169.254.169.254/latest/meta-data"),
    "private-name": move(b"https://inside.example/x.pdf"),
    "file-scheme": move(b"file:///etc/passwd"),
    "bad-cookie": move(b"/paper.pdf", b"Set-Cookie: a=\xff\xfe"),
    "page-named-pdf": lambda talk: talk.answer(b"<!doctype html><html><body>Buy it</body></html>" * 50),
    "empty": lambda talk: talk.answer(b"", b"Content-Type: application/pdf"),
    "half-pdf": lambda talk: talk.answer(b"%PDF-1.7\n" + b"x" * 5000, b"Content-Type: application/pdf"),
    "gzip-lie": lambda talk: talk.answer(b"%PDF-1.7\n" + b"x" * 5000, b"Content-Encoding: gzip"),
    "path-name": lambda talk: talk.answer(b"nothing", b'Content-Disposition: attachment; filename="../../x\\..\\y"'),
    "status-402": lambda talk: talk.answer(b"", status=b"402 Pay"),
    "gone": lambda talk: talk.answer(b"", status=b"410 Gone"),
    "not-modified": lambda talk: talk.answer(b"", status=b"304 Not Modified", length=False),
    "gzip-tail": lambda talk: (
        talk.send(OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b"%PDF-1.7\n")),
        talk.flood(b"\0" * 65536),
    ),
    "retry-in-year-9999": lambda talk: talk.answer(
        b"", b"Retry-After: Fri, 31 Dec 99999999999 23:59:59 GMT", status=b"403 No"
    ),
}


def index_answer(doi, name):
    places = [
        {"url_for_pdf": f"https://{name}.evil.example/paper.pdf", "is_best": True, "version": "publishedVersion"},
        {"url_for_pdf": f"https://{name}.good.example/paper.pdf", "is_best": False, "version": "publishedVersion"},
    ]
    return json.dumps({"doi": doi, "title": name, "year": 2020, "oa_locations": places}).encode()


@pytest.fixture
def works(evil):
    """The DOI and the paper's bytes of every work, by the harm its best copy does."""
    found = {}
    for name, script in EVIL.items():
        doi = f"10.5555/{name}"
        paper = make_pdf(Paper(name, ("A. Author",), 2020, doi), size_bytes=20_000, key=name)
        told = index_answer(doi, name)
        evil.pages["api.unpaywall.org", f"/v2/10.5555/{name}"] = lambda talk, told=told: talk.answer(told)
        evil.pages[f"{name}.evil.example", "/paper.pdf"] = script
        evil.pages[f"{name}.good.example", "/paper.pdf"] = lambda talk, paper=paper: talk.answer(paper)
        found[name] = (doi, paper)
    return found


@pytest.fixture
def config(evil, tmp_path):
    return configured(evil, tmp_path)


def configured(evil, tmp_path, *, retries=0, tries=1, **telemetry):
    policy = {"timeout_s": 1.0, "max_retries": retries}
    settings = {
        "contact": "me@example.org",
        "http": {
            "connect_to": {"*": f"plain://127.0.0.1:{evil.port}"},
            "names": {"inside.example": ["10.0.0.1"], "*": [PUBLIC]},
            "timeout_connect_s": 1.0,
            "timeout_read_s": 0.5,
        },
        "policies": dict.fromkeys(("unpaywall", "landing", "doi_redirect", "arxiv"), policy),
        "budgets": {"total_timeout_s": 30.0},
        "limits": {"rate_factor": 1000},
        "download": {"max_bytes": 4_000_000},
        "orchestrator": {"max_workers": 8, "max_job_attempts": tries, "retry_backoff_seconds": 1, "jitter_seconds": 0},
        "telemetry": {"manifest_path": str(tmp_path / "manifest.jsonl"), **telemetry},
        "storage": {"root_dir": str(tmp_path), "min_free_bytes": 0},
        "queue": {"path": str(tmp_path / "state" / "ledger.sqlite")},
        "hishel": {"base_path": str(tmp_path / "state" / "cache")},
    }
    return load_config(None, settings, environ={}, user_file=tmp_path / "none")


@pytest.mark.slow
def test_a_run_among_hostile_hosts_obtains_every_paper(works, evil, tmp_path, capfd, caplog):
    """One bad host can cost one candidate, never the run; and each harm leaves its line in the record. Where a machine
    is too busy to answer in half a second, a work is tried again."""
    with DownloadRun(configured(evil, tmp_path, tries=4)) as run:
        result = run.process_artifacts([doi for doi, _ in works.values()])
    assert [(row.id, row.reason) for row in result.rows if row.outcome != "success"] == []
    for row, (_, paper) in zip(result.rows, works.values(), strict=True):
        assert hashlib.sha256((tmp_path / row.path).read_bytes()).digest() == hashlib.sha256(paper).digest()
    asked = b"".join(evil.requests)
    assert [name for name in works if b"%s.evil.example" % name.encode() not in asked] == []
    assert list((tmp_path / ".tmp").iterdir()) == []
    assert [path for path in (tmp_path / "state").glob("cache/pending/**/*") if path.is_file()] == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".pdf") == []
    said = "".join(capfd.readouterr()) + caplog.text
    assert "Traceback" not in said
    with open(tmp_path / "attempts.csv", encoding="utf-8", newline="") as file:
        reasons = {
            (row["url"].partition("/paper")[0].partition("//")[2], row["reason"]) for row in csv.DictReader(file)
        }
    assert ("silent.evil.example", "timeout") in reasons
    assert ("endless.evil.example", "too-large") in reasons
    assert {reason for host, reason in reasons if host == "half-pdf.evil.example"} & {"truncated", "corrupt-pdf"}


def attempts(root):
    with open(root / "attempts.csv", encoding="utf-8", newline="") as file:
        return [(row["url"].split("/")[2], row["status"], row["reason"]) for row in csv.DictReader(file)]


def obtain(config, doi):
    with DownloadRun(config) as run:
        [row] = run.process_artifacts([doi]).rows
    assert row.outcome == "success"


def test_a_host_that_forbids_it_is_not_asked_and_the_next_copy_is(works, config, evil, tmp_path):
    """FAIL-10."""
    evil.pages["gone.evil.example", "/robots.txt"] = lambda talk: talk.answer(b"User-agent: *\nDisallow: /\n")
    evil.requests.clear()
    obtain(config, works["gone"][0])
    assert ("gone.evil.example", "robots-disallowed", "robots") in attempts(tmp_path)
    told = [request for request in evil.requests if b"gone.evil.example" in request]
    assert [request.split()[1] for request in told] == [b"/robots.txt"]


def test_a_copy_that_ends_too_early_leaves_no_file_and_the_next_is_fetched(works, config, tmp_path):
    """FAIL-04, FAIL-08."""
    obtain(config, works["long-length"][0])
    assert ("long-length.evil.example", "size-mismatch", "size-mismatch") in attempts(tmp_path)
    assert list((tmp_path / ".tmp").iterdir()) == []
    [candidate] = json.loads((tmp_path / "manifest.jsonl").read_text())["candidates"]
    assert candidate["reason"] == "size-mismatch"


def test_a_host_that_asks_to_come_back_later_is_given_that_time(evil, tmp_path):
    """FAIL-02: what `Retry-After: 1` costs is a second, and both the record and the dashboard name the cause."""
    asked: list[float] = []
    paper = make_pdf(Paper("Busy", ("A. Author",), 2020, "10.5555/busy"), size_bytes=20_000, key="busy")

    def busy(talk):
        asked.append(time.monotonic())
        if len(asked) == 1:
            talk.answer(b"", b"Retry-After: 1", status=b"429 Too Many Requests")
        else:
            talk.answer(paper)

    evil.pages["busy.good.example", "/paper.pdf"] = busy
    told = {"doi": "10.5555/busy", "oa_locations": [{"url_for_pdf": "https://busy.good.example/paper.pdf"}]}
    evil.pages["api.unpaywall.org", "/v2/10.5555/busy"] = lambda talk: talk.answer(json.dumps(told).encode())
    config = configured(evil, tmp_path, retries=1, metrics_port=0)
    with DownloadRun(config) as run:
        [row] = run.process_artifacts(["10.5555/busy"]).rows
        assert run.metrics_address is not None
        with urllib.request.urlopen(run.metrics_address, timeout=20) as page:
            figures = page.read().decode()
    assert row.outcome == "success"
    assert (tmp_path / row.path).read_bytes() == paper
    assert len(asked) == 2
    assert asked[1] - asked[0] >= 1.0
    with open(tmp_path / "attempts.csv", encoding="utf-8", newline="") as file:
        [retry] = [line for line in csv.DictReader(file) if (line["status"], line["http_status"]) == ("retry", "429")]
    assert (retry["url"], retry["reason"]) == ("https://busy.good.example/paper.pdf", "retry-after")
    with closing(sqlite3.connect(tmp_path / "manifest.sqlite")) as db:
        pauses = db.execute("SELECT retry_after_s FROM http_events WHERE reason = 'retry-after'").fetchall()
    assert pauses == [(1.0,)]
    [counted] = [
        line
        for line in figures.splitlines()
        if line.startswith("contentdownload_retries_total{") and 'reason="retry-after"' in line
    ]
    assert counted.endswith(" 1.0")


def test_a_host_that_does_not_answer_is_asked_again_later_then_the_next_copy(works, evil, tmp_path):
    """FAIL-09."""
    evil.requests.clear()
    obtain(configured(evil, tmp_path, retries=1), works["silent"][0])
    silent = [status for host, status, _ in attempts(tmp_path) if host == "silent.evil.example"]
    assert silent == ["robots-fetch", "retry", "download-error"]
    assert sum(b"silent.evil.example" in request and b"/paper.pdf" in request for request in evil.requests) == 2
