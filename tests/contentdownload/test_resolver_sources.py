"""The indexes: what each asks, and what it makes of every kind of answer."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.contentdownload.scripted import given
from tests.needs import recorded

from DocsToKG.ContentDownload.api.ports import Call, Page, Resolver
from DocsToKG.ContentDownload.api.types import ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.net.policy import HostCredentials
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.ids.identifier import parse_identifier, to_work
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi
from DocsToKG.ContentDownload.resolvers.openalex import work_of_record
from DocsToKG.ContentDownload.resolvers.record import Record

WORK = to_work(parse_identifier("10.1234/a(1)<b>"))
CALL = Call(work_id="doi:10.1234/a(1)<b>")
MAIL = ResolverSettings(email="who@uni.example.edu")


class ScriptedClient:
    """Answers in order and remembers what was asked for."""

    def __init__(self, *answers: Page | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []

    async def fetch(self, url, role, call, *, headers=None):  # type: ignore[no-untyped-def]
        self.asked.append((url, str(role)))
        return given(self.answers.pop(0))

    def open(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        raise AssertionError("a resolver downloads nothing (RES-09)")


def drive(steps: Any) -> Any:
    with pytest.raises(StopIteration) as done:
        steps.send(None)
    return done.value.value


def answer(body: Any = b"", status: int = 200, **headers: str) -> Page:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Page(
        "https://api.example.org/x?email=who@uni.example.edu",
        status,
        {k.replace("_", "-"): v for k, v in headers.items()},
        raw,
        (),
    )


def source(name: str, settings: ResolverSettings = MAIL) -> Resolver:
    return registry.build([name], settings={name: settings})[name]


def ask(
    name: str, *answers: Page | Exception, work: WorkArtifact = WORK, settings: ResolverSettings = MAIL
) -> ResolverResult:
    result: ResolverResult = drive(source(name, settings).resolve(work, ScriptedClient(*answers), CALL))
    return result


def place(pdf: str | None, landing: str | None = None, **more: Any) -> dict[str, Any]:
    return {"url_for_pdf": pdf, "url_for_landing_page": landing, "url": pdf or landing, **more}


def test_unpaywall_asks_by_doi_with_the_contact_address() -> None:
    """RES-10."""
    client = ScriptedClient(answer({"doi": "10.1234/a(1)<b>", "oa_locations": []}))
    drive(source("unpaywall").resolve(WORK, client, CALL))
    assert client.asked == [
        ("https://api.unpaywall.org/v2/10.1234/a%281%29%3Cb%3E?email=who@uni.example.edu", "metadata")
    ]


def test_unpaywall_uses_every_location_pdfs_first_then_best_then_version() -> None:
    """RES-10: every OA location with PDF links first."""
    locations = [
        place(
            "https://r.example.org/submitted.pdf", version="submittedVersion", host_type="repository", license="cc-by"
        ),
        place("https://r.example.org/none.pdf"),
        place(None, "https://p.example.org/page", version="publishedVersion"),
        place("https://r.example.org/accepted.pdf", version="acceptedVersion"),
        place("https://p.example.org/best.pdf", "https://p.example.org/best", version="submittedVersion", is_best=True),
        place("https://p.example.org/published.pdf", version="publishedVersion"),
        place("https://P.example.org:443/published.pdf"),
    ]
    result = ask("unpaywall", answer({"oa_locations": locations, "title": "T", "year": 2019, "oa_status": "gold"}))
    assert [plan.url.rpartition("/")[2] for plan in result.plans] == [
        "best.pdf", "published.pdf", "accepted.pdf", "submitted.pdf", "none.pdf"
    ]  # fmt: skip
    assert result.plans[3].host_type == "repository"
    assert {plan.evidence for plan in result.plans} == {"url_for_pdf"}
    assert result.work is not None
    assert result.work.landing_urls == ("https://p.example.org/best", "https://p.example.org/page")
    assert (result.work.title, result.work.publication_year) == ("T", 2019)
    assert (result.work.oa_status, result.work.license) == ("gold", "cc-by")


def test_unpaywall_learns_ids_of_archives_and_sends_no_one_to_pmc_pages() -> None:
    locations = [
        place("http://arxiv.org/pdf/1304.1068", "http://arxiv.org/abs/1304.1068", pmh_id="oai:arXiv.org:1304.1068"),
        place("https://www.ncbi.nlm.nih.gov/pmc/articles/4221854/pdf", pmh_id="oai:pubmedcentral.nih.gov:4221854"),
    ]
    result = ask("unpaywall", answer({"oa_locations": locations}))
    assert [plan.url for plan in result.plans] == ["https://export.arxiv.org/pdf/1304.1068"]
    assert result.work is not None
    assert (result.work.arxiv_id, result.work.pmcid) == ("1304.1068", "PMC4221854")


@pytest.mark.parametrize(
    ("name", "settings", "work", "why_not"),
    [
        ("unpaywall", MAIL, WORK, None),
        ("unpaywall", ResolverSettings(), WORK, "missing_email"),
        ("unpaywall", MAIL, to_work(parse_identifier("PMC7")), "no_doi"),
        ("unpaywall", MAIL, to_work(parse_identifier("10.48550/arXiv.2104.12255")), "no_doi"),
        ("arxiv", MAIL, WORK, "no_arxiv_id"),
        ("arxiv", MAIL, to_work(parse_identifier("hep-th/9901001")), None),
        ("doi_redirect", MAIL, WORK, None),
        ("doi_redirect", MAIL, to_work(parse_identifier("PMC7")), "no_doi"),
        ("landing", MAIL, WORK, "no_landing_url"),
        ("landing", MAIL, to_work(parse_identifier("https://example.org/a")), None),
        ("openalex", MAIL, to_work(parse_identifier("pmid:7")), None),
        ("openalex", MAIL, to_work(parse_identifier("https://example.org/a")), "no_doi"),
    ],
)
def test_a_source_says_why_it_has_nothing_to_ask(
    name: str, settings: ResolverSettings, work: WorkArtifact, why_not: str | None
) -> None:
    built = source(name, settings)
    assert built.applies_to(work) == why_not
    if why_not is not None:
        assert drive(built.resolve(work, ScriptedClient(), CALL)).notes == (why_not,)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("2104.12255", "https://export.arxiv.org/pdf/2104.12255"),
        ("arXiv:2104.12255v3", "https://export.arxiv.org/pdf/2104.12255v3"),
        ("math.CA/0611800v2", "https://export.arxiv.org/pdf/math/0611800v2"),
        ("https://doi.org/10.48550/arXiv.2104.12255", "https://export.arxiv.org/pdf/2104.12255"),
    ],
)
def test_arxiv_plans_from_the_id_without_a_request(text: str, url: str) -> None:
    """RES-11."""
    plan, other = ask("arxiv", work=to_work(parse_identifier(text))).plans
    assert (plan.url, plan.resolver_name, plan.host_type) == (url, "arxiv", "repository")
    # The main host is for when the one for programs is out of reach; its pauses are long.
    assert other == dataclasses.replace(plan, url=url.replace("export.", ""))


def test_arxiv_takes_a_doi_of_arxiv_and_an_endpoint_from_its_settings() -> None:
    work = WorkArtifact("doi:x", doi="10.48550/arxiv.2104.12255")
    [plan] = ask("arxiv", work=work, settings=ResolverSettings(base_url="https://mirror.example.org/")).plans
    assert plan.url == "https://mirror.example.org/pdf/2104.12255"


ENTRY = (
    b"<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>http://arxiv.org/abs/2104.12255v1</id>"
    b"<title> A\n title</title>"
    b"<published>2021-04-20T16:07:14Z</published><doi xmlns='http://arxiv.org/schemas/atom'>10.1234/J</doi></entry></feed>"
)
BOMB = b'<!DOCTYPE f [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><feed xmlns="http://www.w3.org/2005/Atom">&b;</feed>'


@pytest.mark.parametrize(
    ("page", "plans", "notes", "title"),
    [
        (answer(ENTRY), 2, (), "A title"),
        (answer(b"<feed xmlns='http://www.w3.org/2005/Atom'/>"), 0, ("not_in_index",), None),
        (answer(ENTRY.replace(b"abs/2104.12255v1", b"api/errors#bad")), 0, ("not_in_index",), None),
        (answer(b"rubbish"), 2, ("malformed_answer",), None),
        (answer(b""), 2, ("malformed_answer",), None),
        (answer(BOMB), 0, ("not_in_index",), None),
    ],
)
def test_arxiv_metadata_is_asked_only_on_request(
    page: Page, plans: int, notes: tuple[str, ...], title: str | None
) -> None:
    settings = ResolverSettings(options={"metadata": True})
    result = ask("arxiv", page, work=to_work(parse_identifier("2104.12255")), settings=settings)
    assert (len(result.plans), result.notes) == (plans, notes)
    assert result.work is not None
    assert result.work.title == title
    assert result.work.doi == ("10.1234/j" if title else None)


def oa_record(**changes: Any) -> dict[str, Any]:
    best = {"is_oa": True, "pdf_url": "https://p.example.org/a.pdf", "landing_page_url": "https://p.example.org/a",
            "version": "publishedVersion", "license": "cc-by", "source": {"type": "journal"}}  # fmt: skip
    pmc = {"id": "pmh:oai:pubmedcentral.nih.gov:77", "is_oa": True, "pdf_url": None,
           "landing_page_url": "https://www.ncbi.nlm.nih.gov/pmc/articles/77"}  # fmt: skip
    preprint = {"id": "pmh:oai:arXiv.org:2104.12255", "is_oa": True, "pdf_url": "https://arxiv.org/pdf/2104.12255",
                "landing_page_url": "https://arxiv.org/abs/2104.12255", "source": {"type": "repository"}}  # fmt: skip
    closed = {
        "is_oa": False,
        "pdf_url": "https://closed.example.org/a.pdf",
        "landing_page_url": "https://closed.example.org",
    }
    return {
        "id": "https://openalex.org/W12", "doi": "https://doi.org/10.1234/A(1)<B>",
        "title": "T", "publication_year": 2020,
        "ids": {"pmid": "https://pubmed.ncbi.nlm.nih.gov/99"}, "open_access": {"oa_status": "gold"},
        "best_oa_location": best, "locations": [closed, best, pmc, preprint], **changes,
    }  # fmt: skip


def test_openalex_reads_open_locations_and_the_ids_hidden_in_them() -> None:
    client = ScriptedClient(answer(oa_record()))
    result = drive(source("openalex").resolve(WORK, client, CALL))
    assert client.asked[0][0].startswith("https://api.openalex.org/works/doi:10.1234/a%281%29%3Cb%3E?select=")
    assert [(plan.url, plan.host_type) for plan in result.plans] == [
        ("https://p.example.org/a.pdf", "publisher"),
        ("https://export.arxiv.org/pdf/2104.12255", "repository"),
    ]
    work = result.work
    assert (work.work_id, work.pmcid, work.pmid, work.arxiv_id, work.openalex_id) == (
        "doi:10.1234/a(1)<b>", "PMC77", "99", "2104.12255", "W12"
    )  # fmt: skip
    assert "https://p.example.org/a" in work.landing_urls
    assert not any("closed" in url or "/pmc/" in url for url in (*work.landing_urls, *work.pdf_urls))


def test_the_registry_knows_its_sources_and_refuses_others() -> None:
    """RES-20: an unknown name is an error."""
    assert {"unpaywall", "arxiv", "doi_redirect", "landing", "openalex", "idconv"} <= set(registry.names())
    assert list(registry.build(["landing", "arxiv"], settings={})) == ["landing", "arxiv"]
    assert all(name == built.name for name, built in registry.build(registry.names()).items())
    with pytest.raises(ConfigError, match="unpaywall"):
        registry.build(["unpaywal"])


def test_keys_are_in_no_url_and_no_text_of_settings() -> None:
    settings: Mapping[str, ResolverSettings] = {"openalex": ResolverSettings(api_key="sesame")}
    client = ScriptedClient(answer(oa_record()))
    drive(registry.build(["openalex"], settings=settings)["openalex"].resolve(WORK, client, CALL))
    given = registry.credentials(settings)
    held = given["api.openalex.org"]
    assert held == HostCredentials(headers={"Authorization": "Bearer sesame"})
    assert HostCredentials(**dataclasses.asdict(held)) == held
    assert "sesame" not in repr((settings, given, client.asked))
    assert registry.credentials({"openalex": ResolverSettings(api_key=" ")}) == {}


def test_recorded_unpaywall_records_give_their_pdf_links() -> None:
    for name in ("records.json", "records-arxiv.json"):
        for record in json.loads((recorded("unpaywall") / name).read_text())["records"]:
            work = to_work(parse_identifier(record["doi"]))
            result = ask("unpaywall", answer(record), work=work)
            named = [p for p in record["oa_locations"] if p["url_for_pdf"] and "/pmc/" not in p["url_for_pdf"]]
            assert bool(result.plans) == bool(named), record["doi"]
            assert result.work is not None
            assert (result.work.arxiv_id is not None) >= any("arXiv.org" in (p.get("pmh_id") or "") for p in named)


def test_recorded_openalex_works_keep_every_id() -> None:
    """API facts: PMC copies carry no PMCID but an address without the prefix."""
    seen = {"pmcid": 0, "arxiv": 0, "pdf": 0}
    for path in sorted(recorded("openalex").glob("works-*.json")):
        for record in json.loads(path.read_text())["records"]:
            work = work_of_record(Record(record["work"]))
            assert work is not None
            assert normalize_doi(record["work"]["doi"]) in (work.doi, None) or work.arxiv_id is not None
            seen["pmcid"] += work.pmcid is not None
            seen["arxiv"] += work.arxiv_id is not None
            seen["pdf"] += bool(work.pdf_urls)
    assert seen["pmcid"] >= 54
    assert seen["arxiv"] >= 8
    assert seen["pdf"] >= 140


@pytest.mark.parametrize("known", [True, False])
def test_recorded_arxiv_feeds_are_read(known: bool) -> None:
    name = "id_2104.12255v1_s0_m100.json" if known else "id_0808.05394_s0_m100.json"
    [exchange] = json.loads((recorded("arxiv") / name).read_text())
    page = answer(exchange["response"]["body_text"].encode(), exchange["response"]["status"])
    settings = ResolverSettings(options={"metadata": True})
    result = ask("arxiv", page, work=to_work(parse_identifier("2104.12255v1")), settings=settings)
    assert (len(result.plans), result.notes) == ((2, ()) if known else (0, ("not_in_index",)))
    assert result.work is not None
    assert result.work.publication_year == (2021 if known else None)
