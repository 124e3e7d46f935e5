"""Full text in other forms: stored as what it is, with a proof of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.Sandbox.profile import SandboxServer

WORKS = 30
MIMES = {"pdf": "application/pdf", "xml": "application/xml", "html": "text/html"}


def stored(
    server: SandboxServer, root: Path, make_config: Callable[..., ContentDownloadConfig], formats: str
) -> list[dict[str, Any]]:
    with DownloadRun(make_config(server, root, download={"formats": formats})) as run:
        run.process_artifacts(server.identifiers(WORKS, mix=False))
    lines = [json.loads(line) for line in (root / "manifest.jsonl").read_text().splitlines()]
    return [line for line in lines if line["status"] == "ok"]


@pytest.mark.slow
@pytest.mark.parametrize("form", ["xml", "html"])
def test_full_text_in_one_form_alone_is_proved_by_its_own_doi(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path, form: str
) -> None:
    lines = stored(calm_sandbox, tmp_path, make_config, form)
    assert len(lines) >= 2
    for line in lines:
        assert (line["mime"], line["proof"]) == (MIMES[form], "proved")
        assert (line["validation"]["form"], line["doi_seen"]) == (form, line["doi"])
        file = tmp_path / line["path"]
        assert file.parent.name == form.upper()
        assert line["doi"].rpartition("/")[2][:8].encode() in file.read_bytes().lower()
    assert not (tmp_path / "PDF").exists()


@pytest.mark.slow
def test_other_forms_stand_in_where_the_best_one_is_missing(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path
) -> None:
    lines = stored(calm_sandbox, tmp_path, make_config, "xml,html,pdf")
    in_pmc = {work["doi"].lower() for work in calm_sandbox.truth()["works"] if work["pmcid"]}
    forms = {line["doi"]: line["validation"]["form"] for line in lines}
    assert set(forms.values()) == {"xml", "html", "pdf"}
    assert {form for doi, form in forms.items() if doi in in_pmc} == {"xml"}, "the best form that can be had"
    with Catalog(tmp_path / "manifest.sqlite") as catalog:
        assert {file.mime for file in catalog.files()} == set(MIMES.values())
