"""Filters, many names of one paper, and plans, on a whole small web."""

from __future__ import annotations

import csv
import hashlib
import json
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.runner import DownloadRun, RunResult
from DocsToKG.Sandbox.profile import SandboxServer

MakeConfig = Callable[..., ContentDownloadConfig]
Command = Callable[..., subprocess.CompletedProcess[str]]
ConfigFile = Callable[..., Path]
# Sources that the small web answers for.
TIERS = [
    {"name": "direct_oa", "parallel": 2, "sources": ["unpaywall", "arxiv", "pmc"]},
    {"name": "doi_follow", "sources": ["doi_redirect"]},
]


@pytest.fixture(scope="module")
def truth(calm_sandbox: SandboxServer) -> list[dict[str, Any]]:
    return [work for work in calm_sandbox.truth()["works"] if work["reachable"]]


@pytest.fixture
def obtain(calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path) -> Callable[..., RunResult]:
    def run(*ids: str, **settings: Any) -> RunResult:
        config = make_config(calm_sandbox, tmp_path / "run", tiers=TIERS, **settings)
        with DownloadRun(config) as download:
            return download.process_artifacts(ids)

    return run


def downloads(result: RunResult) -> dict[str, str]:
    with sqlite3.connect(result.folder / "manifest.sqlite") as db:
        found = dict(db.execute("SELECT doc_id, sha256 FROM downloads").fetchall())
    db.close()
    return found


def contents(result: RunResult) -> int:
    return sum(path.is_file() for path in (result.files / "cas").rglob("*"))


@pytest.mark.slow
def test_only_works_of_the_wanted_years_are_fetched(
    obtain: Callable[..., RunResult], truth: list[dict[str, Any]], calm_sandbox: SandboxServer
) -> None:
    """A DOI says nothing of its year: the index is asked, and no file of another year."""
    calm_sandbox.reset()
    works = truth[:12]
    result = obtain(*(work["doi"] for work in works), filters={"year": "2010-"})
    wanted = [work for work in works if work["year"] >= 2010]
    assert 0 < len(wanted) < len(works)
    assert (result.successful, result.left_out, result.failed) == (len(wanted), len(works) - len(wanted), 0)
    assert result.complete
    for work, row in zip(works, result.rows, strict=True):
        outcome = "success" if work in wanted else "skip"
        assert row.outcome == outcome
        assert (
            work in wanted or f"filtered: Left out by your filters: year {work['year']} is not in 2010-" in row.reason
        )
    fetched = calm_sandbox.counters()["files_by_work"]
    assert {work["doi"] for work in works if fetched.get(work["doi"])} == {work["doi"] for work in wanted}


@pytest.mark.slow
def test_only_copies_under_the_wanted_licences_are_fetched(
    obtain: Callable[..., RunResult], truth: list[dict[str, Any]], calm_sandbox: SandboxServer
) -> None:
    works = truth[:15]
    result = obtain(*(work["doi"] for work in works), filters={"license": "cc-by,cc0"})
    assert result.successful
    assert result.left_out
    for work, row in zip(works, result.rows, strict=True):
        if row.outcome == "success":
            assert work["licence"] in ("cc-by", "cc0"), row
        elif row.outcome == "skip":
            assert row.reason.startswith("filtered: ")
            assert "licence" in row.reason


@pytest.mark.slow
def test_looser_filters_fetch_what_was_left_out_before(
    obtain: Callable[..., RunResult], truth: list[dict[str, Any]]
) -> None:
    doi = truth[0]["doi"]
    first = obtain(doi, filters={"year": "-1800"})
    assert (first.left_out, first.successful) == (1, 0)
    again = obtain(doi)
    assert (again.left_out, again.successful) == (0, 1)


def test_one_paper_under_many_names_is_one_content_linked_to_each(
    obtain: Callable[..., RunResult], truth: list[dict[str, Any]]
) -> None:
    work = next(work for work in truth if work["pmid"] and work["pmcid"] and not work["arxiv_id"])
    names = [work["doi"], f"pmid:{work['pmid']}", work["openalex_id"], work["pmcid"], f"https://doi.org/{work['doi']}"]
    result = obtain(*names)
    assert [row.outcome for row in result.rows] == ["success"] * 4 + ["duplicate"]
    of_each = downloads(result)
    first = f"doi:{work['doi'].lower()}"
    assert len(of_each) == 4
    linked = [row for row in result.rows if row.reason == f"same file as {first}"]
    same = [name for name, sha256 in of_each.items() if sha256 == of_each[first] and name != first]
    assert {row.id for row in linked} == set(same)
    assert len(same) >= 2
    assert contents(result) == len(set(of_each.values()))
    for row in result.rows:
        digest = hashlib.sha256((result.folder / str(row.path)).read_bytes()).hexdigest()
        assert digest == of_each[str(row.id)]


def test_versions_are_kept_apart(obtain: Callable[..., RunResult], truth: list[dict[str, Any]]) -> None:
    """The preprint that was asked for as such is not replaced by the article, nor one version by another."""
    work = next(work for work in truth if work["arxiv_id"] and not work["doi"].startswith("10.48550"))
    arxiv_id = work["arxiv_id"]
    result = obtain(work["doi"], f"arXiv:{arxiv_id}", f"arXiv:{arxiv_id}v1", f"10.48550/arXiv.{arxiv_id}")
    assert [row.id for row in result.rows] == [
        f"doi:{work['doi'].lower()}",
        f"arxiv:{arxiv_id}",
        f"arxiv:{arxiv_id}v1",
        f"arxiv:{arxiv_id}",
    ]
    assert [row.outcome for row in result.rows] == ["success", "success", "success", "duplicate"]
    paths = [row.path for row in result.rows]
    assert len(set(paths)) == 3
    assert paths[1] == paths[3]


@pytest.fixture
def config(config_file: ConfigFile, calm_sandbox: SandboxServer) -> str:
    return str(config_file(calm_sandbox, tiers=TIERS))


@pytest.mark.slow
def test_a_plan_shows_every_candidate_with_what_is_known(
    content: Command, config: str, truth: list[dict[str, Any]], calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    dois = [work["doi"] for work in truth[:3]]
    (tmp_path / "ids.txt").write_text("\n".join(dois[1:]) + "\nrubbish here\n")
    files = calm_sandbox.counters()["files"]
    shown = content("plan", dois[0], "ids.txt", "-c", config)
    assert shown.returncode == 3
    assert "rubbish here" in shown.stderr
    assert "3 works" in shown.stdout
    assert "estimate" in shown.stdout
    assert calm_sandbox.counters()["files"] == files
    told = content("plan", "-", "--json", "-c", config, stdin="\n".join(dois))
    assert told.returncode == 0, told.stderr
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert [line["id"] for line in lines] == [f"doi:{doi.lower()}" for doi in dois]
    keys = {
        "tier",
        "source",
        "url",
        "evidence",
        "version",
        "license",
        "host_type",
        "size_bytes",
        "is_guess",
        "left_out",
    }
    assert all(keys <= set(candidate) for line in lines for candidate in line["candidates"])
    assert "1.5 MB" in told.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"ids.txt", "sandbox.json", "home"}


def test_a_plan_says_which_copies_the_filters_leave_out(
    content: Command, config: str, truth: list[dict[str, Any]]
) -> None:
    work = next(work for work in truth if work["licence"] == "cc-by-nc")
    told = content("plan", work["doi"], "--license", "cc-by", "--json", "-c", config)
    assert told.returncode == 0, told.stderr
    left_out = [candidate["left_out"] for candidate in json.loads(told.stdout)["candidates"]]
    assert "licence cc-by-nc is not cc-by" in left_out


def test_the_result_says_which_filter_left_out_how_many(
    content: Command, config: str, truth: list[dict[str, Any]]
) -> None:
    dois = [work["doi"] for work in truth if work["licence"] == "cc-by-nc"][:2]
    done = content("pull", *dois, "--license", "cc-by", "--out", "out", "-c", config)
    assert done.returncode == 0, done.stderr
    assert f"Left out: licence cc-by-nc is not cc-by {len(dois)}" in done.stdout


def test_a_dry_run_looks_at_the_whole_input_and_writes_no_record(
    content: Command, config: str, truth: list[dict[str, Any]], calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    files = calm_sandbox.counters()["files"]
    given = content("pull", *(work["doi"] for work in truth[:2]), "--dry-run", "--json", "--out", "dry", "-c", config)
    asked = content("pull", "--query", "is_oa:true", "--max", "2", "--dry-run", "--json", "--out", "dry", "-c", config)
    for done in (given, asked):
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.splitlines()) == 2
    assert calm_sandbox.counters()["files"] == files
    assert not list((tmp_path / "dry").rglob("*.jsonl"))
    assert not list((tmp_path / "dry").rglob("ledger*"))
    assert not list((tmp_path / "dry").rglob("manifest*"))


def test_filters_of_the_command_line_hold_when_the_run_is_resumed(
    content: Command, config: str, truth: list[dict[str, Any]], tmp_path: Path
) -> None:
    doi = truth[0]["doi"]
    done = content("pull", doi, "--year", "-1800", "--out", "out", "-c", config)
    assert done.returncode == 0, done.stderr
    assert "left out by your filters" in done.stdout
    assert f"Left out: year {truth[0]['year']} is not in -1800 1" in done.stdout
    resumed = content("resume", "--run", "out", "--force", "--filter", "status=skipped")
    assert resumed.returncode == 0, resumed.stderr
    with open(tmp_path / "out" / "results.csv", encoding="utf-8", newline="") as file:
        [row] = csv.DictReader(file)
    assert row["outcome"] == "skip"
    assert f"year {truth[0]['year']} is not in -1800" in row["reason"]


def test_a_query_of_the_command_line_goes_on_and_counts_right(
    content: Command, config: str, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    words = ("pull", "--query", "is_oa:true", "--since", "2000", "--out", "out", "-c", config)
    first = content(*words, "--max", "5", "--json")
    told = json.loads(first.stdout)
    assert len(told["results"]) == 5
    assert "5 papers listed of" in first.stderr
    again = json.loads(content(*words, "--max", "5", "--json").stdout)
    assert again["already"] == told["successful"]
    assert [row["id"] for row in again["results"]] == [row["id"] for row in told["results"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("10.1/x", "--since", "2020"), "--since goes with --query"),
        (("--query", "cats", "--since", "soon"), "2024-05-31"),
        (("--query", " "), "the query is empty"),
        (("--query", ":"), "holds no word"),
        (("--query", "is_oa:true,,"), "a comma too many"),
        (("--query", "https://openalex.org/authors?filter=x:y"), "https://openalex.org/works?"),
        (("--query", "cats", "--query", "dogs"), "--query is given twice"),
        (("10.1/x", "--formats", "docx"), "pdf, xml and html"),
        (("10.1/x", "--formats", ","), "it is empty"),
        (("10.1/x", "--resolver-order", "gogle"), "'gogle' is not a source"),
        (("-",), "nothing is in standard input"),
        (("10.1/x", "--license", "cc-bz"), "--license"),
        (("10.1/x", "--oa-status", "golden"), "--oa-status"),
        (("10.1/x", "--version", "final"), "--version"),
        (("10.1/x", "--year", "20"), "--year"),
        (("10.1/x", "--retracted", "maybe"), "--retracted"),
    ],
)
def test_wrong_words_are_told_by_the_name_of_their_option(
    content: Command, config: str, words: tuple[str, ...], said: str, tmp_path: Path
) -> None:
    done = content("pull", *words, "--out", "out", "-c", config)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_files_that_are_not_there_or_stand_in_the_way_are_wrong_usage(content: Command, tmp_path: Path) -> None:
    commands = (
        "pull 10.1/x, plan 10.1/x, config get contact, cache stats, catalog stats, queue stats, queue run, report"
    )
    for words in commands.split(", "):
        done = content(*words.split(), "-c", "nofile.yaml")
        assert done.returncode == 2
        assert "there is no file nofile.yaml" in done.stderr
    done = content("queue", "import", "nofile.jsonl")
    assert done.returncode == 2
    assert "nofile.jsonl cannot be read" in done.stderr
    (tmp_path / "ids.txt").write_text("10.1/x\n")
    for out in ("ids.txt", "ids.txt/papers"):
        done = content("pull", "ids.txt", "--out", out)
        assert done.returncode == 2
        assert "is a file" in done.stderr


def test_an_input_with_nothing_in_it_is_told(content: Command, config: str, tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("# only a comment\n\n")
    done = content("pull", "empty.txt", "--out", "out", "-c", config)
    assert done.returncode == 2
    assert "nothing is in empty.txt" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--query", "publication_year:1700"), "No work matches the query"),
        (("--query", "is_oa:true", "--year", "-1800"), "Your filters refuse each of the"),
    ],
)
def test_a_query_without_a_wanted_work_says_so(
    content: Command, config: str, words: tuple[str, ...], said: str
) -> None:
    """No failure: a query that is run every week may find nothing new."""
    for more in ((), ("--dry-run",)):
        done = content("pull", *words, *more, "--out", "out", "-c", config)
        assert done.returncode == 0, done.stderr
        assert said in done.stderr


@pytest.mark.slow
def test_a_limit_counts_the_given_works_that_the_filters_let_pass(
    content: Command, config: str, truth: list[dict[str, Any]], tmp_path: Path
) -> None:
    """What the input tells of a work is judged before it counts; what is left out has its row."""
    old, *wanted = [work["doi"] for work in truth[:4]]
    lines = [{"doi": old, "year": 1900}, *({"doi": doi, "year": 2001} for doi in wanted)]
    (tmp_path / "works.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = content("pull", "works.jsonl", "--year", "2000-", "--max", "2", "--out", "out", "--json", "-c", config)
    told = json.loads(done.stdout)
    assert [row["id"] for row in told["results"]] == [f"doi:{doi.lower()}" for doi in (old, *wanted[:2])]
    assert told["left_out"] == 1


@pytest.mark.slow
def test_a_plan_without_candidates_says_why_and_exits_3(
    content: Command, config_file: ConfigFile, calm_sandbox: SandboxServer
) -> None:
    away = {**calm_sandbox.profile()["http"], "connect_to": {"*": "plain://127.0.0.1:1"}}
    nowhere = str(config_file(calm_sandbox, http=away, tiers=TIERS, hishel={"enabled": False}))
    down = content("plan", "10.5555/any", "-c", nowhere)
    assert down.returncode == 3
    assert "Temporary: api.unpaywall.org could not be reached" in down.stdout
    assert "conn-error" in down.stdout
    told = content("plan", "10.5555/any", "--json", "-c", nowhere)
    assert told.returncode == 3
    assert json.loads(told.stdout)["explanation"].startswith("Temporary: ")


def test_a_plan_for_a_doi_that_nobody_knows_says_so_and_exits_3(content: Command, config: str) -> None:
    unknown = content("plan", "10.9999/nothing.here", "-c", config)
    assert unknown.returncode == 3
    assert "(0 candidates). No open copy is known to " in unknown.stdout


def test_names_of_sources_in_either_spelling_order_them(
    content: Command, config: str, truth: list[dict[str, Any]]
) -> None:
    """RES-20; the long names of tiers are aliases everywhere."""
    doi = truth[0]["doi"]
    for order in ("pmc_pdf,unpaywall_pdf", "pmc,unpaywall"):
        assert content("plan", doi, "--resolver-order", order, "--json", "-c", config).returncode == 0
    wrong = content("plan", doi, "--resolver-order", "unpaywal_pdf", "-c", config)
    assert wrong.returncode == 2
    assert "unpaywall_pdf" in wrong.stderr
