"""A parser gets the bytes of a small paper as a file in memory: all of them, and none of another paper."""

from __future__ import annotations

import io
import os
import threading

import pytest
from tests import needs

from DocsToKG.ContentDownload.validation import source
from DocsToKG.ContentDownload.validation.pdf.structure import prove_pdf
from DocsToKG.ContentDownload.validation.source import Sheet, lay_out, put_away
from DocsToKG.Sandbox.pdf import Paper, make_pdf


def paper(number: int, size_bytes: int) -> bytes:
    made = Paper(f"Paper number {number}", ("A. Nobody",), 2020, f"10.5555/sheet.{number}")
    return make_pdf(made, size_bytes=size_bytes, key=str(number))


@pytest.fixture(autouse=True)
def no_sheets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "FREE_SHEETS", [])


def contents(file: Sheet | io.BytesIO) -> bytes:
    file.seek(0)
    return file.read()


def test_a_sheet_holds_one_paper_after_another_and_nothing_of_the_last():
    for data in (b"long " * 5000, b"short", b"longer", b"x" * 70_000, b"y" * 70_000):
        file = lay_out(data)
        assert contents(file) == data
        put_away(file)
    assert len(source.FREE_SHEETS) == (1 if isinstance(file, Sheet) else 0)


def test_two_at_once_have_a_sheet_each():
    one, other = lay_out(b"one"), lay_out(b"other")
    assert (contents(one), contents(other)) == (b"one", b"other")


def test_proofs_at_the_same_time_see_their_own_paper():
    papers = [paper(number, size) for number, size in enumerate([3000, 90_000, 8000, 40_000])]
    papers = [data.replace(b"%PDF-1.7", b"%%PDF-1.%d" % number, 1) for number, data in enumerate(papers)]
    seen: list[tuple[int, str | None]] = []

    def prove_many(number: int) -> None:
        seen.extend((number, prove_pdf(papers[number]).version) for _ in range(50))

    threads = [threading.Thread(target=prove_many, args=[number]) for number in range(len(papers))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 200
    assert all(version == f"1.{number}" for number, version in seen)


def refuse(*_: object) -> int:
    raise OSError("not here")


def give_half(fd: int, data: bytes, at: int) -> int:
    return len(data) // 2


@needs.system(hasattr(os, "memfd_create"), "a system with files in memory")
@pytest.mark.parametrize(("call", "answer"), [("memfd_create", refuse), ("pwrite", refuse), ("pwrite", give_half)])
def test_without_a_sheet_the_verdict_is_the_same(monkeypatch, call, answer):
    damaged = paper(1, 5000).replace(b"/Length ", b"/Length 9", 1)
    expected = prove_pdf(damaged)
    assert expected.warnings
    assert all(source.SHEET_NAME not in note for note in expected.warnings)
    source.FREE_SHEETS.clear()
    monkeypatch.setattr(os, call, answer)
    assert isinstance(lay_out(damaged), io.BytesIO)
    assert prove_pdf(damaged) == expected
