"""Names of licences: the many spellings become one, and what is not known stays unsaid."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.ContentDownload.api.licences import family, spdx


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("cc-by", "CC-BY-4.0"),
        ("CC BY", "CC-BY-4.0"),
        ("ccby", "CC-BY-4.0"),
        ("CC-BY-4.0", "CC-BY-4.0"),
        ("cc_by_nc", "CC-BY-NC-4.0"),
        ("CC BY-NC-ND 3.0", "CC-BY-NC-ND-3.0"),
        ("cc by-sa-nc", "CC-BY-NC-SA-4.0"),
        ("CC BY 4.0 DEED", "CC-BY-4.0"),
        ("Creative Commons Attribution 4.0 International", "CC-BY-4.0"),
        ("Creative Commons Attribution-NonCommercial-NoDerivatives 4.0 International License", "CC-BY-NC-ND-4.0"),
        ("http://creativecommons.org/licenses/by/4.0/", "CC-BY-4.0"),
        ("https://creativecommons.org/licenses/by/4.0/legalcode.en", "CC-BY-4.0"),
        ("https://www.creativecommons.org/licenses/by-sa/2.5", "CC-BY-SA-2.5"),
        ("https://creativecommons.org/licenses/by/3.0/us/", "CC-BY-3.0-US"),
        ("CC BY 3.0 IGO", "CC-BY-3.0-IGO"),
        ("https://creativecommons.org/publicdomain/zero/1.0/", "CC0-1.0"),
        ("cc0", "CC0-1.0"),
        ("CC0 1.0 Universal", "CC0-1.0"),
        ("https://creativecommons.org/publicdomain/mark/1.0/", "CC-PDM-1.0"),
        ("mit", "MIT"),
        ("apache-2.0", "Apache-2.0"),
    ],
)
def test_spellings_of_a_licence_get_its_spdx_name(said: str, name: str) -> None:
    assert spdx(said) == name
    assert spdx(name) == name, "a name is its own spelling"


@pytest.mark.parametrize(
    "said",
    [
        None,
        "",
        "by",
        "publisher-specific-oa",
        "other-oa",
        "public-domain",  # CC0, a mark or an act of law: nobody said which
        "http://arxiv.org/licenses/nonexclusive-distrib/1.0/",
        "https://www.elsevier.com/tdm/userlicense/1.0/",
        "https://creativecommons.org/licenses/by-nc-nd/3.0/fr/",  # no name in SPDX
        "https://creativecommons.org/licenses/by/9.9/",
        "https://evil.org/?creativecommons.org/licenses/by/4.0/",
        "not cc by",
        "cc by nc nd sa",
    ],
)
def test_what_names_no_known_licence_gets_no_name(said: str | None) -> None:
    assert spdx(said) is None


@pytest.mark.parametrize(
    ("said", "kin"),
    [
        ("CC BY 3.0", "cc-by"),
        ("https://creativecommons.org/licenses/by-nc-nd/3.0/fr/", "cc-by-nc-nd"),
        ("cc0", "cc0"),
        ("public-domain", "public-domain"),
        ("MIT", "mit"),
        ("Apache-2.0", "apache"),
        ("other-oa", None),
        (None, None),
    ],
)
def test_a_family_leaves_version_and_country_out(said: str | None, kin: str | None) -> None:
    assert family(said) == kin


@given(st.text(max_size=2000))
def test_any_text_is_survived(said: str) -> None:
    name = spdx(said)
    assert name is None or spdx(name) == name
    family(said)
