"""A work that was taken down is refused by pull, resume and queue; what verify finds is fetched again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contentdownload.stored_corpus import make_corpus

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.bootstrap import open_queue
from DocsToKG.ContentDownload.catalog.selection import Selection
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.maintenance.takedowns import Takedown, Takedowns
from DocsToKG.ContentDownload.runner import DownloadRun
from DocsToKG.ContentDownload.runner.run import run_queue
from DocsToKG.Sandbox.profile import SandboxServer

Command = Callable[..., Any]


@pytest.fixture
def pulled(
    content: Command, config_file: Callable[..., Path], calm_sandbox: SandboxServer, tmp_path: Path
) -> Callable[..., Any]:
    """A folder with four papers, and the commands to go on with it."""
    world = calm_sandbox.world
    config = config_file(calm_sandbox)
    dois = [work.doi for number in range(4) if (work := world.by_index(number)) is not None]
    (tmp_path / "ids.txt").write_text("\n".join(dois))
    done = content("pull", "ids.txt", "-c", config, "--out", "run", "--quiet")
    assert done.returncode == 0, done.stderr
    return lambda *words: content(*map(str, words))


def works(pulled: Command, *words: str) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(pulled("catalog", "query", "--run", "run", "--json", *words).stdout)[
        "works"
    ]
    return told


@pytest.mark.slow
def test_a_work_that_was_taken_down_stays_away(pulled: Command, tmp_path: Path) -> None:
    first, second, *_ = works(pulled, "--state", "obtained")
    config = tmp_path / "sandbox.json"
    done = pulled("takedown", first["doc_id"].upper().replace("DOI:", "doi:"), "--run", "run", "--reason", "asked")
    assert done.returncode == 0, done.stderr
    assert "is taken down" in done.stdout
    path = tmp_path / "run" / first["path"]
    for words in (
        ("pull", "ids.txt", "-c", config, "--out", "run", "--quiet"),
        ("resume", "--run", "run", "--force", "--filter", "status=skipped", "--quiet"),
        ("resume", "--run", "run", "--verify", "--quiet"),
    ):
        assert pulled(*words).returncode == 0, words
        assert not path.exists(), words
        with Catalog(tmp_path / "run" / "manifest.sqlite") as catalog:
            [now] = catalog.page(Selection(text=first["doc_id"])).works
        assert now["state"] == "taken-down", words
    assert "Taken down" in (tmp_path / "run" / "results.csv").read_text()
    # By its bytes as well, whatever the work is called.
    by_address = pulled("pull", first["canonical_url"], "-c", config, "--out", "run", "--quiet", "--json")
    told = json.loads(by_address.stdout)
    assert [row["path"] for row in told["results"]] == [None], told
    assert "your filters" not in told["results"][0]["reason"]
    assert (told["taken_down"], told["left_out"]) == (1, 0), told
    assert not list((tmp_path / "run" / "cas").rglob(first["sha256"][2:]))
    assert (tmp_path / "run" / second["path"]).exists()
    assert pulled("takedown", "undo", first["doc_id"], "--run", "run").returncode == 0
    assert pulled("pull", "ids.txt", "-c", config, "--out", "run", "--quiet").returncode == 0
    assert path.exists()


@pytest.mark.slow
def test_a_filter_that_fits_no_work_is_told(pulled: Command) -> None:
    done = pulled("resume", "--run", "run", "--force", "--filter", "tier=nosuch", "--quiet")
    assert "Works to repeat: 0" in done.stderr
    assert "--tier nosuch: none here; there are " in done.stderr


@pytest.mark.slow
def test_what_verify_finds_is_fetched_again(pulled: Command, tmp_path: Path) -> None:
    """STO-09."""
    first, second, third, fourth = works(pulled, "--state", "obtained")
    root = tmp_path / "run"
    damaged = root / first["path"]
    damaged.chmod(0o644)
    damaged.write_bytes(b"%PDF-1.4 nonsense")
    (root / second["path"]).unlink()  # its object is there: the name is given back
    for place in (root / third["path"], root / "cas" / "sha256" / third["sha256"][:2] / third["sha256"][2:]):
        place.unlink()
    told = pulled("catalog", "verify", "--run", "run", "--json")
    assert told.returncode == 1
    findings = json.loads(told.stdout)
    assert [found["doc_ids"] for found in findings["damaged"]] == [[first["doc_id"]]]
    assert {doc for found in findings["missing"] for doc in found["doc_ids"]} == {second["doc_id"], third["doc_id"]}
    repaired = pulled("catalog", "verify", "--run", "run", "--repair", "--quiet", "--json")
    assert repaired.returncode == 0, repaired.stderr
    assert json.loads(repaired.stdout)["not_repaired"] == []
    after = pulled("catalog", "verify", "--run", "run")
    assert after.returncode == 0, after.stdout
    assert "0 damaged, 0 missing, 0 foreign" in after.stdout
    now = {work["doc_id"]: work["path"] for work in works(pulled)}
    assert now == {work["doc_id"]: work["path"] for work in (first, second, third, fourth)}


def taken_down(root: Path, *names: str) -> None:
    Takedowns(root).put(
        Takedown(names[0], names, "asked", "2026-01-01T00:00:00.000Z", pending=False),
    )


@pytest.mark.slow
@pytest.mark.parametrize("spelling", ["{doi}", "https://doi.org/{doi}", "{openalex_id}", "arXiv:{arxiv_id}v1"])
def test_a_refused_work_costs_no_request(
    make_config: Callable[..., ContentDownloadConfig], calm_sandbox: SandboxServer, tmp_path: Path, spelling: str
) -> None:
    work = calm_sandbox.world.by_index(13)
    assert work is not None
    taken_down(tmp_path, f"doi:{work.doi.lower()}", f"openalex:{work.openalex_id.lower()}", f"arxiv:{work.arxiv_id}")
    asked = spelling.format(doi=work.doi, openalex_id=work.openalex_id, arxiv_id=work.arxiv_id)
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        result = run.process_artifacts([asked])
        assert run.figures().requests == 0
    [row] = result.rows
    assert row.path is None
    assert row.reason == "taken-down: Taken down on 2026-01-01 (asked)."
    assert (result.taken_down, result.left_out, result.complete) == (1, 0, True)


def test_a_work_is_refused_when_another_name_of_it_is_learned(
    make_config: Callable[..., ContentDownloadConfig], calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    """It is asked for by one name, and the services tell the one that stands on the list."""
    work = calm_sandbox.world.by_index(13)
    assert work is not None
    taken_down(tmp_path, f"doi:{work.doi.lower()}")
    config = make_config(calm_sandbox, tmp_path, resolvers={"identify": ["openalex"]})
    with DownloadRun(config) as run:
        result = run.process_artifacts([work.openalex_id])
    [row] = result.rows
    assert row.path is None, row
    assert not list((tmp_path / "cas").rglob("*/??/*"))


def test_a_takedown_that_was_cut_off_is_finished_by_the_next_run(
    make_config: Callable[..., ContentDownloadConfig], calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    corpus = make_corpus(tmp_path, {"doi:10.1/a": b"%PDF-1.4 one"})
    entry = Takedown(
        "doi:10.1/a", ("doi:10.1/a",), "asked", "2026-01-01T00:00:00.000Z",
        sha256=(corpus.digests["doi:10.1/a"],), paths=(corpus.paths["doi:10.1/a"],),
    )  # fmt: skip
    Takedowns(tmp_path).put(entry)
    with DownloadRun(make_config(calm_sandbox, tmp_path)):
        assert not corpus.object_of("doi:10.1/a").exists()
        assert not corpus.name_of("doi:10.1/a").exists()
    assert not Takedowns.read(tmp_path).entries[0].pending
    assert '"stage":"takedown"' in (tmp_path / "manifest.jsonl").read_text()


def test_the_queue_refuses_it_too(
    make_config: Callable[..., ContentDownloadConfig], calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    """Jobs that were put there before the takedown, or by another program."""
    work = calm_sandbox.world.by_index(13)
    assert work is not None
    config = make_config(calm_sandbox, tmp_path)
    doc_id = f"doi:{work.doi.lower()}"
    with open_queue(config) as queue:
        assert queue.enqueue(doc_id, WorkArtifact(doc_id, doi=work.doi.lower()).to_dict())
    taken_down(tmp_path, doc_id)
    run_queue(config, drain=True)
    with open_queue(config) as queue:
        assert queue.stats()["skipped"] == 1
    assert not list((tmp_path / "cas").rglob("*/??/*"))
