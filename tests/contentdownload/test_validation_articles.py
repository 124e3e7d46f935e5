"""Another paper's XML or HTML is recognised, and a doubt is decided for the file."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import quote

import pytest

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.articles.identity import doi_in, judge_identity, proof_of
from DocsToKG.ContentDownload.validation.dois import find_dois, same_doi
from DocsToKG.ContentDownload.validation.report import TextFacts

WANTED = "10.1016/j.nets.2020.01.005"
OTHER = "10.1093/bio/btz123"
TITLE = "On the shape of very deep networks"
SICI = "10.1002/(sici)1097-4571(199806)49:8<693::aid-asi4>3.0.co;2-o"


def file(declared: str = "", title: str | None = None) -> TextFacts:
    return TextFacts(form="xml", chars=9_000, title=title, doi_declared=find_dois(declared))


def work(doi: str | None = WANTED, **more: str) -> WorkArtifact:
    return WorkArtifact(work_id=f"doi:{doi}" if doi else "url:x", doi=doi, title=TITLE, **more)  # type: ignore[arg-type]


def rejected(facts: TextFacts, wanted: WorkArtifact | None = None, page_doi: str | None = None) -> bool:
    try:
        judge_identity(facts, wanted or work(), page_doi=page_doi)
    except CandidateRejected as error:
        return error.reason == Reason.WRONG_ARTICLE
    return False


@pytest.mark.parametrize(
    "facts",
    [
        file(declared=OTHER),
        file(declared=f"doi:{OTHER.upper()}"),
        file(declared=OTHER, title="Another title"),
    ],
)
def test_a_file_that_names_itself_another_paper_is_rejected(facts):
    assert rejected(facts)


def test_a_landing_page_of_another_paper_rejects_its_file():
    assert rejected(file(), page_doi=f"https://doi.org/{OTHER}")
    assert not rejected(file(), page_doi=f"doi:{WANTED.upper()}")
    assert not rejected(file(declared=WANTED), page_doi=OTHER)


@pytest.mark.parametrize(
    "facts",
    [
        file(),
        file(declared=WANTED),
        file(declared=WANTED.upper()),
        file(declared=f"{OTHER} and 10.5555/third.1"),
        file(declared=f"{WANTED}/v2"),
    ],
)
def test_the_wanted_doi_anywhere_or_a_doubt_keeps_the_file(facts):
    assert not rejected(facts)


@pytest.mark.parametrize(
    "preprint", ["10.48550/arxiv.2101.00001", "10.1101/2020.01.01.123456", "10.2139/ssrn.3", "10.21203/rs.3.rs-1/v1"]
)
def test_a_preprint_and_its_published_paper_are_one_work(preprint):
    assert not rejected(file(declared=preprint))
    assert not rejected(file(declared=WANTED), work(preprint))
    assert not rejected(file(), page_doi=preprint)


@pytest.mark.parametrize("suffix", [".s001", "-supplement", "/suppl", ".suppl1", "-mmc1"])
def test_a_part_with_a_doi_of_its_own_is_a_supplement(suffix):
    with pytest.raises(CandidateRejected, match="supplement"):
        judge_identity(file(declared=WANTED + suffix), work())
    assert not rejected(file(declared=WANTED + suffix), work(WANTED + suffix))
    assert rejected(file(declared=WANTED), work(WANTED + suffix))


def test_a_deposited_copy_is_kept():
    assert not rejected(file(declared="10.5281/zenodo.123456"))


@pytest.mark.parametrize(
    "template", ["10.1145/nnnnnnn.nnnnnnn", "10.1145/1122445.1122456", "10.1109/access.2020.xxxxxxx"]
)
def test_a_doi_left_over_from_a_template_names_nothing(template):
    assert not rejected(file(declared=template))


def test_a_file_that_bears_the_wanted_title_is_kept():
    assert not rejected(file(declared=OTHER, title="On the Shape of Very Deep Networks."))


def test_a_short_title_is_no_evidence():
    editorial = WorkArtifact(work_id=f"doi:{WANTED}", doi=WANTED, title="Editorial")
    assert rejected(file(declared=OTHER, title="Editorial"), editorial)


def test_neighbours_in_one_issue_are_different_papers():
    assert rejected(file(declared="10.5555/sim.13"), work("10.5555/sim.12"))
    assert rejected(file(declared="10.5555/sim.123"), work("10.5555/sim.12"))


def test_without_a_wanted_doi_nothing_is_judged():
    assert not rejected(file(declared=OTHER), work(None, arxiv_id="2101.00001"))


def test_the_wanted_doi_may_stand_in_the_work_id_alone():
    assert rejected(file(declared=OTHER), WorkArtifact(work_id=f"doi:{WANTED}"))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("(see doi:10.1000/182).", ("10.1000/182",)),
        (f"doi: {SICI.upper()}.", (SICI,)),
        (SICI.replace("<", "&lt;").replace(">", "&gt;"), (SICI,)),
        (f"https://doi.org/{quote(SICI, safe='/')}", (SICI,)),
        ("10.1175/1520-0469(1971)028<0181:TROPBT>2.0.CO;2", ("10.1175/1520-0469(1971)028<0181:tropbt>2.0.co;2",)),
        ("10.1061/(ASCE)0733-9429(2006)132:10(1061)", ("10.1061/(asce)0733-9429(2006)132:10(1061)",)),
        # Cut off at the end of a line, it names an issue and no paper.
        ("https://doi.org/10.1002/(SICI)1097-4679(199911)55:11<1", ()),
        ("10.1002/(SICI)1097-0258(19980815/30)17:15/16", ()),
        ("<doi>10.1234/abc</doi>", ("10.1234/abc",)),
        ("10.1234/a, 10.1234/a; 10.1234/b", ("10.1234/a", "10.1234/b")),
        ("10.12/short 110.1234/x 10.1234 /y", ()),
    ],
)
def test_dois_are_found_without_the_punctuation_around_them(text, found):
    assert find_dois(text) == found


def test_two_papers_of_one_old_issue_are_two():
    """Their DOIs differ between the angle brackets alone."""
    other = SICI.replace("693", "721").replace("asi4", "asi7")
    assert not same_doi(SICI, other)
    wanted = WorkArtifact(f"doi:{SICI}", doi=SICI)
    with pytest.raises(CandidateRejected) as caught:
        judge_identity(file(other), wanted)
    assert caught.value.reason == Reason.WRONG_ARTICLE
    assert proof_of(file(SICI), wanted) == "proved"


@pytest.mark.parametrize(
    ("declared", "title", "known", "proof"),
    [
        ("10.1234/A", None, {"doi": "10.1234/a"}, "proved"),
        ("", "The wanted title of this paper", {"title": "The wanted title of this paper"}, "probable"),
        ("", "Another", {"title": "The wanted title of this paper"}, "unproved"),
        ("", None, {"doi": "10.1234/a"}, "unproved"),
        ("10.1234/a", "Any", {}, "not-judged"),
    ],
)
def test_full_text_says_how_sure_it_is(declared, title, known, proof):
    wanted = WorkArtifact(f"doi:{known['doi']}" if "doi" in known else "url:https://a.org/1", **known)
    assert proof_of(file(declared, title), wanted) == proof
    numbered = TextFacts(form="xml", chars=9_000, pmcid="PMC7")
    assert proof_of(numbered, WorkArtifact("pmcid:PMC7", pmcid="PMC7")) == "proved"


@pytest.mark.parametrize(
    ("wanted", "declared", "file_title", "is_other"),
    [
        ("10.48550/arxiv.2101.00001", "10.48550/arxiv.2102.00002", None, True),
        ("10.5555/published.1", "10.48550/arxiv.2102.00002", "Quite another story about fishes", True),
        ("10.5555/published.1", "10.48550/arxiv.2102.00002", "The wanted title of this paper", False),
        ("10.5555/published.1", "10.48550/arxiv.2102.00002", None, False),
        ("10.5555/published.1", "10.48550/arxiv.2102.00002", "Microsoft Word - final.doc", False),
        ("10.48550/arxiv.2101.00001", "10.5555/published.2", "Quite another story about fishes", True),
    ],
)
def test_a_preprint_and_its_published_paper_are_told_from_strangers(
    wanted: str, declared: str, file_title: str | None, is_other: bool
) -> None:
    facts = file(declared, file_title)
    work = WorkArtifact(f"doi:{wanted}", doi=wanted, title="The wanted title of this paper")
    if is_other:
        with pytest.raises(CandidateRejected, match="wrong-article"):
            judge_identity(facts, work)
    else:
        judge_identity(facts, work)


def test_a_work_known_by_its_arxiv_id_alone_is_told_from_strangers() -> None:
    facts = file("10.5555/other.2", "Quite another story about fishes")
    work = WorkArtifact("arxiv:1612.00003", arxiv_id="1612.00003", title="The wanted title of this paper")
    with pytest.raises(CandidateRejected, match="wrong-article"):
        judge_identity(facts, work)
    judge_identity(facts, replace(work, title=None))


def test_the_doi_for_the_record_is_the_works_own_where_the_file_has_it():
    assert doi_in(file(declared=f"{OTHER} {WANTED}"), work()) == WANTED
    assert doi_in(file(declared=OTHER), work()) == OTHER
    assert doi_in(file(), work()) is None
