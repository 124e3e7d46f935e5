"""A preprint and its published paper are kept apart: what was asked for, and what is stored."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contentdownload.one_source import alone

from DocsToKG.ContentDownload.api.types import DownloadPlan, DownloadStreamResult, StoredCopy, WorkArtifact
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.fallback.versions import asked_doi, stored_version
from DocsToKG.Sandbox.profile import SandboxServer

PAPER, PREPRINT = "10.1234/paper.7", "10.1101/2020.01.02.123456"
WORK = WorkArtifact(f"doi:{PAPER}", doi=PAPER, arxiv_id="2001.00001")
PUBLISHED, ACCEPTED, SUBMITTED = "publishedVersion", "acceptedVersion", "submittedVersion"


def copy_at(url: str, doi_seen: str | None) -> StoredCopy:
    stream = DownloadStreamResult(None, 1, 200, "application/pdf", "ab" * 32, None, url)
    return StoredCopy("PDF/a.pdf", "ab" * 32, 1, "application/pdf", stream, facts={"doi_seen": doi_seen})


@pytest.mark.parametrize(
    ("url", "said", "seen", "page", "version", "doi"),
    [
        ("https://export.arxiv.org/pdf/2001.00001v2", None, None, None, SUBMITTED, "10.48550/arxiv.2001.00001"),
        ("https://arxiv.org/pdf/hep-th/9901001", SUBMITTED, PAPER, None, SUBMITTED, "10.48550/arxiv.hep-th/9901001"),
        (f"https://www.biorxiv.org/content/{PREPRINT}v2.full.pdf", None, None, None, SUBMITTED, PREPRINT),
        ("https://repo.edu/1.pdf", None, PREPRINT, None, SUBMITTED, PREPRINT),
        ("https://repo.edu/1.pdf", None, f"{PREPRINT}v3", None, SUBMITTED, f"{PREPRINT}v3"),
        ("https://repo.edu/1.pdf", None, None, PREPRINT, SUBMITTED, PREPRINT),
        ("https://repo.edu/1.pdf", ACCEPTED, PAPER, None, ACCEPTED, PAPER),
        ("https://repo.edu/1.pdf", SUBMITTED, PAPER, None, SUBMITTED, None),
        ("https://repo.edu/1.pdf", SUBMITTED, None, None, SUBMITTED, None),
        ("https://pub.org/1.pdf", PUBLISHED, None, None, PUBLISHED, PAPER),
        ("https://pub.org/1.pdf", None, PAPER, None, None, PAPER),
        ("https://pub.org/1.pdf", None, "10.9999/another", None, None, None),
        ("https://pub.org/1.pdf", None, None, None, None, None),
        ("https://f1000research.com/1.pdf", None, "10.12688/f1000research.1.1", None, None, None),
    ],
)
def test_the_version_that_is_stored_is_told_with_its_own_doi(
    url: str, said: str | None, seen: str | None, page: str | None, version: str | None, doi: str | None
) -> None:
    plan = DownloadPlan(url, "x", version=said, page_doi=page)
    assert stored_version(WORK, plan, copy_at(url, seen)) == (version, doi)


@pytest.mark.parametrize(
    ("work", "doi"),
    [
        (WORK, PAPER),
        (WorkArtifact("doi:10.1/A"), "10.1/a"),
        (WorkArtifact("arxiv:2001.00001v2", doi=PAPER, arxiv_id="2001.00001"), "10.48550/arxiv.2001.00001"),
        (WorkArtifact("pmid:7", doi=PAPER), PAPER),
        (WorkArtifact("url:https://a.org/1"), None),
    ],
)
def test_who_asks_for_a_preprint_does_not_ask_for_the_paper(work: WorkArtifact, doi: str | None) -> None:
    assert asked_doi(work) == doi


def test_who_asks_for_a_preprint_gets_it_as_such() -> None:
    work = WorkArtifact(f"doi:{PREPRINT}", doi=PREPRINT)
    plan = DownloadPlan("https://repo.edu/1.pdf", "x")
    assert stored_version(work, plan, copy_at(plan.url, PREPRINT)) == (SUBMITTED, PREPRINT)


@pytest.mark.slow
def test_a_preprint_in_place_of_a_paper_says_so_in_manifest_catalog_and_results(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path
) -> None:
    """The paper and its preprint, asked for in one list, are two works with two files."""
    both = next(
        work for work in calm_sandbox.truth()["works"] if work["arxiv_id"] and work["doi"] and work["reachable"]
    )
    asked, preprint = both["doi"].lower(), f"10.48550/arxiv.{both['arxiv_id']}".lower()
    paper = WorkArtifact(f"doi:{asked}", doi=asked, arxiv_id=both["arxiv_id"])
    own = WorkArtifact(f"arxiv:{both['arxiv_id']}", arxiv_id=both["arxiv_id"])
    outcomes = alone("arxiv", calm_sandbox, tmp_path, [paper, own], make_config)
    assert {outcome.classification for outcome in outcomes.values()} == {"success"}
    lines = [json.loads(line) for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    told = {line["doc_id"]: (line["doi"], line["version"], line["version_doi"]) for line in lines}
    assert told == {paper.work_id: (asked, SUBMITTED, preprint), own.work_id: (preprint, SUBMITTED, preprint)}
    with Catalog(tmp_path / "manifest.sqlite") as catalog:
        held = [catalog.find_download(name) for name in (paper.work_id, own.work_id)]
    assert [(file.version, file.version_doi) for file in held if file] == [(SUBMITTED, preprint)] * 2
    assert len({file.path for file in held if file}) == 2
    with open(tmp_path / "results.csv", encoding="utf-8", newline="") as file:
        rows = [(row["id"], row["version"], row["version_doi"]) for row in csv.DictReader(file)]
    assert rows == [(paper.work_id, SUBMITTED, preprint), (own.work_id, SUBMITTED, preprint)]
