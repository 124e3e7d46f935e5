"""Write the seeds of the corpus: what the sandbox's services answer, and small whole examples of everything else.

    python -m tests.fuzz.seeds

Seeds are named `seed-*`; what fuzzing has found stays beside them under `found-*` and is never removed here.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.contentdownload.test_resolver_deposits import EXAMPLES
from tests.contentdownload.test_resolver_index_links import SHAPES

from DocsToKG.ContentDownload.api.ports import Call, Page
from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.errors import ContentDownloadError
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.Orchestrator.signing.dsse import sign
from DocsToKG.Orchestrator.signing.keyring import record_of
from DocsToKG.Orchestrator.signing.keys import new_signer
from DocsToKG.Sandbox import Faults, SandboxServer
from DocsToKG.Sandbox.pdf import Paper, make_pdf

CORPUS = Path(__file__).parent / "corpus"
MOST_SEEDS = 3  # of one target
LARGEST_BYTES = 12_000
ROOT = Path(__file__).parents[2]

PLAIN: dict[str, list[bytes]] = {
    "robots": [
        b"User-agent: *\nDisallow: /private/\nCrawl-delay: 2\nSitemap: https://example.org/s.xml\n",
        b"\xef\xbb\xbfuser-agent: DocsToKG\r\nallow: /a/*.pdf$\r\ndisallow: /\r\nrequest-rate: 1/5\r\n",
    ],
    "proof-xml": [
        b"<?xml version='1.0'?><article xmlns:xlink='http://www.w3.org/1999/xlink'><front><article-meta><article-id "
        b"pub-id-type='doi'>10.5555/a</article-id><title-group><article-title>Of things</article-title></title-group>"
        b"</article-meta></front><body><sec><title>One</title><p>" + b"Words of it. " * 60
        + b"</p></sec></body></article>"
    ],
    "proof-html": [
        b"<html><head><meta name='citation_doi' content='10.5555/a'></head><body><h2>Introduction</h2><p>"
        + b"Words of it that go on and on. " * 60 + b"</p><h2>Results</h2><p>" + b"More of them. " * 60
        + b"</p></body></html>"
    ],
    "proof-pdf": [
        make_pdf(Paper("Of things and their names", ("A. B.",), 2020, "10.5555/a"), size_bytes=5000, key="k"),
        make_pdf(Paper("Another paper", ("C. D.",), 2021, None), size_bytes=3000, key="l"),
    ],
    "body-kind": [
        b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body>Checking your browser</body></html>",
        b"<html><title>Sign in</title><form action='/login'><input type=password></form></html>",
    ],
    "list-txt": [b"10.5555/a\narXiv:2101.00001v2  # one\nPMC123456, PMID: 31452104\nhttps://example.org/a.pdf\n"],
    "list-csv": [b'doi;title;year\r\n10.5555/a;"Of; things";2020\r\n;"no doi";\r\n', b"DOI\ttitle\n10.5555/a\tx\n"],
    "list-jsonl": [b'{"doi": "10.5555/a", "title": "x", "ids": {"pmid": 1}}\n["10.5555/b"]\n"arXiv:2101.00001"\n'],
    "list-bib": [
        b"@article{k1, title = {Of {T}hings}, doi = {10.5555/a}, year = 2020,\n note = \"a \\\"b\\\" c\"}\n"
        b"@string{j = \"J\"}\n@comment{x}\n@inproceedings(k2, eprint = {2101.00001}, archivePrefix = {arXiv})\n"
    ],
    "list-ris": [b"TY  - JOUR\r\nTI  - Of things\r\nDO  - 10.5555/a\r\nUR  - https://example.org/a\r\nER  - \r\n"],
    "config-yaml": [(ROOT / "docs" / "examples" / f"{name}.yaml").read_bytes() for name in ("dev", "prod")],
    "config-json": [b'{"contact": "a@b.org", "tiers": [{"name": "t", "sources": ["arxiv"]}], "http": {"http2": true}}'],
    "server-settings": [b"ledger: state/ledger.sqlite\nlisten: 127.0.0.1:8080\nauth:\n  tokens_file: tokens.json\n"],
    "identifier": [b"https://doi.org/10.5555/a%20b", b"arXiv:hep-th/9901001v3", b"PMC 123456", b"urn:doi:10.5555/a"],
    "licence": [b"https://creativecommons.org/licenses/by-nc-nd/3.0/igo/", b"Creative Commons Attribution 4.0"],
    "query": [b"is_oa:true,publication_year:2020-2024", b"deep learning: a review",
              b"https://openalex.org/works?filter=is_oa:true&search=x&sort=cited_by_count:desc"],
    "rate": [b"5/second", b"100/minute", b"0.5 / s"],
    "head": [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: application/pdf\r\nX: a\r\n b",
             b"HTTP/1.0 302 Found\nLocation: /x\nConnection: keep-alive\nTransfer-Encoding: chunked"],
    "exchange": [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
                 b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nX: y\r\n\r\nHTTP/1.1"],
    "chunks": [b"5\r\nhello\r\nA;name=value\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nrest", b"0\r\n\r\n"],
    "header-values": [b"120", b"Wed, 21 Oct 2026 07:28:00 GMT",
                      b'<https://e.org/a.pdf>; rel="item"; type="application/pdf"',
                      b'"burst";q=100;w=60, 10;w=1', b"limit=10, remaining=0, reset=5", b"sha-256=:AAAA=:", b"50"],
    "address": [b"https://user:pw@EXAMPLE.org:443/a/../b%2Fc?utm_source=x&token=y#f", b"//e.org/x", b"http://[::1]:80/"],
}  # fmt: skip


class Recorder:
    """A client that asks the sandbox and keeps what it answers."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.bodies: list[bytes] = []
        self.pages: list[bytes] = []

    def fetch(self, url: str, role: Any, call: Call, *, headers: Any = None) -> Iterator[Any]:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        try:
            connection.request("GET", target, headers={"Host": parts.netloc, "User-Agent": "x/1 (mailto:a@b.org)"})
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        told = {name.lower(): value for name, value in answer.getheaders()}
        if answer.status == 200:
            (self.pages if b"<html" in body[:500].lower() else self.bodies).append(body)
        return Page(url, answer.status, told, body, ())
        yield


def recorded() -> dict[str, list[bytes]]:
    """What each source was answered, the landing pages, and the captures of the archive."""
    found: dict[str, list[bytes]] = {"landing-page": []}
    with SandboxServer(works=300, seed=7, faults=Faults.none(), size_bytes=20_000, thread=True) as sandbox:
        works = [work_of(sandbox.world.by_index(index)) for index in range(120)]
        for name in registry.names():
            settings = ResolverSettings(email="who@uni.example.edu", api_key="sesame")
            source = registry.build([name], settings={name: settings})[name]
            client = Recorder(sandbox.port)
            for work in works:
                try:
                    steps = source.resolve(work, client, Call(work_id=work.work_id))
                    for _ in steps:
                        pass
                except ContentDownloadError:
                    continue
                if len({len(body) for body in client.bodies}) >= MOST_SEEDS:
                    break
            found[f"source-{name}"] = client.bodies
            found["landing-page"] += client.pages
    found["captures"] = [body for body in found.get("source-wayback", []) if body.startswith(b"[")]
    return found


def work_of(truth: Any) -> WorkArtifact:
    ids = {name: getattr(truth, name) for name in ("doi", "arxiv_id", "pmcid", "pmid", "openalex_id")}
    pages = tuple(copy.landing_url for copy in truth.copies if getattr(copy, "landing_url", None))
    return WorkArtifact(f"doi:{truth.doi}", title=truth.title, landing_urls=pages, **ids)


def shaped() -> dict[str, list[bytes]]:
    """Good answers of the sources that the sandbox does not play, from their own tests."""
    examples = {name: example for name, (_, example) in EXAMPLES.items()}
    found = {f"source-{name}": [json.dumps(value).encode()] for name, value in {**SHAPES, **examples}.items()}
    page = b"<html><meta name='citation_pdf_url' content='/a.pdf'><meta name='citation_doi' content='10.5555/a'></html>"
    return {**found, "source-landing": [page], "source-doi_redirect": [page], "source-arxiv": [b"<feed/>"]}


def signed() -> dict[str, list[bytes]]:
    signer = new_signer("tests", 1_700_000_000.0)
    envelope = json.dumps(sign(b'{"a": 1}', "application/json", [signer])).encode()
    return {"envelope": [envelope], "trust": [json.dumps({"keys": [record_of(signer.key)]}).encode()]}


def main() -> None:
    gathered = {**PLAIN, **recorded(), **signed()}
    for target, bodies in shaped().items():
        gathered.setdefault(target, []).extend(bodies)
    for target, bodies in gathered.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("seed-*"):
            old.unlink()
        kept = sorted({body[:LARGEST_BYTES] for body in bodies}, key=len)[:: max(1, len(set(bodies)) // MOST_SEEDS)]
        for number, body in enumerate(kept[: 2 * MOST_SEEDS], start=1):
            (folder / f"seed-{number}").write_bytes(body)


if __name__ == "__main__":
    main()
