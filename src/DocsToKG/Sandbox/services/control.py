"""sandbox.local: what is true of this world, and what the server counted. No service of the invented web."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from DocsToKG.Sandbox.messages import Request, Response, json_response, text_response
from DocsToKG.Sandbox.seeded_random import fraction
from DocsToKG.Sandbox.services.base import Context
from DocsToKG.Sandbox.services.pages import doi_url
from DocsToKG.Sandbox.works import Work
from DocsToKG.Sandbox.world import World

CONTROL_HOST = "sandbox.local"
_INDEX = """The sandbox web of DocsToKG.
/truth.json       every work: identifiers, whether and by whom it can be reached, digests of its files (?start=0&n=100)
/counters.json    what the server saw
/violations.json  where a client was impolite
/ids.txt?n=200&mix=1   identifiers to give to a client (&start=0)
/reset            POST: forget counts and tries
"""


class Control:
    name = "control"
    hosts = (CONTROL_HOST,)

    def __init__(
        self,
        context: Context,
        *,
        counters: Callable[[], dict[str, Any]],
        violations: Callable[[], dict[str, Any]],
        reset: Callable[[], None],
    ) -> None:
        self._context = context
        self._counters = counters
        self._violations = violations
        self._reset = reset

    def answer(self, request: Request) -> Response:
        match request.path:
            case "/":
                return text_response(_INDEX)
            case "/truth.json":
                return self._truth(request)
            case "/counters.json":
                return json_response(self._counters())
            case "/violations.json":
                return json_response(self._violations())
            case "/ids.txt":
                return self._ids(request)
            case "/reset" if request.method == "POST":
                self._reset()
                return json_response({"ok": True})
            case "/reset":
                return text_response("POST here to reset\n", 405)
        return text_response("No such page; see /\n", 404)

    def _truth(self, request: Request) -> Response:
        world = self._context.world
        start, end = _span(request, world.count, world.count)

        def build() -> bytes:
            works = [truth_of(world, world.work(index)) for index in range(start, end)]
            facts = {"seed": world.seed, "count": world.count, "rate_factor": self._context.limits.rate_factor}
            return json.dumps({**facts, "faults": world.faults.shares(), "works": works}).encode()

        # Digests need every file made once, so this is done aside.
        return Response(200, b"", "application/json", later=build)

    def _ids(self, request: Request) -> Response:
        world = self._context.world
        start, end = _span(request, 200, world.count)
        works = map(world.work, range(start, end))
        spell = spelling if request.query.get("mix", "0") != "0" else (lambda world, work: work.doi)
        return text_response("".join(spell(world, work) + "\n" for work in works))


def truth_of(world: World, work: Work) -> dict[str, Any]:
    files = world.acceptable_files(work)
    return {
        "index": work.index,
        "doi": work.doi,
        "arxiv_id": work.arxiv_id,
        "pmcid": work.pmcid,
        "pmid": work.pmid,
        "openalex_id": work.openalex_id,
        "title": work.title,
        "year": work.year,
        "licence": work.licence,
        "oa_status": work.oa_status,
        "reachable": bool(work.reachable_by),
        "reachable_by": list(work.reachable_by),
        "sha256": sorted({sha256(body).hexdigest() for body in files.values()}),
        "size": work.size_bytes,
        "origin": work.origin,
        "spelling": spelling(world, work),
        "scheme": spelling_scheme(world, work),
        "copies": [
            {"kind": copy.kind, "url": copy.pdf_url, "version": copy.version, "fault": copy.fault, "good": copy.good}
            for copy in work.copies
        ],
    }


def spelling_scheme(world: World, work: Work) -> str:
    """The scheme a work is spelled in: most people have a DOI, some an arXiv id, few anything else."""
    at = fraction(world.seed, work.index, "scheme")
    if work.arxiv_id and at < 0.5:
        return "arxiv"
    if work.pmcid and at < 0.08:
        return "pmcid"
    bands = (("pmid", 0.08, 0.095), ("openalex", 0.095, 0.11), ("url", 0.11, 0.13))
    scheme = next((name for name, low, high in bands if low <= at < high), "doi")
    return "doi" if scheme == "pmid" and not work.pmid else scheme


def spelling(world: World, work: Work) -> str:
    """One of the usual ways to write an identifier of the work."""
    doi, number, openalex = work.doi, work.index, work.openalex_id
    ways: dict[str, tuple[str, ...]] = {
        "doi": (doi, f"doi:{doi}", doi_url(doi), doi.upper(), doi),
        "arxiv": _arxiv_spellings(work),
        "pmcid": (str(work.pmcid),),
        "pmid": (f"pmid:{work.pmid}",),
        "openalex": (openalex, f"https://openalex.org/{openalex}"),
        "url": (work.copies[0].landing_url,),
    }
    chosen = ways[spelling_scheme(world, work)]
    return chosen[number % len(chosen)]


def _arxiv_spellings(work: Work) -> tuple[str, ...]:
    name, version = str(work.arxiv_id), f"{work.arxiv_id}v{work.arxiv_versions}"
    pages = (f"https://arxiv.org/abs/{name}", f"https://arxiv.org/pdf/{version}")
    return (name, f"arXiv:{name}", f"arXiv:{version}", *pages)


def _span(request: Request, default: int, count: int) -> tuple[int, int]:
    def number(name: str, fallback: int) -> int:
        text = request.query.get(name, "")
        return int(text) if text.isdecimal() and len(text) < 10 else fallback

    start = min(number("start", 0), count)
    return start, min(count, start + number("n", default))
