"""The service levels of a report: when they are judged, by which settings, and what the command then does."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Verb
from DocsToKG.ContentDownload.catalog.slo import Targets, gates, judge_by
from DocsToKG.ContentDownload.catalog.summary import Figures
from DocsToKG.ContentDownload.cli.report import report
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig, SloConfig
from DocsToKG.ContentDownload.run_folder import RunFolder, SavedRun
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock

app = typer.Typer()
app.command("report")(report)


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No settings of whoever runs the tests."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def levels(*arguments: str | Path) -> dict[str, dict[str, Any]]:
    told = json.loads(run(*arguments, "--format", "json").stdout)
    return {gate["gate"]: gate for gate in told["gates"]}


def filled(
    root: Path, *, works: int = 20, failed: int = 0, requests: int = 0, http_429: int = 0, **options: Any
) -> Path:
    clock = ManualClock()
    with RunTelemetry(root, run_id="r1", config_hash="c", clock=clock, **options) as record:
        for number in range(works):
            fields: dict[str, Any] = {"outcome": "success", "sha256": f"{number:064x}", "path": "p", "ttfp_ms": 500}
            if number < failed:
                fields = {"outcome": "error", "reason": "timeout"}
            record.finish(ManifestRecord(doc_id=f"doi:{number}", **fields))
        for number in range(requests):
            status = 429 if number < http_429 else 200
            record.attempt(Attempt(1.0, "a", "https://a.org/x", Verb.GET, AttemptStatus.HTTP_GET, status))
        clock.advance(60)
    return root


def test_the_settings_and_the_levels_have_the_same_names_and_defaults() -> None:
    assert SloConfig().model_dump() == asdict(Targets())
    assert ContentDownloadConfig().slo == SloConfig()


@pytest.mark.parametrize(
    ("few", "gate", "note"),
    [
        ({"attempted": 9}, "yield", "9 works, and it is judged from 10 on"),
        ({"timed_files": 9}, "ttfp_p95_s", "9 timed files, and it is judged from 10 on"),
        ({"requests": 99}, "ratio_429", "99 requests, and it is judged from 100 on"),
        ({"rerun_works": 9}, "rerun_cache_hit", "9 works obtained again, and it is judged from 10 on"),
        ({"rerun_id": None}, "rerun_cache_hit", "no run obtained works again"),
        ({"attempted": 199}, "catalog_write_p95_ms", "199 works, and it is judged from 200 on"),
        ({"attempted": 199}, "works_per_worker_hour", "199 works, and it is judged from 200 on"),
        (
            {"first_tier_share": 0.5},
            "works_per_worker_hour",
            "50% of the files came from the first tier, and it is judged from 90% on",
        ),
        ({"catalog_write_p95_ms": None}, "catalog_write_p95_ms", "there is nothing to judge by"),
    ],
)
def test_too_little_data_is_said_and_breaks_nothing(few: dict[str, Any], gate: str, note: str) -> None:
    """SLO-08."""
    bad = Figures(
        attempted=1000,
        timed_files=1000,
        requests=1000,
        yield_ratio=0.1,
        ttfp_p50_s=99,
        ttfp_p95_s=99,
        ratio_429=0.9,
        rerun_id="r",
        rerun_works=1000,
        rerun_cache_hit_ratio=0.0,
        catalog_write_p95_ms=999,
        works_per_hour=1.0,
        processes=1,
        first_tier_share=1.0,
    )
    before = {one.name: one for one in gates(bad)}
    assert before[gate].verdict == "missed"
    after = {one.name: one for one in gates(replace(bad, **few))}
    assert (after[gate].ok, after[gate].verdict, after[gate].note) == (True, "not judged", note)


def test_a_level_of_null_is_not_judged() -> None:
    figures = Figures(attempted=100, yield_ratio=0.1, corruption=5)
    judged = {gate.name: gate for gate in gates(figures, Targets(yield_min=None, corrupt_files_max=None))}
    assert judged["yield"].ok
    assert judged["corruption"].ok
    assert judged["corruption"].target == "off"


def test_works_an_hour_are_counted_for_each_worker() -> None:
    """SLO-06."""
    figures = Figures(attempted=4000, works_per_hour=4000.0, first_tier_share=1.0, processes=2)
    value = {gate.name: gate for gate in gates(figures, workers=8)}["works_per_worker_hour"]
    assert (value.value, value.ok) == (500.0, True)
    assert not {gate.name: gate for gate in gates(figures, workers=9)}["works_per_worker_hour"].ok
    assert {gate.name: gate for gate in gates(figures)}["works_per_worker_hour"].value == 2000.0


def test_the_levels_can_be_set_in_a_file(tmp_path: Path) -> None:
    filled(tmp_path, works=20, failed=8)
    assert run("--run", tmp_path).exit_code == 4
    lax = tmp_path / "lax.yaml"
    lax.write_text("slo: {yield_min: 0.5}\n")
    shown = run("--run", tmp_path, "--config", lax)
    assert shown.exit_code == 0
    assert ">= 0.5" in shown.stdout
    off = tmp_path / "off.yaml"
    off.write_text("slo: {yield_min: null}\n")
    assert levels("--run", tmp_path, "--config", off)["yield"]["verdict"] == "not judged"
    assert run("--run", tmp_path, "--config", tmp_path / "none.yaml").exit_code == 2


def test_the_settings_of_the_run_hold_for_its_report(tmp_path: Path) -> None:
    filled(tmp_path, works=20, failed=8)
    folder = RunFolder(tmp_path)
    folder.state.mkdir(exist_ok=True)
    folder.remember(SavedRun(None, {"slo": {"yield_min": 0.6}}, True, "manifest.sqlite"))
    assert run("--run", tmp_path).exit_code == 0
    folder.remember(SavedRun(str(tmp_path / "gone.yaml"), {}, True, "manifest.sqlite"))
    shown = run("--run", tmp_path)
    assert shown.exit_code == 4
    assert "the default levels apply" in shown.stderr


def test_too_many_429_break_a_level(tmp_path: Path) -> None:
    """SLO-03."""
    assert run("--run", filled(tmp_path / "few", requests=99, http_429=50)).exit_code == 0
    shown = run("--run", filled(tmp_path / "many", requests=200, http_429=2))
    assert shown.exit_code == 4
    assert "ratio_429 0.01 (wanted < 0.01)" in shown.stderr
    assert run("--run", filled(tmp_path / "fine", requests=200, http_429=1)).exit_code == 0


@pytest.mark.parametrize("format", ["table", "md", "html", "json"])
def test_every_format_ends_with_the_same_code(tmp_path: Path, format: str) -> None:
    filled(tmp_path, failed=10)
    assert run("--run", tmp_path, "--format", format).exit_code == 4
    assert run("--run", tmp_path, "--format", format, "--no-gates").exit_code == 0


@pytest.mark.parametrize(
    ("name", "begins"), [("r.html", "<!doctype html>"), ("r.md", "# Run report"), ("r.json", "{"), ("r.txt", "Works")]
)
def test_the_report_can_be_written_to_a_file(tmp_path: Path, name: str, begins: str) -> None:
    out = tmp_path / "new" / name
    shown = run("--run", filled(tmp_path / "run"), "--out", out)
    assert (shown.exit_code, shown.stdout) == (0, "")
    assert str(out) in shown.stderr
    assert out.read_text(encoding="utf-8").lstrip().startswith(begins)
    assert [file.name for file in out.parent.iterdir()] == [name], "nothing half-written is left"


def test_a_named_format_beats_the_ending_of_the_file(tmp_path: Path) -> None:
    out = tmp_path / "r.txt"
    run("--run", filled(tmp_path / "run"), "--out", out, "--format", "json")
    assert json.loads(out.read_text(encoding="utf-8"))["obtained"] == 20


def test_the_report_can_begin_at_a_moment(tmp_path: Path) -> None:
    filled(tmp_path)
    clock = ManualClock(1_790_000_000.0)
    with RunTelemetry(tmp_path, run_id="r2", config_hash="c", clock=clock) as record:
        record.finish(ManifestRecord(doc_id="doi:0", outcome="error", reason="timeout"))
        record.finish(ManifestRecord(doc_id="doi:new", outcome="success", sha256="a" * 64, path="p"))
        clock.advance(30)
    told = json.loads(run("--run", tmp_path, "--since", "2026-09-01", "--format", "json").stdout)
    assert (told["attempted"], told["obtained"], told["duration_s"]) == (2, 1, 30)
    assert [one["run_id"] for one in told["runs"]] == ["r2"]
    everything = json.loads(run("--run", tmp_path, "--format", "json").stdout)
    assert (everything["attempted"], everything["obtained"]) == (21, 21)
    wrong = run("--run", tmp_path, "--since", "yesterday")
    assert "is not a time" in str(wrong.exception)


def test_the_summary_is_judged_by_the_settings_of_its_run(tmp_path: Path) -> None:
    """The same levels, the same number of jobs at once and the same verdicts as `content report` shows for it."""
    slo = SloConfig(yield_min=0.95, throughput_works_needed=10, works_per_worker_hour_min=None)
    filled(tmp_path / "run", works=20, failed=2, judge=judge_by(slo, workers=8))
    filled(tmp_path / "usual", works=20, failed=2)
    found = {
        name: {gate["gate"]: gate for gate in json.loads((tmp_path / name / "summary.json").read_text())["gates"]}
        for name in ("run", "usual")
    }
    assert (found["run"]["yield"]["target"], found["run"]["yield"]["verdict"]) == (">= 0.95", "missed")
    assert (found["usual"]["yield"]["target"], found["usual"]["yield"]["ok"]) == (">= 0.85", True)
    assert found["run"]["works_per_worker_hour"]["target"] == "off"
    settings = tmp_path / "slo.json"
    settings.write_text(json.dumps({"slo": slo.model_dump(), "orchestrator": {"max_workers": 8}}))
    assert levels("--run", tmp_path / "run", "--config", settings) == found["run"]


def test_jobs_at_once_are_those_of_all_processes(tmp_path: Path) -> None:
    judged = judge_by(SloConfig(throughput_works_needed=1), workers=6)(
        Figures(attempted=100, first_tier_share=1.0, works_per_hour=6000.0)
    )
    assert {gate.name: gate.value for gate in judged}["works_per_worker_hour"] == 1000.0
