"""A corpus in other forms, each read back by somebody else: csv, json, pyarrow, bagit, a walk through the JSON-LD."""

from __future__ import annotations

import csv
import errno
import hashlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import bagit
import pyarrow.parquet
import pytest
from tests.contentdownload.stored_corpus import Corpus, make_corpus

from DocsToKG.ContentDownload.catalog.selection import Selection
from DocsToKG.ContentDownload.errors import ConfigError, InputError, StorageError
from DocsToKG.ContentDownload.export.bagit import write_bag
from DocsToKG.ContentDownload.export.copying import Copied
from DocsToKG.ContentDownload.export.ro_crate import write_crate
from DocsToKG.ContentDownload.export.rows import COLUMNS, rows
from DocsToKG.ContentDownload.export.tables import write_csv, write_jsonl, write_parquet
from DocsToKG.ContentDownload.storage.files import LocalFiles

BODIES = {"doi:10.1/a": b"%PDF-1.4 one", "doi:10.1/b": b"%PDF-1.4 two" * 1000, "arxiv:2001.00001": b"%PDF-1.4 three"}


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return make_corpus(tmp_path / "corpus", BODIES)


def all_rows(corpus: Corpus) -> list[dict[str, Any]]:
    with corpus.catalog() as catalog:
        return list(rows(catalog.each(Selection())))


def crate(corpus: Corpus, place: Path, files: LocalFiles | None = None) -> Copied:
    with corpus.catalog() as catalog:
        works, runs = rows(catalog.each(Selection())), catalog.run_times()
        return write_crate(
            works,
            files or corpus.files,
            place,
            now="2026-01-01T00:00:00.000Z",
            name="n",
            program="p",
            version="1",
            runs=runs,
        )


def test_csv_has_licence_and_provenance_and_no_formulas(corpus: Corpus) -> None:
    works = all_rows(corpus)
    works[0]["title"] = '=HYPERLINK("http://evil")\nsecond, "line"'
    out = io.BytesIO()
    assert write_csv(works, out) == 3
    read = list(csv.DictReader(io.StringIO(out.getvalue().decode(), newline="")))
    assert list(read[0]) == list(COLUMNS)
    assert read[0]["title"] == '\'=HYPERLINK("http://evil") second, "line"'
    assert len(out.getvalue().splitlines()) == 4
    for row, doc_id in zip(read, BODIES, strict=True):
        assert (row["doc_id"], row["sha256"]) == (doc_id, corpus.digests[doc_id])
        assert (row["license"], row["license_family"], row["license_raw"]) == ("CC-BY-4.0", "cc-by", "cc-by")
        assert (row["resolver"], row["run_id"], row["config_hash"]) == ("unpaywall", "r1", "c0ffee")
        assert (row["is_guess"], row["is_retracted"]) == ("false", "")


def test_jsonl_says_the_same(corpus: Corpus) -> None:
    out = io.BytesIO()
    assert write_jsonl(all_rows(corpus), out) == 3
    assert [json.loads(line) for line in out.getvalue().splitlines()] == all_rows(corpus)


def test_parquet_is_typed_and_says_the_same(corpus: Corpus, tmp_path: Path) -> None:
    place = tmp_path / "works.parquet"
    with place.open("wb") as out:
        assert write_parquet(all_rows(corpus), out) == 3
    table = pyarrow.parquet.read_table(place)
    assert table.to_pylist() == all_rows(corpus)
    kinds = {field.name: str(field.type) for field in table.schema}
    assert (kinds["year"], kinds["is_guess"], kinds["license"]) == ("int64", "bool", "string")
    assert table.schema.field("license").metadata[b"comment"].startswith(b"SPDX")


def test_parquet_of_nothing_still_has_its_columns(tmp_path: Path) -> None:
    with (tmp_path / "none.parquet").open("wb") as out:
        assert write_parquet([], out) == 0
    assert pyarrow.parquet.read_schema(tmp_path / "none.parquet").names == list(COLUMNS)


def test_parquet_is_written_in_groups(corpus: Corpus, tmp_path: Path) -> None:
    """A million rows need no more memory than ten thousand."""
    [row, *_] = all_rows(corpus)
    with (tmp_path / "many.parquet").open("wb") as out:
        assert write_parquet(({**row, "year": year} for year in range(25_000)), out) == 25_000
    metadata = pyarrow.parquet.ParquetFile(tmp_path / "many.parquet").metadata
    assert (metadata.num_rows, metadata.num_row_groups) == (25_000, 3)


def test_without_pyarrow_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ConfigError, match=r"docstokg\[report\]"):
        write_parquet([], io.BytesIO())


def test_a_bag_is_valid_for_another_program(corpus: Corpus, tmp_path: Path) -> None:
    place = tmp_path / "bag"
    copied = write_bag(all_rows(corpus), corpus.files, place, day="2026-01-01", made_by="test")
    assert (copied.files, copied.spoiled) == (3, [])
    bag = bagit.Bag(str(place))
    bag.validate()
    assert bag.info["Payload-Oxum"] == f"{sum(map(len, BODIES.values()))}.3"
    assert set(bag.payload_files()) == {f"data/{path}" for path in corpus.paths.values()}
    described = [json.loads(line) for line in (place / "metadata" / "works.jsonl").read_text().splitlines()]
    assert described == all_rows(corpus)
    (place / "data" / corpus.paths["doi:10.1/a"]).write_bytes(b"changed")
    with pytest.raises(bagit.BagValidationError):
        bag.validate()


def test_two_works_with_one_name_are_one_file_of_the_bag(corpus: Corpus, tmp_path: Path) -> None:
    works = [*all_rows(corpus), {**all_rows(corpus)[0], "doc_id": "url:https://example.org/a"}]
    copied = write_bag(works, corpus.files, tmp_path / "bag", day="2026-01-01", made_by="test")
    assert copied.files == 3
    bagit.Bag(str(tmp_path / "bag")).validate()


@pytest.mark.parametrize("form", ["bag", "crate"])
def test_damaged_and_missing_files_are_left_out_and_named(corpus: Corpus, tmp_path: Path, form: str) -> None:
    corpus.damage("doi:10.1/a")
    corpus.name_of("doi:10.1/b").unlink()
    place = tmp_path / form
    if form == "bag":
        copied = write_bag(all_rows(corpus), corpus.files, place, day="2026-01-01", made_by="test")
        bagit.Bag(str(place)).validate()
    else:
        copied = crate(corpus, place)
    assert copied.spoiled == [(corpus.paths["doi:10.1/a"], "damaged"), (corpus.paths["doi:10.1/b"], "missing")]
    assert [path.name for path in place.rglob("*.pdf")] == [corpus.name_of("arxiv:2001.00001").name]


class BreakingOff(LocalFiles):
    """One file gives its first bytes, and no more."""

    def __init__(self, root: Path, key: str) -> None:
        super().__init__(root)
        self._key = key

    def open(self, key: str) -> BinaryIO | None:
        return Breaking(b"%PDF-1.4") if key == self._key else super().open(key)


class Breaking(io.BytesIO):
    def read(self, size: int | None = -1) -> bytes:
        if found := super().read(size):
            return found
        raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("form", ["bag", "crate"])
def test_files_that_cannot_be_read_are_left_out_and_named(corpus: Corpus, tmp_path: Path, form: str) -> None:
    """One that cannot be opened, and one that breaks off in the middle."""
    corpus.name_of("doi:10.1/a").unlink()
    corpus.name_of("doi:10.1/a").mkdir()
    files, place = BreakingOff(corpus.root, corpus.paths["doi:10.1/b"]), tmp_path / form
    if form == "bag":
        copied = write_bag(all_rows(corpus), files, place, day="2026-01-01", made_by="test")
        bagit.Bag(str(place)).validate()
    else:
        copied = crate(corpus, place, files)
    assert copied.spoiled == [(corpus.paths[doc_id], "unreadable") for doc_id in ("doi:10.1/a", "doi:10.1/b")]
    assert [path.name for path in place.rglob("*.pdf")] == [corpus.name_of("arxiv:2001.00001").name]


class Away(LocalFiles):
    """A store of which nothing can be had."""

    def open(self, key: str) -> BinaryIO | None:
        raise StorageError("the bucket does not answer")


def test_a_store_that_is_away_ends_a_package(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not answer"):
        write_bag(all_rows(corpus), Away(corpus.root), tmp_path / "bag", day="2026-01-01", made_by="test")
    assert not (tmp_path / "bag").exists()


def test_a_package_appears_whole_or_not_at_all(corpus: Corpus, tmp_path: Path) -> None:
    def broken() -> Any:
        yield all_rows(corpus)[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_bag(broken(), corpus.files, tmp_path / "bag", day="2026-01-01", made_by="test")
    assert sorted(os.listdir(tmp_path)) == ["corpus"]
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(InputError, match="is there already"):
        write_bag([], corpus.files, tmp_path / "full", day="2026-01-01", made_by="test")
    assert os.listdir(tmp_path / "full") == ["mine"]


def test_a_package_does_not_take_the_place_of_the_folder_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for place in (Path("."), tmp_path):
        with pytest.raises(InputError, match="the folder that you are in"):
            write_bag([], LocalFiles(tmp_path), place, day="2026-01-01", made_by="test")
    assert tmp_path.is_dir()


def test_a_crate_describes_every_file(corpus: Corpus, tmp_path: Path) -> None:
    """RO-Crate 1.1: context, descriptor, root data set, every file with digest, licence and the run that made it."""
    place = tmp_path / "crate"
    assert crate(corpus, place).files == 3
    document = json.loads((place / "ro-crate-metadata.json").read_text())
    assert document["@context"][0] == "https://w3id.org/ro/crate/1.1/context"
    graph = {entity["@id"]: entity for entity in document["@graph"]}
    assert len(graph) == len(document["@graph"]), "an id is used once"
    assert all(entity.get("@type") for entity in graph.values())
    descriptor, root = graph["ro-crate-metadata.json"], graph["./"]
    assert descriptor["about"] == {"@id": "./"}
    assert descriptor["conformsTo"] == {"@id": "https://w3id.org/ro/crate/1.1"}
    assert root["@type"] == "Dataset"
    assert {"name", "description", "datePublished", "license"} <= root.keys()
    on_disk = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    assert (
        {part["@id"] for part in root["hasPart"]} == on_disk - {"ro-crate-metadata.json"} == set(corpus.paths.values())
    )
    made = {
        result["@id"]: action
        for action in graph.values()
        if action["@type"] == "CreateAction"
        for result in action["result"]
    }
    for part in root["hasPart"]:
        file = graph[part["@id"]]
        body = (place / part["@id"]).read_bytes()
        assert file["@type"] == "File"
        assert (file["sha256"], file["contentSize"]) == (hashlib.sha256(body).hexdigest(), str(len(body)))
        assert graph[file["license"]["@id"]]["name"] == "CC-BY-4.0"
        assert graph[file["about"]["@id"]]["@type"] == "ScholarlyArticle"
        action = made[part["@id"]]
        assert graph[action["instrument"]["@id"]]["@type"] == "SoftwareApplication"
        assert action["startTime"]
    for entity in graph.values():
        for value in entity.values():
            for link in value if isinstance(value, list) else [value]:
                if isinstance(link, dict) and not link["@id"].startswith("https://w3id.org"):
                    assert link["@id"] in graph, "every link leads somewhere"


def test_long_licences_that_begin_alike_are_one_entity_of_a_crate(corpus: Corpus, tmp_path: Path) -> None:
    works = [{**row, "license": None, "license_raw": "x" * 300 + row["doc_id"]} for row in all_rows(corpus)]
    write_crate(works, corpus.files, tmp_path / "crate", now="", name="n", program="p", version="1", runs={})
    graph = json.loads((tmp_path / "crate" / "ro-crate-metadata.json").read_text())["@graph"]
    ids = [entity["@id"] for entity in graph]
    assert len(ids) == len(set(ids))


def test_a_file_without_a_known_licence_says_so_in_a_crate(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus", {"doi:10.1/a": b"%PDF-1.4 one"}, license=None, license_raw=None)
    crate(corpus, tmp_path / "crate")
    graph = json.loads((tmp_path / "crate" / "ro-crate-metadata.json").read_text())["@graph"]
    [file] = [entity for entity in graph if entity["@type"] == "File"]
    [licence] = [entity for entity in graph if entity["@id"] == file["license"]["@id"]]
    assert licence["name"] == "No licence is known"
