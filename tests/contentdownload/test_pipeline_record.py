"""What the record of a work says: of a stored file, and of a miss."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest
from tests.contentdownload.search_bench import Source, bench

from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import TransientFailure
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock

WORK = WorkArtifact("doi:10.1/x", doi="10.1/x")


def recorded(root: Path, outcome: object) -> dict[str, object]:
    """The manifest line of the outcome, read back; the row in the database must say the same."""
    with RunTelemetry(root, run_id="r1", config_hash="c", clock=ManualClock()) as record:
        record.finish(ManifestRecord.of(WORK, outcome))  # type: ignore[arg-type]
    [line] = [json.loads(line) for line in (root / "manifest.jsonl").read_text().splitlines()]
    db = sqlite3.connect(root / "manifest.sqlite")
    db.row_factory = sqlite3.Row
    row = dict(db.execute("SELECT * FROM manifests").fetchone())
    db.close()
    assert {name: row[name] for name in ("license", "license_raw", "doi_seen", "cause", "explanation")} == {
        name: line[name] for name in ("license", "license_raw", "doi_seen", "cause", "explanation")
    }
    return line


def test_a_stored_file_is_recorded_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    """CAT-24, RES-28."""
    plan = DownloadPlan(
        "https://a.org/1?api_key=secret",
        "a",
        version="acceptedVersion",
        license="https://creativecommons.org/licenses/by/3.0/",
        host_type="repository",
        evidence="url_for_pdf",
    )
    learns = WorkArtifact("doi:10.1/x", oa_status="green", is_retracted=True, license="cc-by-nc", title="T")
    run = bench(Source("a", plans=(plan,), learns=learns), good=plan.url, facts={"doi_seen": "10.1/x", "pages": 9})
    line = recorded(tmp_path, run.run())
    wanted = {
        "status": "ok",
        "license": "CC-BY-3.0",
        "license_raw": "https://creativecommons.org/licenses/by/3.0/",
        "oa_status": "green",
        "version": "acceptedVersion",
        "host_type": "repository",
        "resolver": "a",
        "tier": "t-a",
        "evidence": "url_for_pdf",
        "doi_seen": "10.1/x",
        "is_retracted": True,
        "is_guess": False,
        "cause": None,
        "explanation": None,
    }
    assert {name: line[name] for name in wanted} == wanted
    assert "secret" not in json.dumps(line)


def test_a_licence_without_a_name_keeps_the_words_of_its_source(tmp_path: Path) -> None:
    plan = DownloadPlan("https://a.org/1", "a", license="publisher-specific-oa")
    line = recorded(tmp_path, bench(Source("a", plans=(plan,)), good=plan.url).run())
    assert (line["license"], line["license_raw"]) == (None, "publisher-specific-oa")


def test_the_licence_of_another_copy_is_not_that_of_the_file(tmp_path: Path) -> None:
    plan = DownloadPlan("https://a.org/1", "a", version="acceptedVersion", host_type="repository")
    learns = WorkArtifact("doi:10.1/x", license="cc-by")
    line = recorded(tmp_path, bench(Source("a", plans=(plan,), learns=learns), good=plan.url).run())
    assert (line["status"], line["license"], line["license_raw"]) == ("ok", None, None)


def test_a_miss_is_recorded_with_every_candidate_and_one_sentence(tmp_path: Path) -> None:
    plans = (
        DownloadPlan("https://a.org/1?token=secret", "a", evidence="url_for_pdf"),
        DownloadPlan("https://a.org/2", "a", evidence="prefix_rule", is_guess=True),
    )
    line = recorded(tmp_path, bench(Source("a", plans=plans)).run())
    assert (line["reason"], line["cause"]) == ("all_tiers_exhausted", "gone")
    assert line["explanation"] == "The only copies are gone (404) from a.org (2 tried)."
    assert line["candidates"] == [
        {
            "url": "https://a.org/1?token=***",
            "source": "a",
            "reason": "http-status",
            "http_status": 404,
            "evidence": "url_for_pdf",
            "is_guess": False,
        },
        {
            "url": "https://a.org/2",
            "source": "a",
            "reason": "http-status",
            "http_status": 404,
            "evidence": "prefix_rule",
            "is_guess": True,
        },
    ]


@pytest.mark.parametrize(("said", "recorded_as"), [(None, None), (False, False), (True, True)])
def test_a_retraction_is_recorded_only_where_somebody_said_so(
    tmp_path: Path, said: bool | None, recorded_as: bool | None
) -> None:
    learns = WorkArtifact("doi:10.1/x", is_retracted=said)
    line = recorded(tmp_path, bench(Source("a", learns=learns)).run())
    assert line["is_retracted"] is recorded_as


def test_a_temporary_miss_says_so(tmp_path: Path) -> None:
    busy = TransientFailure(Reason.HTTP_STATUS, url="https://a.org/1", http_status=503)
    run = bench(Source("a", ("https://a.org/1",)), errors={"https://a.org/1": busy})
    line = recorded(tmp_path, run.run())
    assert line["explanation"] == "Temporary: a.org answered 503; it may be had later."
