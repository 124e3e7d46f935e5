"""A real process that writes the record is killed in the middle, and the record is opened again."""

from __future__ import annotations

import json
import random
import shutil
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.waiting import eventually
from tests.warm import WarmPrograms

from DocsToKG.ContentDownload.telemetry import ResumeController, RunTelemetry
from DocsToKG.core.clock import SystemClock

WRITES = """
import sys, threading
from pathlib import Path
from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Verb
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import SystemClock

root, run_id = Path(sys.argv[1]), sys.argv[2]
told = open(root / f"told-{run_id}.txt", "a", buffering=1)

def work(record, name):
    for number in range(1_000_000):
        doc_id = f"doi:{run_id}/{name}-{number}"
        url = f"https://a.org/{doc_id}"
        record.attempt(Attempt(1.0, "arxiv", url, Verb.GET, AttemptStatus.HTTP_GET, work_id=doc_id))
        ok = {"outcome": "success", "sha256": "ab" * 32, "path": f"PDF/{name}-{number}.pdf"}
        bad = {"outcome": "error", "reason": "timeout"}
        ended = ManifestRecord(doc_id=doc_id, lease_id=doc_id, **(ok if number % 3 else bad))
        record.finish(ended, then=lambda doc_id=doc_id: told.write(doc_id + chr(10)))

bounds = {"capacity": 200, "batch_window_s": 0.002}
with RunTelemetry(root, run_id=run_id, config_hash="c", clock=SystemClock(), **bounds) as record:
    print("ready", flush=True)
    threads = [threading.Thread(target=work, args=(record, name)) for name in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def killed_run(warm: WarmPrograms, root: Path, run_id: str, after_s: float, *, told: int = 0) -> None:
    """Killed so long after it began to write, and not before `told` works were acknowledged."""
    root.mkdir(exist_ok=True)
    process = subprocess.Popen([*warm.words("python"), "-c", WRITES, str(root), run_id], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(after_s)
        eventually(lambda: (root / f"told-{run_id}.txt").read_text().count("\n") >= told)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
def test_after_kills_every_committed_row_stands_once_in_every_file(warm: WarmPrograms, tmp_path: Path) -> None:
    """CAT-21, TEL-10: three runs killed at random moments, then one that only opens and closes."""
    root = tmp_path / "run"
    moments = random.Random(7)
    for number in range(3):
        killed_run(warm, root, f"r{number}", moments.uniform(0.05, 0.3))
    with RunTelemetry(root, run_id="last", config_hash="c", clock=SystemClock()):
        pass
    db = sqlite3.connect(root / "manifest.sqlite")
    stored = [row[0] for row in db.execute("SELECT doc_id FROM manifests ORDER BY id")]
    tried = [row[0] for row in db.execute("SELECT work_id FROM http_events ORDER BY id")]
    unfinished = [row[0] for row in db.execute("SELECT run_id FROM run_summary WHERE finished_at IS NULL")]
    db.close()
    lines = [json.loads(line) for line in (root / "manifest.jsonl").read_text().splitlines()]
    assert [line["doc_id"] for line in lines] == stored
    assert max(Counter(stored).values()) == 1
    urls = [line.split(",")[3] for line in (root / "attempts.csv").read_text().splitlines()[1:]]
    assert urls == [f"https://a.org/{doc_id}" for doc_id in tried]
    told = {line for path in root.glob("told-*.txt") for line in path.read_text().split("\n")[:-1]}
    assert told <= set(stored)
    assert len(told) > 100
    assert sorted(unfinished) == ["r0", "r1", "r2"]
    last = {line.split(",")[0] for line in (root / "last.csv").read_text().splitlines()[1:]}
    assert last == {line["doc_id"] for line in lines if line["status"] == "ok"} == ResumeController(root).completed_ids


@pytest.mark.slow
def test_each_record_alone_tells_what_was_acknowledged_before_a_kill(warm: WarmPrograms, tmp_path: Path) -> None:
    """CAT-17, CAT-18: as the dead process left them, with nobody having opened the folder since."""
    root = tmp_path / "run"
    killed_run(warm, root, "r0", 0.0, told=100)
    told = set((root / "told-r0.txt").read_text().split("\n")[:-1])
    obtained = {doc_id for doc_id in told if int(doc_id.rpartition("-")[2]) % 3}
    assert len(obtained) > 20
    for kept in ("manifest.sqlite*", "manifest.jsonl", "last.csv"):
        alone = tmp_path / kept.strip("*")
        alone.mkdir()
        for file in root.glob(kept):
            shutil.copy(file, alone)
        found = ResumeController(alone).completed_ids
        assert obtained <= found, kept
        with RunTelemetry(alone, run_id="next", config_hash="c", clock=SystemClock()):
            pass
        assert ResumeController(alone).completed_ids == found, kept
    with RunTelemetry(root, run_id="next", config_hash="c", clock=SystemClock()) as record:
        assert not [repair for repair in record.repairs if repair.name == "last.csv"], "it had grown, no more"


@pytest.mark.slow
def test_the_folder_is_free_at_once_after_a_kill(warm: WarmPrograms, tmp_path: Path) -> None:
    root = tmp_path / "run"
    killed_run(warm, root, "r0", 0.05)
    with RunTelemetry(root, run_id="next", config_hash="c", clock=SystemClock()):
        pass  # FolderInUse, were it not
