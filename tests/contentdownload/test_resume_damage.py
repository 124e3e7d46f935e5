"""What an earlier run has finished, when the files that tell it were cut short at any byte."""

from __future__ import annotations

import csv
import io
import json
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.ContentDownload.errors import RecordDamaged, RecordError
from DocsToKG.ContentDownload.telemetry import (
    CsvResumeLookup,
    JsonlResumeLookup,
    ManifestRecord,
    ResumeController,
    RunTelemetry,
    SqliteResumeLookup,
    recovery,
)
from DocsToKG.ContentDownload.telemetry.schema import open_database
from DocsToKG.core.clock import ManualClock

TRUTH = frozenset(f"doi:10.1/{'x' * (number % 7)}{number}" for number in range(0, 40, 2))
PAGE = 4096


def record_in(root: Path, **options: Any) -> RunTelemetry:
    return RunTelemetry(root, **{"run_id": "r1", "config_hash": "c", "clock": ManualClock(), **options})


def fill(record: RunTelemetry, count: int = 40) -> None:
    """Every second work is obtained; long titles make rows that span pages."""
    for number in range(count):
        doc_id = f"doi:10.1/{'x' * (number % 7)}{number}"
        ok = {"outcome": "success", "sha256": f"{number:064x}", "path": f"PDF/{number}.pdf", "size_bytes": number}
        bad = {"outcome": "error", "reason": "timeout"}
        title = f'A "Z", {number}\u2028' + "ü" * (1_500 if number % 10 == 0 else 5)
        record.finish(ManifestRecord(doc_id=doc_id, title=title, lease_id=f"l{number}", **(bad if number % 2 else ok)))


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("closed") / "run"
    with record_in(root) as record:
        fill(record)
    return root


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small enough to be cut at every byte."""
    root = tmp_path_factory.mktemp("short") / "run"
    with record_in(root) as record:
        for number in range(3):
            ok = {"outcome": "success", "sha256": f"{number:064x}", "path": f"PDF/{number}.pdf"}
            record.finish(ManifestRecord(doc_id=f"doi:10.1/Z{number}", title=f'"Z", Übung {number}', **ok))
        record.finish(ManifestRecord(doc_id="doi:10.1/bad", outcome="error", reason="timeout"))
    return root


def cuts_of(path: Path, step: int) -> list[int]:
    """Both ends, every page's end with its neighbours, and a spread of places."""
    size = path.stat().st_size
    ends = (page + near for page in range(0, size + 1, PAGE) for near in (-1, 0, 1))
    return sorted({at for at in (*range(min(size, 120)), *ends, *range(0, size, step), size) if 0 <= at <= size})


@pytest.mark.slow
def test_a_manifest_cut_at_any_byte_tells_its_whole_lines(tmp_path: Path, short: Path) -> None:
    whole = (short / "manifest.jsonl").read_bytes()
    path = tmp_path / "manifest.jsonl"
    for cut in range(len(whole) + 1):
        kept = whole[:cut]
        ends_a_line = kept.endswith(b"\n") or whole[cut : cut + 1] == b"\n"
        lines = (kept if ends_a_line else kept[: kept.rfind(b"\n") + 1]).splitlines()
        told = frozenset(line["doc_id"] for line in map(json.loads, lines) if line["status"] == "ok")
        path.write_bytes(kept)
        assert JsonlResumeLookup(path).completed_ids() == told, cut


def test_a_last_csv_cut_at_any_byte_tells_its_whole_rows(tmp_path: Path, short: Path) -> None:
    whole = (short / "last.csv").read_bytes()
    path = tmp_path / "last.csv"
    for cut in range(len(whole) + 1):
        kept = whole[:cut]
        ends_a_row = kept.endswith(b"\n") or whole[cut : cut + 1] == b"\n"
        text = kept.decode() if ends_a_row else kept[: kept.rfind(b"\n") + 1].decode()
        told = frozenset(row["doc_id"] for row in csv.DictReader(io.StringIO(text)))
        path.write_bytes(kept)
        assert CsvResumeLookup(path).completed_ids() == told, cut
    assert len(told) == 3


@pytest.mark.slow
def test_a_database_cut_at_any_byte_calls_nothing_finished_that_is_not(tmp_path: Path, closed: Path) -> None:
    whole = (closed / "manifest.sqlite").read_bytes()
    path = tmp_path / "manifest.sqlite"
    most = 0
    for cut in cuts_of(closed / "manifest.sqlite", 499):
        path.write_bytes(whole[:cut])
        found = SqliteResumeLookup(path).completed_ids()
        assert found <= TRUTH, cut
        assert ResumeController(tmp_path).completed_ids == found
        most = max(most, len(found) if cut < len(whole) else 0)
    assert found == TRUTH
    assert most > 0, "of a file that lost its end, the beginning can be read"


@pytest.mark.slow
@pytest.mark.parametrize("other", ["manifest.jsonl", "last.csv"])
def test_a_cut_database_is_made_good_by_either_text_file(tmp_path: Path, closed: Path, other: str) -> None:
    whole = (closed / "manifest.sqlite").read_bytes()
    shutil.copy(closed / other, tmp_path / other)
    for cut in cuts_of(closed / "manifest.sqlite", 4_999):
        (tmp_path / "manifest.sqlite").write_bytes(whole[:cut])
        assert ResumeController(tmp_path).completed_ids == TRUTH, cut


def test_a_cut_manifest_is_made_good_by_last_csv(tmp_path: Path, closed: Path) -> None:
    whole = (closed / "manifest.jsonl").read_bytes()
    shutil.copy(closed / "last.csv", tmp_path / "last.csv")
    for cut in range(0, len(whole), 977):
        (tmp_path / "manifest.jsonl").write_bytes(whole[:cut])
        found = ResumeController(tmp_path)
        assert (found.source, found.completed_ids) == ("jsonl", TRUTH), cut


def test_a_page_of_zeros_in_the_middle_is_made_good(tmp_path: Path, closed: Path) -> None:
    root = Path(shutil.copytree(closed, tmp_path / "run"))
    whole = (root / "manifest.sqlite").read_bytes()
    for page in range(1, len(whole) // PAGE):
        spoiled = whole[: page * PAGE] + bytes(PAGE) + whole[(page + 1) * PAGE :]
        (root / "manifest.sqlite").write_bytes(spoiled)
        assert ResumeController(root).completed_ids == TRUTH, page


@pytest.mark.parametrize("zeros", [16, PAGE])
def test_a_first_page_of_zeros_is_made_good(tmp_path: Path, closed: Path, zeros: int) -> None:
    """A disk that lost power may leave them; nobody keeps such a file for himself."""
    root = Path(shutil.copytree(closed, tmp_path / "zeros"))
    whole = (root / "manifest.sqlite").read_bytes()
    (root / "manifest.sqlite").write_bytes(bytes(zeros) + whole[zeros:])
    assert ResumeController(root).completed_ids == TRUTH
    with record_in(root) as record:
        assert "is kept as manifest.sqlite.damaged-1" in str(record.repairs[0])
    assert obtained(root) == TRUTH


@pytest.mark.parametrize("beside", ["manifest.jsonl", "last.csv"])
def test_rubbish_in_the_place_of_the_database_is_put_aside(tmp_path: Path, closed: Path, beside: str) -> None:
    rubbish = bytes(range(255, 0, -1)) * 12  # its bytes 60 to 63 would be a version from the far future
    (tmp_path / "manifest.sqlite").write_bytes(rubbish)
    shutil.copy(closed / beside, tmp_path / beside)
    assert ResumeController(tmp_path).completed_ids == TRUTH
    with record_in(tmp_path) as record:
        assert "is kept as manifest.sqlite.damaged-1" in str(record.repairs[0])
    assert obtained(tmp_path) == TRUTH
    assert (tmp_path / "manifest.sqlite.damaged-1").read_bytes() == rubbish


def test_rubbish_with_another_name_or_no_record_beside_it_is_left_where_it_is(tmp_path: Path, closed: Path) -> None:
    shutil.copy(closed / "manifest.jsonl", tmp_path / "manifest.jsonl")
    alone = tmp_path / "alone"
    alone.mkdir()
    for database in (tmp_path / "other.sqlite", alone / "manifest.sqlite"):
        database.write_bytes(b"somebody else's " * 99)
        with pytest.raises(RecordError, match="move it away"), record_in(database.parent, database=database):
            pass
        assert database.read_bytes() == b"somebody else's " * 99


def obtained(root: Path) -> frozenset[str]:
    db = sqlite3.connect(root / "manifest.sqlite")
    rows = db.execute("SELECT doc_id FROM catalog_entries WHERE status = 'ok'").fetchall()
    files = {row[0] for row in db.execute("SELECT doc_id FROM downloads WHERE NOT corrupt")}
    assert files == {row[0] for row in rows}
    db.close()
    return frozenset(files)


@pytest.mark.slow
def test_a_run_goes_on_with_a_database_cut_anywhere(tmp_path: Path, closed: Path) -> None:
    """The damaged one is kept and told of, and no line of the manifest is written twice or lost."""
    whole = (closed / "manifest.sqlite").read_bytes()
    manifest = (closed / "manifest.jsonl").read_bytes()
    for cut in cuts_of(closed / "manifest.sqlite", 19_997)[::7]:
        root = Path(shutil.copytree(closed, tmp_path / str(cut)))
        (root / "manifest.sqlite").write_bytes(whole[:cut])
        with record_in(root) as record:
            told = [str(repair) for repair in record.repairs if repair.name == "manifest.sqlite"]
        if cut < len(whole):
            assert "40 lines read back from manifest.jsonl" in told[0], cut
            assert ("is kept as manifest.sqlite.damaged-1" in told[0]) == (cut > 0)
        assert obtained(root) == TRUTH
        assert (root / "manifest.jsonl").read_bytes() == manifest
        assert (root / "last.csv").read_bytes() == (closed / "last.csv").read_bytes()
        assert (root / "index.json").read_bytes() == (closed / "index.json").read_bytes()
        with record_in(root) as record:
            assert record.repairs == ()


@pytest.mark.slow
@examples(60)
@given(data=st.data())
def test_whatever_is_left_of_the_three_is_put_together(
    closed: Path, tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    """Any of the files may be gone or cut: what any of them still tells is known afterwards, in all of them."""
    root = Path(shutil.copytree(closed, tmp_path_factory.mktemp("cut") / "run"))
    for name in ("manifest.sqlite", "manifest.jsonl", "last.csv"):
        whole = (root / name).read_bytes()
        cut = data.draw(st.one_of(st.none(), st.integers(0, len(whole)), st.just(len(whole))), label=name)
        (root / name).unlink() if cut is None else (root / name).write_bytes(whole[:cut])
    before = ResumeController(root).completed_ids
    with record_in(root) as record:
        record.finish(ManifestRecord(doc_id="doi:10.1/new", outcome="success", sha256="ab" * 32, path="n.pdf"))
    new = {"doi:10.1/new"}
    assert before <= obtained(root) - new <= TRUTH
    assert JsonlResumeLookup(root / "manifest.jsonl").completed_ids() == obtained(root)
    assert CsvResumeLookup(root / "last.csv").completed_ids() == obtained(root)
    with record_in(root) as record:
        assert record.repairs == ()


def test_a_cut_database_alone_gives_its_rows_to_the_new_one(tmp_path: Path) -> None:
    with record_in(tmp_path, sinks=("sqlite",)) as record:
        fill(record, 400)
    path = tmp_path / "manifest.sqlite"
    path.write_bytes(path.read_bytes()[: -3 * PAGE - 17])
    with record_in(tmp_path, sinks=("sqlite",)) as record:
        assert record.restored > 20
        assert "from manifest.sqlite.damaged-1" in str(record.repairs[0])
    (tmp_path / "manifest.sqlite").write_bytes((tmp_path / "manifest.sqlite").read_bytes()[:-1])
    with record_in(tmp_path, sinks=("sqlite",)) as record:
        assert "is kept as manifest.sqlite.damaged-2" in str(record.repairs[0])


@pytest.mark.parametrize("moment", ["log moved", "all moved", "new one made"])
def test_a_start_that_died_while_it_mended_is_gone_on_with(tmp_path: Path, moment: str) -> None:
    with record_in(tmp_path, sinks=("sqlite",)) as record:
        fill(record, 400)
    path = tmp_path / "manifest.sqlite"
    path.write_bytes(path.read_bytes()[:-PAGE])
    if moment == "log moved":
        (tmp_path / "manifest.sqlite.damaged-1-wal").touch()
    else:
        path.rename(tmp_path / "manifest.sqlite.damaged-1")
    if moment == "new one made":
        open_database(path).close()
    with record_in(tmp_path, sinks=("sqlite",)) as record:
        assert record.restored > 20
        assert "from manifest.sqlite.damaged-1" in str(record.repairs[0])


def test_a_damaged_database_of_a_newer_program_is_refused(tmp_path: Path, closed: Path) -> None:
    path = tmp_path / "manifest.sqlite"
    shutil.copy(closed / "manifest.sqlite", path)
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 5")
    db.close()
    cut = path.read_bytes()[:-PAGE]
    path.write_bytes(cut)
    with pytest.raises(RecordError, match="schema version 5"), record_in(tmp_path):
        pass
    assert path.read_bytes() == cut


def spoil(path: Path, table: str) -> None:
    """Lose the page that a table begins with; the file still opens."""
    db = sqlite3.connect(path)
    [root_page] = db.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    db.close()
    with path.open("r+b") as file:
        file.seek((root_page - 1) * PAGE)
        file.write(b"\xff" * PAGE)


@pytest.mark.slow
@pytest.mark.parametrize("looked_through", [0, 16 << 20], ids=["as of a large one", "as of a small one"])
def test_a_database_that_turns_out_damaged_is_put_aside_and_filled_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, looked_through: int
) -> None:
    monkeypatch.setattr(recovery, "LOOKED_THROUGH", looked_through)
    with record_in(tmp_path) as record:
        fill(record, 400)
    spoil(tmp_path / "manifest.sqlite", "manifests")
    with record_in(tmp_path) as record:
        assert record.restored == 400
        assert "manifest.sqlite.damaged-1" in " ".join(map(str, record.repairs))
    assert len(obtained(tmp_path)) == 200
    with record_in(tmp_path) as record:
        assert not record.repairs


def test_damage_that_is_met_while_writing_is_mended_by_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a table that nobody looks at before the end, of a database too large to be read from end to end."""
    monkeypatch.setattr(recovery, "LOOKED_THROUGH", 0)
    with record_in(tmp_path) as record:
        fill(record)
    spoil(tmp_path / "manifest.sqlite", "rate_events")
    record = record_in(tmp_path)
    record.open()
    record.finish(ManifestRecord(doc_id="doi:10.1/late", outcome="success", sha256="a" * 64, path="PDF/l.pdf"))
    record.flush()
    record.rate_wait("host:a.org", 5, why="rate")
    with pytest.raises(RecordDamaged, match="run the same command again"):
        record.close()
    assert not (tmp_path / "manifest.sqlite").exists()
    with record_in(tmp_path) as record:
        assert record.restored == 41
    assert obtained(tmp_path) == TRUTH | {"doi:10.1/late"}
    assert (tmp_path / "manifest.sqlite.damaged-1").exists()


def test_a_row_whose_end_is_lost_stands_as_far_as_it_is_known(closed: Path, tmp_path: Path) -> None:
    """A long title goes on in another page; a file that is named before it was obtained all the same."""
    whole = (closed / "manifest.sqlite").read_bytes()
    for cut in range(len(whole) // 2 + 1, len(whole), PAGE * 2 + 300):
        root = tmp_path / str(cut)
        root.mkdir()
        (root / "manifest.sqlite").write_bytes(whole[:cut])
        before = ResumeController(root).completed_ids
        with record_in(root):
            pass
        assert before <= obtained(root) <= TRUTH
