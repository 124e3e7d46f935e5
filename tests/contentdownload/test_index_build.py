"""Building an index: what becomes of good and bad files, of deletions, of two builds at once."""

from __future__ import annotations

import gzip
import json
import random
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import zstandard
from tests.contentdownload.index_files import built, openalex_work, works, write_lines

from DocsToKG.ContentDownload.errors import DiskFull, FolderInUse, IndexDamaged, InputError
from DocsToKG.ContentDownload.index.build import Progress, Wanted, build, update
from DocsToKG.ContentDownload.index.engine import Limits, connect
from DocsToKG.ContentDownload.index.manifest import read_manifest, writing
from DocsToKG.ContentDownload.index.reader import Access, Index


def names(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir() if not path.name.startswith("."))


def access(root: Path, *ids: str) -> list[str]:
    with Index(root) as index:
        return [str(work.access) for work in index.lookup(ids)]


def test_works_are_open_closed_or_unknown(tmp_path: Path) -> None:
    manifest = built(tmp_path / "oa", write_lines(tmp_path / "works.jsonl", works(9)))
    assert (manifest.works, manifest.open_works, manifest.closed_works, manifest.copies) == (9, 3, 6, 3)
    assert access(tmp_path / "oa", "doi:10.5555/work.0", "doi:10.5555/work.1", "doi:10.5555/work.99") == [
        Access.OPEN,
        Access.CLOSED,
        Access.UNKNOWN,
    ]
    assert names(tmp_path / "oa") == ["index.json", manifest.folder]


def test_a_work_is_found_by_each_of_its_names(tmp_path: Path) -> None:
    built(tmp_path / "oa", write_lines(tmp_path / "works.jsonl", works(9)))
    with Index(tmp_path / "oa") as index:
        found = index.lookup(["doi:10.5555/work.3", "pmid:1003", "openalex:W4000000003"])
    assert {work.ids for work in found} == {("doi:10.5555/work.3", "pmid:1003", "openalex:W4000000003")}
    assert {work.copies[0]["url"] for work in found} == {"https://host3.example.org/3.pdf"}


def test_a_name_that_several_works_claim_tells_none(tmp_path: Path) -> None:
    both = [openalex_work(n, pdf=f"https://a.example/{n}.pdf") for n in (1, 2)]
    for work in both:
        work["ids"]["pmid"] = "https://pubmed.ncbi.nlm.nih.gov/7"
    built(tmp_path / "oa", write_lines(tmp_path / "works.jsonl", both))
    assert access(tmp_path / "oa", "pmid:7", "doi:10.5555/work.1") == [Access.UNKNOWN, Access.OPEN]


def test_bad_lines_are_counted_by_reason_with_an_example(tmp_path: Path) -> None:
    lines: list[Any] = [*works(98), "{not json", "[1, 2]", '{"title": "nameless"}', {"id": "https://openalex.org/A1"}]
    file = write_lines(tmp_path / "works.jsonl.gz", lines)
    told = build(tmp_path / "oa", Wanted([("openalex", str(file))], bad_share=0.05)).sources["openalex"]
    assert (told.records, told.bad_lines) == (98, 4)
    assert told.bad["not JSON"] == (1, f"{file}, line 99")
    assert told.bad["not an object"] == (1, f"{file}, line 100")
    assert told.bad["no identifier"] == (2, f"{file}: 'https://openalex.org/A1'")


def test_too_many_bad_lines_end_the_build_and_leave_the_index(tmp_path: Path) -> None:
    before = built(tmp_path / "oa", write_lines(tmp_path / "works.jsonl", works(9)))
    bad = write_lines(tmp_path / "bad.jsonl", [*works(9), "{not json"])
    with pytest.raises(InputError, match=r"1 of 10 records of openalex cannot be read .not JSON 1, as .*line 10"):
        built(tmp_path / "oa", bad)
    assert read_manifest(tmp_path / "oa") == before
    assert access(tmp_path / "oa", "doi:10.5555/work.0") == [Access.OPEN]


def test_a_file_of_another_source_is_refused(tmp_path: Path) -> None:
    file = write_lines(tmp_path / "crossref.jsonl", [{"DOI": "10.5555/1", "title": ["A"]}])
    with pytest.raises(InputError, match="1 of 1 records of openalex cannot be read"):
        built(tmp_path / "oa", file)


def test_a_cut_file_is_named_and_the_rest_need_not_be_read_again(tmp_path: Path) -> None:
    whole = write_lines(tmp_path / "s" / "part_0.gz", works(2000))
    packed = gzip.compress("".join(json.dumps(work) + "\n" for work in works(2000, first=2000)).encode())
    (tmp_path / "s" / "part_1.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(InputError, match=r"Unexpected end of GZIP stream: .*part_1\.gz"):
        built(tmp_path / "oa", tmp_path / "s")
    assert read_manifest(tmp_path / "oa") is None
    (tmp_path / "s" / "part_1.gz").write_bytes(packed)
    assert built(tmp_path / "oa", tmp_path / "s").works == 4000
    assert whole.exists()


def test_tables_with_other_columns_are_read_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "a.csv").write_text("id,url,licence\n10.5555/a,https://a.example/a.pdf,cc-by\n")
    (folder / "b.csv").write_text("version,pdf_url,doi\nacceptedVersion,https://b.example/b.pdf,10.5555/B\n")
    build(tmp_path / "oa", Wanted([("copies", str(folder))], files=2))
    with Index(tmp_path / "oa") as index:
        first, second = index.lookup(["doi:10.5555/a", "doi:10.5555/b"])
    assert (first.copies[0]["license"], first.copies[0]["version"]) == ("cc-by", None)
    assert (second.copies[0]["url"], second.copies[0]["version"]) == ("https://b.example/b.pdf", "acceptedVersion")


def test_a_table_without_the_needed_columns_says_which(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("paper,link\n1,2\n")
    with pytest.raises(InputError, match=r"mine\.csv: no column 'id', which files of copies have; it has paper, link"):
        build(tmp_path / "oa", Wanted([("copies", str(tmp_path / "mine.csv"))]))


@pytest.mark.slow
def test_openalex_in_parquet_gives_the_same_as_in_json_lines(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "works.jsonl", works(30))
    with connect() as db:
        db.execute(f"COPY (FROM read_json('{lines}')) TO '{tmp_path / 'works.parquet'}' (FORMAT parquet)")
    exported = []
    for source in (lines, tmp_path / "works.parquet"):
        root = tmp_path / source.suffix[1:]
        built(root, source)
        with Index(root) as index:
            index.export(root / "all.csv")
        exported.append(sorted((root / "all.csv").read_text().splitlines()))
    assert exported[0] == exported[1]
    assert len(exported[0]) == 31


def test_packed_with_zstd(tmp_path: Path) -> None:
    text = "".join(json.dumps(work) + "\n" for work in works(5))
    (tmp_path / "works.jsonl.zst").write_bytes(zstandard.compress(text.encode()))
    assert built(tmp_path / "oa", tmp_path / "works.jsonl.zst").works == 5


@pytest.mark.slow
def test_newer_records_replace_older_ones_and_deleted_ones_go(tmp_path: Path) -> None:
    built(tmp_path / "oa", write_lines(tmp_path / "works.jsonl", works(9)))
    opened = openalex_work(1, pdf="https://new.example/1.pdf")
    moved = openalex_work(3, doi="10.5555/moved", pdf="https://new.example/3.pdf")
    newer = write_lines(tmp_path / "newer.jsonl", [opened, moved, openalex_work(100)])
    (tmp_path / "deleted_ids.csv").write_text("work_id,date\nW4000000006,2026-08-15\n")
    manifest = update(tmp_path / "oa", Wanted([("openalex", str(newer))], deleted=[str(tmp_path / "deleted_ids.csv")]))
    assert manifest.works == 9
    ids = [f"doi:10.5555/{name}" for name in ("work.1", "work.3", "moved", "work.6", "work.100", "work.0")]
    known = [Access.OPEN, Access.UNKNOWN, Access.OPEN, Access.UNKNOWN, Access.CLOSED, Access.OPEN]
    assert access(tmp_path / "oa", *ids) == known
    assert access(tmp_path / "oa", "pmid:1003", "openalex:W4000000006") == [Access.OPEN, Access.UNKNOWN]
    with Index(tmp_path / "oa") as index:
        assert index.verify() == []


def test_an_update_of_one_source_leaves_what_others_say(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("id,url\n10.5555/work.1,https://mine.example/1.pdf\n")
    lines = write_lines(tmp_path / "works.jsonl", works(3))
    build(tmp_path / "oa", Wanted([("openalex", str(lines)), ("copies", str(tmp_path / "mine.csv"))], files=2))
    newer = write_lines(tmp_path / "newer.jsonl", [openalex_work(1, pdf="https://new.example/1.pdf")])
    manifest = update(tmp_path / "oa", Wanted([("openalex", str(newer))]))
    with Index(tmp_path / "oa") as index:
        [work] = index.lookup(["doi:10.5555/work.1"])
    assert [copy["source"] for copy in work.copies] == ["copies", "openalex"]
    assert set(manifest.sources) == {"openalex", "copies"}


def test_of_a_record_that_is_there_twice_the_newest_counts(tmp_path: Path) -> None:
    older, newer = openalex_work(1), openalex_work(1, pdf="https://a.example/1.pdf", updated_date="2026-07-01")
    manifest = built(tmp_path / "oa", write_lines(tmp_path / "works.jsonl", [newer, older]))
    assert (manifest.works, manifest.open_works) == (1, 1)


def test_an_update_without_an_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no index; make one with: content index build"):
        update(tmp_path / "oa", Wanted([("openalex", str(write_lines(tmp_path / "w.jsonl", works(1))))]))


def test_two_builds_at_once_are_refused(tmp_path: Path) -> None:
    lines = write_lines(tmp_path / "works.jsonl", works(3))
    with writing(tmp_path / "oa"), pytest.raises(FolderInUse, match="another build is working"):
        built(tmp_path / "oa", lines)
    assert built(tmp_path / "oa", lines).works == 3


@pytest.mark.slow
def test_an_index_is_read_to_the_end_while_it_is_replaced(tmp_path: Path) -> None:
    first = built(tmp_path / "oa", write_lines(tmp_path / "a.jsonl", works(3)))
    with Index(tmp_path / "oa") as index:
        second = built(tmp_path / "oa", write_lines(tmp_path / "b.jsonl", works(6)))
        assert index.lookup(["doi:10.5555/work.5"])[0].access is Access.UNKNOWN
        assert names(tmp_path / "oa") == sorted(["index.json", first.folder, second.folder])
    built(tmp_path / "oa", tmp_path / "b.jsonl")
    assert first.folder not in names(tmp_path / "oa")


def test_interrupted_a_build_leaves_the_index_and_goes_on_later(tmp_path: Path) -> None:
    before = built(tmp_path / "oa", write_lines(tmp_path / "a.jsonl", works(3)))
    lines = write_lines(tmp_path / "b.jsonl", works(60))
    seen: list[Progress] = []

    def interrupt(progress: Progress) -> None:
        seen.append(progress)
        if progress.step == "sorting" and progress.done == 2:
            raise KeyboardInterrupt

    wanted = Wanted([("openalex", str(lines))], files=4)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path / "oa", wanted, watch=interrupt)
    assert read_manifest(tmp_path / "oa") == before
    [kept] = (tmp_path / "oa" / "building").glob("files-*/part-0001.parquet")
    kept_at = kept.stat().st_mtime_ns
    after = build(tmp_path / "oa", wanted)
    assert (tmp_path / "oa" / after.folder / "part-0001.parquet").stat().st_mtime_ns == kept_at
    assert not (tmp_path / "oa" / "building").exists()


@pytest.mark.slow
def test_a_full_disk_is_said_and_the_index_stays(tmp_path: Path) -> None:
    """The system refuses files over a size, which is as near to a full disk as a test comes without root."""
    before = built(tmp_path / "oa", write_lines(tmp_path / "a.jsonl", works(3)))
    lines = write_lines(tmp_path / "b.jsonl", works(40_000))
    program = (
        "import resource, signal, sys; from pathlib import Path; sys.path.insert(0, sys.argv[3])\n"
        "from DocsToKG.ContentDownload.index.build import Wanted, build\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, 1 << 18))\n"
        "try: build(Path(sys.argv[1]), Wanted([('openalex', sys.argv[2])], files=2))\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "oa", lines, Path(__file__).parents[2] / "src"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert told.stdout.startswith(DiskFull.__name__), told
    assert read_manifest(tmp_path / "oa") == before
    assert access(tmp_path / "oa", "doi:10.5555/work.0") == [Access.OPEN]


def test_a_damaged_file_is_found_by_verify(tmp_path: Path) -> None:
    manifest = built(tmp_path / "oa", write_lines(tmp_path / "a.jsonl", works(30)))
    victim = tmp_path / "oa" / manifest.folder / "part-0002.parquet"
    data = bytearray(victim.read_bytes())
    data[len(data) // 3] ^= 1
    victim.write_bytes(data)
    (tmp_path / "oa" / manifest.folder / "part-0001.parquet").unlink()
    with Index(tmp_path / "oa") as index:
        problems = index.verify()
    assert [problem.partition(": ")[2] for problem in problems] == ["is not there", "is not what was written"]


def test_a_damaged_manifest_is_said(tmp_path: Path) -> None:
    built(tmp_path / "oa", write_lines(tmp_path / "a.jsonl", works(3)))
    (tmp_path / "oa" / "index.json").write_text("{")
    with pytest.raises(IndexDamaged, match=r"index\.json cannot be read"):
        Index.open(tmp_path / "oa")


@pytest.mark.slow
def test_more_than_fits_into_memory_is_sorted(tmp_path: Path) -> None:
    """250 MB of rows in one file of the index, with 256 MB of memory."""
    title = " || ".join(f"md5('{n}' || range)" for n in range(12))
    with connect() as db:
        db.execute(
            f"COPY (SELECT '10.5555/' || range AS id, 'https://a.example/' || range AS url, {title} AS title "
            f"FROM range(450000)) TO '{tmp_path / 'mine.parquet'}' (FORMAT parquet)"
        )
    limits = Limits(memory_bytes=256 << 20, threads=1, spill=tmp_path / "spill")
    wanted = Wanted([("copies", str(tmp_path / "mine.parquet"))], files=1)
    manifest = build(tmp_path / "oa", wanted, limits=limits)
    assert manifest.works == 450_000
    with Index(tmp_path / "oa", limits=limits) as index:
        assert index.lookup(["doi:10.5555/449999"])[0].copies[0]["url"] == "https://a.example/449999"


@pytest.mark.long
@pytest.mark.timeout(1200)  # twenty starts of a program
@pytest.mark.parametrize("how", ["build", "update"])
def test_killed_at_any_moment_the_index_is_the_old_or_the_new_one(tmp_path: Path, how: str) -> None:
    root, draw = tmp_path / "oa", random.Random(how)
    old, new = (write_lines(tmp_path / f"{n}.jsonl", works(3000, first=n)) for n in (0, 1500))
    built(root, old)
    program = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1])\n"
        "from DocsToKG.ContentDownload.index import build as module\n"
        "print('begins', flush=True)\n"
        "make = getattr(module, sys.argv[2])\n"
        "make(Path(sys.argv[3]), module.Wanted([('openalex', sys.argv[4])], files=4))\n"
    )
    source = str(Path(__file__).parents[2] / "src")
    replaced = 0
    for _ in range(20):
        before = read_manifest(root)
        lines = draw.choice((old, new))
        child = subprocess.Popen([sys.executable, "-c", program, source, how, root, lines], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        with suppress(subprocess.TimeoutExpired):
            child.wait(draw.uniform(0.1, 2.0))
        child.kill()
        child.communicate()
        with Index(root) as index:
            assert index.verify() == []
            replaced += index.manifest != before
            assert index.manifest.works in ((3000,) if how == "build" else (3000, 4500))
            [work] = index.lookup(["doi:10.5555/work.1503"])
            assert work.access is Access.OPEN
    assert built(root, new).works == 3000
    assert sorted(names(root))[0] == "index.json"
    assert len(names(root)) == 2
    assert replaced < 20, "nothing was killed before it had ended"
