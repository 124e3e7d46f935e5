"""Files beside the papers: found on pages and in deposits, stored, looked after, and gone when the paper goes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.one_source import answer, ask

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.resolvers.landing.page import extract
from DocsToKG.ContentDownload.resolvers.pmc import Article
from DocsToKG.ContentDownload.resolvers.record import Record
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.storage.paths import inside, supplement_path
from DocsToKG.Sandbox.profile import SandboxServer

WORKS = 8
Run = Callable[..., Any]


def lines_of(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "manifest.jsonl").read_text().splitlines()]


def pulled(
    server: SandboxServer, root: Path, make_config: Callable[..., ContentDownloadConfig], **download: Any
) -> None:
    with DownloadRun(make_config(server, root, download={"supplements": True, **download})) as run:
        run.process_artifacts(server.identifiers(WORKS, mix=False))


@pytest.mark.slow
def test_the_files_beside_a_paper_are_stored_and_leave_with_it(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], content: Run, tmp_path: Path
) -> None:
    pulled(calm_sandbox, tmp_path, make_config)
    lines = [line for line in lines_of(tmp_path) if any(file["sha256"] for file in line["supplements"])]
    assert len(lines) >= WORKS // 2
    for line in lines:
        assert line["status"] == "ok"
        for file in line["supplements"]:
            assert (file["mime"], file["reason"], file["source"]) == ("application/pdf", None, "doi_redirect")
            stored = tmp_path / file["path"]
            assert hashlib.sha256(stored.read_bytes()).hexdigest() == file["sha256"]
            assert stored.parent.name == Path(line["path"]).stem
    papers = {path.name for path in (tmp_path / "PDF").iterdir()}
    assert len(papers) == sum(line["status"] == "ok" for line in lines_of(tmp_path)), "none stands among the papers"
    unnamed = content("catalog", "gc", "--run", str(tmp_path), "--json")
    assert json.loads(unnamed.stdout)["unnamed"] == []
    checked = content("catalog", "verify", "--run", str(tmp_path), "--json")
    assert checked.returncode == 0, checked.stdout
    assert json.loads(checked.stdout)["foreign"] == []
    spoiled = tmp_path / lines[1]["supplements"][0]["path"]
    whole = spoiled.read_bytes()
    spoiled.chmod(0o644)
    spoiled.write_bytes(b"X" + whole[1:])
    found = json.loads(content("catalog", "verify", "--run", str(tmp_path), "--json").stdout)
    assert [each["doc_ids"] for each in found["damaged"]] == [[lines[1]["doc_id"]]]
    spoiled.write_bytes(whole)
    taken, file = lines[0], lines[0]["supplements"][0]
    done = content("takedown", "--run", str(tmp_path), taken["doc_id"], "--reason", "a test")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / file["path"]).exists()
    assert not (tmp_path / "cas" / "sha256" / file["sha256"][:2] / file["sha256"][2:]).exists()
    others = [tmp_path / file["path"] for line in lines[1:] for file in line["supplements"]]
    assert all(path.exists() for path in others)


def test_without_the_option_nothing_beside_the_paper_is_asked_for(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path
) -> None:
    pulled(calm_sandbox, tmp_path, make_config, supplements=False)
    assert not (tmp_path / "SUPPLEMENTS").exists()
    assert {len(line["supplements"]) for line in lines_of(tmp_path)} == {0}


@pytest.mark.slow
def test_a_file_beside_the_paper_that_cannot_be_had_is_told_and_costs_nothing(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path
) -> None:
    """What a repository's page names is not there."""
    works = [
        work["doi"] for work in calm_sandbox.truth()["works"] if "repository" in {c["kind"] for c in work["copies"]}
    ]
    tiers = [{"name": "only", "parallel": 1, "sources": ["openalex", "landing"]}]
    config = make_config(calm_sandbox, tmp_path, download={"supplements": True}, tiers=tiers)
    with DownloadRun(config) as run:
        run.process_artifacts(works[:6])
    told = [file for line in lines_of(tmp_path) for file in line["supplements"] if line["status"] == "ok"]
    missing = [file for file in told if file["sha256"] is None]
    assert missing
    assert {(file["reason"], file["path"]) for file in missing} == {("http-status", None)}


def test_no_more_files_are_fetched_than_allowed(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path
) -> None:
    pulled(calm_sandbox, tmp_path, make_config, max_bytes=2_000_000, max_supplements=1)
    assert {len(line["supplements"]) for line in lines_of(tmp_path)} <= {0, 1}


@pytest.mark.parametrize(
    ("link", "words", "name"),
    [
        ("/doi/suppl/10.1234/x/suppl_file/x_si_001.pdf", "Supporting Information (1 MB)", "x_si_001.pdf"),
        ("https://static.example.com/esm/art%3A10.1/MediaObjects/12_MOESM1_ESM.docx", "ESM 1", "12_MOESM1_ESM.docx"),
        ("https://ars.els-cdn.com/content/image/1-s2.0-S1-mmc1.xlsx", "Download spreadsheet", "1-s2.0-S1-mmc1.xlsx"),
        ("article/file?type=supplementary&id=10.1371/journal.pone.1.s001", "S1 Table.", "journal.pone.1.s001"),
        ("/action/downloadSupplement?doi=10.1002%2Fx&file=x-sup-0001-S1.zip", "x-sup-0001", "x-sup-0001-S1.zip"),
        ("/files/data.csv", "Supplementary Table S2", "data.csv"),
        ("/jx/article-supplement/1/zip/a.zip", "Supplementary data", "a.zip"),
        ("/files/movie.mp4", "Additional file 1: Movie", "movie.mp4"),
        ("https://doi.org/10.7717/peerj.1/supp-1' data-filename='Figures.docx", "DOI", "Figures.docx"),
        ("#supplementary", "Supplementary data", None),
        ("/doi/suppl/10.1234/x", "Supplementary material", None),
        ("/files/paper.pdf", "Download PDF", None),
        ("/supplements/2020/1/p7.html", "Supplement 1 of this journal", None),
        ("/about/guidelines.pdf", "Guidelines", None),
    ],
)  # fmt: skip
def test_links_to_files_beside_the_paper_are_told_from_others(link: str, words: str, name: str | None) -> None:
    tags = '<meta name="citation_title" content="Slow rivers">'
    page = f"{tags}<a href='{link.replace('&', '&amp;')}'>{words}</a>"
    body = f"<html><body>{page}<div class='references'><a href='/old/mmc1.pdf'>PDF</a></div></body></html>"
    facts = extract("https://jx.example.org/a/1", body.encode(), {"content-type": "text/html"})
    assert [found.name for found in facts.supplements] == ([name] if name is not None else [])


def test_deposits_and_archives_name_what_lies_beside_the_paper() -> None:
    file = {"size": 7, "checksum": "md5:" + "ab" * 16}
    record = {
        "id": 12,
        "metadata": {
            "title": "Slow rivers of the north",
            "access_right": "open",
            "resource_type": {"type": "publication"},
        },
        "files": [{"key": "slow rivers.pdf", **file}, {"key": "data.zip", **file}, {"key": "readme.txt", **file}],
    }
    zenodo, _ = ask("zenodo", WorkArtifact("doi:10.5281/zenodo.12", doi="10.5281/zenodo.12"), answer(record))
    assert [(each.name, each.checksum, each.size_bytes) for each in zenodo.supplements] == [
        ("data.zip", "md5:" + "ab" * 16, 7),
        ("readme.txt", "md5:" + "ab" * 16, 7),
    ]
    assert len(zenodo.plans) == 1
    media = [f"s3://pmc-oa-opendata/PMC7.1/{name}" for name in ("t1.xlsx?md5=" + "cd" * 16, "f1.jpg", "film.mp4")]
    said = {"pmcid": "PMC7", "media_urls": [*media, "s3://another/PMC7.1/x.csv", 7]}
    assert [(file.path, file.checksum) for file in Article(Record(said), "PMC7.1/").media] == [
        ("PMC7.1/t1.xlsx", "md5:" + "cd" * 16),
        ("PMC7.1/film.mp4", None),
    ]
    found = {"doi": "10.1/a", "pmcid": "PMC7", "isOpenAccess": "Y", "hasSuppl": "Y", "inEPMC": "Y", "hasPDF": "Y"}
    listed = {"resultList": {"result": [found]}}
    europe, _ = ask("europe_pmc", WorkArtifact("doi:10.1/a", doi="10.1/a"), answer(listed))
    assert [(each.name, each.url.rpartition("/rest/")[2]) for each in europe.supplements] == [
        ("PMC7-supplements.zip", "PMC7/supplementaryFiles")
    ]


@pytest.mark.parametrize(
    "name", ["Table S1.XLSX", "../../etc/passwd", "con.txt", "", ".", "a" * 300 + ".pdf", "Übung.tar.gz", "x", "nul"]
)
def test_whatever_a_file_is_called_its_name_is_plain(tmp_path: Path, name: str) -> None:
    path = supplement_path(WorkArtifact("doi:10.1/a", title="T", publication_year=2020), name)
    assert path.startswith("SUPPLEMENTS/2020__t__")
    assert path.count("/") == 2
    assert inside(tmp_path, path).is_relative_to(tmp_path)
