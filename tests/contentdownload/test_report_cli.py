"""`content report` and `content catalog` as people and programs call them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer
from tests.warm import WarmPrograms
from typer.testing import CliRunner, Result

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, SourceAttempt, SourceOutcome, Verb
from DocsToKG.ContentDownload.catalog.summary import Figures
from DocsToKG.ContentDownload.cli.app import catalog_app
from DocsToKG.ContentDownload.cli.outcome import print_outcome, result_json
from DocsToKG.ContentDownload.cli.report import report
from DocsToKG.ContentDownload.errors import InputError, RecordError
from DocsToKG.ContentDownload.runner.status import counted
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.ContentDownload.telemetry.snapshots import ResultRow
from DocsToKG.core.clock import ManualClock

app = typer.Typer()
app.command("report")(report)
app.add_typer(catalog_app, name="catalog")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def filled(root: Path, *, failed: int, run_id: str = "r1") -> Path:
    with RunTelemetry(root, run_id=run_id, config_hash="c", clock=ManualClock()) as record:
        for number in range(10):
            fields: dict[str, Any] = {"outcome": "success", "sha256": f"{number:064x}", "path": f"{number}.pdf"}
            if number < failed:
                fields = {"outcome": "error", "reason": "[red]all|tiers\nexhausted"}
            record.finish(ManifestRecord(doc_id=f"doi:{run_id}/{number}", tier="direct_oa", ttfp_ms=500, **fields))
        record.attempt(
            Attempt(1.0, "arxiv", "https://a.org/x", Verb.GET, AttemptStatus.HTTP_GET, 200, work_id="doi:r1/5")
        )
        record.source_attempt(SourceAttempt(1.0, "doi:r1/5", "direct_oa", "arxiv", SourceOutcome.SUCCESS))
    return root


@pytest.mark.slow
def test_a_good_run_exits_0_and_shows_its_figures(tmp_path: Path) -> None:
    """CLI-10."""
    shown = run("report", "--run", filled(tmp_path, failed=1))
    assert shown.exit_code == 0
    for text in ("yield", "90.0 %", "0.50 s", "ttfp_p95_s", "[red]all|tiers exhausted"):
        assert text in shown.stdout


def test_a_missed_service_level_exits_4_unless_gates_are_off(tmp_path: Path) -> None:
    """CLI-10, CLI-24."""
    filled(tmp_path, failed=5)
    broken = run("report", "--run", tmp_path)
    assert broken.exit_code == 4
    assert "Service level missed: yield 0.5 (wanted >= 0.85)" in broken.stderr
    assert "MISSED" in broken.stdout
    assert run("report", "--run", tmp_path, "--no-gates").exit_code == 0


def test_the_report_is_json_for_programs(tmp_path: Path) -> None:
    shown = run("report", "--run", filled(tmp_path, failed=5), "--format", "json")
    assert shown.exit_code == 4
    told = json.loads(shown.stdout)
    assert (told["obtained"], told["yield_ratio"]) == (5, 0.5)
    wanted = {"gate": "yield", "value": 0.5, "target": ">= 0.85", "ok": False, "verdict": "missed", "note": ""}
    assert told["gates"][0] == wanted


def test_the_report_is_markdown_for_notes(tmp_path: Path) -> None:
    shown = run("report", "--run", filled(tmp_path, failed=1), "--format", "md").stdout
    assert "| yield | 90.0 % |" in shown
    assert "| yield | 0.9 | >= 0.85 | ok |" in shown
    assert "| [red]all\\|tiers exhausted | 1 |" in shown


def test_one_run_of_the_folder_can_be_chosen(tmp_path: Path) -> None:
    filled(tmp_path, failed=5)
    filled(tmp_path, failed=0, run_id="r2")
    counts = {
        choice: json.loads(run("report", "--run", tmp_path, "--format", "json", *choice.split()).stdout)["obtained"]
        for choice in ("", "--run-id last", "--run-id r1")
    }
    assert counts == {"": 15, "--run-id last": 10, "--run-id r1": 5}
    unknown = run("report", "--run", tmp_path, "--run-id", "r9")
    assert unknown.exit_code == 2
    assert "r1, r2" in unknown.stderr


def test_a_folder_without_a_record_is_named(tmp_path: Path) -> None:
    shown = run("report", "--run", tmp_path)
    assert isinstance(shown.exception, RecordError)
    assert str(tmp_path) in str(shown.exception)


def test_catalog_stats_are_grouped_for_people_and_programs(tmp_path: Path) -> None:
    """CLI-11."""
    filled(tmp_path, failed=1)
    told = json.loads(run("catalog", "stats", "--run", tmp_path, "--format", "json", "--group-by", "tier").stdout)
    counts = {
        "works": 10,
        "obtained": 9,
        "present": 0,
        "left_out": 0,
        "taken_down": 0,
        "skipped_robots": 0,
        "failed": 1,
        "bytes": 0,
    }
    assert told == [{"tier": "direct_oa", **counts}]
    by_path = run("catalog", "stats", "--db-path", tmp_path / "manifest.sqlite")
    assert by_path.exit_code == 0
    assert "obtained" in by_path.stdout
    assert run("catalog", "stats", "--run", tmp_path, "--group-by", "colour").exit_code == 2


def test_catalog_query_answers_and_says_when_it_cut(tmp_path: Path) -> None:
    filled(tmp_path, failed=1)
    sql = "SELECT doc_id, x'00ff' AS blob FROM catalog_entries WHERE status = 'ok' ORDER BY doc_id"
    shown = run("catalog", "query", "--run", tmp_path, "--sql", sql, "--format", "json", "--limit", "2")
    assert json.loads(shown.stdout) == [
        {"doc_id": "doi:r1/1", "blob": "2 bytes"},
        {"doc_id": "doi:r1/2", "blob": "2 bytes"},
    ]
    assert "first 2 rows" in shown.stderr
    assert "doi:r1/9" in run("catalog", "query", "--run", tmp_path, "--sql", sql).stdout


def test_catalog_query_refuses_to_write(tmp_path: Path) -> None:
    shown = run("catalog", "query", "--run", filled(tmp_path, failed=1), "--sql", "DELETE FROM manifests")
    assert shown.exit_code == 1
    assert isinstance(shown.exception, InputError | SystemExit)


def test_catalog_show_tells_of_one_work(tmp_path: Path) -> None:
    filled(tmp_path, failed=1)
    told = json.loads(run("catalog", "show", "doi:r1/5", "--run", tmp_path, "--format", "json").stdout)
    assert [len(told[part]) for part in ("lines", "downloads", "sources", "attempts")] == [1, 1, 1, 1]
    table = run("catalog", "show", "doi:r1/5", "--run", tmp_path).stdout
    assert "https://a.org/x" in table
    missing = run("catalog", "show", "doi:nobody", "--run", tmp_path)
    assert missing.exit_code == 1
    assert "There is no record of" in missing.stderr


def test_catalog_show_of_a_miss_says_why_and_long_addresses_stay_whole(tmp_path: Path) -> None:
    address = "https://a.org/" + "long/" * 30 + "paper.pdf"
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        why = "No open copy is known to 3 sources."
        record.finish(ManifestRecord(doc_id="doi:10.1/x", outcome="error", reason="no_open_copy", explanation=why))
        record.attempt(Attempt(1.0, "arxiv", address, Verb.GET, AttemptStatus.HTTP_GET, 404, work_id="doi:10.1/x"))
    shown = CliRunner().invoke(app, ["catalog", "show", "doi:10.1/x", "--run", str(tmp_path)], env={"COLUMNS": "80"})
    assert f"Why there is no file: {why}" in shown.stdout
    assert f"1  {address}\n" in shown.stdout


def test_catalog_stats_count_what_filters_left_out_apart(tmp_path: Path) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(ManifestRecord(doc_id="doi:10.1/x", outcome="skip", reason="filtered"))
    [told] = json.loads(run("catalog", "stats", "--run", tmp_path, "--format", "json").stdout)
    assert (told["left_out"], told["failed"]) == (1, 0)


def test_what_robots_forbid_is_skipped_and_not_failed_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(ManifestRecord(doc_id="doi:10.1/x", outcome="skip", reason="robots"))
    told = json.loads(run("report", "--run", tmp_path, "--format", "json").stdout)
    [stats] = json.loads(run("catalog", "stats", "--run", tmp_path, "--format", "json").stdout)
    for figures in (told, stats, json.loads((tmp_path / "summary.json").read_text())):
        assert (figures["skipped_robots"], figures["failed"]) == (1, 0)
    assert told["yield_ratio"] == 0  # it was asked for and is not there
    rows = (ResultRow(1, "10.1/x", "doi:10.1/x", "skip", None, "robots: robots.txt of a.org forbids the file."),)
    result = counted(rows, (), tmp_path, tmp_path)
    assert (result_json(result)["skipped"], result_json(result)["failed"]) == (1, 0)
    assert not result.complete
    print_outcome(result, Figures())
    assert "skipped: robots.txt forbids them" in capsys.readouterr().out


def test_every_skip_is_worded_as_what_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reasons = (
        "robots: robots.txt of a.org forbids the file.",
        "filtered: Taken down on 2026-03-04 (asked by the author, ticket 7).",
        "filtered: Of 2 copies, 1 left out by your filters (the file of doi:10.1/q, taken down on 2026-03-04 (x)).",
        "taken-down: Taken down on 2026-03-05 (asked).",
        "filtered: Left out by your filters: licence unknown.",
        "already-present",
        "not-modified",
        "a-new-word: whatever",
    )
    rows = [ResultRow(at, f"10.1/{at}", f"doi:10.1/{at}", "skip", None, why) for at, why in enumerate(reasons, 1)]
    result = counted(rows, (), tmp_path, tmp_path)
    assert (result.left_out, result.taken_down, result.skipped) == (1, 3, 4)
    assert result_json(result)["taken_down"] == 3
    print_outcome(result, Figures())
    shown = {tuple(re.split(r"\s*│\s*|\s{2,}", line.strip(" │"))) for line in capsys.readouterr().out.splitlines()}
    told = dict(line for line in shown if len(line) == 2)
    assert told["skipped: robots.txt forbids them"] == "1"
    assert told["refused: taken down here"] == "3"
    assert told["left out by your filters"] == "1"
    assert told["skipped: their files were there already"] == "1"
    assert told["skipped: their files have not changed"] == "1"
    assert told["skipped (a-new-word)"] == "1"


def test_numbers_that_are_none_are_null_for_programs(tmp_path: Path) -> None:
    filled(tmp_path, failed=0)
    told = run("catalog", "query", "--sql", "SELECT 9e999 AS most", "--run", tmp_path, "--format", "json").stdout
    assert json.loads(told, parse_constant=pytest.fail) == [{"most": None}]


@pytest.mark.slow
@pytest.mark.parametrize("words", [("report", "--no-gates"), ("catalog", "show", "doi:r1/5"), ("catalog", "stats")])
def test_a_reader_that_goes_away_is_told_by_the_exit_code(
    tmp_path: Path, warm: WarmPrograms, words: tuple[str, ...]
) -> None:
    filled(tmp_path, failed=0)
    program = [*warm.words("content"), *words, "--run", str(tmp_path)]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("work_id", "spelling"),
    [
        ("doi:10.1234/abc", "10.1234/ABC"),
        ("doi:10.1234/abc", "https://doi.org/10.1234/AbC"),
        ("doi:10.1234/abc", "doi:10.1234/abc"),
        ("arxiv:2104.12255", "arXiv:2104.12255v2"),
        ("arxiv:2104.12255", "https://doi.org/10.48550/arXiv.2104.12255"),
        ("pmcid:PMC7", "pmc7"),
        ("doi:10.1234/ABC", "doi:10.1234/ABC"),  # a record of another hand, with its own spelling
        ("mine:1", "mine:1"),
        ("mine:1", "ABCDEF12"),
    ],
)
def test_catalog_show_takes_any_usual_spelling(tmp_path: Path, work_id: str, spelling: str) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(ManifestRecord(doc_id=work_id, outcome="success", sha256="abcdef12" * 8, path="1.pdf"))
    shown = run("catalog", "show", spelling, "--run", tmp_path, "--format", "json")
    assert shown.exit_code == 0
    assert [line["doc_id"] for line in json.loads(shown.stdout)["lines"]] == [work_id]


def asked(source: str, outcome: SourceOutcome, reason: str | None = None, **more: Any) -> SourceAttempt:
    return SourceAttempt(1.0, "doi:r1/1", more.pop("tier", "indexes"), source, outcome, reason, **more)


def sourced(root: Path) -> Path:
    """Six files of three sources, one of them from a guess; one source fails, one is refused, one lacks its key."""
    files = [
        ("unpaywall", "direct_oa", "url_for_pdf", False),
        ("unpaywall", "direct_oa", "url_for_pdf", False),
        ("unpaywall", "direct_oa", "url_for_pdf", False),
        ("landing", "landing_scrape", "citation_pdf_url", False),
        ("landing", "landing_scrape", "link", False),
        ("doi_redirect", "doi_follow", "prefix_rule", True),
    ]
    with RunTelemetry(root, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        for number, (resolver, tier, evidence, guess) in enumerate(files):
            told: dict[str, Any] = {"resolver": resolver, "tier": tier, "evidence": evidence, "is_guess": guess}
            stored = {"outcome": "success", "sha256": f"{number:064x}", "path": f"{number}.pdf", "ttfp_ms": 5}
            record.finish(ManifestRecord(doc_id=f"doi:r1/{number}", **stored, **told))
            record.source_attempt(asked(resolver, SourceOutcome.SUCCESS, "ok", tier=tier, stage="fetch"))
            record.source_attempt(asked("core", SourceOutcome.SKIPPED, "missing_key"))
            record.source_attempt(asked("zenodo", SourceOutcome.SKIPPED, "not_mine"))
        record.finish(ManifestRecord(doc_id="doi:r1/x", outcome="error", reason="all_tiers_exhausted", cause="paywall"))
        refused = "refused: Semantic Scholar answered 401; check resolvers.semantic_scholar.api_key"
        for _ in range(4):
            record.source_attempt(asked("semantic_scholar", SourceOutcome.ERROR, refused, stage="resolve"))
            busy = {"http_status": 503, "stage": "resolve"}
            record.source_attempt(asked("openaire", SourceOutcome.RETRYABLE, "http-status", **busy))
            record.source_attempt(asked("crossref", SourceOutcome.NO_PDF, "not_in_index", stage="resolve"))
        record.source_attempt(asked("openaire", SourceOutcome.TIMEOUT, "timeout", stage="resolve"))
        record.source_attempt(asked("crossref", SourceOutcome.TIMEOUT, "timeout", stage="resolve"))
        record.source_attempt(
            asked("unpaywall", SourceOutcome.NONRETRYABLE, "challenge", http_status=403, stage="fetch")
        )
    return root


def test_the_report_says_which_source_delivered_what(tmp_path: Path) -> None:
    told = json.loads(run("report", "--run", sourced(tmp_path), "--format", "json").stdout)
    assert told["delivered"][0] == {
        "source": "unpaywall",
        "tier": "direct_oa",
        "evidence": "url_for_pdf",
        "is_guess": False,
        "files": 3,
        "share": 0.5,
    }
    assert sum(row["files"] for row in told["delivered"]) == told["obtained"] == 6
    unpaywall = told["sources"]["unpaywall"]
    assert (unpaywall["asked"], unpaywall["files"], unpaywall["share"], unpaywall["no_good"]) == (4, 3, 0.5, 1)
    assert (told["guessed"], told["by_evidence"]["prefix_rule"]) == (1, 1)
    assert told["failed_by_cause"] == {"paywall": 1}
    assert "zenodo" not in told["sources"]


def test_the_report_names_failing_sources_with_what_to_check_and_skipped_ones_once(tmp_path: Path) -> None:
    told = json.loads(run("report", "--run", sourced(tmp_path), "--format", "json").stdout)
    assert told["failing"] == {
        "openaire": "http-status 503 on 4 of 5, timeout on 1 of 5",
        "semantic_scholar": "refused 401 on 4 of 4: check resolvers.semantic_scholar.api_key",
    }
    assert told["skipped_sources"] == {"core": "missing_key"}
    assert told["sources"]["crossref"]["errors"] == 1, "one failure in five is no failing source"


@pytest.mark.parametrize("format", ["table", "md"])
def test_people_see_the_same_of_the_sources(tmp_path: Path, format: str) -> None:
    shown = run("report", "--run", sourced(tmp_path), "--format", format).stdout
    assert "failing: semantic_scholar: refused 401 on 4 of 4: check resolvers.semantic_scholar.api_key" in shown
    assert shown.count("core") == shown.count("skipped: core (missing_key)") == 1
    rows = [" ".join(line.replace("│", "|").split()) for line in shown.splitlines()]
    assert "| unpaywall | 4 | 3 | 50.0 % | 0 | 1 | 0 |" in rows
    assert "| doi_redirect | doi_follow | prefix_rule (guess) | 1 |" in rows


def test_a_run_without_sources_has_no_table_of_them(tmp_path: Path) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(ManifestRecord(doc_id="doi:r1/1", outcome="error", reason="x"))
    shown = run("report", "--run", tmp_path, "--no-gates").stdout
    assert "Sources" not in shown
    assert "failing" not in shown


@pytest.mark.parametrize("format", ["table", "md"])
@pytest.mark.parametrize(("reasons", "said"), [(15, None), (27, "and 12 more")])
def test_a_group_that_is_cut_says_so(tmp_path: Path, format: str, reasons: int, said: str | None) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        for number in range(reasons):
            for copy in range(2):
                fields: dict[str, Any] = {"outcome": "error", "reason": f"reason-{number:02}"}
                record.finish(ManifestRecord(doc_id=f"doi:r/{number}-{copy}", **fields))
    shown = run("report", "--run", tmp_path, "--format", format, "--no-gates").stdout
    assert shown.count("reason-") == 15
    cut = [line for line in shown.splitlines() if " more " in line]
    assert [" ".join(line.replace("│", "|").split()) for line in cut] == ([f"| {said} | 24 |"] if said else [])


@pytest.mark.slow
@pytest.mark.parametrize("module", ["report", "catalog.works"])
def test_the_commands_import_nothing_heavy(module: str) -> None:
    heavy = ("sqlite3", "rich.table", "orjson", "DocsToKG.ContentDownload.catalog")
    code = (
        f"import sys, DocsToKG.ContentDownload.cli.{module}; print([name for name in {heavy} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "[]"


def test_the_form_is_as_the_file_ends_or_as_it_is_told(tmp_path: Path) -> None:
    root = filled(tmp_path / "run", failed=0)
    assert json.loads(run("report", "--run", root, "--json").stdout)["obtained"] == 10
    for words in (("--out", tmp_path / "r.xyz"), ("--out", tmp_path / "r"), ("--json", "--format", "md")):
        assert run("report", "--run", root, *words).exit_code == 2, words
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]
    made = run("report", "--run", root, "--out", tmp_path / "new" / "r.json")
    assert json.loads((tmp_path / "new" / "r.json").read_text())["obtained"] == 10
    assert "in a new folder" in made.stderr


def test_a_time_in_which_nothing_ended_is_told(tmp_path: Path) -> None:
    filled(tmp_path, failed=0)
    assert isinstance(run("report", "--run", tmp_path, "--since", "2999-01-01").exception, InputError)
    told = run("report", "--run", tmp_path, "--since", "1h", "--no-gates")
    assert "No work has ended here since 1h." in told.stderr
