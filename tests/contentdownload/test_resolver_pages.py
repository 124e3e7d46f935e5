"""From a DOI or a page to plans: redirects, routers, walls and other papers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.scripted import given
from tests.needs import recorded

from DocsToKG.ContentDownload.api.ports import Call, Page
from DocsToKG.ContentDownload.api.types import Reason, ResolverResult, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected, TransientFailure
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.ids.identifier import parse_identifier, to_work

DOI = "https://doi.org/10.1234/abc"
ARTICLE = "https://journal.example.org/abc"
TAGS = (
    '<meta name="citation_doi" content="10.1234/ABC"><meta name="citation_title" content="T">'
    '<meta name="citation_date" content="2019">'
)
GOOD = TAGS + '<meta name="citation_pdf_url" content="/abc.pdf">'
WORK = to_work(parse_identifier("10.1234/abc"))


class Web:
    """Pages by address; a value may name the address it is reached at after redirects."""

    def __init__(self, pages: dict[str, Page | Exception]) -> None:
        self.pages = pages
        self.asked: list[str] = []

    async def fetch(self, url, role, call, *, headers=None):  # type: ignore[no-untyped-def]
        assert role == "landing"
        self.asked.append(url)
        return given(self.pages[url])

    def open(self, *args, **kwargs):  # type: ignore[no-untyped-def]
        raise AssertionError("a resolver downloads nothing (RES-09)")


def page(url: str, body: str = "", status: int = 200, *, is_pdf: bool = False, **headers: str) -> Page:
    named = {"content-type": "text/html", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return Page(url, status, named, f"<html><head>{body}</head></html>".encode(), (), is_pdf=is_pdf)


def ask(name: str, web: Web, work: WorkArtifact = WORK, *, settings: ResolverSettings | None = None) -> ResolverResult:
    source = registry.build([name], settings={name: settings or ResolverSettings()})[name]
    steps: Any = source.resolve(work, web, Call(work_id=work.work_id))  # type: ignore[arg-type]
    with pytest.raises(StopIteration) as done:
        steps.send(None)
    result: ResolverResult = done.value.value
    return result


def test_the_page_a_doi_leads_to_gives_its_pdf_link() -> None:
    """RES-14."""
    result = ask("doi_redirect", Web({DOI: page(ARTICLE, GOOD)}))
    [plan] = result.plans
    assert (plan.url, plan.referer) == ("https://journal.example.org/abc.pdf", ARTICLE)
    assert (plan.evidence, plan.resolver_name) == ("citation_pdf_url", "doi_redirect")
    assert result.work is not None
    assert (result.work.title, result.work.publication_year) == ("T", 2019)


def test_a_doi_that_answers_with_the_pdf_is_a_plan_for_the_address_reached() -> None:
    """RES-14."""
    [plan] = ask("doi_redirect", Web({DOI: page("https://files.example.org/a", is_pdf=True)})).plans
    assert (plan.url, plan.evidence) == ("https://files.example.org/a", "redirect")


def test_odd_characters_of_a_doi_are_escaped() -> None:
    work = to_work(parse_identifier("10.1234/a(b)<c>;d#e?f"))
    web = Web({"https://doi.org/10.1234/a%28b%29%3Cc%3E%3Bd%23e%3Ff": page(ARTICLE, is_pdf=True)})
    assert ask("doi_redirect", web, work).plans


def test_a_link_hub_is_followed() -> None:
    hub = '<input type="hidden" name="redirectURL" value="https%3A%2F%2Fjournal.example.org%2Fabc%3Fvia%253Dihub">'
    web = Web({DOI: page("https://linkinghub.elsevier.com/retrieve/pii/S1", hub), ARTICLE: page(ARTICLE, GOOD)})
    assert [plan.url for plan in ask("doi_redirect", web).plans] == ["https://journal.example.org/abc.pdf"]


def test_at_most_two_further_pages_are_followed_and_none_twice() -> None:
    def to(url: str) -> str:
        return f'<meta http-equiv="refresh" content="0; url={url}">'

    far = {
        f"https://r.example.org/{step}": page(f"https://r.example.org/{step}", to(f"/{step + 1}")) for step in range(9)
    }
    web = Web({DOI: page("https://r.example.org/", to("/0")), **far})
    result = ask("doi_redirect", web)
    assert len(web.asked) == 3
    assert (result.plans, result.notes) == ((), ("router: r.example.org",))
    circle = Web(
        {
            DOI: page("https://r.example.org/", to("/0")),
            "https://r.example.org/0": page("https://r.example.org/0", to("/")),
        }
    )
    ask("doi_redirect", circle)
    assert len(circle.asked) == 2


def test_both_homes_of_a_chooser_are_tried_in_turn() -> None:
    chooser = "".join(f'<div class="resource-line"><a href="https://{home}.example.org/x">x</a></div>' for home in "ab")
    web = Web(
        {
            DOI: page("https://chooser.crossref.org/", chooser),
            "https://a.example.org/x": page("https://a.example.org/x", TAGS + "<button>Get access</button>"),
            "https://b.example.org/x": page("https://b.example.org/x", GOOD),
        }
    )
    assert [plan.url for plan in ask("doi_redirect", web).plans] == ["https://b.example.org/abc.pdf"]


@pytest.mark.parametrize(
    ("reached", "note"),
    [
        (page("https://doi.org/10.1234/abc", "<title>DOI not found</title>", 404), "unknown-identifier"),
        (page("https://doi.org/10.1234/abc", "", 400), "unknown-identifier"),
        (page(ARTICLE, "", 404), "http-status: 404 from journal.example.org"),
        (page(ARTICLE, "<title>Just a moment...</title>", 403), "challenge: journal.example.org"),
        (page(ARTICLE, "<title>Just a moment...</title>", 200), "challenge: journal.example.org"),
        (page("https://idp.example.org/?SAMLRequest=x", "Sign in"), "login-wall: idp.example.org"),
        (page(ARTICLE, TAGS + "<button>Get access</button>"), "paywall: journal.example.org"),
        (page(ARTICLE, TAGS), "no_pdf_urls_in_html"),
        (page(ARTICLE, GOOD.replace("10.1234/ABC", "10.1234/other")), "wrong-article: the page is about 10.1234/other"),
        (page(ARTICLE, "<body>words", content_type="application/xml"), "not_html: application/xml"),
    ],
)
def test_pages_without_the_paper_give_a_note_and_no_plan(reached: Page, note: str) -> None:
    result = ask("doi_redirect", Web({DOI: reached}))
    assert result.plans == ()
    assert result.notes[0].startswith(note)


def test_a_busy_publisher_is_transient() -> None:
    with pytest.raises(TransientFailure):
        ask("doi_redirect", Web({DOI: page(ARTICLE, "<title>busy</title>", 503)}))


def work_with(*pages: str, **known: Any) -> WorkArtifact:
    return WorkArtifact("doi:10.1234/abc", doi="10.1234/abc", landing_urls=pages, **known)


def test_every_known_page_is_read_once_and_at_most_four() -> None:
    urls = [f"https://r{number}.example.org/p" for number in range(6)]
    web = Web({url: page(url, TAGS + f'<meta name="citation_pdf_url" content="/{url[9]}">') for url in urls})
    result = ask(
        "landing", web, work_with(urls[0], urls[0] + "?utm_source=x", "https://R0.example.org:443/p", *urls[1:])
    )
    assert web.asked == urls[:4]
    assert len(result.plans) == 4


def test_a_page_that_fails_does_not_spoil_the_others() -> None:
    bad, away, good = "https://a.example.org/?token=sesame", "https://b.example.org/", ARTICLE
    pages: dict[str, Page | Exception] = {
        bad: CandidateRejected(Reason.ROBOTS, url=bad),
        away: TransientFailure(Reason.TIMEOUT, url=away),
        good: page(good, GOOD),
    }
    result = ask("landing", Web(pages), work_with(bad, away, good))
    assert len(result.plans) == 1
    assert result.notes == ("robots: https://a.example.org/?token=***",)


def test_a_page_that_is_away_makes_the_source_transient_when_no_other_helps() -> None:
    """RES-27: passed over for a transient reason is never terminal."""
    away, bad = "https://b.example.org/", ARTICLE
    web = Web({away: TransientFailure(Reason.TIMEOUT, url=away), bad: page(bad, TAGS)})
    with pytest.raises(TransientFailure):
        ask("landing", web, work_with(away, bad))


def test_an_exhausted_budget_ends_the_visits() -> None:
    web = Web({ARTICLE: CandidateRejected(Reason.BUDGET_EXHAUSTED)})
    with pytest.raises(CandidateRejected):
        ask("landing", web, work_with(ARTICLE, "https://b.example.org/"))


def test_files_and_archive_pages_need_no_visit() -> None:
    work = work_with(
        "https://arxiv.org/abs/2104.12255v1",
        "https://www.ncbi.nlm.nih.gov/pmc/articles/77",
        pdf_urls=("https://x.example.org/a.pdf", "https://pmc.ncbi.nlm.nih.gov/articles/PMC77/pdf/a.pdf"),
    )
    web = Web({})
    assert [plan.url for plan in ask("landing", web, work).plans] == [
        "https://x.example.org/a.pdf",
        "https://export.arxiv.org/pdf/2104.12255v1",
    ]
    assert web.asked == []


def test_the_doi_is_visited_after_the_pages_of_its_own() -> None:
    web = Web({ARTICLE: page(ARTICLE, TAGS), DOI: page(ARTICLE, TAGS)})
    ask("landing", web, work_with(DOI, ARTICLE))
    assert web.asked == [ARTICLE, DOI]


def test_a_work_known_by_its_page_learns_its_doi() -> None:
    work = to_work(parse_identifier(ARTICLE))
    result = ask("landing", Web({ARTICLE: page(ARTICLE, GOOD)}), work)
    assert result.work is not None
    assert (result.work.work_id, result.work.doi) == (work.work_id, "10.1234/abc")
    assert len(result.plans) == 1


@pytest.mark.parametrize(("name", "status"), [("doi-unknown-404-html", 404), ("doi-malformed-400-html", 400)])
def test_recorded_answers_of_doi_org_are_understood(name: str, status: int) -> None:
    exchange = json.loads((recorded("crossref") / f"{name}.json").read_text())[-1]
    body = exchange["response"]["body_text"].encode()
    reached = Page(DOI, exchange["response"]["status"], exchange["response"]["headers"], body, ())
    assert reached.status == status
    [note] = ask("doi_redirect", Web({DOI: reached})).notes
    assert note.startswith("unknown-identifier")


def test_every_plan_of_a_page_says_which_paper_the_page_is_about() -> None:
    body = GOOD + '<meta name="citation_xml_url" content="/abc.xml">'
    result = ask("doi_redirect", Web({DOI: page(ARTICLE, body)}))
    assert [plan.page_doi for plan in result.plans] == ["10.1234/abc", "10.1234/abc"]
    by_page = ask("landing", Web({ARTICLE: page(ARTICLE, body)}), to_work(parse_identifier(ARTICLE)))
    assert {plan.page_doi for plan in by_page.plans} == {"10.1234/abc"}
    silent = ask(
        "landing", Web({ARTICLE: page(ARTICLE, '<meta name="citation_pdf_url" content="/p">')}), work_with(ARTICLE)
    )
    assert [plan.page_doi for plan in silent.plans] == [None]


def test_of_several_dois_on_a_page_the_one_asked_for_is_named() -> None:
    body = '<meta name="citation_doi" content="10.5555/issue">' + GOOD
    [plan] = ask("doi_redirect", Web({DOI: page(ARTICLE, body)})).plans
    assert plan.page_doi == "10.1234/abc"


def test_a_page_about_another_paper_gives_nothing_in_any_form() -> None:
    body = GOOD.replace("10.1234/ABC", "10.1234/other") + '<meta name="citation_xml_url" content="/x">'
    result = ask("doi_redirect", Web({DOI: page(ARTICLE, body)}))
    assert (result.plans, result.notes) == ((), ("wrong-article: the page is about 10.1234/other",))


def test_other_forms_come_after_the_pdfs_and_do_not_stand_for_one() -> None:
    body = TAGS + '<meta name="citation_fulltext_html_url" content="/h"><meta name="citation_xml_url" content="/x">'
    with_pdf = ask("doi_redirect", Web({DOI: page(ARTICLE, body + '<meta name="citation_pdf_url" content="/p">')}))
    assert [plan.expected_mime for plan in with_pdf.plans] == ["application/pdf", "application/xml", "text/html"]
    assert with_pdf.notes == ()
    without = ask("doi_redirect", Web({DOI: page(ARTICLE, body)}))
    assert [plan.expected_mime for plan in without.plans] == ["application/xml", "text/html"]
    assert without.notes == ("no_pdf_urls_in_html",)
    away = "https://b.example.org/"
    web = Web({ARTICLE: page(ARTICLE, body), away: TransientFailure(Reason.TIMEOUT, url=away)})
    with pytest.raises(TransientFailure):
        ask("landing", web, work_with(ARTICLE, away))


PLOS_DOI = "10.1371/journal.pone.0000001"
PLOS = to_work(parse_identifier(PLOS_DOI))
PLOS_FILE = f"https://journals.plos.org/plosone/article/file?id={PLOS_DOI}&type=printable"
WILEY = to_work(parse_identifier("10.1002/x.1"))
WILEY_FILE = "https://onlinelibrary.wiley.com/doi/pdfdirect/10.1002/x.1"


def doi_of(work: WorkArtifact) -> str:
    return f"https://doi.org/{work.doi}"


def test_an_address_built_from_the_doi_is_a_guess_after_the_pages_evidence() -> None:
    body = f'<meta name="citation_doi" content="{PLOS_DOI}"><meta name="citation_pdf_url" content="/p">'
    result = ask("doi_redirect", Web({doi_of(PLOS): page(ARTICLE, body)}), PLOS)
    assert [(plan.evidence, plan.is_guess) for plan in result.plans] == [
        ("citation_pdf_url", False),
        ("prefix_rule", True),
    ]
    assert result.plans[1].url == PLOS_FILE


def test_a_guess_that_the_page_also_names_is_evidence() -> None:
    body = f'<meta name="citation_pdf_url" content="{PLOS_FILE}">'
    [plan] = ask("doi_redirect", Web({doi_of(PLOS): page(ARTICLE, body)}), PLOS).plans
    assert (plan.evidence, plan.is_guess) == ("citation_pdf_url", False)


def test_a_guess_stands_alone_when_the_page_gave_nothing_or_could_not_be_read() -> None:
    for reached in (page(ARTICLE, "<p>words</p>"), CandidateRejected(Reason.ROBOTS, "rule", url=ARTICLE)):
        result = ask("doi_redirect", Web({doi_of(PLOS): reached}), PLOS)
        assert [(plan.url, plan.is_guess) for plan in result.plans] == [(PLOS_FILE, True)]
        assert len(result.notes) == 1


def test_a_page_that_cannot_be_read_is_still_a_refusal_where_no_rule_guesses() -> None:
    with pytest.raises(CandidateRejected):
        ask("doi_redirect", Web({DOI: CandidateRejected(Reason.ROBOTS)}))
    for stop in (CandidateRejected(Reason.BUDGET_EXHAUSTED), TransientFailure(Reason.TIMEOUT)):
        with pytest.raises(type(stop)):
            ask("doi_redirect", Web({doi_of(PLOS): stop}), PLOS)


@pytest.mark.parametrize(
    "reached",
    [
        page(doi_of(WILEY), "", status=404),
        page("https://onlinelibrary.wiley.com/doi/10.1002/x.1", "<title>Just a moment...</title>", status=403),
        page(ARTICLE, '<meta name="citation_doi" content="10.1002/x.1"><body><button>Buy this article</button>'),
    ],
)
def test_nothing_is_guessed_about_unknown_papers_papers_for_sale_and_at_guarded_hosts(reached: Page) -> None:
    result = ask("doi_redirect", Web({doi_of(WILEY): reached}), WILEY)
    assert result.plans == ()
    assert result.notes


def test_nothing_is_guessed_for_works_known_to_be_closed_where_only_some_are_open() -> None:
    found = [
        [plan.url for plan in ask("doi_redirect", Web({doi_of(work): page(ARTICLE, "<p>x</p>")}), known).plans]
        for work in (WILEY, PLOS)
        for known in (work, replace(work, oa_status="closed"))
    ]
    assert found == [[WILEY_FILE], [], [PLOS_FILE], [PLOS_FILE]]


def test_pages_of_open_archives_tell_their_file_before_the_visit() -> None:
    hal, stored = "https://hal.science/hal-01929506", "https://eprints.example.ac.uk/1/1/paper.pdf"
    web = Web({hal: page(hal, status=404)})
    plans = ask("landing", web, work_with(stored, hal)).plans
    assert [(plan.url, plan.evidence, plan.host_type) for plan in plans] == [
        (stored, "file_address", None),
        (hal + "/document", "hal_document", "repository"),
    ]
    assert web.asked == [hal], "what is itself a file is not visited"


@pytest.mark.parametrize(
    ("body", "status", "note"),
    [
        ("<title>Just a moment...</title>", 403, "challenge"),
        ("<p>Cookies are disabled in your browser.</p>", 200, "cookie-wall"),
        ('<form><input type="password"></form>', 200, "login-wall"),
        ("<p>Purchase this article</p>", 200, "paywall"),
        ("<title>Preparing to download ...</title>", 200, "interstitial"),
        ("<p>Redirecting</p>", 200, "router"),
    ],
)
def test_each_page_in_front_of_the_paper_has_its_own_note(body: str, status: int, note: str) -> None:
    result = ask("doi_redirect", Web({DOI: page(ARTICLE, body, status=status)}))
    assert (result.plans, result.notes) == ((), (f"{note}: journal.example.org",))
    assert note in set(Reason)


def test_a_page_that_says_it_is_not_free_says_so_beside_its_plan() -> None:
    body = GOOD + '<script type="application/ld+json">{"isAccessibleForFree": false}</script>'
    result = ask("doi_redirect", Web({DOI: page(ARTICLE, body)}))
    assert len(result.plans) == 1
    assert result.notes == ("paywall: journal.example.org says that the paper is not free",)


def test_users_rules_reach_both_sources(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "pages:\n  - {name: mine, hosts: [journal.example.org], select: 'a[rel=full]', example: {gives: []}}\n"
        "prefixes:\n  - {name: my, doi: '10.1234/(?P<id>.+)', to: 'https://m.example.org/{id}', example: {gives: []}}\n"
    )
    settings = ResolverSettings(options={"site_rules": str(rules)})
    web = Web({DOI: page(ARTICLE, TAGS + '<a rel="full" href="/x">x</a>')})
    result = ask("doi_redirect", web, settings=settings)
    assert [plan.url for plan in result.plans] == ["https://journal.example.org/x", "https://m.example.org/abc"]
    web = Web({ARTICLE: page(ARTICLE, TAGS + '<a rel="full" href="/x">x</a>')})
    [plan] = ask("landing", web, work_with(ARTICLE), settings=settings).plans
    assert (plan.url, plan.evidence) == ("https://journal.example.org/x", "mine")
