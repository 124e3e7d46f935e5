"""Every rule about a site does what its example says, and a file of rules that is wrong is refused with its reason."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.resolvers.landing.file_addresses import file_address, known_file
from DocsToKG.ContentDownload.resolvers.landing.html_page import HtmlPage, parse_html
from DocsToKG.ContentDownload.resolvers.landing.link_ranking import own_names
from DocsToKG.ContentDownload.resolvers.landing.page import extract
from DocsToKG.ContentDownload.resolvers.site_rules.css_selectors import parse_selector
from DocsToKG.ContentDownload.resolvers.site_rules.load import parse_rules, rules_with, shipped_rules
from DocsToKG.ContentDownload.resolvers.site_rules.rules import FileRule, PageRule, PrefixRule

RULES = shipped_rules()
SITE = "https://journal.example.org/a/1"
HTML = {"content-type": "text/html"}

OWN = """
files:
  - name: mine_file
    hosts: [journal.example.org]
    from: '/a/(\\d+)$'
    to: '/files/\\1.pdf'
    sure: true
    example: {url: 'https://journal.example.org/a/1', gives: 'https://journal.example.org/files/1.pdf'}
pages:
  - name: mine_page
    hosts: [journal.example.org]
    select: 'div.box a[rel=full]'
    example: {url: 'https://journal.example.org/a/1', html: '<a>', gives: []}
prefixes:
  - name: plos
    doi: '10\\.1371/(?P<id>.+)'
    to: 'https://mirror.example.org/{id}'
    example: {doi: '10.1371/x', gives: 'https://mirror.example.org/x'}
"""


def html_page(body: str, url: str = SITE) -> HtmlPage:
    page = parse_html(url, f"<html><body>{body}</body></html>".encode(), HTML)
    assert page is not None
    return page


def selected(selector: str, body: str) -> list[str]:
    return [node.get("href") or "" for node in parse_selector(selector).find(html_page(body))]


@pytest.mark.parametrize("rule", RULES.files, ids=lambda rule: rule.name)
def test_the_example_of_each_rule_for_addresses(rule: FileRule) -> None:
    [expected] = rule.example.gives
    if rule.shows == "file":
        assert file_address(rule.example.url) == expected
        assert file_address(expected) == expected
        return
    address, knows = RULES.file_of_page(rule.example.url, min_share=0) or ("", None)
    assert (address, knows) == (expected, rule)
    assert RULES.file_of_page(expected, min_share=0) is None, "the file of a file is another address"
    if rule.sure:
        known = known_file(rule.example.url)
        assert known is not None
        assert (known.url, known.evidence) == (expected, rule.name)
    else:
        assert known_file(rule.example.url) is None


@pytest.mark.parametrize("rule", RULES.pages, ids=lambda rule: rule.name)
def test_the_example_of_each_rule_for_pages(rule: PageRule) -> None:
    """The rule alone, and the whole reader with all the rules."""
    example = rule.example
    page = html_page(example.html, example.url)
    links = [page.absolute(link) for link in rule.links(page, own_names(example.url, ()))]
    assert tuple(file_address(link or "") for link in links) == example.gives
    facts = extract(example.url, f"<html><body>{example.html}<p>words</p></body></html>".encode(), HTML)
    found = {link.url for link in (*facts.pdf_links, *facts.other_forms)}
    assert rule.mime != "application/pdf" or found >= set(example.gives)


@pytest.mark.parametrize("rule", RULES.prefixes, ids=lambda rule: rule.name)
def test_the_example_of_each_rule_for_dois(rule: PrefixRule) -> None:
    assert rule.example.gives == (rule.address(rule.example.doi),)
    assert next(found.name for found, _ in RULES.guesses(rule.example.doi, min_share=0)) == rule.name


def test_there_are_rules_for_the_large_platforms() -> None:
    names = {rule.name for rule in (*RULES.files, *RULES.pages, *RULES.prefixes)}
    assert len(names) >= 60
    assert len({rule.name for rule in RULES.files}) == len(RULES.files)
    assert len({rule.name for rule in RULES.pages}) == len(RULES.pages)
    assert len({rule.name for rule in RULES.prefixes}) == len(RULES.prefixes)


def test_every_guess_is_measured_and_those_that_are_wrong_too_often_are_off() -> None:
    """What builds an address that nobody named carries how often it was right (test_planning_recall measures it)."""
    guessing = [*RULES.prefixes, *(rule for rule in RULES.files if rule.shows == "page" and not rule.sure)]
    assert all(rule.measured is not None for rule in guessing)
    assert all(rule.measured is None for rule in RULES.files if rule.sure or rule.shows == "file")
    wrong = {"elsevier_pii": "10.1016/s0266-8920(02)00010-3", "degruyter_older": "10.1515/znb-1952-0303"}
    for name, doi in wrong.items():
        assert RULES.guesses(doi) == []
        assert [rule.name for rule, _ in RULES.guesses(doi, min_share=0)] == [name]
    assert RULES.guesses("10.18653/v1/2020.acl-main.1") == [], "never judged"


@pytest.mark.parametrize(
    ("doi", "addresses"),
    [
        ("10.1016/s0140-6736(02)87056-8", ["https://www.thelancet.com/article/S0140673602870568/pdf"]),
        ("10.1016/s0092-8674(00)81683-9", ["https://www.cell.com/article/S0092867400816839/pdf"]),
        ("10.1016/s0006-291x(02)02641-4", []),
        ("10.1038/sj.bjp.0702160", []),
        ("10.1038/ki.2010.1", []),
        ("10.1038/d41586-020-02610-z", []),
        ("10.1038/sj.onc.1200001", ["https://www.nature.com/articles/sj.onc.1200001.pdf"]),
        ("10.1111/j.0022-202x.2004.23507.x", []),
        ("10.1111/jth.13147", []),
        ("10.1111/dth.13147", ["https://onlinelibrary.wiley.com/doi/pdfdirect/10.1111/dth.13147"]),
        ("10.1299/jsmeb.47.277", []),
    ],
)
def test_journals_that_moved_are_not_looked_for_at_their_old_publisher(doi: str, addresses: list[str]) -> None:
    assert [address for _, address in RULES.guesses(doi)] == addresses


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        ("a", ["/1", "/2", "/3"]),
        ("a.pdf", ["/1"]),
        ("a#x", ["/2"]),
        ("a[rel]", ["/3"]),
        ("a[rel=full]", ["/3"]),
        ('a[class~="pdf"]', ["/1"]),
        ("a[class=pdf]", []),
        ('a[href^="/"][href$="2"]', ["/2"]),
        ("div.box a", ["/2", "/3"]),
        ("div.box p a", ["/3"]),
        ("p div a", []),
        ("embed", []),
    ],
)
def test_selectors_name_elements(selector: str, taken: list[str]) -> None:
    box = '<div class="box"><a id="x" href="/2">2</a><p><a rel="full" href="/3">3</a></p></div>'
    assert selected(selector, '<a class="big pdf" href="/1">1</a>' + box) == taken


@pytest.mark.parametrize("selector", ["", ".pdf", "a > b", "a:first-child", "a[", "a[b=c", "a,b", "*"])
def test_a_selector_outside_the_small_language_is_refused(selector: str) -> None:
    with pytest.raises(ValueError, match="selector"):
        parse_selector(selector)


def test_a_rule_that_wants_a_single_link_takes_none_of_several() -> None:
    [rule] = [rule for rule in RULES.pages if rule.name == "figshare_file"]
    one = '<a href="https://ndownloader.figshare.com/files/1">a</a>'
    assert len(rule.links(html_page(one + one), ())) == 1
    assert rule.links(html_page(one + one.replace("/1", "/2")), ()) == []


def test_a_rule_of_one_site_does_not_speak_on_another() -> None:
    [rule] = [rule for rule in RULES.pages if rule.name == "ieee_json"]
    for url in (
        "https://ieeexplore.ieee.org.example.net/1",
        "https://notieeexplore.ieee.org/1",
        "https://example.org/",
    ):
        assert rule.links(html_page(rule.example.html, url), ()) == []


def test_users_rules_come_first_and_replace_those_of_the_same_name(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(OWN)
    rules = rules_with(path)
    page = b'<html><div class="box"><a rel="full" href="/f/1">x</a></div></html>'
    assert [link.url for link in extract(SITE, page, HTML, rules=rules).pdf_links] == [
        "https://journal.example.org/f/1"
    ]
    assert [link.url for link in extract(SITE, b"<p>x", HTML, rules=rules).pdf_links] == [
        "https://journal.example.org/files/1.pdf"
    ]
    assert [address for _, address in rules.guesses("10.1371/journal.pone.0000001")] == [
        "https://mirror.example.org/journal.pone.0000001"
    ]
    assert len(rules.pages) == len(RULES.pages) + 1
    assert rules_with(None) is RULES


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- a", "lists named"),
        ("rules: []", "lists named"),
        ("files: {a: b}", "must be a list"),
        ("files: [1]", "mapping"),
        ("files: [{name: ab, from: a, too: b}]", "unknown key too"),
        ("files: [{name: ab, to: b, example: {gives: x}}]", "'from' is missing"),
        ("files: [{name: 'A b', from: a, to: b}]", "small letters"),
        ("files: [{name: ab, from: '(', to: b, example: {gives: x}}]", "ab: "),
        ("files: [{name: ab, from: a, to: b, shows: c, example: {gives: x}}]", "'c' is none of file, page"),
        ("files: [{name: ab, from: a, to: b}]", "'example' is missing"),
        ("pages: [{name: ab, select: 'a > b', example: {gives: x}}]", "not a selector"),
        ("pages: [{name: ab, example: {gives: x}}]", "one of select, text and script"),
        ("pages: [{name: ab, select: a, hosts: x, example: {gives: x}}]", "list of names"),
        ("pages: [{name: ab, script: {type: x}, example: {gives: x}}]", "'at' is missing"),
        ("prefixes: [{name: ab, doi: 3, to: b, example: {gives: x}}]", "ab: "),
        ("prefixes: [{name: ab, doi: a, to: b, upper: [x], example: {gives: x}}]", "groups of the pattern"),
        ("prefixes: [{name: ab, doi: a, to: b, measured: 3, example: {gives: x}}]", "two numbers"),
        ("prefixes: [{name: ab, doi: a, to: b, measured: [true, 1], example: {gives: x}}]", "two numbers"),
        ("files: [{name: ab, from: a, to: b, measured: [3, 2], example: {gives: x}}]", "not more can be right"),
        ("files: [", "not YAML"),
        ("9" * 5000, "not YAML"),
        ("[" * 5000, "nested too deeply"),
        ("- " * 200_000, "nested too deeply"),  # once, the process died of it
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_the_rule_and_the_reason(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(says)) as refused:
        parse_rules(text, "mine.yaml")
    assert "mine.yaml" in str(refused.value)


def test_a_file_that_cannot_be_read_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        rules_with(tmp_path / "missing.yaml")
    huge = tmp_path / "huge.yaml"
    huge.write_bytes(b"#" * 1_100_000)
    with pytest.raises(ConfigError, match="larger than"):
        rules_with(huge)


@pytest.mark.parametrize(
    "text",
    [
        "https://a.onlinelibrary.wiley.com" + "/doi/epdf/" * 300,
        "https://www.biorxiv.org/content/10.1101/" + "v1" * 1500,
        "https://www.scielo.br/scielo.php?" + "&amp;pid=S0" * 300,
        "https://journals.example.org/doi/full/10.1234/" + "a" * 3900,
        "https://www.mdpi.com/" + "1234-567X/1/" * 300,
        "https://hal.science/" + "hal-" * 900,
    ],
)
def test_no_address_makes_the_rules_slow(text: str) -> None:
    started = time.thread_time()
    for _ in range(20):
        file_address(text)
        known_file(text)
        RULES.file_of_page(text)
    assert time.thread_time() - started < 4


@examples(150)
@given(st.text(alphabet="ab10./-()<>?#&% vé\x00:", max_size=60))
def test_no_text_breaks_the_rules(text: str) -> None:
    file_address("https://" + text)
    known_file("https://hal.science/" + text)
    RULES.guesses("10." + text)
    RULES.file_of_page("https://[" + text)
