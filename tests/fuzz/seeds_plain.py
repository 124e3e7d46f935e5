"""Small whole examples of what is read: lists, settings, words of the wire, of the service, and of what is kept."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

from DocsToKG.Orchestrator.control.history.feed import Cursor
from DocsToKG.Orchestrator.control.paging import token
from DocsToKG.Sandbox.pdf import Paper, make_pdf

PROJECT = Path(__file__).parents[2]
SITE_RULES = PROJECT / "src" / "DocsToKG" / "ContentDownload" / "resolvers" / "site_rules" / "site_rules.yaml"

BIBTEX = [
    rb"""% a word before it with @article{none, in it}
@string{base = "10.5555/"}
@preamble{"\newcommand{\x}{y}"}
@Article{one,
  title = {The {N}ested {{Title}} of G{\"o}del \& M{\'e}nard},
  author = {G{\"o}del, K. and de la M., P.},
  doi = base # "A\_1",
  year = 2019,
  month = jan # "~" # 3,
  keywords = {},
}
""",
    rb"""@inproceedings(two, title="Quoted {"}brace{"}", eprint={hep-th/9901001v1}, archivePrefix={arXiv})
@misc{three, eprint={2104.12255}, eprinttype={arxiv}, url={https://example.org/three}}
@misc{four, howpublished={\url{https://example.org/four}}}
@article{six, doi={10.1002/x{\textless}1::y{\textgreater}2}, pmid={77}, eprint={abc}, archivePrefix={hal}}
@article{broken, title={never closed,
  doi={10.5555/lost}
@article{after, doi = {https://doi.org/10.5555/After}}  @article{same-line, pmcid={PMC9}}
""",
]
RIS = b"""\xef\xbb\xbfTY  - JOUR
T1  - From an index
AU  - A., B.
AU  - C., D.
PY  - 2018/04/01/
N2  - Words of it
that go on in a second line
SN  - 1234-5678
AN  - 31234567
DB  - PubMed
C2  - PMC123456
ER  -
TY  - CHAP
M3  - doi:10.5555/B
L1  - https://example.org/b.pdf
L2  - https://example.org/b
ER  -
TY  - UNPB
UR  - https://arxiv.org/abs/2104.12255
"""

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
        b"@string{j = \"J\"}\n@comment{x}\n@inproceedings(k2, eprint = {2101.00001}, archivePrefix = {arXiv})\n",
        *BIBTEX,
    ],
    "list-ris": [
        b"TY  - JOUR\r\nTI  - Of things\r\nDO  - 10.5555/a\r\nUR  - https://example.org/a\r\nER  - \r\n",
        RIS,
    ],
    "config-yaml": [(PROJECT / "docs" / "examples" / f"{name}.yaml").read_bytes() for name in ("dev", "prod")],
    "config-json": [b'{"contact": "a@b.org", "tiers": [{"name": "t", "sources": ["arxiv"]}], "http": {"http2": true}}'],
    "server-settings": [b"ledger: state/ledger.sqlite\nlisten: 127.0.0.1:8080\nauth:\n  tokens_file: tokens.json\n"],
    "identifier": [b"https://doi.org/10.5555/a%20b", b"arXiv:hep-th/9901001v3", b"PMC 123456", b"urn:doi:10.5555/a"],
    "licence": [b"https://creativecommons.org/licenses/by-nc-nd/3.0/igo/", b"Creative Commons Attribution 4.0"],
    "query": [b"is_oa:true,publication_year:2020-2024", b"deep learning: a review",
              b"https://openalex.org/works?filter=is_oa:true&search=x&sort=cited_by_count:desc"],
    "rate": [b"5/second", b"100/minute", b"0.5 / s"],
    "head": [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: application/pdf\r\nX: a\r\n b",
             b"HTTP/1.0 302 Found\nLocation: /x\nConnection: keep-alive\nTransfer-Encoding: chunked"],
    "compressed": [gzip.compress(b"<p>text</p>" * 9) + gzip.compress(b"more"), zlib.compress(b"a page")],
    "header-values": [b"120", b"Wed, 21 Oct 2026 07:28:00 GMT",
                      b'<https://e.org/a.pdf>; rel="item"; type="application/pdf"',
                      b'"burst";q=100;w=60, 10;w=1', b"limit=10, remaining=0, reset=5", b"sha-256=:AAAA=:", b"50"],
    "rest-of-a-file": [b'bytes 40-99/100\n"v1"\nMon, 01 Jan 2024 00:00:00 GMT\nMon, 01 Jan 2024 00:01:00 GMT\n60',
                       b"bytes 40-99/100\nMon, 01 Jan 2024 00:00:00 GMT\nMon, 01 Jan 2024 00:00:00 GMT\nx\n60",
                       b'bytes 0-99/*\nW/"v1"\nyesterday\nMon, 01 Jan 2024 00:01:00 -0000\n-1'],
    "address": [b"https://user:pw@EXAMPLE.org:443/a/../b%2Fc?utm_source=x&token=y#f", b"//e.org/x", b"http://[::1]:80/"],
}  # fmt: skip

# What the services answer that the sandbox does not play, or plays with nothing in it.
HEADER = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
FILE, FILE_KEY = "https://files.example.org/a.pdf", "org,example,files)/a.pdf"
CAPTURES = [
    HEADER,
    [FILE_KEY, "20150102030405", "http://files.example.org:80/a.pdf", "application/pdf", "200", "A" * 32, "81234"],
    [FILE_KEY, "20170102030405", FILE, "warc/revisit", "-", "A" * 32, "512"],
    [FILE_KEY, "20190102030405", FILE, "text/html", "302", "B" * 32, "391"],
    [FILE_KEY, "20210102030405", FILE, "application/octet-stream", "200", "C" * 32, "-"],
    [FILE_KEY, "20230102030405", f"{FILE}?download=1&x=%20y", "application/pdf; charset=x", "200", "D" * 32, "90111"],
    ["org,example,pages)/a", "20240102030405", "ftp://pages.example.org/a", "unk", "-", "-", "-"],
]
CDX = [json.dumps(CAPTURES).encode(), json.dumps(CAPTURES[:2], indent=0).encode(), json.dumps([HEADER]).encode()]
FEED = b"""<?xml version='1.0' encoding='UTF-8'?>
<feed xmlns='http://www.w3.org/2005/Atom' xmlns:arxiv='http://arxiv.org/schemas/atom'>
<link href='http://arxiv.org/api/query?id_list=2101.00001' rel='self'/><title>ArXiv Query</title>
<s:totalResults xmlns:s='http://a9.com/-/spec/opensearch/1.1/'>1</s:totalResults>%s</feed>"""
ENTRY = b"""<entry><id>http://arxiv.org/abs/2101.00001v2</id>
<updated>2021-05-01T00:00:00Z</updated><published>2021-01-01T16:07:14Z</published>
<title>Of things
  and &lt;i&gt;their&lt;/i&gt; names &#946;</title><summary> Words. </summary>
<author><name>A. B.</name><arxiv:affiliation>There</arxiv:affiliation></author>
<arxiv:comment>5 pages</arxiv:comment><arxiv:doi>10.5555/a</arxiv:doi>
<link title='pdf' href='http://arxiv.org/pdf/2101.00001v2' rel='related' type='application/pdf'/>
<arxiv:primary_category term='cs.DL' scheme='http://arxiv.org/schemas/atom'/></entry>"""
ERROR = b"<entry><id>http://arxiv.org/api/errors#incorrect_id_format_for_x</id><title>Error</title></entry>"
RECORDS: list[dict[str, Any]] = [
    {"requested-id": "PMC123456", "pmcid": "PMC123456", "pmid": 31452104, "doi": "10.5555/a", "live": "true",
     "versions": [{"pmcid": "PMC123456.1", "current": True}]},
    {"requested-id": "x", "status": "error", "errmsg": "Identifier not found in PMC"},
]  # fmt: skip
ANSWERED: dict[str, list[bytes]] = {
    "captures": CDX,
    "source-wayback": CDX,
    "source-idconv": [
        json.dumps({"status": "ok", "response-date": "2026-01-02 03:04:05", "records": RECORDS}).encode(),
    ],
    "source-arxiv": [FEED % ENTRY, FEED % ERROR, FEED % b""],
}

LEASE = {
    "leaseId": "lease_x_7", "leaseUntil": "2026-11-18T00:00:00.000Z", "fence": 3, "jobId": 7,
    "artifactId": "doi:10.5555/a", "jobType": "content.download", "payload": {"doi": "10.5555/a"},
    "payloadDigest": "sha256:" + "0" * 64,
    "idempotencyKey": "k", "priority": 0, "retry": {"attempt": 1, "maxAttempts": 3, "backoffSeconds": 1.0},
    "renewSeconds": 60.0, "provenance": {"tenant": "a", "project": None, "correlationId": None}, "source": "crossref",
    "hostKey": None, "resolverHint": None, "instrumentation": {"traceparent": None, "waitTold": True}, "replayOf": None,
    "waitedSeconds": 0.5,
}  # fmt: skip
RENEWAL = {"leaseId": "lease_x_7", "state": "held", "leaseUntil": "2026-11-18T00:00:00.000Z", "reason": None}
ANSWERS: list[dict[str, Any]] = [
    {"leases": [LEASE], "renewals": [RENEWAL], "events": [{"seq": 1}], "jobs": [{"jobId": 7}], "next_page_token": None},
    {"error": {"code": "LEASE_LOST", "message": "the lease is not yours any more", "details": {}}},
]
SPOKEN: dict[str, list[bytes]] = {
    "answers-to-a-worker": [json.dumps(answer).encode() for answer in ANSWERS],
    "answers-of-a-receiver": [b"120\nlater", b"Wed, 21 Oct 2026 07:28:00 GMT\n{}", b"ok"],
    "request-body": [b'{"payload": {"doi": "10.5555/a", "note": "a\\u0000b"}, "tags": ["x", {"y": [1]}]}'],
    "page-token": [token("jobs", 7, "x").encode()],
    "feed-cursor": [str(Cursor("tenant", {0: 12, 3: 4})).encode()],
    "search-words": [b'status:failed worker:w-1 error:timeout "not found" 10.5555/xyz host:"a b" 100%_!'],
    "graph-question": [b"query Q($n: Int) { jobs(first: $n) { ...f } } fragment f on Job { history { event } }"],
    "event-secret": [b"whsec_MDEyMzQ1Njc4OWFiY2RlZg==", b"a secret of more than sixteen"],
}  # fmt: skip
KEPT: dict[str, list[bytes]] = {
    "manifest": [
        b'{"doc_id": "doi:10.5555/a", "status": "ok", "stage": "index", "outcome": "success"}\n'
        b'{"doc_id": "doi:10.5555/b", "status": "error", "reason": "all_tiers_exhausted"}\n{"doc_id": "doi:10.55'
    ],
    "last-csv": [b'doc_id,path,sha256,at\r\ndoi:10.5555/a,"PDF/a, b.pdf",00,2026-01-01T00:00:00Z\r\n'],
    "queue-lines": [
        b'{"doi": "10.5555/a", "resolver_hint": "arxiv"}\n"arXiv:2101.00001"\n'
        b'{"artifact_id": "local:1", "artifact": {"title": "x", "landing_urls": ["https://e.org/"]}}\n'
    ],
    "cache-entry": [
        json.dumps({"url": "https://e.org/a", "method": "GET", "varying": {}, "status": 200, "headers": {"etag": ["x"]},
                    "stored_at": 1.5, "sha256": "00", "size": 3, "in_cas": True}).encode()
    ],
    "takedowns": [
        b'{"takedowns": [{"doc_id": "doi:10.5555/a", "identifiers": ["doi:10.5555/a"], "reason": "asked", "taken_at": '
        b'"2026-01-01T00:00:00Z", "ticket": null, "sha256": [], "sizes": [3], "paths": [], "urls": [], "kept_for": [], '
        b'"pending": false, "undone_at": null}]}'
    ],
    "token-file": [
        b'{"tokens": [{"token_id": "ab", "digest": "00", "name": "w", "scopes": ["orch:read"], "tenant": "a",'
        b' "tenants": [], "created_at": 1.0, "expires_at": null}]}'
    ],
    "site-rules": [SITE_RULES.read_bytes()[:10_000].rpartition(b"\n  - ")[0]],
    "uploads": [
        b"<ListMultipartUploadsResult><IsTruncated>false</IsTruncated><Upload><Key>cas/sha256/ab/x</Key><UploadId>u&amp;1"
        b"</UploadId><Initiated>2026-01-01T00:00:00.000Z</Initiated></Upload></ListMultipartUploadsResult>"
    ],
    "bucket-key": [b'{"AccessKeyId": "A", "SecretAccessKey": "B", "Token": "C", "Expiration": "2026-01-01T00:00:00Z"}'],
}  # fmt: skip
