"""Pages in the shape of the programs that make most scholarly sites: each leads to its file, and to nothing else.

The pages are in `generator_pages.yaml`, five of each kind. The same addresses behind a challenge, a login or a wall
lead nowhere.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from DocsToKG.ContentDownload.resolvers.landing.page import LandingFacts, PageKind, extract

GIVEN = yaml.safe_load((Path(__file__).parent / "generator_pages.yaml").read_text(encoding="utf-8"))
PAGES: list[dict[str, Any]] = GIVEN["pages"]
WALLS: list[dict[str, Any]] = GIVEN["walls"]
KINDS = (
    "atypon", "silverchair", "ojs", "dspace", "eprints", "figshare", "dataverse", "invenio", "pubpub", "highwire",
    "tags", "json-ld",
)  # fmt: skip


def facts_of(url: str, html: str, *, link: str = "", status: int = 200) -> LandingFacts:
    headers = {"content-type": "text/html; charset=utf-8"} | ({"link": link} if link else {})
    head = "" if "<title>" in html else "<title>Slow rivers</title>"
    body = f"<html><head>{head}</head><body>{html}<p>Words of it.</p></body></html>"
    return extract(url, body.encode(), headers, status=status)


def test_there_are_sixty_pages_of_a_dozen_kinds() -> None:
    assert Counter(page["made_by"] for page in PAGES) == dict.fromkeys(KINDS, 5)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["made_by"])
def test_a_page_leads_to_its_file_and_to_no_other(page: dict[str, Any]) -> None:
    facts = facts_of(page["url"], page["html"], link=page.get("link", ""))
    assert [link.url for link in facts.pdf_links] == page["gives"]
    assert facts.kind == PageKind.ARTICLE


@pytest.mark.parametrize("wall", WALLS, ids=lambda wall: wall["name"])
def test_behind_a_wall_no_address_leads_to_a_file(wall: dict[str, Any]) -> None:
    for page in PAGES:
        facts = facts_of(page["url"], wall["html"], status=wall["status"])
        found = [link.url for link in (*facts.pdf_links, *facts.other_forms)]
        guessed = [facts.guess.url] if facts.guess is not None and wall["status"] == 200 else []
        assert (page["url"], found, guessed) == (page["url"], [], [])


@pytest.mark.parametrize(
    ("form", "title", "href", "kind"),
    [
        # A form alone, and nothing that carries the paper's name.
        ('<input type="password">', "", "/terms.pdf", PageKind.LOGIN_WALL),
        # Papers on sites with members.
        ('<input type="password">', "", "/doi/pdf/10.1234/jx.2020.11", PageKind.ARTICLE),
        ('<input type="password">' + "<p>Rivers are slow here. " * 15, "", "/files/7.pdf", PageKind.ARTICLE),
        ("", "Sign-in times and log-in errors: a study", "/files/7.pdf", PageKind.ARTICLE),
        ('<meta name="citation_title" content="Login">', "Login", "/files/7.pdf", PageKind.ARTICLE),
    ],
)  # fmt: skip
def test_a_form_for_members_makes_no_login_of_a_paper_s_page(form: str, title: str, href: str, kind: PageKind) -> None:
    html = f'<html><title>{title}</title><body>{form}<a href="{href}">Download PDF</a></body></html>'
    facts = extract("https://jx.org/doi/full/10.1234/jx.2020.11", html.encode(), {"content-type": "text/html"})
    assert facts.kind == kind
    assert bool(facts.pdf_links) == (kind == PageKind.ARTICLE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page["made_by"])
def test_a_page_without_its_links_gives_no_file(page: dict[str, Any]) -> None:
    """The name of a program and the form of an address are no files; what a rule builds of them is called a guess."""
    made = '<meta name="generator" content="DSpace 7.6"><meta name="citation_title" content="Slow rivers">'
    facts = facts_of(page["url"], f"{made}<button>Buy this article</button>")
    assert facts.pdf_links == ()
    assert facts.guess is None or facts.kind != PageKind.PAYWALL
