"""fatcat: what it asks, which copies it prefers, and where a hash counts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.contentdownload.scripted import answer, ask, named, resolve

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.base import ResolverSettings
from DocsToKG.ContentDownload.resolvers.fatcat import FatcatResolver

WORK = named("10.1234/abc")
SHA256, SHA1, MD5 = "a" * 64, "b" * 40, "c" * 32
CAPTURE = "https://web.archive.org/web/20200102030405/http://r.example.org/a.pdf?x=1"
RAW = "https://web.archive.org/web/20200102030405id_/http://r.example.org/a.pdf?x=1"


def link(url: str, rel: str = "webarchive") -> dict[str, str]:
    return {"url": url, "rel": rel}


def stored(*urls: Any, **changes: Any) -> dict[str, Any]:
    digests = {"sha256": SHA256, "sha1": SHA1, "md5": MD5}
    return {"mimetype": "application/pdf", "size": 1234, "urls": list(urls), **digests, **changes}


def release(*files: Any, **changes: Any) -> dict[str, Any]:
    return {
        "ext_ids": {"doi": "10.1234/ABC", "pmid": "99", "pmcid": "PMC7", "arxiv": "2104.12255v2"},
        "title": "Slow rivers", "release_year": 2019, "release_stage": "published", "license_slug": "CC-BY",
        "files": list(files), **changes,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("work", "question"),
    [
        (named("10.1234/a(1)<b>#c"), "doi=10.1234/a%281%29%3Cb%3E%23c"),
        (named("PMC7"), "pmcid=PMC7"),
        (named("pmid:99"), "pmid=99"),
        (named("2104.12255v2"), "arxiv=2104.12255v2"),
        (named("2104.12255"), None),
        (named("https://example.org/a"), None),
    ],
)
def test_it_asks_once_by_the_strongest_id(work: WorkArtifact, question: str | None) -> None:
    source = FatcatResolver(settings=ResolverSettings())
    assert source.applies_to(work) == (None if question else "no_doi")
    if question is None:
        assert resolve(source, work)[0].notes == ("no_doi",)
    else:
        _, urls = resolve(source, work, answer(b"", 404))
        assert urls == [f"https://api.fatcat.wiki/v0/release/lookup?{question}&expand=files&hide=abstracts,refs"]


def test_archived_copies_come_first_raw_and_with_their_hash() -> None:
    """DL-11: an archive serves the bytes that were hashed; a live address may not."""
    urls = (
        link("https://p.example.org/a.pdf", "publisher"),
        link("https://r.example.org/a.pdf", "repository"),
        link("https://archive.org/download/x/a.pdf", "archive"),
        link(CAPTURE),
        link("https://peer.example.org/a.pdf", "dweb"),
    )
    result = ask("fatcat", WORK, answer(release(stored(*urls))))
    assert [(plan.url, plan.evidence, plan.host_type) for plan in result.plans] == [
        (RAW, "webarchive", "repository"),
        ("https://archive.org/download/x/a.pdf", "archive", "repository"),
        ("https://r.example.org/a.pdf", "repository", "repository"),
        ("https://p.example.org/a.pdf", "publisher", "publisher"),
    ]
    assert [plan.checksum for plan in result.plans] == [f"sha256:{SHA256}"] * 2 + [None] * 2
    assert {(plan.size_bytes, plan.version, plan.license) for plan in result.plans} == {
        (1234, "publishedVersion", "CC-BY")
    }
    work = result.work
    assert work is not None
    assert (work.title, work.publication_year, work.pmid, work.pmcid) == ("Slow rivers", 2019, "99", "PMC7")
    assert (work.arxiv_id, work.is_retracted) == ("2104.12255", None)


@pytest.mark.parametrize(
    ("changes", "checksum"),
    [
        ({"sha256": None}, f"md5:{MD5}"),
        ({"sha256": "beef", "md5": None}, f"sha1:{SHA1}"),
        ({"sha256": 7, "md5": "", "sha1": "z" * 40}, None),
    ],
)
def test_the_best_whole_digest_is_taken(changes: dict[str, Any], checksum: str | None) -> None:
    [plan] = ask("fatcat", WORK, answer(release(stored(link(CAPTURE), **changes)))).plans
    assert plan.checksum == checksum


@pytest.mark.parametrize(
    ("url", "raw"),
    [
        (CAPTURE, RAW),
        (RAW, RAW),
        (CAPTURE.replace("0405/", "0405if_/"), RAW),
        (CAPTURE.replace("https", "http", 1), RAW),
        ("https://web.archive.org/web/2016/https://r.example.org/a.pdf",
         "https://web.archive.org/web/2016id_/https://r.example.org/a.pdf"),
        ("https://web.archive.org/web/None/https://r.example.org/a.pdf", None),
        ("https://web.archive.org/web/*/https://r.example.org/a.pdf", None),
        ("https://evil.example.org/web/20200102030405/https://r.example.org/a.pdf", None),
    ],
)  # fmt: skip
def test_a_capture_is_asked_for_as_stored(url: str, raw: str | None) -> None:
    result = ask("fatcat", WORK, answer(release(stored(link(url)))))
    assert [plan.url for plan in result.plans] == ([raw] if raw else [])


def test_dozens_of_captures_do_not_become_dozens_of_tries() -> None:
    captures = [link(CAPTURE.replace("2020", str(year))) for year in range(1990, 2020)]
    live = [link(f"https://w{number}.example.org/a.pdf", "web") for number in range(30)]
    result = ask("fatcat", WORK, answer(release(*(stored(*captures, *live) for _ in range(30)))))
    assert len(result.plans) == 4
    assert [plan.evidence for plan in result.plans] == ["webarchive", "webarchive", "web", "web"]


@pytest.mark.parametrize(
    ("stage", "version"),
    [("accepted", "acceptedVersion"), ("submitted", "submittedVersion"), ("draft", "submittedVersion"), (None, None)],
)
def test_the_stage_of_a_release_is_its_version(stage: str | None, version: str | None) -> None:
    [plan] = ask("fatcat", WORK, answer(release(stored(link(CAPTURE)), release_stage=stage))).plans
    assert plan.version == version


def test_a_retraction_is_learned() -> None:
    learned = ask("fatcat", WORK, answer(release(withdrawn_status="retracted"))).work
    assert learned is not None
    assert learned.is_retracted is True
