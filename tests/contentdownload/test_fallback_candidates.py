"""When two addresses are one copy, and when they only look like it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.ContentDownload.fallback.candidates import copy_key

ZENODO = "https://zenodo.org/records/123/files/paper.pdf"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://a.org/x.pdf", "https://A.org/x.pdf#page=2"),
        ("https://a.org/x?b=1&a=2", "https://a.org/x?a=2&b=1&utm_source=q"),
        ("https://arxiv.org/pdf/2101.00001v2", "https://export.arxiv.org/pdf/2101.00001v2.pdf"),
        ("http://www.arxiv.org/pdf/hep-th/9901001", "https://arxiv.org/pdf/hep-th/9901001.pdf"),
        ("https://doi.org/10.1000/AbC", "http://dx.doi.org/10.1000/abc"),
        ("https://www.doi.org/10.1000/a%28b%29", "https://doi.org/10.1000/a(b)"),
        (ZENODO, "https://zenodo.org/record/123/files/paper.pdf?download=1"),
        (ZENODO, "https://zenodo.org/api/records/123/files/paper.pdf/content"),
        ("https://ndownloader.figshare.com/files/42", "https://figshare.com/ndownloader/files/42"),
        ("https://a.org/x.pdf;jsessionid=0A1B", "https://a.org/x.pdf;jsessionid=FF"),
        ("https://a.org/x.pdf?token=abc", "https://a.org/x.pdf"),
        ("https://europepmc.org/articles/pmc7?pdf=render", "https://europepmc.org/articles/PMC7?pdf=render"),
    ],
)
def test_spellings_of_one_copy_have_one_key(one: str, other: str) -> None:
    assert copy_key(one) == copy_key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://a.org/x", "https://www.a.org/x"),  # another host
        ("https://arxiv.org/pdf/2101.00001v1", "https://arxiv.org/pdf/2101.00001v2"),  # another version
        ("https://arxiv.org/pdf/2101.00001", "https://arxiv.org/pdf/2101.00001v1"),  # the latest may be a later one
        ("https://arxiv.org/abs/2101.00001", "https://arxiv.org/pdf/2101.00001"),  # a page is not its file
        # On these platforms the parameter turns a viewer into the file.
        ("https://www.science.org/doi/pdf/10.1/x", "https://www.science.org/doi/pdf/10.1/x?download=true"),
        ("https://zenodo.org/records/123/files/paper.pdf", "https://zenodo.org/records/123/files/other.pdf"),
        ("https://zenodo.org/records/123/files/paper.pdf", "https://zenodo.org/records/124/files/paper.pdf"),
        # Three servers of PubMed Central's papers: when one refuses, another may not.
        ("https://pmc.ncbi.nlm.nih.gov/articles/PMC7/pdf/x.pdf", "https://europepmc.org/articles/PMC7?pdf=render"),
        (
            "https://pmc-oa-opendata.s3.amazonaws.com/PMC7.1/PMC7.1.pdf",
            "https://europepmc.org/articles/PMC7?pdf=render",
        ),
        ("https://a.org/get?token=abc", "https://a.org/get?token=def"),  # the token may be the file's name
        ("https://evil.org/arxiv.org/pdf/2101.00001", "https://arxiv.org/pdf/2101.00001"),
    ],
)
def test_what_may_be_another_file_has_another_key(one: str, other: str) -> None:
    assert copy_key(one) != copy_key(other)


@given(st.text(max_size=300))
def test_what_is_no_address_is_its_own_key(text: str) -> None:
    assert copy_key(text) == text or text.strip().lower().startswith("http")


@given(st.sampled_from(["arxiv.org", "doi.org/10.1000"]), st.text(max_size=300))
def test_the_scheme_tells_no_copies_apart(host: str, text: str) -> None:
    plain, safe = f"http://{host}/{text}", f"https://{host}/{text}"
    keys = copy_key(plain), copy_key(safe)
    assert keys[0] == keys[1] or keys == (plain, safe)
