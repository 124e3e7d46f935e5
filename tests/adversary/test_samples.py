"""Samples are made as they are written: so many pages, texts at their places. No sample is judged here."""

from __future__ import annotations

import pypdfium2
import pytest
from tests.adversary import second_set, third_set
from tests.adversary.case import Case
from tests.adversary.samples import Made, SampleSet, Text, document_of, known

WORK = known("10.6200/x.1", "Herons at lit quays", "Ada Quill", 2016, "Wader Studies", "12(4)", "201-209")
SAMPLES = [*second_set.cases(), *third_set.cases()]


def texts(data: bytes) -> list[str]:
    document = pypdfium2.PdfDocument(data)
    try:
        return [page.get_textpage().get_text_range() for page in document]
    finally:
        document.close()


def test_a_document_has_the_pages_that_were_written() -> None:
    document = document_of([Text("One"), Text("Above", at=(62, 800))], [Text("Two"), Text("77", at=(290, 34))])
    case = Case("two pages", WORK, document, ("plain",), right=False)
    first, second = texts(case.file("plain"))
    assert first.split() == ["One", "Above"]
    assert second.split() == ["Two", "77"]


def test_a_page_that_is_too_full_is_refused() -> None:
    with pytest.raises(ValueError, match="does not fit"):
        document_of([Text("word " * 9_000)])


def test_a_set_gives_its_samples_four_renderings() -> None:
    samples = SampleSet()
    samples.impostor(lambda: Made(WORK, document_of([Text("An invoice")])))
    samples.right(lambda: Made(WORK, document_of([Text(WORK.title)]), ("word",)))
    impostor, right = samples.cases()
    assert (impostor.right, len(set(impostor.renderings))) == (False, 4)
    assert (right.right, right.renderings) == (True, ("word",))


def test_each_sample_has_a_name_of_its_own() -> None:
    for samples in (second_set.cases(), third_set.cases()):
        assert len({case.name for case in samples}) == len(samples)


@pytest.mark.parametrize("case", SAMPLES, ids=lambda case: case.name)
def test_a_sample_can_be_made_and_has_text(case: Case) -> None:
    assert any(text.strip() for text in texts(case.file(case.renderings[0])))
