"""Links of indexes sorted by their looks, and whether an answer is about another paper."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.contentdownload.one_source import alone
from tests.contentdownload.scripted import named
from tests.examples import examples
from tests.needs import recorded

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.resolvers.base import other_paper
from DocsToKG.ContentDownload.resolvers.links.classify import LinkKind, classify_link, pages_of
from DocsToKG.Sandbox.profile import SandboxServer

WORK = named("10.1234/abc")


@pytest.mark.parametrize(
    ("url", "kind", "address"),
    [
        ("https://r.example.org/x/a.pdf", "file", None),
        ("https://r.example.org/x/a.PDF?c=1", "file", None),
        ("https://mededu.example.org/2023/1/e46939/PDF", "file", None),
        ("https://direct.example.org/article-pdf/35/3/309", "file", None),
        ("https://r.example.org/bitstreams/965a873d/download", "file", None),
        ("https://ojs.example.org/index.php/x/article/download/13684/13533", "file", None),
        ("https://journals.example.org/article/file?id=10.1/x&type=printable", "file", None),
        ("https://europepmc.org/articles/PMC7?pdf=render", "file", None),
        ("http://arxiv.org/abs/2104.12255v2", "file", "https://export.arxiv.org/pdf/2104.12255v2"),
        ("https://x.example.org/doi/epdf/10.1/a", "file", "https://x.example.org/doi/pdf/10.1/a"),
        ("https://hal.science/hal-01626324", "file", "https://hal.science/hal-01626324/document"),
        ("https://doi.org/10.1234/abc", "page", None),
        ("https://europepmc.org/articles/PMC7", "page", None),
        ("https://ojs.example.org/index.php/x/article/view/13684", "page", None),
        ("https://www.example.org/paper.html", "page", None),
        ("http://hdl.handle.net/1959.3/447427", "page", None),
        ("https://example.org", "page", "https://example.org/"),
        ("https://j.example.org/2072-6694/9/8/107", "unclear", None),
        ("https://r.example.org/get?documentIds=08&amp;appId=P", "unclear", "https://r.example.org/get?documentIds=08&appId=P"),
    ],
)  # fmt: skip
def test_a_link_is_a_file_a_page_or_unclear_by_its_looks(url: str, kind: str, address: str | None) -> None:
    link = classify_link(url)
    assert link is not None
    assert (link.kind, link.address) == (kind, address or url)
    assert link.page == (url if "hal" in url else None)


@pytest.mark.parametrize(
    "url",
    [
        None, "", "  ", "nonsense", "javascript:x", "ftp://x.example.org/a.pdf", "https://[", "https://x.example.org/a.docx",
        "https://www.ncbi.nlm.nih.gov/pmc/articles/4221854/pdf/a.pdf", "https://x.example.org/data.xlsx",
    ],
)  # fmt: skip
def test_a_link_that_gives_no_program_a_paper_is_none(url: str | None) -> None:
    assert classify_link(url) is None


def test_pages_are_told_once_and_without_the_works_own_doi() -> None:
    urls = ["https://doi.org/10.1234/ABC", "https://doi.org/10.9/other", "https://x.example.org/p",
            "https://x.example.org/p", "https://x.example.org/p.pdf", "https://osf.io/ab3cd", "nonsense"]  # fmt: skip
    assert pages_of(map(classify_link, urls), own_doi="10.1234/abc") == (
        "https://doi.org/10.9/other",
        "https://x.example.org/p",
        "https://osf.io/ab3cd",
    )


@pytest.mark.parametrize(
    ("said", "is_other"),
    [
        ({"doi": "10.1/a", "pmid": "9"}, False),
        ({"doi": "10.1/b", "pmid": "7"}, True),
        ({"pmid": "7"}, False),
        ({"pmid": "8"}, True),
        ({"arxiv_id": "2104.12255"}, False),
        ({}, False),
    ],
)
def test_the_strongest_shared_identifier_tells_papers_apart(said: dict[str, str], is_other: bool) -> None:
    note = other_paper(WorkArtifact("x", doi="10.1/a", pmid="7"), WorkArtifact("x", **said))  # type: ignore[arg-type]
    assert (note is not None and note.startswith("wrong-article: ")) == is_other


@examples(200)
@given(text=st.text(max_size=60) | st.text(max_size=40).map("https://x.example.org/".__add__))
def test_any_text_as_a_link_raises_nothing(text: str) -> None:
    link = classify_link(text)
    assert link is None or link.address.startswith(("http://", "https://"))


def test_recorded_open_pdfs_of_semantic_scholar_are_nowhere_taken_for_pages() -> None:
    """The service calls each of these a PDF, and each is one by its address."""
    [exchange] = json.loads(recorded("semanticscholar", "search-open-access-pdf.json").read_text())
    links = [
        classify_link(each["openAccessPdf"]["url"]) for each in json.loads(exchange["response"]["body_text"])["data"]
    ]
    kinds = [link.kind for link in links if link is not None]
    assert len(kinds) == 100
    assert LinkKind.PAGE not in kinds
    assert kinds.count(LinkKind.FILE) >= 97


@pytest.mark.slow
@pytest.mark.parametrize("name", ["crossref", "semantic_scholar", "openalex"])
def test_alone_an_index_leads_to_the_right_papers(
    name: str, calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path
) -> None:
    """Against the sandbox's truth: what is stored is a file of the paper asked for."""
    world = calm_sandbox.world
    works = [work for work in map(world.work, range(20)) if work.oa_status == "gold"][:4]
    outcomes = alone(name, calm_sandbox, tmp_path, [work.doi for work in works], make_config)
    stored = [(work, outcomes[f"doi:{work.doi.lower()}"]) for work in works]
    assert sum(outcome.ok for _, outcome in stored) >= 2
    for work, outcome in stored:
        if outcome.ok:
            digest = hashlib.sha256((tmp_path / (outcome.path or "")).read_bytes()).hexdigest()
            assert digest in {hashlib.sha256(file).hexdigest() for file in world.acceptable_files(work).values()}
