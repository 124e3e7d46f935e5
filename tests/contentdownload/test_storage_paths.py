"""Names people read: never shared by two works, never outside the root, the same on every system."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.storage.cas import cas_key, cas_path
from DocsToKG.ContentDownload.storage.paths import human_path, inside, numbered, safe_id, title_slug

ROOT = Path("store")


def work(work_id: str = "doi:10.1/x", title: str | None = "A Title", year: int | None = 2021) -> WorkArtifact:
    return WorkArtifact(work_id=work_id, title=title, publication_year=year)


def test_a_name_says_year_title_and_id():
    assert re.fullmatch(
        r"PDF/2021__deep-learning-a-review__doi-10\.1038-nature14539_[0-9a-f]{12}\.pdf",
        human_path(work("doi:10.1038/nature14539", "Deep Learning: a Review")),
    )
    assert human_path(work(), kind="xml").startswith("XML/")


def test_what_is_not_known_is_said_so():
    assert human_path(work(title=None, year=None)).startswith("PDF/n.d.__untitled__")
    assert human_path(work(title="深度学习", year=-5)).startswith("PDF/n.d.__untitled__")


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Über die Größe des Ærø", "uber-die-grosse-des-aero"),
        ("ﬁne Ⅷ ｆｕｌｌ", "fine-viii-full"),
        ("../../etc/passwd", "etc-passwd"),
        ("a\u202egpj.exe\x00", "agpj-exe"),
        ("CON", "con"),
        ("-- ..", "untitled"),
    ],
)
def test_a_title_becomes_plain_words(title, slug):
    assert title_slug(title) == slug


def test_a_long_title_is_cut_between_words():
    slug = title_slug("word " * 100)
    assert len(slug) <= 80
    assert slug.endswith("word")
    assert len(title_slug("x" * 500)) == 80


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("doi:10.1/ab", "doi:10.1/AB"),
        ("doi:10.1/a-b", "doi:10.1/a/b"),
        ("arxiv:math.CA/0611800", "arxiv:math.ca/0611800"),
        ("doi:10.1/x<1>", "doi:10.1/x<2>"),
        ("doi:10.1/" + "x" * 300 + "1", "doi:10.1/" + "x" * 300 + "2"),
        ("\u212a", "k"),
        ("", "-"),
    ],
)
def test_ids_that_look_alike_get_different_names(one, other):
    """STO-04: two works never overwrite each other, also where case does not count."""
    assert safe_id(one).casefold() != safe_id(other).casefold()


def test_an_id_cannot_be_made_to_equal_anothers_name():
    victim = safe_id("doi:10.1/x")
    assert safe_id(victim) != victim


ids = st.text(alphabet=st.sampled_from("aAbB10./-_:;~ é\u0301\u212a\\\x00"), max_size=8) | st.text(max_size=40)


@pytest.mark.slow
@examples(300)
@given(ids, ids, st.text(max_size=200), st.integers() | st.none())
def test_every_name_is_legal_everywhere_and_belongs_to_one_work(one, other, title, year):
    """DL-15: whatever a server or a user supplies, the name stays below the root."""
    name = human_path(work(one, title, year))
    path = inside(ROOT, name)
    assert path.is_relative_to(ROOT)
    assert path.name.isascii()
    assert len(path.name.encode()) <= 200
    if one != other:
        assert human_path(work(other, title, year)).casefold() != name.casefold()


@pytest.mark.parametrize(
    "bad",
    [
        "", "/etc/passwd", "../x.pdf", "PDF/../../x.pdf", "PDF//x.pdf", "PDF/./x.pdf", "PDF\\..\\x.pdf", "C:/x.pdf",
        "PDF/nul.pdf", "PDF/COM1", "PDF/aux", "PDF/x.pdf ", "PDF/x.", "PDF/x\x00.pdf", "PDF/a\nb.pdf", "PDF/ü.pdf",
        "PDF/" + "x" * 256, "a/" * 600 + "x", "PDF/x.pdf:stream", "cas/sha256/aa/bb", "CAS/x", ".tmp/part-x", "PDF/",
    ],
)  # fmt: skip
def test_a_name_that_could_lead_elsewhere_is_refused(bad):
    with pytest.raises(CandidateRejected) as caught:
        inside(ROOT, bad)
    assert caught.value.reason == Reason.PATH_POLICY


def test_a_folder_that_links_out_of_the_root_is_refused(tmp_path):
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    root.mkdir()
    elsewhere.mkdir()
    (root / "PDF").symlink_to(elsewhere)
    with pytest.raises(CandidateRejected, match="path-policy"):
        inside(root, "PDF/x.pdf")


def test_a_sibling_keeps_the_extension_and_no_work_has_its_name():
    assert numbered("PDF/2021__a__b.pdf", 2) == "PDF/2021__a__b__2.pdf"
    assert numbered("PDF/n.d.__a__b.xml", 3) == "PDF/n.d.__a__b__3.xml"


def test_the_place_of_bytes_depends_on_the_digest_alone():
    """TEST-10, STO-02."""
    digest = "ab" + "0" * 62
    assert cas_path(ROOT, digest) == ROOT / "cas" / "sha256" / "ab" / ("0" * 62)
    assert cas_key(digest) == "cas/sha256/ab/" + "0" * 62


@pytest.mark.parametrize("bad", ["", "ab", "AB" + "0" * 62, "../" + "0" * 61, "0" * 64 + "\n", "g" * 64, "٣" * 64])
def test_only_a_digest_becomes_a_path(bad):
    with pytest.raises(ValueError, match="SHA-256"):
        cas_path(ROOT, bad)
