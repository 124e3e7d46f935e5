"""A pull with an index: the list is joined when it is queued, and its copies are tried before anyone is asked."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.contentdownload.conftest import client_settings
from tests.contentdownload.index_files import built, openalex_work, works, write_lines

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.index.build import Wanted, build
from DocsToKG.ContentDownload.index.engine import Limits
from DocsToKG.ContentDownload.index.joining import joined
from DocsToKG.ContentDownload.inputs import InputLine, coerce_works
from DocsToKG.ContentDownload.resolvers.links.copy_facts import said_by_index
from DocsToKG.ContentDownload.runner import DownloadRun, RunResult
from DocsToKG.Sandbox.profile import SandboxServer
from DocsToKG.Sandbox.snapshot import write_snapshot

MakeConfig = Callable[..., ContentDownloadConfig]


@pytest.fixture(scope="module")
def oa(sandbox: SandboxServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of the sandbox's works."""
    folder = tmp_path_factory.mktemp("snapshot")
    write_snapshot(sandbox.world, folder)
    build(
        folder / "oa",
        Wanted([(name, str(folder / name)) for name in ("openalex", "crossref", "pmc", "arxiv")], files=4),
    )
    return folder / "oa"


def pulled(cfg: ContentDownloadConfig, ids: list[str]) -> RunResult:
    with DownloadRun(cfg) as run:
        return run.process_artifacts(ids)


@pytest.mark.slow
def test_the_same_papers_with_a_third_of_the_requests(
    sandbox: SandboxServer, oa: Path, make_config: MakeConfig, tmp_path: Path
) -> None:
    ids, obtained, requests = sandbox.identifiers(60), [], []
    for name, more in (("without", {}), ("with", {"index": {"path": str(oa)}})):
        sandbox.reset()
        result = pulled(make_config(sandbox, tmp_path / name, **more), ids)
        obtained.append({row.line for row in result.rows if row.outcome == "success"})
        requests.append(sandbox.counters()["requests"])
    assert obtained[0] <= obtained[1]
    assert sandbox.violations() == []
    assert requests[1] * 2 < requests[0]


@pytest.mark.slow
def test_what_the_index_calls_closed_is_told_from_what_it_does_not_know(
    sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    built(tmp_path / "oa", write_lines(tmp_path / "w.jsonl", [openalex_work(1)]))
    sandbox.reset()
    result = pulled(make_config(sandbox, tmp_path / "run", index={"path": str(tmp_path / "oa")}), ["10.5555/work.1"])
    assert (result.rows[0].reason or "").startswith("all_tiers_exhausted (closed): The paper is closed")
    assert sandbox.counters()["requests"] == 0
    strange = pulled(
        make_config(sandbox, tmp_path / "other", index={"path": str(tmp_path / "oa")}), ["10.5555/strange"]
    )
    assert "knows this identifier" in (strange.rows[0].reason or "")
    assert sandbox.counters()["requests"] > 3
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert "looked up in an index built at 2" in json.dumps(summary)


@pytest.mark.parametrize(("then", "asks"), [("never", False), ("always", True)])
def test_whether_services_are_asked_is_a_choice(
    sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path, then: str, asks: bool
) -> None:
    built(tmp_path / "oa", write_lines(tmp_path / "w.jsonl", [openalex_work(1)]))
    sandbox.reset()
    index = {"path": str(tmp_path / "oa"), "then": then}
    pulled(make_config(sandbox, tmp_path / "run", index=index), ["10.5555/work.1", "pmid:5"])
    assert (sandbox.counters()["requests"] > 0) == asks


def test_the_copies_travel_with_the_job(
    sandbox: SandboxServer, oa: Path, make_config: MakeConfig, tmp_path: Path
) -> None:
    with DownloadRun(make_config(sandbox, tmp_path, index={"path": str(oa)})) as run:
        run.enqueue(coerce_works(sandbox.identifiers(5)))
        jobs = run.queue.ledger.list_jobs(limit=10)
    works = [WorkArtifact.from_dict(json.loads(job.artifact_json)) for job in jobs]
    assert len(works) == 5
    assert all(said_by_index(work)["access"] in ("open", "closed") for work in works)
    copies = [copy for work in works for copy in said_by_index(work)["copies"]]
    assert all(copy["source"] and copy["evidence"] for copy in copies)
    assert copies


def test_a_joined_list_keeps_its_order_its_rubbish_and_its_duplicates(tmp_path: Path) -> None:
    built(tmp_path / "oa", write_lines(tmp_path / "w.jsonl", works(9)))
    texts = ["10.5555/work.4", "rubbish", "pmid:1003", "10.5555/none", "10.5555/WORK.4", "10.5555/work.0"]
    lines = list(joined(coerce_works(texts), tmp_path / "oa", limits=Limits(spill=tmp_path / "spill")))
    assert [line.text for line in lines] == texts
    assert [line.duplicate_of for line in lines] == [None, None, None, None, 1, None]
    known = [said_by_index(line.work).get("access") if line.work else None for line in lines]
    assert known == ["closed", None, "open", None, None, "open"]
    assert lines[2].work is not None
    assert (lines[2].work.work_id, lines[2].work.doi) == ("pmid:1003", "10.5555/work.3"), "a job keeps its name"


@pytest.mark.slow
def test_a_long_list_is_joined_at_bounded_memory(tmp_path: Path) -> None:
    built(tmp_path / "oa", write_lines(tmp_path / "w.jsonl", works(90)))

    def many() -> Iterator[InputLine]:
        for number in range(30_000):
            doi = f"10.5555/work.{number % 30_000}"
            yield InputLine(number, "list", doi, WorkArtifact(f"doi:{doi}", doi=doi))

    known = 0
    for number, line in enumerate(joined(many(), tmp_path / "oa", limits=Limits(memory_bytes=256 << 20))):
        assert line.line_no == number
        known += line.work is not None and bool(said_by_index(line.work))
    assert known == 90


QUEUES = """
import sys
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.index import joining
from DocsToKG.ContentDownload.inputs import read_inputs
from DocsToKG.ContentDownload.runner import DownloadRun
with DownloadRun(load_config(sys.argv[1])) as run:
    print("begins", flush=True)
    run.enqueue(read_inputs([sys.argv[2]], stdin=sys.stdin))
print("ended", flush=True)
"""


@pytest.mark.long
@pytest.mark.timeout(1200)  # twenty starts of a program
def test_killed_while_it_is_queued_nothing_is_queued_twice(
    sandbox: SandboxServer, oa: Path, clean_environment: dict[str, str], tmp_path: Path
) -> None:
    draw, settings, ids = random.Random(1), tmp_path / "settings.json", tmp_path / "ids.txt"
    settings.write_text(json.dumps(client_settings(sandbox, tmp_path / "run", index={"path": str(oa)})))
    ids.write_text("\n".join(f"10.5555/work.{number}" for number in range(4000)))
    child_of = [sys.executable, "-c", QUEUES, str(settings), str(ids)]
    counts: list[tuple[int, int]] = []
    for _ in range(20):
        child = subprocess.Popen(child_of, env=clean_environment, stdout=subprocess.PIPE)
        assert child.stdout is not None
        assert child.stdout.readline() == b"begins\n"
        with suppress(subprocess.TimeoutExpired):
            child.wait(draw.uniform(0.05, 2.5))
        child.kill()
        child.communicate()
        with sqlite3.connect(tmp_path / "run" / "state" / "ledger.sqlite") as db:
            counts += db.execute("SELECT count(*), count(DISTINCT artifact_id) FROM jobs")
    assert all(rows == works for rows, works in counts)
    assert subprocess.run(child_of, env=clean_environment, capture_output=True, timeout=60).returncode == 0
    with sqlite3.connect(tmp_path / "run" / "state" / "ledger.sqlite") as db:
        assert db.execute("SELECT count(*), count(DISTINCT artifact_id) FROM jobs").fetchone() == (4000, 4000)
    assert any(rows < 4000 for rows, _ in counts), "nothing was killed before all was queued"
