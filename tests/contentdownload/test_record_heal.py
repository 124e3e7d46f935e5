"""Files that are shorter, longer, torn or gone catch up with the database when the record is opened again."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.ContentDownload.api.types import Attempt, AttemptStatus, Verb
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.ContentDownload.telemetry.attempts import CSV_HEADER
from DocsToKG.ContentDownload.telemetry.exports import follow
from DocsToKG.ContentDownload.telemetry.recovery import load_last_csv
from DocsToKG.core.clock import ManualClock

pytestmark = pytest.mark.slow  # real servers or many restarts; part of `make test`

FOLLOWERS = ("manifest.jsonl", "attempts.csv")


def record_in(root: Path, **options: Any) -> RunTelemetry:
    return RunTelemetry(root, **{"run_id": "r1", "config_hash": "c", "clock": ManualClock(), **options})


def fill(record: RunTelemetry, numbers: range) -> None:
    for number in numbers:
        url = f"https://a.org/{number}"
        record.attempt(Attempt(1.0, "arxiv", url, Verb.GET, AttemptStatus.HTTP_GET, content_type="a, b"))
        record.finish(ManifestRecord(doc_id=f"doi:10.1/{number}", outcome="error", reason="timeout", title="Ünïcödé"))


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("closed") / "run"
    with record_in(root) as record:
        fill(record, range(8))
    return root


@pytest.fixture
def folder(closed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(closed, tmp_path / "run"))


def contents(root: Path) -> dict[str, bytes]:
    return {name: (root / name).read_bytes() for name in FOLLOWERS}


@pytest.mark.parametrize("name", FOLLOWERS)
def test_a_file_cut_at_any_byte_is_whole_again(closed: Path, tmp_path: Path, name: str) -> None:
    """TEL-10: every line boundary with its neighbours, and a spread of places within lines."""
    whole = (closed / name).read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte == ord("\n")]
    cuts = {0, 1, *(end + near for end in ends for near in (-1, 0, 1)), *range(0, len(whole), 97)}
    root = Path(shutil.copytree(closed, tmp_path / "run"))
    for cut in sorted(cuts):
        (root / name).write_bytes(whole[:cut])
        with record_in(root) as record:
            assert [repair.name for repair in record.repairs] == ([name] if cut < len(whole) else [])
        assert (root / name).read_bytes() == whole, cut


@examples(25)
@given(data=st.data())
def test_any_mix_of_cuts_heals_in_one_start(closed: Path, tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    root = Path(shutil.copytree(closed, tmp_path_factory.mktemp("cut") / "run"))
    whole = contents(root)
    for name in FOLLOWERS:
        (root / name).write_bytes(whole[name][: data.draw(st.integers(0, len(whole[name])))])
    with record_in(root) as record:
        fill(record, range(8, 10))
    for name in FOLLOWERS:
        healed = (root / name).read_bytes()
        assert healed.startswith(whole[name])
        assert healed.count(b"\n") == whole[name].count(b"\n") + 2


def test_a_torn_line_is_reported(folder: Path) -> None:
    whole = (folder / "manifest.jsonl").read_bytes()
    (folder / "manifest.jsonl").write_bytes(whole[:-10])
    with record_in(folder) as record:
        assert str(record.repairs[0]).startswith("manifest.jsonl: 1 missing lines added, a torn last line of ")


def test_a_well_closed_record_needs_no_repair(folder: Path) -> None:
    before = contents(folder)
    with record_in(folder) as record:
        assert record.repairs == ()
    assert contents(folder) == before


@pytest.mark.parametrize("name", FOLLOWERS)
def test_a_file_that_is_gone_is_made_again(folder: Path, name: str) -> None:
    before = contents(folder)
    (folder / name).unlink()
    with record_in(folder) as record:
        told = [str(repair) for repair in record.repairs]
    assert told == [f"{name}: 8 missing lines added, the file was gone"]
    assert contents(folder) == before


def test_lines_somebody_added_stay_and_later_rows_follow(folder: Path) -> None:
    """CAT-04: no earlier line is rewritten or deleted."""
    note = b'{"note":"mine"}\n'
    before = (folder / "manifest.jsonl").read_bytes()
    (folder / "manifest.jsonl").write_bytes(before + note + b'{"torn')
    with record_in(folder) as record:
        assert record.repairs[0].torn_bytes == 6
        fill(record, range(8, 9))
    lines = (folder / "manifest.jsonl").read_bytes()
    assert lines.startswith(before + note)
    assert json.loads(lines[len(before + note) :])["doc_id"] == "doi:10.1/8"
    with record_in(folder) as record:
        assert record.repairs == ()


def test_a_last_line_that_only_lacks_its_newline_is_kept(folder: Path) -> None:
    with (folder / "manifest.jsonl").open("ab") as file:
        file.write(b'{"note":"no newline"}')
    with record_in(folder):
        pass
    assert (folder / "manifest.jsonl").read_bytes().endswith(b'{"note":"no newline"}\n')


def test_an_edited_line_is_kept_and_the_row_it_hid_is_added(folder: Path) -> None:
    lines = (folder / "manifest.jsonl").read_bytes().splitlines(keepends=True)
    edited = [*lines[:3], b'{"edited":true}\n', *lines[4:6]]
    (folder / "manifest.jsonl").write_bytes(b"".join(edited))
    with record_in(folder) as record:
        assert record.repairs[0].diverged
    healed = (folder / "manifest.jsonl").read_bytes().splitlines(keepends=True)
    assert healed[:6] == edited
    assert sorted(healed[6:]) == sorted([lines[3], *lines[6:]])
    with record_in(folder) as record:
        assert record.repairs == ()


def test_zeros_left_by_a_power_cut_are_noticed(folder: Path) -> None:
    whole = (folder / "attempts.csv").read_bytes()
    (folder / "attempts.csv").write_bytes(whole[:-120] + b"\0" * 120)
    with record_in(folder):
        pass
    healed = (folder / "attempts.csv").read_bytes()
    assert b"\0" not in healed
    assert sorted(healed.splitlines()) == sorted(whole.splitlines())


def test_a_sink_that_was_off_for_a_while_catches_up(tmp_path: Path) -> None:
    with record_in(tmp_path, sinks=("csv", "jsonl", "sqlite")) as record:
        fill(record, range(3))
    with record_in(tmp_path, sinks=("sqlite",)) as record:
        fill(record, range(3, 6))
    with record_in(tmp_path) as record:
        assert {repair.name: repair.appended_rows for repair in record.repairs} == dict.fromkeys(FOLLOWERS, 3)
    ids = [json.loads(line)["doc_id"] for line in (tmp_path / "manifest.jsonl").read_text().splitlines()]
    assert ids == [f"doi:10.1/{number}" for number in range(6)]


def test_more_lines_than_one_write_takes_are_added(tmp_path: Path) -> None:
    with record_in(tmp_path, sinks=("sqlite",)) as record:
        fill(record, range(2_500))
    with record_in(tmp_path):
        pass
    assert (tmp_path / "manifest.jsonl").read_bytes().count(b"\n") == 2_500


def lose(*names: str) -> Callable[[Path], None]:
    def deed(root: Path) -> None:
        for name in names:
            (root / name).unlink()

    return deed


def test_a_lost_database_is_filled_from_the_manifest(folder: Path) -> None:
    before = (folder / "manifest.jsonl").read_bytes()
    lose("manifest.sqlite")(folder)
    with (folder / "manifest.jsonl").open("ab") as file:
        file.write(
            b'{"doc_id":5,"outcome":"success"}\nrubbish\n{"doc_id":"doi:x","outcome":"error","hops":[3]}\n{"torn'
        )
    with record_in(folder) as record:
        assert record.restored == 8
        fill(record, range(8, 9))
    lines = (folder / "manifest.jsonl").read_bytes()
    assert lines.startswith(before)
    assert lines.count(b"doi:10.1/3") == 1
    assert b"torn" not in lines
    with record_in(folder) as record:
        assert (record.restored, record.repairs) == (0, ())


def test_the_requests_of_a_lost_database_are_known_again(folder: Path) -> None:
    """So that a report of the folder counts them; what is no line of ours is passed over, and stays in its file."""
    whole = (folder / "attempts.csv").read_bytes()
    with Catalog(folder / "manifest.sqlite") as catalog:
        before = catalog.figures()
    assert before.requests > 0
    lose("manifest.sqlite")(folder)
    odd = b"rubbish\n1,2,3,4,,,,,,,,\n2025-01-01T00:00:00.000Z,r,arxiv,https://a.org,,http-get,x,,y,,,\n"
    (folder / "attempts.csv").write_bytes(whole + odd + b"2025-01-01T00:00:0")
    with record_in(folder):
        pass
    with Catalog(folder / "manifest.sqlite") as catalog:
        after = catalog.figures()
    assert (after.requests, after.by_host.keys()) == (before.requests, before.by_host.keys())
    assert (folder / "attempts.csv").read_bytes() == whole + odd


def test_an_older_attempts_file_without_a_database_is_kept(tmp_path: Path) -> None:
    header = CSV_HEADER
    old = header + b"2025-01-01T00:00:00.000Z,old,arxiv,https://a.org,GET,http-get,200,,1,,,\n"
    (tmp_path / "attempts.csv").write_bytes(old + b"2025-01-01T00:00")
    with record_in(tmp_path) as record:
        fill(record, range(2))
    healed = (tmp_path / "attempts.csv").read_bytes()
    assert healed.startswith(old + b"1970-01-01T00:00:01.000Z,r1,")
    assert healed.count(header) == 1


def test_stale_snapshots_are_renewed_at_the_start(tmp_path: Path) -> None:
    """After a kill, last.csv and index.json may be behind the database."""
    success = {"outcome": "success", "sha256": "ab" * 32, "path": "a.pdf", "canonical_url": "https://a.org"}
    run = tmp_path / "run"
    with record_in(run) as record:
        record.finish(ManifestRecord(doc_id="doi:10.1/a", **success))
    lose("last.csv")(run)
    (run / "index.json").write_text("{}")
    copy = Path(shutil.copytree(run, tmp_path / "copy"))
    record = record_in(copy)
    record.open()
    assert "doi:10.1/a" in (copy / "last.csv").read_text()
    record.finish(ManifestRecord(doc_id="doi:10.1/b", **success))
    record.close()
    assert "doi:10.1/b" in (copy / "index.json").read_text()


def test_last_csv_knows_each_success_while_the_run_goes_on(tmp_path: Path) -> None:
    """Also those of other processes, and the one that is obtained twice; at the end one line of each work is left."""
    root = tmp_path / "run"
    file = {"outcome": "success", "path": "a.pdf", "title": 'a "title", ü'}
    with record_in(root, share="host") as record, record_in(root, share="guest") as guest:
        for writer, name, digest in ((record, "a", "1"), (guest, "b", "2"), (record, "a", "3"), (guest, "c", "4")):
            writer.finish(ManifestRecord(doc_id=f"doi:10.1/{name}", sha256=digest * 64, **file))
            writer.flush()
        record.finish(ManifestRecord(doc_id="doi:10.1/bad", outcome="error", reason="timeout"))
        record.follow()
        record.flush()
        assert [row["sha256"][0] for row in load_last_csv(root / "last.csv")] == ["1", "2", "3", "4"]
        guest.close()
    assert sorted(row["sha256"][0] for row in load_last_csv(root / "last.csv")) == ["2", "3", "4"]


def test_files_that_stand_at_the_same_row_share_one_reading_and_one_that_is_behind_gets_what_it_lacks() -> None:
    table = [(number, (f"row {number}",)) for number in range(1, 2_501)]  # more than is read at once
    read_from: list[int] = []

    class File:
        def __init__(self, last_id: int) -> None:
            self.last_id = last_id
            self.rows: list[Any] = []

        def rows_after(self, row_id: int) -> list[Any]:
            read_from.append(row_id)
            return table[row_id:]

        def append(self, rows: Sequence[Any], last_id: int) -> None:
            self.rows += rows
            self.last_id = last_id

    files = [File(7), File(2_500), File(7), File(2_000)]
    behind = [file.last_id for file in files]
    follow(files)
    assert [file.last_id for file in files] == [2_500] * 4
    assert [file.rows for file in files] == [[values for _, values in table[last_id:]] for last_id in behind]
    assert sorted(read_from) == [7, 2_000, 2_500]


SNAPSHOTS = ("last.csv", "index.json", "summary.json")


@pytest.mark.parametrize("name", SNAPSHOTS)
@pytest.mark.parametrize("kept", [None, 0, 0.5, 0.99])
def test_a_snapshot_that_was_lost_or_cut_is_made_anew_and_told(tmp_path: Path, name: str, kept: float | None) -> None:
    root = tmp_path / "run"
    with record_in(root) as record:
        for number in range(20):
            file = {"sha256": f"{number:064x}", "path": f"{number}.pdf", "canonical_url": f"https://a.org/{number}"}
            record.finish(ManifestRecord(doc_id=f"doi:10.1/{number}", outcome="success", **file))
    whole = (root / name).read_bytes()
    (root / name).unlink() if kept is None else (root / name).write_bytes(whole[: int(kept * len(whole))])
    record = record_in(root)
    record.open()
    try:
        how = "gone" if kept is None else "cut short or changed"
        assert [str(repair) for repair in record.repairs] == [f"{name}: it was {how} and is written anew"]
        assert (root / name).read_bytes() == whole
    finally:
        record.close()
    with record_in(root) as record:
        assert record.repairs == ()


def test_snapshots_of_an_earlier_program_are_no_news(tmp_path: Path) -> None:
    """It did not write down how long they are."""
    with record_in(tmp_path) as record:
        fill(record, range(2))
    db = sqlite3.connect(tmp_path / "manifest.sqlite")
    db.execute("UPDATE projections SET end_bytes = 0 WHERE name IN ('last.csv', 'index.json')")
    db.commit()
    db.close()
    with record_in(tmp_path) as record:
        assert record.repairs == ()
