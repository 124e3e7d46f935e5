"""Lists, tables, JSON, BibTeX and RIS: one line per entry, in order, and rubbish stops nothing."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.warm import WarmPrograms

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.inputs import InputLine, coerce_works, read_inputs


def read(*sources: str | Path, stdin: bytes = b"") -> list[InputLine]:
    return list(read_inputs([str(source) for source in sources], stdin=io.BytesIO(stdin)))


def ids(lines: list[InputLine]) -> list[str | None]:
    return [line.work.work_id if line.work is not None else None for line in lines]


@pytest.fixture
def write(tmp_path: Path):  # type: ignore[no-untyped-def]
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_list_keeps_its_order_and_line_numbers_and_marks_rubbish(write) -> None:  # type: ignore[no-untyped-def]
    """CLI-02: comments and blank lines are no entries; a bad line says why and stops nothing."""
    path = write("ids.txt", "# papers\n\n10.1234/a\nrubbish here\nPMC7 # a note\nhttps://doi.org/10.1234/A\n10.1/x#1\n")
    lines = read(path)
    assert [(line.line_no, line.text) for line in lines] == [
        (3, "10.1234/a"),
        (4, "rubbish here"),
        (5, "PMC7"),
        (6, "https://doi.org/10.1234/A"),
        (7, "10.1/x#1"),
    ]
    assert ids(lines) == ["doi:10.1234/a", None, "pmcid:PMC7", "doi:10.1234/a", "doi:10.1/x#1"]
    assert lines[1].problem is not None
    assert "give a DOI" in lines[1].problem
    assert [line.duplicate_of for line in lines] == [None, None, None, 3, None]
    assert {line.source for line in lines} == {str(path)}


def test_sources_are_identifiers_files_and_standard_input_mixed(write) -> None:  # type: ignore[no-untyped-def]
    """CLI-08: identifiers and files as arguments."""
    path = write("more.txt", "10.1234/b\n10.1234/a\n")
    lines = read("10.1234/a", path, "-", "what?", stdin=b"W12\n")
    assert ids(lines) == ["doi:10.1234/a", "doi:10.1234/b", "doi:10.1234/a", "openalex:W12", None]
    assert [line.source for line in lines] == ["arguments", str(path), str(path), "-", "arguments"]
    assert (lines[2].duplicate_of, lines[2].duplicate_source) == (1, "arguments")
    assert lines[4].line_no == 4
    assert "nor is it a file" in (lines[4].problem or "")


def test_a_file_given_twice_gives_every_line_again_as_a_duplicate(write) -> None:  # type: ignore[no-untyped-def]
    path = write("ids.txt", "10.1234/a\n")
    assert [line.duplicate_of for line in read(path, path)] == [None, 1]


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf10.1234/a\r\n10.1234/b\r\n",
        "\ufeff10.1234/a\n10.1234/b\n".encode("utf-16-le"),
        "\ufeff10.1234/a\n10.1234/b\n".encode("utf-16-be"),
        "10.1234/a\n10.1234/b\n".encode("utf-16-le"),
        b"10.1234/a\r10.1234/b",
        b"# Universit\xe9 de Gen\xe8ve\n10.1234/a\n10.1234/b # \xe9\n",
    ],
)
def test_encodings_and_line_ends_do_not_matter(write, content: bytes) -> None:  # type: ignore[no-untyped-def]
    assert ids(read(write("ids", content))) == ["doi:10.1234/a", "doi:10.1234/b"]


def test_overlong_lines_and_nul_bytes_are_problems_of_their_line_only(write) -> None:  # type: ignore[no-untyped-def]
    long = b"x" * 300_000
    path = write("ids.txt", b"10.1234/a\n" + long + b"\n10.1234/b\n10.1234/\x00c\n" + b"y" * 65_536 + b"\n10.1234/d\n")
    lines = read(path)
    assert ids(lines) == ["doi:10.1234/a", None, "doi:10.1234/b", None, None, "doi:10.1234/d"]
    assert [line.line_no for line in lines] == [1, 2, 3, 4, 5, 6]
    assert "64 KiB" in (lines[1].problem or "")
    assert "control" in (lines[3].problem or "")


@pytest.mark.parametrize("name", ["ids.txt", "./x", "/nowhere/at/all", "papers.bib", "list.csv"])
def test_a_missing_file_is_named_before_anything_is_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the tutorial makes an ids.txt in the checkout
    with pytest.raises(InputError, match="no such file"):
        read_inputs(["10.1234/a", name], stdin=io.BytesIO())


def test_a_directory_and_binary_files_are_refused_with_the_way_out(tmp_path: Path, write) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match="directory"):
        read(tmp_path)
    for name, content in (("a.pdf", b"%PDF-1.4\n"), ("b.csv", b"PK\x03\x04rest"), ("c.txt", b"\x1f\x8b\x08\x00")):
        with pytest.raises(InputError, match="export it as CSV"):
            read(write(name, content))


def test_an_unreadable_file_is_refused() -> None:
    with tempfile.TemporaryDirectory() as folder:  # pytest's own folders are closed to other users
        path = Path(folder) / "ids.txt"
        path.write_text("10.1234/a\n")
        path.chmod(0)
        Path(folder).chmod(0o755)
        user = os.geteuid()
        if user == 0:
            os.seteuid(65534)  # root reads everything, so be somebody else for a moment
        try:
            with pytest.raises(InputError, match="Permission denied"):
                read(path)
        finally:
            os.seteuid(user)


def test_a_table_is_read_by_its_column_names(write) -> None:  # type: ignore[no-untyped-def]
    rows = (
        'Title,Publication Year,DOI,PMC ID,URL\n"A, b\nc",2019,10.1234/A,,\nD,,n/a,7,https://example.org/p\nE,2020,,,\n'
    )
    lines = read(write("t.csv", rows))
    assert ids(lines) == ["doi:10.1234/a", "pmcid:PMC7", None]
    first, second = lines[0].work, lines[1].work
    assert first is not None
    assert second is not None
    assert (first.title, first.publication_year) == ("A, b c", 2019)
    assert second.landing_urls == ("https://example.org/p",)
    assert [line.line_no for line in lines] == [2, 4, 5]
    assert "no identifier" in (lines[2].problem or "")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "title;id;year\nA;10.1234/a;2019\n"),
        ("a.tsv", "arxiv\tdoi\n\t10.1234/a\n"),
        ("noext", "doi\n10.1234/a\n"),
        ("noext", "name|doi\nx|10.1234/a\n"),
        ("a.csv", "col1,col2\nsome words,10.1234/a\n"),
        ("a.csv", "some words,10.1234/a\n"),
        ("a.txt", "some words\t10.1234/a\n"),
        ("a.csv", '"identifier"\n"10.1234/a"\n'),
    ],
)
def test_tables_with_other_signs_and_without_known_names(write, name: str, content: str) -> None:  # type: ignore[no-untyped-def]
    assert ids(read(write(name, content))) == ["doi:10.1234/a"]


def test_a_table_in_which_nothing_parses_reports_every_row(write) -> None:  # type: ignore[no-untyped-def]
    lines = read(write("t.csv", "foo,bar\nbaz,qux\n"))
    assert [line.line_no for line in lines] == [1, 2]
    assert all("name a column" in (line.problem or "") for line in lines)


@pytest.mark.slow
def test_an_open_quote_and_a_long_row_do_not_lose_the_rows_after_it(write) -> None:  # type: ignore[no-untyped-def]
    filler = "".join(f"row {number},x\n" for number in range(8_000))
    path = write("t.csv", 'doi,title\n"10.1234/a,broken\n' + filler + "z" * 70_000 + "\n10.1234/b,ok\n")
    lines = read(path)
    assert lines[-1].work is not None
    assert lines[-1].work.work_id == "doi:10.1234/b"
    assert any("quotes" in (line.problem or "") for line in lines)
    assert any("64 KiB" in (line.problem or "") for line in lines)


def test_json_lines_are_strings_objects_or_works(write) -> None:  # type: ignore[no-untyped-def]
    known = WorkArtifact("arxiv:2104.12255", doi="10.1234/j", arxiv_id="2104.12255", metadata={"arxiv_version": "v2"})
    rows = [
        '"10.1234/a"',
        '{"DOI": "10.1234/b", "title": ["T"], "issued": {"date-parts": [[2018, 1]]}, "PMID": 12}',
        '{"id": "https://openalex.org/W5", "doi": null}',
        "{broken",
        "[1]",
        '{"title": "no name"}',
        json.dumps(known.to_dict()),
    ]
    lines = read(write("w.jsonl", "\n".join(rows)))
    assert ids(lines) == ["doi:10.1234/a", "doi:10.1234/b", "openalex:W5", None, None, None, "arxiv:2104.12255"]
    second = lines[1].work
    assert second is not None
    assert (second.title, second.publication_year, second.pmid) == ("T", 2018, "12")
    assert lines[6].work == known
    assert "not JSON" in (lines[3].problem or "")


@pytest.mark.parametrize(
    "content",
    [
        '["10.1234/a", {"doi": "10.1234/b"}]',
        '{"results": [{"doi": "10.1234/a"},\n {"doi": "10.1234/b"}]}',
        '[\n  {"DOI": "10.1234/a"},\n  {"DOI": "10.1234/b"}\n]\n',
    ],
)
def test_a_json_document_holds_a_list(write, content: str) -> None:  # type: ignore[no-untyped-def]
    assert ids(read(write("w.json", content))) == ["doi:10.1234/a", "doi:10.1234/b"]


BIB = r"""
% a comment with @article{fake, in it}
@string{base = "10.1234/"}
@comment{@article{hidden, doi={10.9999/hidden}}}
@preamble{"\newcommand{\x}{y}"}
@Article{one,
  title = {The {N}ested {{Title}} of G{\"o}del \& M{\'e}nard},
  doi   = base # "A\_1",
  year  = 2019,
}
@inproceedings(two, title="Quoted {"}brace{"}", eprint = {hep-th/9901001v1}, archivePrefix={arXiv}, year={1999})
@misc{three, eprint={2104.12255}, eprinttype={arxiv}, url={https://example.org/three}}
@misc{four, howpublished={\url{https://example.org/four}}}
@article{five, title={nothing to find it by}}
@article{six, doi={10.1002/x{\textless}1::y{\textgreater}2}, pmid={77}, eprint={abc}, archivePrefix={hal}}
@article{broken, title={never closed,
  doi={10.1234/lost}
@article{after, doi = {https://doi.org/10.1234/After}}  @article{same-line, pmcid={PMC9}}
"""


def test_bibtex_with_everything_people_write(write) -> None:  # type: ignore[no-untyped-def]
    lines = read(write("refs.bib", BIB))
    assert [(line.text, line.work.work_id if line.work else None) for line in lines] == [
        ("one", "doi:10.1234/a_1"),
        ("two", "arxiv:hep-th/9901001v1"),
        ("three", "arxiv:2104.12255"),
        ("four", "url:https://example.org/four"),
        ("five", None),
        ("six", "doi:10.1002/x<1::y>2"),
        ("broken, title={never closed,\n  doi={10.1234/lost}\n", None),
        ("after", "doi:10.1234/after"),
        ("same-line", "pmcid:PMC9"),
    ]
    one, three = lines[0].work, lines[2].work
    assert one is not None
    assert three is not None
    assert (one.title, one.publication_year) == ("The Nested Title of Gödel & Ménard", 2019)
    assert three.landing_urls == ("https://example.org/three",)
    assert lines[0].line_no == 6
    assert "not closed" in (lines[6].problem or "")
    assert "fill in one of doi" in (lines[4].problem or "")


def test_a_huge_bibtex_entry_is_a_problem_and_the_next_one_is_read(write) -> None:  # type: ignore[no-untyped-def]
    nested = "{" * 2_000 + "}" * 2_000
    body = ("abstract = {" + "x" * 60_000 + "},\n") * 10
    entries = [
        f"@article{{deep, title={nested}, doi={{10.1234/d}}}}",
        f"@article{{big, {body} doi={{10.1234/b}}}}",
        "@misc{ok, doi={10.1234/c}}",
    ]
    path = write("refs.bib", "\n".join(entries))
    lines = read(path)
    assert ids(lines) == ["doi:10.1234/d", None, "doi:10.1234/c"]
    assert "256 KiB" in (lines[1].problem or "")


RIS = """TY  - JOUR
TI  - A title
PY  - 2018/04/01/
DO  - 10.1234/A
UR  - https://example.org/a
ER  -
TY  - JOUR
T1  - From PubMed
AN  - 31234567
DB  - PubMed
TY  - JOUR
AN  - 31234567
ER  -
TY  - JOUR
UR  - https://arxiv.org/abs/2104.12255
"""


def test_ris_records_with_and_without_an_end(write) -> None:  # type: ignore[no-untyped-def]
    lines = read(write("refs.ris", RIS))
    assert ids(lines) == ["doi:10.1234/a", "pmid:31234567", None, "arxiv:2104.12255"]
    first = lines[0].work
    assert first is not None
    assert (first.title, first.publication_year, first.landing_urls) == ("A title", 2018, ("https://example.org/a",))
    assert "pmid:" in (lines[2].problem or "")
    assert [line.line_no for line in lines] == [1, 7, 11, 14]


@pytest.mark.parametrize(
    "content", [BIB, RIS, '{"doi": "10.1234/a"}\n', '["10.1234/a"]', "doi,title\n10.1234/a,T\n", "10.1234/a\n"]
)
def test_standard_input_is_told_apart_by_its_beginning(content: str) -> None:
    """CLI-02: the same formats without a file name."""
    found = [work_id for work_id in ids(read("-", stdin=content.encode())) if work_id is not None]
    assert any(work_id.startswith("doi:10.1234/a") for work_id in found)


def test_text_streams_serve_as_standard_input_and_stay_open() -> None:
    text, binary = io.StringIO("10.1234/a\n"), io.BytesIO(b"10.1234/b\n")
    assert ids(list(read_inputs(["-"], stdin=text))) == ["doi:10.1234/a"]
    assert ids(list(read_inputs(["-"], stdin=binary))) == ["doi:10.1234/b"]
    assert not binary.closed


@pytest.mark.slow
def test_a_real_pipe_is_read_as_it_comes(warm: WarmPrograms) -> None:
    program = (
        "import sys\nfrom DocsToKG.ContentDownload.inputs import read_inputs\n"
        "for line in read_inputs(['-'], stdin=sys.stdin):\n    print(line.work.work_id, flush=True)\n"
    )
    with subprocess.Popen(
        [*warm.words("python"), "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"10.1234/a\n" * 2000)
        child.stdin.flush()
        assert child.stdout.readline() == b"doi:10.1234/a\n"
        child.stdin.close()
        assert len(child.stdout.readlines()) == 1999


@pytest.mark.slow
def test_a_long_list_is_streamed_not_held(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("".join(f"10.1234/{number}\n" for number in range(10_000)))
    lines = read_inputs([str(path)], stdin=io.BytesIO())
    assert isinstance(lines, Iterator)
    assert next(lines).text == "10.1234/0"
    assert sum(1 for _ in lines) == 9_999


def test_programs_may_mix_strings_mappings_and_works() -> None:
    """BOOT-10: mixed, from any iterable."""
    work = WorkArtifact("doi:10.1234/c", doi="10.1234/c")
    given = iter(["doi:10.1234/A", {"pmid": 12, "title": "T"}, work, "10.1234/c", 7, {"title": "x"}, "rubbish"])
    lines = list(coerce_works(given))  # type: ignore[arg-type]
    assert ids(lines) == ["doi:10.1234/a", "pmid:12", "doi:10.1234/c", "doi:10.1234/c", None, None, None]
    assert lines[2].work is work
    assert lines[3].duplicate_of == 3
    assert "int" in (lines[4].problem or "")


def test_a_secret_in_a_url_is_kept_for_the_request_and_left_out_of_the_text() -> None:
    [line] = read("https://user:sesame@example.org/a?token=sesame")
    assert "sesame" not in line.text
    assert line.work is not None
    assert line.work.landing_urls == ("https://example.org/a?token=sesame",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"url": "https://u:SESAME@a.org/x?token=SESAME"}\n'),
        ("a.jsonl", '{"url": "https:\\/\\/a.org\\/x?v=1\\u0026token=SESAME"}\n'),
        ("a.jsonl", '{"url": "https://a.org/x?token=SESAME"\n'),
        ("a.jsonl", '["https://a.org/x?token=SESAME"]\n'),
        ("a.json", '[{"title": "t", "note": "https://a.org/x?token=SESAME"}]'),
        ("a.json", '[{"title": "https://a.org/x?token=SESAME"'),
        ("a.txt", "see https://a.org/x?token=SESAME\n"),
        ("a.txt", "  HTTPS://u:SESAME@a.org/x\n"),
        ("a.txt", "a.org/x?token=SESAME\n"),
        ("a.txt", "W" * 1990 + " https://user:SESAME" + "x" * 300 + "@a.org/\n"),
        ("a.csv", "doi,link\nx,https://a.org/x?token=SESAME\n"),
        ("a.csv", "title,note,id\nwords,https://u:SESAME@a.org/x?jwt=SESAME,none\n"),
        ("a.bib", "@misc{https://a.org/?token=SESAME, title={T}}\n"),
        ("a.bib", "@misc{k, url={https://a.org/?token=SESAME"),
        ("a.ris", "TY  - JOUR\nUR  - https://a.org/?token=SESAME\nER  - \n"),
    ],
)
def test_no_line_shows_a_secret_whatever_it_looks_like(write, name: str, content: str) -> None:  # type: ignore[no-untyped-def]
    """SEC-04: neither the text nor the problem, which both go into the run's record."""
    lines = read(write(name, content))
    assert lines
    for line in lines:
        assert "SESAME" not in f"{line.text} {line.problem}"


def test_values_of_a_program_show_no_secret_either() -> None:
    """SEC-04"""
    secret = "https://u:SESAME@a.org/?token=SESAME"
    given = [{"note": secret}, {"pad": "x" * 170, "note": secret}, [secret], f"see {secret}"]
    for line in coerce_works(given):  # type: ignore[arg-type]
        assert "SESAME" not in f"{line.text} {line.problem}"
    with pytest.raises(InputError) as caught:
        read("./see?token=SESAME.txt")
    assert "SESAME" not in str(caught.value)


@examples(150)
@given(
    st.sampled_from([b"", b"@article{", b"doi,title\n", b"TY  - JOUR\n", b"{", b"[", b"\xff\xfe"]),
    st.binary(max_size=300),
)
def test_no_bytes_break_the_reader(head: bytes, tail: bytes) -> None:
    try:
        lines = read("-", stdin=head + tail)
    except InputError:
        return
    assert all((line.work is None) != (line.problem is None) for line in lines)
