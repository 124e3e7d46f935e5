"""Two nodes, each with folders of its own, drain one queue on a PostgreSQL server. EXT-01."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.contentdownload.conftest import client_settings

from DocsToKG.Orchestrator.ledger.base import JobFilter, NewJob
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow


def test_two_nodes_drain_one_queue_and_each_work_is_done_once(database: str, tmp_path: Path) -> None:
    program = str(Path(sys.executable).parent / "contentdownload")
    with SandboxServer(works=24, seed=7, faults=Faults.none()) as sandbox:
        configs = []
        for node in ("one", "two"):
            queue = {"backend": "postgres", "connection_string": database}
            settings = client_settings(sandbox, tmp_path / node, queue=queue)
            configs.append(tmp_path / f"{node}.json")
            configs[-1].write_text(json.dumps(settings))
        dois = [work.doi for number in range(24) if (work := sandbox.world.by_index(number)) is not None]
        (tmp_path / "works.jsonl").write_text("\n".join(json.dumps({"doi": doi}) for doi in dois))
        added = subprocess.run(
            [program, "queue", "import", str(tmp_path / "works.jsonl"), "-c", str(configs[0])],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert added.returncode == 0, added.stderr
        with PostgresLedger(database) as ledger:
            ledger.enqueue_many([NewJob("pack:1", {}, job_type="pack-run", priority=5)])
        nodes = [
            subprocess.Popen(
                [program, "queue", "run", "--drain", "-c", str(config)],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )
            for config in configs
        ]  # fmt: skip
        for node in nodes:
            _, said = node.communicate(timeout=100)
            assert node.returncode == 0, said
    with PostgresLedger(database) as ledger:
        [other] = ledger.list_jobs(wanted=JobFilter(job_type="pack-run"))
        assert [row.event for row in ledger.history(other.job_id)] == ["enqueued"], "no download: not theirs to take"
        stats = ledger.stats("content.download")
        assert stats["queued"] == stats["in_progress"] == stats["pending"] == 0
        assert stats["done"] > 12
        ends = [row for job in ledger.list_jobs() for row in ledger.history(job.job_id) if row.event == "finished"]
        assert len(ends) == stats["total"] == len(set(dois))
        assert ledger.verify_history()
