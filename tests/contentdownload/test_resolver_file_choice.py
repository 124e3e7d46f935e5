"""Which file of a deposit is the paper: names, sizes and titles."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.ContentDownload.resolvers.repositories.file_choice import DepositedFile, papers_among

TITLE = "Slow rivers and quick deltas: a survey"


def files(*names: str) -> list[DepositedFile]:
    return [
        DepositedFile(name, f"https://r.example.org/{place}", size_bytes=100 + place)
        for place, name in enumerate(names)
    ]


def chosen(*names: str, title: str | None = TITLE, is_text: bool = True) -> list[str]:
    return [file.name for file in papers_among(files(*names), title=title, is_text=is_text)]


@pytest.mark.parametrize(
    "name",
    [
        "supplement.pdf", "Smith_Supplementary_Material.pdf", "SupplementaryInformation.pdf", "supp.pdf", "S1_supp.pdf",
        "supporting-information.pdf", "paper_SI.pdf", "SI2.pdf", "41586_2020_MOESM1_ESM.pdf", "Appendix A.pdf",
        "AppendixB.pdf", "annex.pdf", "cover.pdf", "README.pdf", "LICENSE.pdf", "Fig1.pdf", "figures.pdf", "Table2.pdf",
        "additional file 1.pdf", "response_to_reviewers.pdf",
    ],
)  # fmt: skip
def test_a_supplement_is_not_the_paper(name: str) -> None:
    assert chosen(name) == []
    assert chosen(name, "smith2020.pdf") == ["smith2020.pdf"]


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("cover-crops.pdf", "Cover crops in dry land"),
        ("Supplementary_feeding.pdf", "Supplementary feeding of birds"),
        ("the-appendix.pdf", "What is the appendix for?"),
        ("Si-nanowires.pdf", None),
        ("configuration.pdf", None),
        ("suppression.pdf", None),
        ("tablet.pdf", None),
        ("discovery.pdf", None),
    ],
)
def test_a_paper_is_not_taken_for_a_supplement(name: str, title: str | None) -> None:
    """A word of the title is no evidence against a file, nor is a part of another word."""
    assert chosen(name, title=title) == [name]


def test_only_pdfs_count_whatever_says_so() -> None:
    found = [
        DepositedFile("data.csv", "https://r.example.org/1"),
        DepositedFile("paper.PDF", "https://r.example.org/2"),
        DepositedFile("accepted", "https://r.example.org/3", mime="application/pdf; charset=binary"),
        DepositedFile("page.html", "https://r.example.org/4", mime="application/pdf"),
        DepositedFile("notes.docx", "https://r.example.org/5", mime="application/msword"),
    ]
    assert [file.name for file in papers_among(found, title=None)] == ["paper.PDF", "accepted"]


def test_the_file_called_after_the_title_is_chosen_and_the_largest_of_those() -> None:
    names = ("aa.pdf", "SlowRiversDraft.pdf", "slow_rivers_quick_deltas_v1.pdf", "Slow-Rivers-Quick-Deltas-v2.pdf")
    assert chosen(*names) == [names[3], names[2], names[1]]


def test_without_a_title_the_order_of_the_record_stands_and_slides_go_last() -> None:
    assert chosen("talk_slides.pdf", "b.pdf", "a.pdf") == ["b.pdf", "a.pdf", "talk_slides.pdf"]
    assert chosen("poster.pdf") == ["poster.pdf"]


def test_a_heap_of_files_that_nothing_tells_apart_gives_none() -> None:
    assert chosen("1.pdf", "2.pdf", "3.pdf", "4.pdf") == []
    assert chosen("1.pdf", "2.pdf", "slow rivers.pdf", "4.pdf") == ["slow rivers.pdf"]


def test_beside_data_a_pdf_counts_only_under_the_title() -> None:
    assert chosen("manual.pdf", is_text=False) == []
    assert chosen("manual.pdf", "quick_deltas.pdf", is_text=False) == ["quick_deltas.pdf"]
    assert chosen("manual.pdf", is_text=False, title=None) == []


def test_accents_and_other_scripts_do_not_hide_a_title() -> None:
    assert chosen("a.pdf", "Etude_Hydrologie.pdf", title="Étude d'hydrologie")[0] == "Etude_Hydrologie.pdf"
    assert chosen("a.pdf", "медленные_реки.pdf", title="Медленные реки")[0] == "медленные_реки.pdf"


@pytest.mark.slow
@given(st.lists(st.text(max_size=40), max_size=8), st.none() | st.text(max_size=60), st.booleans())
def test_the_choice_is_among_the_given_and_small(names: list[str], title: str | None, is_text: bool) -> None:
    given_files = files(*names)
    found = papers_among(given_files, title=title, is_text=is_text)
    assert len(found) <= 3
    assert set(found) <= set(given_files)
