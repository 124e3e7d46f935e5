"""`content index` as people use it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.contentdownload.index_files import openalex_work, works, write_lines
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.index import engine

runner = CliRunner()


def content(*words: object) -> tuple[int, str, str]:
    result = runner.invoke(app, ["index", *map(str, words)])
    return result.exit_code, result.stdout, result.stderr


def test_built_looked_up_brought_up_to_date_exported_verified(tmp_path: Path) -> None:
    oa, lines = tmp_path / "oa", write_lines(tmp_path / "works.jsonl", works(9))
    code, told, _ = content("build", oa, "--openalex", lines, "--files", 2)
    assert code == 0, told
    assert "9 works: 3 open with 3 copies, 6 closed" in told
    code, told, _ = content("lookup", oa, "https://doi.org/10.5555/WORK.3", "pmid:1004", "10.5555/none")
    assert code == 3
    assert "https://host3.example.org/3.pdf" in told
    assert "pmid:1004: Work 4 (closed)" in told
    assert "doi:10.5555/none (unknown to the index)" in told
    newer = write_lines(tmp_path / "newer.jsonl", [openalex_work(4, pdf="https://new.example/4.pdf")])
    assert content("update", oa, "--openalex", newer)[0] == 0
    code, told, _ = content("lookup", oa, "pmid:1004", "--json")
    assert (code, json.loads(told)["copies"][0]["url"]) == (0, "https://new.example/4.pdf")
    assert json.loads(content("info", oa, "--json")[1])["open_works"] == 4
    assert "10 rows" not in content("export", oa, tmp_path / "all.csv")[1]
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + 9
    assert content("verify", oa, "--quiet") == (0, "Every file is intact.\n", "")


def test_what_is_wrong_is_said_with_the_way_out(tmp_path: Path) -> None:
    assert content("info", tmp_path / "none")[::2] == (
        2,
        f"Error: {tmp_path / 'none'} holds no index; make one with: content index build\n",
    )
    code, _, told = content("build", tmp_path / "oa", "--openalex", tmp_path / "none")
    assert (code, told) == (2, f"Error: no such file or folder: {tmp_path / 'none'}\n")
    assert content("build", tmp_path / "oa")[0] == 2


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    engine.library.cache_clear()
    try:
        code, _, told = content("build", tmp_path / "oa", "--openalex", write_lines(tmp_path / "w.jsonl", works(1)))
    finally:
        engine.library.cache_clear()
    assert code == 1
    assert "pip install 'docstokg[bulk]'" in told
