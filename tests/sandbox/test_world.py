"""The invented literature: stable, reversible, and with the shares it promises."""

from __future__ import annotations

import json
import subprocess
import sys

import pypdfium2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.core.digest import sha256_hex
from DocsToKG.Sandbox.faults import HARMLESS, OF_WORKS, TRANSIENT, Faults, failing_tries, fault_of_copy, settings_of
from DocsToKG.Sandbox.files import USUAL, Files
from DocsToKG.Sandbox.identifiers import OPENALEX_BASE, PMC_BASE, PMID_BASE, arxiv_id_for, arxiv_index
from DocsToKG.Sandbox.works import Work
from DocsToKG.Sandbox.world import World

SKELETON = {"unpaywall", "arxiv", "doi"}


def _works(world: World) -> list[Work]:
    return [world.work(index) for index in range(world.count)]


def test_a_world_stays_the_same_from_version_to_version() -> None:
    """Measured figures are comparable only on the same works; the words of random keys are easily changed unseen."""
    works = _works(World(seed=7, count=300))
    text = "\n".join(
        f"{work.doi} {work.title} {[(copy.pdf_url, copy.fault) for copy in work.copies]}" for work in works
    )
    assert sha256_hex(text.encode())[:16] == "3125cb7412d67e29"


def test_equal_seeds_make_equal_works_in_any_order() -> None:
    forwards, backwards = World(seed=3, count=50), World(seed=3, count=50)
    expected = [forwards.work(index) for index in range(50)]
    assert [backwards.work(index) for index in reversed(range(50))][::-1] == expected


@pytest.mark.slow
def test_another_process_makes_the_same_files() -> None:
    code = (
        "from DocsToKG.Sandbox.world import World; from hashlib import sha256; w = World(seed=5, count=3);"
        "print(sha256(w.file(2, 'publishedVersion')).hexdigest())"
    )
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert other.stdout.strip() == sha256_hex(World(seed=5, count=3).file(2, "publishedVersion"))


def test_a_seed_means_the_same_literature_in_every_version() -> None:
    """Figures that were measured on it are compared for years: a word that a draw is made by is no name to improve."""
    told = [
        [work.doi, work.title, *(copy.pdf_url for copy in work.copies)] for work in _works(World(seed=7, count=100))
    ]
    assert sha256_hex(json.dumps(told).encode())[:16] == "e6b1b7b41c440242"


def test_another_seed_makes_another_literature() -> None:
    here, there = _works(World(seed=1, count=40)), _works(World(seed=2, count=40))
    assert sum(a.title == b.title for a, b in zip(here, there, strict=True)) <= 2


def test_a_larger_world_begins_like_a_smaller_one() -> None:
    small, large = World(seed=9, count=100), World(seed=9, count=1_000)
    assert [work.doi for work in _works(small)] == [large.work(index).doi for index in range(100)]


@pytest.mark.slow
def test_every_identifier_leads_back_to_its_work() -> None:
    world = World(seed=7, count=2_000)
    for work in _works(world):
        assert world.by_doi(work.doi.swapcase()) is work
        assert world.by_number(int(work.openalex_id[1:]), OPENALEX_BASE, "openalex_id") is work
        if work.arxiv_id:
            assert world.by_arxiv_id(work.arxiv_id) is work
        if work.pmcid:
            assert world.by_number(int(work.pmcid[3:]), PMC_BASE, "pmcid") is work
        if work.pmid:
            assert world.by_number(int(work.pmid), PMID_BASE, "pmid") is work


@pytest.mark.slow
def test_identifiers_are_unique_and_some_dois_are_odd() -> None:
    works = _works(World(seed=7, count=2_000))
    assert len({work.doi.lower() for work in works}) == 2_000
    arxiv = [work.arxiv_id for work in works if work.arxiv_id]
    assert len(set(arxiv)) == len(arxiv)
    for char in "();<>[]#?":
        assert any(char in work.doi for work in works), char
    assert any(work.doi != work.doi.lower() for work in works)
    assert any("/" in name for name in arxiv), "old-style arXiv ids"


@given(st.integers(0, 10_000_000), st.integers(0, 50))
def test_arxiv_ids_can_be_read_back(index: int, seed: int) -> None:
    assert arxiv_index(arxiv_id_for(seed, index)) == index


def test_what_is_outside_the_world_is_not_found() -> None:
    world = World(seed=7, count=10)
    assert world.by_doi("10.5501/journal.opsh.1000010") is None
    assert world.by_doi("nonsense") is None
    assert world.by_arxiv_id("9912.99999") is None
    assert world.by_number(PMC_BASE - 1, PMC_BASE, "pmcid") is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [7, 1, 42])
def test_about_nine_in_ten_works_are_reachable_by_the_first_three_services(seed: int) -> None:
    works = _works(World(seed=seed, count=2_000))
    first = sum(bool(SKELETON & set(work.reachable_by)) for work in works) / len(works)
    anyhow = sum(bool(work.reachable_by) for work in works) / len(works)
    print(f"seed {seed}: reachable by unpaywall, arxiv or doi {first:.1%}, by any service {anyhow:.1%}")
    assert 0.85 < first < 0.97
    assert first + 0.01 < anyhow < 0.99, "a few only through other services, a few not at all"


@pytest.mark.slow
def test_without_faults_only_what_is_closed_or_elsewhere_is_out_of_reach() -> None:
    works = _works(World(seed=7, count=1_000, faults=Faults.none()))
    for work in works:
        closed = [copy for copy in work.copies if not copy.good]
        assert all(copy.publisher and copy.publisher.state != "open" for copy in closed)
    assert sum(not work.reachable_by for work in works) < 60


def test_each_fault_hits_about_its_share_of_copies() -> None:
    faults = Faults.none().with_settings(["slow=0.1", "reset=0.3"])
    met = [fault_of_copy(faults, 7, index, "publisher") for index in range(4_000)]
    assert abs(met.count("slow") / 4_000 - 0.1) < 0.02
    assert abs(met.count("reset") / 4_000 - 0.3) < 0.03
    assert met.count(None) + met.count("slow") + met.count("reset") == 4_000


def test_a_fault_set_to_one_is_met_by_every_copy() -> None:
    faults = Faults().with_settings(["html_as_pdf=1"])
    assert {fault_of_copy(faults, 7, index, "arxiv") for index in range(500)} == {"html_as_pdf"}


def test_fault_words_are_read_and_written() -> None:
    faults = Faults().with_settings(["slow=0.5"])
    assert Faults.none().with_settings(settings_of(faults)) == faults
    with pytest.raises(ValueError, match="known are"):
        Faults().with_settings(["slowly=0.5"])
    with pytest.raises(ValueError, match="NAME=SHARE"):
        Faults().with_settings(["slow"])
    with pytest.raises(ValueError, match="between 0 and 1"):
        Faults().with_settings(["slow=2"])


def test_every_fault_has_one_nature() -> None:
    names = set(Faults().shares())
    assert names >= TRANSIENT | HARMLESS | OF_WORKS
    assert not TRANSIENT & HARMLESS


def test_a_burst_of_server_errors_ends_after_two_tries_at_most() -> None:
    bursts = {failing_tries("server_error", 7, index, "publisher") for index in range(200)}
    assert bursts == {1, 2}


def test_duplicates_share_one_file_that_names_no_doi() -> None:
    world = World(seed=7, count=400, faults=Faults.none().with_settings(["duplicate=0.2"]))
    twin = next(work for work in _works(world) if work.origin != work.index)
    origin = world.work(twin.origin)
    assert twin.doi != origin.doi
    assert twin.title == origin.title
    file = world.file(twin.origin, "publishedVersion")
    assert (
        world.acceptable_files(twin)["publishedVersion"] == file == world.acceptable_files(origin)["publishedVersion"]
    )
    assert b"doi.org" not in file


def test_the_wrong_article_names_its_own_doi() -> None:
    world = World(seed=7, count=50, faults=Faults.none())
    wrong = world.wrong_file_for(world.work(4))
    assert wrong == world.file(5, "publishedVersion")
    assert World(seed=7, count=1, faults=Faults.none()).wrong_file_for(world.work(0)) != world.file(
        0, "publishedVersion"
    )


def test_an_empty_world_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one work"):
        World(count=0)


def test_renderings_have_about_their_shares() -> None:
    drawn = [Files().rendering(7, index, "publishedVersion") for index in range(4_000)]
    for name, share in USUAL.items():
        assert abs(drawn.count(name) / 4_000 - share) < 0.02, name
    assert "plain" in drawn


def test_settings_of_files_are_read_and_written() -> None:
    files = Files().with_settings(["latex=0.1", "cover=0.5"])
    assert Files.plain().with_settings(files.settings()) == files
    for wrong in ("papyrus=0.1", "latex", "latex=2", "latex=0.9"):
        with pytest.raises(ValueError, match=r"known are|NAME=SHARE|between 0 and 1|more than 1"):
            Files().with_settings([wrong])


def test_a_world_of_usual_files_has_all_renderings_and_covers() -> None:
    world = World(seed=7, count=60, size_bytes=8_000, faults=Faults.none(), files=Files())
    covered = 0
    for work in _works(world):
        for version, data in world.acceptable_files(work).items():
            document = pypdfium2.PdfDocument(data)
            extra = len(document) - work.page_count
            assert extra in ((0, 1) if version == "acceptedVersion" else (0,))
            covered += extra
            document.close()
    assert covered


@pytest.mark.parametrize("kind", ["cover_only", "first_page", "supplement", "notice"])
def test_a_part_bears_the_works_title_and_is_not_its_file(kind: str) -> None:
    world = World(seed=7, count=20, faults=Faults.none(), files=Files())
    work = world.work(3)
    part = world.part_for(work, kind)
    assert part not in world.acceptable_files(work).values()
    document = pypdfium2.PdfDocument(part)
    assert work.title in " ".join(document[0].get_textpage().get_text_range().split())
    document.close()
