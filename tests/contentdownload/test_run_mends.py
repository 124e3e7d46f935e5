"""What a check found damaged is mended by the next run, and a forced run leaves no second file of a work behind."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.catalog.store import Catalog, Download
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.inputs.readers import coerce_works
from DocsToKG.ContentDownload.maintenance.verification import Findings, Verifier, mark
from DocsToKG.ContentDownload.runner import DownloadRun, RunResult
from DocsToKG.ContentDownload.runner.again import Again
from DocsToKG.ContentDownload.storage.cas import cas_path
from DocsToKG.ContentDownload.storage.files import LocalFiles
from DocsToKG.core.clock import SystemClock
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow  # each test is one run or several on a real server

MakeConfig = Callable[..., ContentDownloadConfig]


@pytest.fixture(scope="module")
def asked(calm_sandbox: SandboxServer) -> list[str]:
    return [work["doi"] for work in calm_sandbox.truth()["works"] if "unpaywall" in work["reachable_by"]][:4]


@pytest.fixture(scope="module")
def finished(
    calm_sandbox: SandboxServer, make_config: MakeConfig, asked: list[str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    root = tmp_path_factory.mktemp("finished") / "run"
    with DownloadRun(make_config(calm_sandbox, root)) as run:
        assert run.process_artifacts(asked).successful == 4
    return root


@pytest.fixture
def root(finished: Path, tmp_path: Path) -> Path:
    copy = Path(shutil.copytree(finished, tmp_path / "run", symlinks=True))
    for file in held(copy):  # a copy of the folder has two files where there was one with two names
        (copy / file.path).unlink()
        os.link(cas_path(copy, file.sha256), copy / file.path)
    return copy


def held(root: Path) -> list[Download]:
    with Catalog(root / "manifest.sqlite") as catalog:
        return list(catalog.files())


def names(root: Path) -> list[str]:
    return sorted(f"PDF/{path.name}" for path in (root / "PDF").iterdir())


def checked(root: Path) -> Findings:
    with Catalog(root / "manifest.sqlite") as catalog:
        findings = Verifier(LocalFiles(root), on_record=catalog.files).run()
    assert mark(root / "manifest.sqlite", findings, clock=SystemClock())
    return findings


def corruption(root: Path) -> int:
    with Catalog(root / "manifest.sqlite") as catalog:
        return catalog.figures().corruption


def taken_up(cfg: ContentDownloadConfig, again: Again | None = None) -> RunResult:
    with DownloadRun(cfg) as run:
        run.take_up(again=again)
        run.start()
        run.wait()
        run.stop()
        return run.result()


@pytest.mark.parametrize("how", ["pull", "resume", "single"])
def test_the_next_run_mends_what_a_check_found(
    how: str, root: Path, calm_sandbox: SandboxServer, make_config: MakeConfig, asked: list[str]
) -> None:
    """SLO-04, STO-09: a damaged file comes back under its own name, and a lost name is given back."""
    before, (damaged, nameless, *_) = names(root), held(root)
    place = root / damaged.path
    place.chmod(0o644)
    place.write_bytes(b"%PDF-1.4 damage")
    (root / nameless.path).unlink()
    assert not checked(root).is_good
    assert corruption(root) == 2
    cfg = make_config(calm_sandbox, root)
    if how == "resume":
        result = taken_up(cfg)
    else:
        with DownloadRun(cfg) as run:
            result = run.process_artifacts(asked) if how == "pull" else run.process_single_shot(coerce_works(asked))
    assert result.successful == 4
    assert result.already == (2 if how == "single" else 3), "the object without a name was whole"
    assert names(root) == before, "no second name beside the damaged one"
    findings = checked(root)
    assert findings.is_good
    assert findings.foreign == []
    assert corruption(root) == 0


def test_a_forced_run_leaves_one_name_of_each_work(
    root: Path, calm_sandbox: SandboxServer, make_config: MakeConfig
) -> None:
    """STO-09: the host has other bytes by now. The earlier object stays until it is asked to go."""
    old = held(root)[0]
    earlier = _as_if_obtained_before(root, old, b"%PDF-1.4 the bytes of last year")
    result = taken_up(make_config(calm_sandbox, root), Again())
    assert result.successful == 4
    now = {file.doc_id: file for file in held(root)}
    assert now[old.doc_id].sha256 == old.sha256
    assert names(root) == sorted(file.path for file in now.values())
    assert cas_path(root, earlier).is_file()
    assert checked(root).foreign == [str(cas_path(root, earlier).relative_to(root))]
    # The next forced run gives the free name back to the same bytes.
    assert taken_up(make_config(calm_sandbox, root), Again()).successful == 4
    assert names(root) == sorted(file.path for file in held(root))
    assert checked(root).is_good


def _as_if_obtained_before(root: Path, file: Download, body: bytes) -> str:
    """The record and the store say that the work's file was another one."""
    digest = hashlib.sha256(body).hexdigest()
    place = cas_path(root, digest)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(body)
    (root / file.path).unlink()
    os.link(place, root / file.path)
    with closing(sqlite3.connect(root / "manifest.sqlite")) as db, db:
        for table in ("manifests", "downloads"):
            change = f"UPDATE {table} SET sha256 = ?, size_bytes = ? WHERE doc_id = ? AND sha256 = ?"
            db.execute(change, (digest, len(body), file.doc_id, file.sha256))
    return digest
