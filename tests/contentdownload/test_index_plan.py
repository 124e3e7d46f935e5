"""`content plan --index`: what a list comes to, from the index alone."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.contentdownload.index_files import built, openalex_work, works, write_lines
from typer.testing import CliRunner

from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.index.engine import Limits, connect
from DocsToKG.ContentDownload.index.lists import ListCounts, is_table, read_list
from DocsToKG.ContentDownload.index.planning import ListPlan, plan_list

IDS = ["10.5555/work.0", "https://doi.org/10.5555/WORK.1", "pmid:1003", "10.5555/none", "rubbish", "doi:10.5555/work.0"]


@pytest.fixture
def oa(tmp_path: Path) -> Path:
    built(tmp_path / "oa", write_lines(tmp_path / "works.jsonl", works(9)))
    return tmp_path / "oa"


def planned(oa: Path, *sources: object, asks_services: bool = True) -> ListPlan:
    limits = Limits(spill=oa.parent / "spill")
    return plan_list(
        oa, [str(s) for s in sources], limits=limits, spill=oa.parent / "spill", asks_services=asks_services
    )


def test_works_and_copies_are_counted(oa: Path, tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("\n".join(IDS) + "\n# a comment\n")
    plan = planned(oa, tmp_path / "ids.txt")
    assert plan.lines == ListCounts(lines=6, works=4, unusable=1)
    assert (plan.open, plan.closed, plan.unknown, plan.copies) == (2, 1, 1, 2)
    assert plan.by_host == {"host0.example.org": 1, "host3.example.org": 1}
    assert plan.by_license == {"cc-by": 2}
    assert plan.requests["host0.example.org"] == 1
    assert plan.requests["api.unpaywall.org"] == 1
    assert planned(oa, tmp_path / "ids.txt", asks_services=False).requests.total() == 2


def test_a_page_costs_a_visit_more(tmp_path: Path) -> None:
    work = openalex_work(1, pdf="https://a.example/1.pdf")
    for place in (work["best_oa_location"], *work["locations"]):
        place |= {"pdf_url": None, "landing_page_url": "https://repo.example/1"}
    built(tmp_path / "oa", write_lines(tmp_path / "w.jsonl", [work]))
    assert planned(tmp_path / "oa", "10.5555/work.1").requests == {"repo.example": 2}


def test_the_slowest_host_comes_first(oa: Path) -> None:
    plan = planned(oa, "10.5555/work.0", "10.5555/work.3", "10.5555/work.6", asks_services=False)
    hosts = plan.hosts(lambda host: 0.001 if host == "host6.example.org" else 1.0)
    assert hosts[0].host == "host6.example.org"
    assert hosts[0].hours == pytest.approx(1000 / 3600)


def _write(path: Path, rows: list[dict[str, Any]]) -> Path:
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    match path.suffix:
        case ".gz":
            path.write_bytes(gzip.compress(lines))
        case ".zst":
            path.write_bytes(zstandard.compress(lines))
        case ".parquet":
            path.with_suffix(".jsonl").write_bytes(lines)
            with connect() as db:
                db.execute(f"COPY (FROM read_json('{path.with_suffix('.jsonl')}')) TO '{path}' (FORMAT parquet)")
        case ".csv":
            path.write_text("title,DOI,PMID\n" + "".join(f"x,{r['doi'] or ''},{r['pmid'] or ''}\n" for r in rows))
        case _:
            path.write_bytes(lines)
    return path


@pytest.mark.parametrize("name", ["l.jsonl", "l.jsonl.gz", "l.jsonl.zst", "l.parquet", "l.csv"])
def test_lists_of_every_form_are_read_alike(tmp_path: Path, name: str) -> None:
    rows = [{"doi": "10.5555/WORK.0", "pmid": None}, {"doi": None, "pmid": "1003"}, {"doi": "rubbish", "pmid": None}]
    file = _write(tmp_path / name, rows)
    assert is_table(str(file))
    with connect() as db:
        counts = read_list(db, [str(file)], tmp_path / "spill")
        names = {name for [name] in db.execute("SELECT name FROM requested").fetchall()}
    assert counts == ListCounts(3, 2, 1)
    assert names == {"doi:10.5555/work.0", "pmid:1003"}


def test_unusual_spellings_are_read_as_a_pull_reads_them(tmp_path: Path) -> None:
    texts = [
        "10.5555/WORK.0).",
        "https://arxiv.org/abs/2104.12255v2",
        "10.48550/arXiv.2104.12255",
        "https://host.example/a.pdf",
    ]
    (tmp_path / "ids.txt").write_text("\n".join(texts))
    with connect() as db:
        read_list(db, [str(tmp_path / "ids.txt")], tmp_path / "spill")
        names = {name for [name] in db.execute("SELECT name FROM requested").fetchall()}
    assert names == {"doi:10.5555/work.0", "arxiv:2104.12255", "url:https://host.example/a.pdf"}


def test_planned_on_the_command_line_without_a_contact(oa: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(oa.parent / "home"))
    runner = CliRunner()
    told = runner.invoke(app, ["plan", "10.5555/work.0", "10.5555/work.1", "--index", str(oa), "--json"])
    assert told.exit_code == 3
    plan = json.loads(told.stdout)
    assert (plan["works"], plan["open"], plan["closed"], plan["requests"]) == (2, 1, 1, 1)
    assert plan["hosts"][0]["host"] == "host0.example.org"
    told = runner.invoke(app, ["plan", "10.5555/work.0", "--index", str(oa)])
    assert told.exit_code == 0
    assert "no service was asked" in told.stdout
    told = runner.invoke(app, ["plan", "10.5555/work.0", "--index", str(oa), "--license", "cc0"])
    assert told.exit_code == 2
