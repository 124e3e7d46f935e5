"""What the verifier finds even when a trusted key signed it, whom it believes, and that no bundle can hurt it."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard
from tests.largest import grown_mb
from tests.orchestrator.eventful import afternoon, morning, ms, trust
from tests.orchestrator.eventful import bundle as export
from tests.orchestrator.second_dsse import check

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.audit import archive, bundle, layout
from DocsToKG.Orchestrator.audit.verify import verify
from DocsToKG.Orchestrator.control.quotas import QuotaService
from DocsToKG.Orchestrator.errors import LedgerContradicts
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.signing import dsse
from DocsToKG.Orchestrator.signing.keys import Trust, new_signer

NOW = ManualClock().now()
OURS, SECOND, SHORT = new_signer("ours", NOW), new_signer("second", NOW), new_signer("short", NOW, NOW + 10_000)


@pytest.fixture
def story(tmp_path: Path, clock: ManualClock) -> Path:
    """A folder that holds a bundle of everything."""
    with SqliteLedger(tmp_path / "ledger.sqlite", clock=clock) as ledger:
        start = ms(clock)
        morning(ledger, clock)
        afternoon(ledger, clock)
        return export(ledger, start, ms(clock), tmp_path / "day", [OURS]).path


def rows(folder: Path, name: str) -> list[Any]:
    return [orjson.loads(line) for line in (folder / name).read_bytes().splitlines()]


def doctor(folder: Path, name: str, change: Callable[[list[Any]], object]) -> None:
    """Change rows and sign the whole anew with the trusted key, every digest right: a liar who holds the key."""
    changed = rows(folder, name)
    change(changed)
    data = b"".join(layout.line(redigested(row)) for row in changed)
    (folder / name).write_bytes(data)
    manifest = orjson.loads((folder / layout.MANIFEST).read_bytes())
    for told in manifest["files"]:
        if told["name"] == name:
            told |= {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data), "rows": len(changed)}
    sign(folder, manifest)


def redigested(row: dict[str, Any]) -> dict[str, Any]:
    return layout.digested({k: v for k, v in row.items() if k != "digest"}) if "digest" in row else row


def sign(folder: Path, manifest: Any) -> None:
    data = layout.line(manifest)
    (folder / layout.MANIFEST).write_bytes(data)
    (folder / layout.SIGNATURE).write_bytes(layout.line(dsse.sign(data, layout.MANIFEST_TYPE, [OURS])))


@pytest.mark.parametrize(
    ("name", "change", "found"),
    [
        (layout.HISTORY, lambda rows: rows[3].update(actor="eve"), "history.jsonl line 4: was changed"),
        (layout.HISTORY, lambda rows: rows.pop(5), "must follow"),
        (layout.HISTORY, lambda rows: rows.pop(), "ends at link"),
        (layout.HISTORY, lambda rows: rows.reverse(), "history.jsonl line 1"),
        (layout.HISTORY, lambda rows: rows[0].update(at="1999-01-01T00:00:00.000Z"), "line 1: was changed"),
        (layout.JOBS, lambda rows: rows[1].update(state="canceled"), "jobs.jsonl line 2: job 2 is told as"),
        (layout.JOBS, lambda rows: rows[1].update(status="queued"), "jobs.jsonl line 2"),
        (layout.JOBS, lambda rows: rows[1].update(payloadDigest="0" * 64), "its digest is another"),
        (layout.JOBS, lambda rows: rows.pop(0), "has job 2, where 1 must follow"),
        (layout.JOBS, lambda rows: rows.pop(), "of the history is missing"),
        (layout.JOBS, lambda rows: rows.append(rows[0]), "does not name"),
        (layout.THROTTLES, lambda rows: rows.clear(), "is missing"),
        (layout.THROTTLES, lambda rows: rows[0].update(throttleId="thr_0"), "is not a throttle that the history knows"),
        (layout.QUOTAS, lambda rows: rows[0].update(quota_ticket=None), "is not what history.jsonl says"),
        (layout.ACTIONS, lambda rows: rows.pop(0), "is not what history.jsonl says"),
        (layout.INCIDENTS, lambda rows: rows.clear(), "is not what history.jsonl says"),
        (layout.CHAINS, lambda rows: rows.pop(0), "which is not in chains.jsonl"),
        (layout.CHAINS, lambda rows: rows[0]["to"].update(hash="0" * 64), "not as chains.jsonl says"),
    ],
)  # fmt: skip
def test_a_lie_under_a_trusted_key_is_found_and_named(
    story: Path, clock: ManualClock, name: str, change: Callable[[list[Any]], object], found: str
) -> None:
    doctor(story, name, change)
    problems = verify(story, trust(clock, OURS)).problems
    assert any(found in problem for problem in problems), problems


def test_a_second_implementation_verifies_the_envelopes(story: Path, clock: ManualClock, tmp_path: Path) -> None:
    envelope = orjson.loads((story / layout.SIGNATURE).read_bytes())
    payload = check(envelope, {OURS.key.key_id: OURS.key.public})
    assert payload == (story / layout.MANIFEST).read_bytes()
    for told in orjson.loads(payload)["files"]:
        data = (story / told["name"]).read_bytes()
        assert (told["sha256"], told["rows"]) == (hashlib.sha256(data).hexdigest(), data.count(b"\n"))


def test_keys_count_as_trusted_in_time_and_enough(tmp_path: Path, clock: ManualClock) -> None:
    with SqliteLedger(tmp_path / "ledger.sqlite", clock=clock) as ledger:
        clock.advance(1)
        path = export(ledger, ms(clock) - 1000, ms(clock), tmp_path / "b.tar.zst", [SECOND, SHORT]).path
    assert verify(path, trust(clock, SECOND)).proved
    assert verify(path, trust(clock, SECOND, SHORT, threshold=2)).proved
    [problem] = verify(path, trust(clock, OURS)).problems
    assert "untrusted" in problem
    clock.advance(20_000)
    [problem] = verify(path, trust(clock, SHORT)).problems
    assert "expired" in problem
    [problem] = verify(path, trust(clock, SECOND, SHORT, threshold=2)).problems
    assert "expired" in problem
    assert verify(path, Trust([SHORT.key], NOW)).proved


def test_other_programs_read_an_archive(story: Path, clock: ManualClock, tmp_path: Path) -> None:
    archive.pack(story, tmp_path / "day.tar.zst", [OURS])
    unpacked = io.BytesIO()
    with (tmp_path / "day.tar.zst").open("rb") as file:
        zstandard.ZstdDecompressor().copy_stream(file, unpacked)
    unpacked.seek(0)
    with tarfile.open(fileobj=unpacked) as tar:
        assert tuple(tar.getnames()) == layout.ORDER
        assert tar.extractfile(layout.HISTORY).read() == (story / layout.HISTORY).read_bytes()  # type: ignore[union-attr]


def test_a_ledger_that_contradicts_its_history_is_not_signed_for(tmp_path: Path, clock: ManualClock) -> None:
    import sqlite3

    path = tmp_path / "ledger.sqlite"
    with SqliteLedger(path, clock=clock) as ledger:
        start = ms(clock)
        morning(ledger, clock)
        with sqlite3.connect(path) as behind:
            behind.execute("UPDATE jobs SET state = 'queued' WHERE state = 'error'")
        behind.close()
        with pytest.raises(LedgerContradicts, match="job 2 is queued in the ledger, and error by its history"):
            export(ledger, start, ms(clock), tmp_path / "day", [OURS])
    assert list(tmp_path.glob("*day*")) == []


def test_a_history_whose_last_rows_were_removed_is_not_signed_for(tmp_path: Path, clock: ManualClock) -> None:
    """No job tells of what an operator did: only the chain knows that there was more."""
    import sqlite3

    path = tmp_path / "ledger.sqlite"
    with SqliteLedger(path, clock=clock) as ledger:
        start = ms(clock)
        morning(ledger, clock)
        QuotaService(ledger).set("a", "content.download", 9, 90, 2, actor="eve", reason="for a friend", ticket="OPS-1")
        clock.advance(1)
        with sqlite3.connect(path) as behind:
            for (trigger,) in behind.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
                behind.execute(f"DROP TRIGGER {trigger}")
            behind.execute("DELETE FROM job_history WHERE actor = 'eve'")
        behind.close()
        with pytest.raises(LedgerContradicts, match="rows of its history were removed or changed"):
            export(ledger, start, ms(clock), tmp_path / "day", [OURS])


# hostile bundles


def problem_of(path: Path, clock: ManualClock) -> str:
    [problem] = verify(path, trust(clock, OURS)).problems
    return problem


def packed(target: Path, content: bytes, unpacked: int | None = None) -> Path:
    """An archive of any bytes at all, with a trailer that a trusted key has signed."""
    data = zstandard.ZstdCompressor(level=3).compress(content)
    said = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(), "unpackedBytes": unpacked or len(content)}
    target.write_bytes(data + archive.trailer(dsse.sign(layout.line(said), archive.TRAILER_TYPE, [OURS])))
    return target


@pytest.mark.parametrize("name", ["../../evil", "/etc/passwd", "manifest.json/../../x"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, clock: ManualClock, name: str) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = 3
        tar.addfile(info, io.BytesIO(b"abc"))
    assert "no manifest.json in its place" in problem_of(packed(tmp_path / "x.tar.zst", buffer.getvalue()), clock)


def header(size: int) -> bytes:
    """Of a manifest, as a bundle has it."""
    info = tarfile.TarInfo(layout.MANIFEST)
    info.size = size
    return info.tobuf(tarfile.GNU_FORMAT)


@pytest.mark.slow
def test_a_bomb_ends_at_its_bound(tmp_path: Path, clock: ManualClock) -> None:
    path = packed(tmp_path / "x.tar.zst", header(1 << 34) + bytes(256 * 1_048_576), unpacked=1 << 35)
    with grown_mb() as grown:
        assert "larger than" in problem_of(path, clock)
    assert grown() < 100
    short = packed(tmp_path / "y.tar.zst", header(1000) + bytes(10_000), unpacked=1000)
    assert "more is unpacked than the trailer says" in problem_of(short, clock)


def test_an_unsigned_archive_is_not_unpacked_at_all(tmp_path: Path, clock: ManualClock, monkeypatch: Any) -> None:
    monkeypatch.setattr(archive, "unpacking", None)
    path = tmp_path / "x.tar.zst"
    path.write_bytes(zstandard.ZstdCompressor().compress(bytes(1000)))
    assert "trailer is missing" in problem_of(path, clock)


def test_long_lines_and_deep_nesting_are_bounded(story: Path, clock: ManualClock, tmp_path: Path) -> None:
    (story / layout.HISTORY).write_bytes(b'{"x":"' + b"a" * bundle.MAX_LINE + b'"}\n')
    assert any("is longer than" in one for one in verify(story, trust(clock, OURS)).problems)
    (story / layout.HISTORY).write_bytes(b"[" * 3_000_000 + b"]" * 1000 + b"\n")
    assert any("line 1: is not JSON" in one for one in verify(story, trust(clock, OURS)).problems)
    (story / layout.HISTORY).write_bytes(b"\n" * 100_000)
    assert len(verify(story, trust(clock, OURS)).problems) < 100


def test_no_file_is_read_far_beyond_what_was_signed(story: Path, clock: ManualClock) -> None:
    with (story / layout.CHAINS).open("ab") as file:
        file.truncate(100 * 1_048_576)
    assert "its bytes are 104857600, the manifest says" in problem_of(story, clock)


def test_links_pipes_and_strange_files_are_not_followed(story: Path, clock: ManualClock) -> None:
    shutil.move(story / layout.JOBS, story.parent / "jobs")
    (story / layout.JOBS).symlink_to(story.parent / "jobs")
    assert "jobs.jsonl: cannot be read" in problem_of(story, clock)
    (story / layout.JOBS).unlink()
    os.mkfifo(story / layout.JOBS)
    assert "not a plain file" in problem_of(story, clock)
    (story / layout.JOBS).unlink()
    assert "jobs.jsonl is missing" in problem_of(story, clock)


def test_what_is_not_there_is_named(tmp_path: Path, clock: ManualClock) -> None:
    assert "cannot be read" in problem_of(tmp_path / "none.tar.zst", clock)
    (tmp_path / "empty.tar.zst").touch()
    assert "trailer is missing" in problem_of(tmp_path / "empty.tar.zst", clock)


def test_verifying_loads_no_database_and_no_server() -> None:
    code = (
        "import sys, DocsToKG.Orchestrator.audit.verify;"
        "print([m for m in ('psycopg', 'fastapi', 'httpx2', 'sqlite3') if m in sys.modules])"
    )
    import sys

    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
