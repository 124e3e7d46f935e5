"""Lists and tables with a slip in them: the slip costs its own line, and every other line has its row."""

from __future__ import annotations

import io
import os
import random
import struct
import sys
from pathlib import Path

import pytest
from tests import needs

from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.inputs import InputLine, read_inputs


def read(path: Path) -> list[InputLine]:
    return list(read_inputs([str(path)], stdin=io.BytesIO()))


def ids(lines: list[InputLine]) -> list[str | None]:
    return [line.work.work_id if line.work is not None else None for line in lines]


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.slow
@pytest.mark.parametrize("broken", ['"10.1234/2,T', '10.1234/2,"T', '10.1234/2,"a ""quoted"" word'])
@pytest.mark.parametrize("rows", [8, 60, 3000])
def test_an_unclosed_quote_is_a_problem_of_its_line_and_every_other_line_has_a_row(  # type: ignore[no-untyped-def]
    write, broken: str, rows: int
) -> None:
    """CLI-02: whether the file ends inside the quote or the quote runs on beyond belief."""
    given = [f"10.1234/{number},T" for number in range(rows)]
    given[2] = broken
    lines = read(write("t.csv", "\n".join(["doi,title", *given]) + "\n"))
    assert [line.line_no for line in lines] == list(range(2, rows + 2))
    assert [line.line_no for line in lines if line.problem] == [4]
    assert "a quote opens here and is never closed" in (lines[2].problem or "")
    assert "10.1234/2" in lines[2].text


@pytest.mark.parametrize(
    "later",
    [
        '10.1234/8,"A title, quoted"',
        '"10.1234/8","T"',
        '10.1234/8,A 12" pipe',
        '10.1234/8,A pipe of 12"',
    ],
)
def test_a_quote_in_a_later_row_does_not_close_an_open_one(write, later: str) -> None:  # type: ignore[no-untyped-def]
    given = [f"10.1234/{number},T" for number in range(12)]
    given[3], given[8] = '10.1234/3,"T', later
    lines = read(write("t.csv", "\n".join(["doi,title", *given])))
    assert ids(lines) == [f"doi:10.1234/{number}" if number != 3 else None for number in range(12)]


def test_a_table_without_column_names_loses_no_row_to_an_open_quote_either(write) -> None:  # type: ignore[no-untyped-def]
    lines = read(write("t.csv", 'a,10.1234/a\n"b,10.1234/b\nc,10.1234/c\nd",10.1234/d\n'))
    assert ids(lines) == ["doi:10.1234/a", None, "doi:10.1234/c", "doi:10.1234/d"]


def test_titles_over_a_few_lines_are_one_cell(write) -> None:  # type: ignore[no-untyped-def]
    title = "\n".join(["A title, in", 'lines ""of"" its own', "see https://example.org/x", *["more"] * 15, "end"])
    rows = f'doi,title,url\n10.1234/a,"{title}",\n10.1234/b,"x\n\ny",https://example.org/b\n"A" 10.1234/c,"z\nz",\n'
    lines = read(write("t.csv", rows))
    assert [line.line_no for line in lines] == [2, 21, 24]
    assert ids(lines) == ["doi:10.1234/a", "doi:10.1234/b", None]
    assert lines[0].work is not None
    assert (lines[0].work.title or "").startswith('A title, in lines "of" its own see')
    assert "closed" not in (lines[2].problem or "")


def test_a_quoted_cell_over_64_kib_is_not_believed(write) -> None:  # type: ignore[no-untyped-def]
    body = "x" * 30_000
    for rows in (f'"{body}\n{body}\n{body}\nend",10.1234/a', '"open\n' + "z" * 70_000 + '\nend",10.1234/a'):
        lines = read(write("t.csv", f"title,doi\n{rows}\nT,10.1234/b\n"))
        assert "never closed" in (lines[0].problem or "")
        assert lines[0].line_no == 2
        assert ids(lines)[-1] == "doi:10.1234/b"


@pytest.mark.parametrize(
    "first",
    [
        "[1] 10.5507/a",
        "[Smith 2020] 10.5507/a",
        '["Smith"] 10.5507/a',
        "{10.5507/a}",
        '"10.5507/a"',
        '"10.5507/a",',
        "'10.5507/a'",
        "1. 10.5507/a",
        "1) 10.5507/a",
        "(1) 10.5507/a",
        "- 10.5507/a",
        "* 10.5507/a",
        "\u2022 10.5507/a",
        "- [ ] 10.5507/a  # read this",
        "1. \u201c10.5507/a\u201d",
        "1.\t10.5507/a",
    ],
)
@pytest.mark.parametrize("name", ["refs.txt", "refs"])
def test_a_list_with_marks_and_quotes_is_a_list(write, name: str, first: str) -> None:  # type: ignore[no-untyped-def]
    lines = read(write(name, f"{first}\n[2] PMC7\n2104.12255\n10.5507/b\n"))
    assert ids(lines) == ["doi:10.5507/a", "pmcid:PMC7", "arxiv:2104.12255", "doi:10.5507/b"]
    assert [line.line_no for line in lines] == [1, 2, 3, 4]


@pytest.mark.parametrize("first", ["{", "[", '["Smith"]', "[1]", '{"doi": "10.5507/x"', '"', "%PDF-1.7", "PK\x03\x04"])
def test_one_line_that_looks_like_another_format_spoils_only_itself(write, first: str) -> None:  # type: ignore[no-untyped-def]
    lines = read(write("refs.txt", f"{first}\n10.5507/a\n10.5507/b\n"))
    assert ids(lines) == [None, "doi:10.5507/a", "doi:10.5507/b"]


def test_two_identifiers_on_a_line_are_not_made_one(write) -> None:  # type: ignore[no-untyped-def]
    [line] = read(write("refs.txt", "[10.5507/a] 10.5507/b\n"))
    assert "more than an identifier" in (line.problem or "")
    assert line.text == "[10.5507/a] 10.5507/b"


@pytest.mark.parametrize(
    "content",
    [
        '"10.1234/a"\n{"doi": "10.1234/b"}\n',
        '{"doi": "10.1234/a"}\n"10.1234\\/b"\n',
        '{"doi": "10.1234/a", "title": "' + "x" * 20_000 + '"}\n"10.1234/b"\n',
        '[\n"10.1234/a",\n"10.1234/b"\n]\n',
        '{\n"works": ["10.1234/a", "10.1234/b"]}\n',
    ],
)
@pytest.mark.parametrize("name", ["works.txt", "works", "works.json"])
def test_json_is_known_by_being_json(write, name: str, content: str) -> None:  # type: ignore[no-untyped-def]
    if not (name == "works.json" and content.startswith('"')):
        assert ids(read(write(name, content))) == ["doi:10.1234/a", "doi:10.1234/b"]


def test_a_pdf_is_refused_also_when_it_begins_like_text(write) -> None:  # type: ignore[no-untyped-def]
    for body in (b"1 0 obj\n<< /Type /Catalog >>\nendobj\n", b"%\xe2\xe3\xcf\xd3\n2 0 obj\n", b"\r3 0 obj\r\nx\x00\n"):
        with pytest.raises(InputError, match="is a PDF"):
            read(write("paper.txt", b"%PDF-1.4\n" + body))


@pytest.mark.parametrize(
    ("begins", "kind"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Word or Excel"),
        (b"\xff\xd8\xff\xe0\x00\x10JFIF", "image"),
        (b"\xfd7zXZ\x00", "xz"),
        (b"BZh91AY&SY", "bzip2"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "zstd"),
        (b"7z\xbc\xaf\x27\x1c", "7-Zip"),
        (b"\x7fELF\x02\x01\x01", "program"),
    ],
)
def test_what_is_plainly_no_list_is_named_and_refused(write, begins: bytes, kind: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=f"{kind}.*not a list"):
        read(write("works", begins + bytes(range(256)) * 9))


@pytest.mark.parametrize(
    "content",
    [
        random.Random(5).randbytes(100_000),
        bytes(4096),
        struct.pack("<900i", *range(900)),
        b"10.1/a\n" + bytes(range(256)) * 9,
    ],
    ids=["random", "zeros", "numbers", "a line above"],
)
def test_data_is_no_list(write, content: bytes) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="is binary data, not a list"):
        read(write("bin.dat", content))


def test_a_list_that_is_spoiled_by_some_zeros_is_still_read(write) -> None:  # type: ignore[no-untyped-def]
    good = b"10.1234/a\n10.1234/b\n"
    for content in (good + bytes(4096), good + b"10.1234/\0\0c\n", good.decode().encode("utf-16")):
        assert ids(read(write("ids.txt", content)))[:2] == ["doi:10.1234/a", "doi:10.1234/b"]


@needs.system(sys.platform != "darwin", "names of files that are not UTF-8")
def test_a_name_that_is_not_utf8_can_be_told_from_the_record(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.txt"))
    path.write_text("10.1234/a\nrubbish\n")
    assert {line.source for line in read(path)} == {f"{tmp_path}/caf\\xe9.txt"}
    path.write_bytes(bytes(99))
    with pytest.raises(InputError, match=r"caf\\xe9.txt is binary data"):
        read(path)


def test_an_empty_word_is_refused_as_such() -> None:
    with pytest.raises(InputError, match="a word is empty"):
        read_inputs([""], stdin=io.BytesIO())


def test_a_nul_is_shown_as_a_replacement_character(write) -> None:  # type: ignore[no-untyped-def]
    for name, content in (("a.txt", b"10.1234/\x00c\n"), ("a.csv", b"doi\n10.1234/\x00c\n")):
        [line] = read(write(name, content))
        assert line.text == "10.1234/\ufffdc"
        assert line.problem is not None
        assert "\0" not in line.problem
