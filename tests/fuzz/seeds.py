"""Write the seeds of the corpus: what the sandbox's services answer, and small whole examples of everything else.

    python -m tests.fuzz.seeds

Seeds are named `seed-*`; what fuzzing has found stays beside them under `found-*` and is never removed here.
"""

from __future__ import annotations

import asyncio
import http.client
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.contentdownload.test_source_answers import GIVEN
from tests.fuzz.seeds_plain import ANSWERED, KEPT, PLAIN, SPOKEN
from tests.fuzz.seeds_signed import signed

from DocsToKG.ContentDownload.api.ports import Call, Page
from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.errors import ContentDownloadError
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.Sandbox import Faults, SandboxServer

CORPUS = Path(__file__).parent / "corpus"
MOST_SEEDS = 3  # of one target
LARGEST_BYTES = 24_000


class Recorder:
    """A client that asks the sandbox and keeps what it answers."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.bodies: list[bytes] = []
        self.pages: list[bytes] = []

    async def fetch(self, url: str, role: Any, call: Call, *, headers: Any = None) -> Page:
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
                    asyncio.run(source.resolve(work, client, Call(work_id=work.work_id)))
                except ContentDownloadError:
                    continue
                if len({len(body) for body in client.bodies}) >= MOST_SEEDS:
                    break
            found[f"source-{name}"] = client.bodies
            found["landing-page"] += client.pages
    records = [json.loads(body) for body in found["source-openalex"][:2]]
    page = {"results": records, "meta": {"count": 250, "next_cursor": "c1"}}
    found["query-page"] = [json.dumps(page).encode(), b'{"message": "cursor is not valid"}']
    found["captures"] = [body for body in found.get("source-wayback", []) if body.startswith(b"[")]
    return found


def work_of(truth: Any) -> WorkArtifact:
    ids = {name: getattr(truth, name) for name in ("doi", "arxiv_id", "pmcid", "pmid", "openalex_id")}
    pages = tuple(copy.landing_url for copy in truth.copies if getattr(copy, "landing_url", None))
    return WorkArtifact(f"doi:{truth.doi}", title=truth.title, landing_urls=pages, **ids)


def shaped() -> dict[str, list[bytes]]:
    """Good answers of the sources that the sandbox does not play, some of them from their own tests."""
    found = {f"source-{name}": [json.dumps(given["answer"]).encode()] for name, given in GIVEN.items()}
    page = b"<html><meta name='citation_pdf_url' content='/a.pdf'><meta name='citation_doi' content='10.5555/a'></html>"
    return {**found, **ANSWERED, "source-landing": [page], "source-doi_redirect": [page]}


def main() -> None:
    gathered = {**PLAIN, **SPOKEN, **KEPT, **recorded(), **signed()}
    for target, bodies in shaped().items():
        gathered.setdefault(target, []).extend(bodies)  # to an archive that holds nothing, too
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
