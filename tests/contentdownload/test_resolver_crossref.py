"""Crossref: which registered links are worth a try, under which licence, and what the record tells besides."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from tests.contentdownload.scripted import CONTACT, SETTINGS, answer, first_words, named, resolve
from tests.needs import recorded

from DocsToKG.ContentDownload.api.types import ResolverResult
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.crossref import (
    CrossrefResolver,
    is_retracted,
    licence_for,
    licences_in_force,
    year_issued,
)
from DocsToKG.ContentDownload.resolvers.ids.normal_forms import normalize_doi
from DocsToKG.ContentDownload.resolvers.record import Record

WORK = named("10.1234/a(1)<b>")
CC_BY = "https://creativecommons.org/licenses/by/4.0/"
TERMS = "https://p.example.org/terms"
TODAY = date(2026, 6, 16)


def link(url: str, kind: str = "application/pdf", version: str = "vor", use: str = "text-mining") -> dict[str, str]:
    return {"URL": url, "content-type": kind, "content-version": version, "intended-application": use}


def licence(url: str = CC_BY, version: str = "vor", start: list[int] | None = None, delay: int = 0) -> dict[str, Any]:
    day = {"date-parts": [start or [2020, 1, 1]]}
    return {"URL": url, "content-version": version, "start": day, "delay-in-days": delay}


def source(today: date = TODAY) -> CrossrefResolver:
    return CrossrefResolver(settings=SETTINGS, today=lambda: today)


def read(message: dict[str, Any], *, today: date = TODAY) -> ResolverResult:
    body = {"status": "ok", "message-type": "work", "message": {"DOI": "10.1234/A(1)<B>", **message}}
    return resolve(source(today), WORK, answer(body))[0]


def test_it_asks_by_doi_and_says_who_asks() -> None:
    page = answer(b"Resource not found.", 404)
    assert resolve(source(), WORK, page)[1] == [
        f"https://api.crossref.org/works/10.1234/a%281%29%3Cb%3E?mailto={CONTACT}"
    ]
    without = CrossrefResolver(settings=ResolverSettings(base_url="https://mirror.example.org/v1/"))
    assert resolve(without, WORK, page)[1] == ["https://mirror.example.org/v1/works/10.1234/a%281%29%3Cb%3E"]


def test_a_work_without_doi_is_not_asked_for() -> None:
    assert source().applies_to(named("PMC7")) == "no_doi"
    assert resolve(source(), named("PMC7"))[0].notes == ("no_doi",)


def test_pdfs_come_before_unspecified_links_that_say_pdf_and_xml_comes_last() -> None:
    result = read(
        {
            "link": [
                link("https://p.example.org/full.xml", "text/xml"),
                link("https://p.example.org/pdf/2", "unspecified"),
                link("https://p.example.org/plain", "text/plain"),
                link("https://p.example.org/check.pdf", use="similarity-checking"),
                link("https://p.example.org/am.pdf", version="am"),
                link("https://p.example.org/1.pdf"),
                link("https://P.example.org:443/1.pdf", "unspecified"),
                link("https://p.example.org/page", "unspecified"),
                link("https://p.example.org/full2.xml", "application/xml"),
            ]
        }
    )
    assert [(plan.url.rpartition("/")[2], plan.evidence, plan.version) for plan in result.plans] == [
        ("1.pdf", "link_pdf", "publishedVersion"),
        ("check.pdf", "link_pdf", "publishedVersion"),
        ("am.pdf", "link_pdf", "acceptedVersion"),
        ("2", "link_unspecified", "publishedVersion"),
        ("full.xml", "link_xml", "publishedVersion"),
        ("full2.xml", "link_xml", "publishedVersion"),
    ]
    assert [plan.expected_mime for plan in result.plans][3:] == [
        "application/pdf",
        "application/xml",
        "application/xml",
    ]
    assert {plan.host_type for plan in result.plans} == {"publisher"}


def test_links_that_ask_for_a_members_key_are_left_out_aloud() -> None:
    result = read(
        {
            "link": [
                link("https://api.elsevier.com/content/article/PII:S1?httpAccept=text/xml", "text/xml"),
                link("https://api.elsevier.com/content/article/PII:S1?httpAccept=text/plain", "text/plain"),
                link("https://api.wiley.com/onlinelibrary/tdm/v1/articles/10.1002%2Fpdf", "application/pdf"),
            ]
        }
    )
    assert result.plans == ()
    assert first_words(result.notes) == ["needs_member_key", "needs_member_key", "no_oa_pdf", "no_open_licence"]
    assert "api.elsevier.com" in result.notes[0]


@pytest.mark.parametrize(
    ("licences", "version", "found"),
    [
        ([licence()], "vor", CC_BY),
        ([licence(version="unspecified")], "vor", CC_BY),
        ([licence(TERMS), licence()], "vor", CC_BY),
        ([licence(TERMS)], "vor", TERMS),
        ([licence(version="am")], "vor", None),
        ([licence(version="am")], "am", CC_BY),
        ([licence(version="tdm"), licence(version="stm-asf")], "vor", None),
        ([licence(start=[2026, 6, 16])], "vor", CC_BY),
        ([licence(start=[2026, 6, 17])], "vor", None),
        ([licence(start=[2026, 1, 1], delay=365)], "vor", CC_BY),
        ([licence(start=[2026])], "vor", CC_BY),
        ([{"URL": CC_BY, "content-version": "vor"}], "vor", CC_BY),
        ([{"URL": CC_BY, "content-version": "vor", "start": {"date-parts": [[2026, 2, 31]]}}], "vor", CC_BY),
        ([{"URL": 7}], "vor", None),
        ([], "vor", None),
    ],
)
def test_a_licence_counts_for_its_version_once_its_start_has_come(
    licences: list[dict[str, Any]], version: str, found: str | None
) -> None:
    assert licence_for(version, licences_in_force(Record({"license": licences}), TODAY)) == found


def test_the_plan_and_the_work_carry_the_licence_in_force() -> None:
    message = {
        "link": [link("https://p.example.org/a.pdf"), link("https://p.example.org/am.pdf", version="am")],
        "license": [licence(TERMS), licence(version="am", start=[2027, 1, 1])],
    }
    now, later = read(message), read(message, today=date(2027, 1, 1))
    assert [plan.license for plan in now.plans] == [TERMS, None]
    assert [plan.license for plan in later.plans] == [TERMS, CC_BY]
    assert first_words(now.notes) == ["no_open_licence"]
    assert later.notes == ()
    assert now.work is not None
    assert now.work.license == TERMS


@pytest.mark.parametrize(
    ("message", "retracted"),
    [
        ({"updated-by": [{"type": "retraction", "DOI": "10.1234/r"}]}, True),
        ({"updated-by": [{"type": "correction"}, {"type": "Withdrawal"}]}, True),
        ({"updated-by": [{"type": "correction"}]}, None),
        ({"update-to": [{"type": "retraction", "DOI": "10.1234/the-retracted-one"}]}, None),
        ({"update-to": [{"type": "retraction", "DOI": "10.1234/ABC"}]}, True),
        ({"updated-by": None, "update-to": 7}, None),
        ({}, None),
    ],
)
def test_a_paper_is_retracted_by_a_notice_about_it_and_the_notice_is_not(
    message: dict[str, Any], retracted: bool | None
) -> None:
    assert is_retracted(Record({"DOI": "10.1234/abc", **message})) is retracted


def test_the_record_tells_title_year_page_and_preprint() -> None:
    result = read(
        {
            "title": ["A <i>title</i>", "another"],
            "issued": {"date-parts": [[None]]},
            "created": {"date-parts": [[2019, 4, 2]]},
            "resource": {"primary": {"URL": "https://p.example.org/a"}},
            "link": [link("https://p.example.org/a.html", "text/html")],
            "relation": {
                "has-preprint": [
                    {"id-type": "doi", "id": "10.1101/2020.01.01"},
                    {"id-type": "arxiv", "id": "arXiv:2104.12255v2"},
                ]
            },
            "updated-by": [{"type": "retraction", "DOI": "10.1234/r"}],
        }
    )
    work = result.work
    assert work is not None
    assert (work.title, work.publication_year, work.is_retracted) == ("A title", 2019, True)
    assert work.landing_urls == ("https://p.example.org/a", "https://p.example.org/a.html")
    assert (work.arxiv_id, work.metadata) == ("2104.12255", {"preprint_doi": "10.1101/2020.01.01"})
    [plan] = result.plans
    assert (plan.url, plan.version) == ("https://export.arxiv.org/pdf/2104.12255", "submittedVersion")
    assert (plan.evidence, plan.host_type) == ("has-preprint", "repository")


def test_a_posted_preprint_is_a_submitted_version_that_knows_its_published_paper() -> None:
    result = read(
        {
            "type": "posted-content",
            "link": [link("https://www.biorxiv.org/x.full.pdf")],
            "relation": {"is-preprint-of": [{"id-type": "doi", "id": "https://doi.org/10.1/PUB"}]},
        }
    )
    assert (result.plans[0].version, result.plans[0].host_type) == ("submittedVersion", "repository")
    assert result.work is not None
    assert result.work.metadata == {"published_doi": "10.1/pub"}


@pytest.mark.parametrize(
    ("message", "notes"),
    [
        ({"DOI": "10.1234/other", "link": [link("https://p.example.org/a.pdf")]}, ["wrong-article"]),
        ({"DOI": 7}, ["malformed_answer"]),
        ({"link": None, "license": 7, "title": {}, "relation": []}, ["no_oa_pdf", "no_open_licence"]),
        ({"link": [None, {}, {"URL": 7}, link("javascript:pdf"), link("https://[pdf", "unspecified")]},
         ["no_oa_pdf", "no_open_licence"]),
    ],
)  # fmt: skip
def test_odd_records_give_notes(message: dict[str, Any], notes: list[str]) -> None:
    result = read(message)
    assert (result.plans, first_words(result.notes)) == ((), notes)


def recorded_messages() -> Iterator[dict[str, Any]]:
    for path in sorted(recorded("crossref").glob("*.json")):
        for exchange in json.loads(path.read_text()):
            try:
                message = json.loads(exchange["response"].get("body_text") or "")["message"]
            except (ValueError, KeyError, TypeError):
                continue
            items = message.get("items", [message]) if isinstance(message, dict) else []
            yield from (item for item in items if "DOI" in item and "link" in item)


def test_recorded_works_give_their_pdf_links_and_nothing_that_needs_a_key() -> None:
    seen = {"works": 0, "pdf": 0, "open": 0, "key": 0}
    for message in recorded_messages():
        doi = normalize_doi(message["DOI"])
        assert doi is not None
        result = resolve(source(), named(doi), answer({"message": message}))[0]
        offered = [each for each in message["link"] if each["content-type"] == "application/pdf"]
        free = [each for each in offered if "api.wiley.com" not in each["URL"]]
        assert bool(free) <= any(plan.evidence == "link_pdf" for plan in result.plans), doi
        assert not any("api.elsevier.com" in plan.url or "api.wiley.com" in plan.url for plan in result.plans)
        assert result.work is not None
        assert bool(result.work.title) == bool(message.get("title"))
        assert result.work.is_retracted is None
        seen["works"] += 1
        seen["pdf"] += any(plan.expected_mime == "application/pdf" for plan in result.plans)
        seen["open"] += "no_open_licence" not in result.notes
        seen["key"] += "needs_member_key" in first_words(result.notes)
    assert seen["works"] >= 40
    assert seen["pdf"] >= 20
    assert min(seen["open"], seen["key"]) >= 10


def test_recorded_delays_are_already_part_of_the_start() -> None:
    """Every recorded delay is the time from publication to `start`, so that adding it would count it twice."""
    delayed = 0
    for message in recorded_messages():
        for each in message.get("license", []):
            if each["delay-in-days"] > 0:
                issued = [part or 1 for part in message["issued"]["date-parts"][0]]
                published = date(*(*issued, 1, 1, 1)[:3])
                start = date(*each["start"]["date-parts"][0])
                assert (start - published).days == each["delay-in-days"] or year_issued(Record(message)) is None
                delayed += 1
    assert delayed >= 5


@pytest.mark.parametrize(
    ("name", "index", "note"), [("work-404-then-found", 0, "not_in_index"), ("work-with-query-400", 0, "http-status")]
)
def test_recorded_refusals_are_notes(name: str, index: int, note: str) -> None:
    response = json.loads(recorded("crossref", f"{name}.json").read_text())[index]["response"]
    result, _ = resolve(source(), WORK, answer(response["body_text"].encode(), response["status"]))
    assert first_words(result.notes) == [note]


@pytest.mark.parametrize("use", ["text-mining", "similarity-checking", "unspecified"])
@pytest.mark.parametrize(
    ("oa_status", "licences", "proposed"),
    [
        ("closed", [], False),
        ("closed", [licence(TERMS, version="tdm")], False),
        ("closed", [licence(CC_BY)], True),
        ("bronze", [], True),
        (None, [], True),
    ],
)
def test_links_of_a_closed_work_are_no_open_copies(
    use: str, oa_status: str | None, licences: list[dict[str, Any]], proposed: bool
) -> None:
    """Behind them are files for subscribers, and this machine may stand in a subscriber's house."""
    message = {"DOI": "10.1234/A(1)<B>", "link": [link("https://p.example.org/a.pdf", use=use)], "license": licences}
    result, _ = resolve(source(), replace(WORK, oa_status=oa_status), answer({"message": message}))
    assert [plan.url for plan in result.plans] == (["https://p.example.org/a.pdf"] if proposed else [])
    assert ("no_open_licence" in result.notes) == (CC_BY not in [each["URL"] for each in licences])


def test_the_preprint_of_a_closed_work_is_proposed() -> None:
    relation = {"has-preprint": [{"id-type": "doi", "id": "10.48550/arxiv.2104.12255"}]}
    message = {"DOI": "10.1234/A(1)<B>", "relation": relation, "link": [link("https://p.example.org/a.pdf")]}
    result, _ = resolve(source(), replace(WORK, oa_status="closed"), answer({"message": message}))
    assert [plan.url for plan in result.plans] == ["https://export.arxiv.org/pdf/2104.12255"]


@pytest.mark.parametrize(("status", "why_not"), [(403, "refused"), (401, None), (404, None)])
def test_who_was_blocked_by_hand_asks_no_more_in_this_run(status: int, why_not: str | None) -> None:
    crossref = source()
    assert crossref.applies_to(WORK) is None
    resolve(crossref, WORK, answer(b"", status))
    assert crossref.applies_to(WORK) == why_not
    if why_not is not None:
        result, asked = resolve(crossref, WORK)
        assert (result.notes, asked) == (("refused",), [])


PII = "S0021925823021796"
HUB = {"primary": {"URL": f"https://linkinghub.elsevier.com/retrieve/pii/{PII}"}}


@pytest.mark.parametrize(
    "message",
    [
        {"alternative-id": [PII]},
        {"alternative-id": ["10.1016/x", PII.lower()]},
        {"link": [link(f"https://api.elsevier.com/content/article/PII:{PII}?httpAccept=text/xml", "text/xml")]},
        {"resource": HUB},
    ],
)
def test_the_number_of_a_publisher_leads_to_the_host_of_its_society(message: dict[str, Any]) -> None:
    """A newer DOI does not tell the journal; the number registered beside it does."""
    result = read({"license": [licence()], **message})
    [plan] = [plan for plan in result.plans if plan.evidence == "alternative-id"]
    assert (plan.url, plan.is_guess, plan.license) == (f"https://www.jbc.org/article/{PII}/pdf", True, CC_BY)
    assert result.work is not None
    assert result.work.metadata["pii"] == PII
    closed = read(message)
    assert [plan for plan in closed.plans if plan.evidence == "alternative-id"] == [], "no licence says that it is open"


def test_the_number_of_a_journal_elsewhere_names_its_page_alone() -> None:
    result = read({"license": [licence()], "alternative-id": ["S0197458010001570"]})
    assert result.plans == ()
    assert result.work is not None
    assert result.work.landing_urls == ("https://www.sciencedirect.com/science/article/pii/S0197458010001570",)
    for other in (["BFsrep16696"], ["10.1136/bmj.1"], [7], None, ["0160412081900738"]):
        named = read({"alternative-id": other}).work
        assert named is not None
        assert "pii" not in named.metadata
    bare = read({"alternative-id": "S0197458010001570"}).work
    assert bare is not None
    assert bare.metadata["pii"] == "S0197458010001570", "one text counts as a list of one"


def test_an_open_licence_that_is_to_come_is_an_embargo() -> None:
    later = {"license": [licence(start=[2027, 5, 1]), licence(start=[2026, 9]), licence(TERMS, start=[2026, 7, 1])]}
    assert read(later).notes[0] == "embargo: until 2026-09-01"
    with_link = read({**later, "link": [link("https://p.example.org/a.pdf")]})
    assert "embargo" not in first_words(with_link.notes), "a link that is registered is tried"
