"""The adversary's files are what they claim to be: whole PDFs with the text that the case is about."""

from __future__ import annotations

import io

import pikepdf
import pypdfium2
import pytest
from tests.adversary import impostors, right_files
from tests.adversary.case import Case

from DocsToKG.Sandbox.pdf.renderings import RENDERINGS

IMPOSTORS, RIGHT_FILES = impostors.cases(), right_files.cases()
CASES = [*IMPOSTORS, *RIGHT_FILES]
# A rendering that is the case itself.
ONE_RENDERING = {"a_scan_without_text", "a_scan_with_text_behind_it"}
LITTLE_TEXT = {"a_blank_page", "an_error_page", "the_cover_of_the_issue"}


def letters(data: bytes) -> int:
    document = pypdfium2.PdfDocument(data)
    try:
        return sum(len(page.get_textpage().get_text_range()) for page in document)
    finally:
        document.close()


def test_there_are_sixty_cases_of_each_in_four_renderings() -> None:
    assert len(IMPOSTORS) >= 60
    assert len(RIGHT_FILES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    for case in CASES:
        assert case.name in ONE_RENDERING or len(set(case.renderings)) >= 4, case.name
    assert {rendering for case in CASES for rendering in case.renderings} == set(RENDERINGS)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_a_whole_pdf_with_text(case: Case) -> None:
    data = case.file(case.renderings[0])
    with pikepdf.open(io.BytesIO(data), attempt_recovery=False) as pdf:
        assert pdf.get_warnings() == []
    assert case.text == (letters(data) > 0)
    assert not case.text or case.name in LITTLE_TEXT or letters(data) >= 150


@pytest.mark.slow
@pytest.mark.parametrize("case", RIGHT_FILES, ids=lambda case: case.name)
def test_a_right_file_has_the_pages_of_its_work(case: Case) -> None:
    with pikepdf.open(io.BytesIO(case.file(case.renderings[0]))) as pdf:
        assert len(pdf.pages) >= case.work.pages


@pytest.mark.slow
def test_no_impostor_shares_its_bytes_with_a_right_file() -> None:
    right = {case.file("plain") for case in RIGHT_FILES if "plain" in case.renderings}
    assert not right & {case.file("plain") for case in IMPOSTORS}
