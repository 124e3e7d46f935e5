"""PubMed Central: the open bucket, the id converter, and article pages that give programs no PDF."""

from __future__ import annotations

import json
import re
from hashlib import md5

from DocsToKG.Sandbox.identifiers import PMC_BASE, PMID_BASE
from DocsToKG.Sandbox.messages import Request, Response, html_response, json_response, redirect, text_response
from DocsToKG.Sandbox.services.base import Service
from DocsToKG.Sandbox.services.file_responses import file_response
from DocsToKG.Sandbox.services.pages import jats, meta
from DocsToKG.Sandbox.works import Work
from DocsToKG.Sandbox.world import World

_BUCKET = "pmc-oa-opendata.s3.amazonaws.com"
_PMCID = re.compile(r"PMC(\d{1,12})")
_MAX_IDS = 200


class Pmc(Service):
    name = "pmc"
    hosts = (_BUCKET, "pmc.ncbi.nlm.nih.gov", "www.ncbi.nlm.nih.gov")

    def answer(self, request: Request) -> Response:
        if request.host == _BUCKET:
            return self._listing(request) if request.path == "/" else self._object(request)
        if request.path.startswith("/tools/idconv/api/v1/articles"):
            return self._convert(request)
        if match := re.match(r"/pmc/articles/(?:PMC)?(\d{1,12})", request.path):
            return redirect(f"https://pmc.ncbi.nlm.nih.gov/articles/PMC{match[1]}/", 301)
        if request.path.startswith("/pmc/utils/idconv/"):
            return redirect(f"https://pmc.ncbi.nlm.nih.gov/tools/idconv/api/v1/articles/?{request.raw_query}", 301)
        return self._article(request)

    def _by_pmcid(self, text: str) -> Work | None:
        match = _PMCID.match(text)
        return self._context.world.by_number(int(match[1]), PMC_BASE, "pmcid") if match else None

    def _listing(self, request: Request) -> Response:
        prefix = request.query.get("prefix", "")
        work = self._by_pmcid(prefix)
        name = f"{work.pmcid}.1/" if work and f"{work.pmcid}.1/".startswith(prefix) else None
        if work and name and (fault_response := self._context.index_fault(work, self.name)):
            return fault_response
        found = f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>" if name else ""
        text = (
            '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
            f"<Name>pmc-oa-opendata</Name><KeyCount>{int(bool(name))}</KeyCount><IsTruncated>false</IsTruncated>"
            f"{found}</ListBucketResult>"
        )
        return text_response(text, content_type="application/xml")

    def _object(self, request: Request) -> Response:
        match = re.fullmatch(r"/(?:metadata/|PMC\d+\.1/)(PMC\d{1,12})\.1\.(json|pdf|xml|txt)", request.path)
        work = self._by_pmcid(match[1]) if match else None
        copy = work.copy("pmc") if work else None
        if not match or work is None or copy is None:
            return text_response("<Error><Code>NoSuchKey</Code></Error>", 404, "application/xml")
        if match[2] == "pdf":
            return file_response(self._context, request, work, copy)
        if match[2] == "json":
            return Response(200, json.dumps(metadata_of(self._context.world, work)).encode(), "application/json")
        if match[2] == "xml":
            return Response(200, jats(work), "application/xml")
        return text_response(f"{work.title}\n")

    def _convert(self, request: Request) -> Response:
        names = [name for name in request.query.get("ids", "").split(",") if name]
        if not names or len(names) > _MAX_IDS:
            return json_response({"status": "error", "message": f"give 1 to {_MAX_IDS} ids"}, 400)
        return json_response({"status": "ok", "records": [self._conversion(name) for name in names]})

    def _conversion(self, name: str) -> dict[str, object]:
        work = self._by_pmcid(name) or self._context.world.by_doi(name)
        if work is None and name.isdecimal():
            work = self._context.world.by_number(int(name[:12]), PMID_BASE, "pmid")
        if work is None or work.pmcid is None:
            return {"requested-id": name, "status": "error", "errmsg": "Identifier not found in PMC"}
        return {"requested-id": name, "pmcid": work.pmcid, "pmid": int(work.pmid or 0), "doi": work.doi, "live": True}

    def _article(self, request: Request) -> Response:
        match = re.fullmatch(r"/articles/(PMC\d{1,12})/?(pdf/.*)?", request.path)
        work = self._by_pmcid(match[1]) if match else None
        if not match or work is None:
            return html_response("Page not available", "<h1>Page not available</h1>", 404)
        if match[2]:
            return html_response("Preparing to download ...", "<p>Preparing to download ...</p><script>pow()</script>")
        tags = meta("citation_doi", work.doi) + meta(
            "citation_pdf_url", f"https://{request.host}{request.path}pdf/main.pdf"
        )
        return Response(200, f"<!DOCTYPE html><html><head>{tags}</head><body>{work.pmcid}</body></html>".encode())


def metadata_of(world: World, work: Work) -> dict[str, object]:
    digest = _digest(world.file(work.origin, "publishedVersion"))
    place = f"s3://pmc-oa-opendata/{work.pmcid}.1/{work.pmcid}.1"
    return {
        "pmcid": work.pmcid,
        "version": 1,
        "pmid": int(work.pmid or 0) or None,
        "doi": work.doi,
        "title": work.title,
        "citation": f"{work.journal}. {work.year}",
        "license_code": (work.licence or "").upper().replace("CC-", "CC ", 1) or None,
        "is_pmc_openaccess": True,
        "is_manuscript": False,
        "is_historical_ocr": False,
        "is_retracted": False,
        "pdf_url": f"{place}.pdf?md5={digest}",
        "xml_url": f"{place}.xml?md5={_digest(jats(work))}",
        "text_url": f"{place}.txt",
        "media_urls": [],
    }


def _digest(body: bytes) -> str:
    return md5(body, usedforsecurity=False).hexdigest()
