"""DOIs in running text: found, compared, and told apart by what they may belong to.

Knows preprint servers, repositories of data and deposits, versions, parts of papers, and what templates leave behind.
"""

from __future__ import annotations

import functools
import re
from itertools import islice

_DOIS = 50
# A SICI, as journals before 2005 have it, names the paper between angle brackets: what ends before them is an issue.
_DOI = re.compile(
    r"10\.(?<!\w10\.)\d{4,9}(?:\.\d{1,9}){0,3}/[^\s\"<>{}|\\^`]{1,200}"
    r"(?:<[^\s<>\"]{1,80}>\d\.\d\.[a-z]{2};\d(?:-[\w#@*+])?)?",
    re.IGNORECASE,
)
_ISSUE = re.compile(r"/(?:\(sici\))?\d{4}-\d{3}[\dx]\(\d{4,8}(?:/\d{1,4})?\)\d{1,4}(?::[\da-z.]{1,9}(?:/\d{1,4})?)?$")
_ESCAPES = re.compile(r"%(?:25)?(3[abce]|2[89f])")
# Preprint servers: the published paper and its preprint are one work with two DOIs.
PREPRINTS = (
    "10.48550/", "10.1101/", "10.64898/", "10.2139/", "10.21203/", "10.20944/", "10.26434/", "10.31234/", "10.31219/",
    "10.31223/", "10.31235/", "10.35542/", "10.36227/", "10.22541/", "10.1002/essoar.", "10.32942/", "10.33774/",
    "10.51094/", "10.12688/", "10.5194/egusphere",
)  # fmt: skip
# Servers whose DOI stands for all versions of a paper: two of them are two papers.
ONE_DOI_A_PAPER = ("10.48550/", "10.1101/")
# Repositories of data, code and theses: their DOI on a paper names its data, or a deposited copy of the paper.
DEPOSITS = (
    "10.5281/", "10.5061/", "10.6084/", "10.17605/", "10.7910/", "10.1594/", "10.17632/", "10.24433/", "10.13140/",
    "10.17863/", "10.3929/", "10.25384/", "10.15468/", "10.18452/", "10.6075/", "10.17877/", "10.13039/",
)  # fmt: skip
_PLACEHOLDER = re.compile(r"x{3,}|n{4,}|/[0.]{7,}$|1122445\.1122456|10\.1000/|yyyy|insert|/doi$")
_VERSION = re.compile(r"(?:[./]v\d{1,2}|\.v\d{1,2}\.\d{1,2}|\.full|\.pdf|\.short|\.abstract)+$")
_COMPONENT = re.compile(r"[-./_](?:supplement|suppl?[-_]?\d{0,3}|s\d{3}|sd\d{1,3}|mmc\d{1,3}|esm\d{0,3})$")


def find_dois(text: str) -> tuple[str, ...]:
    """The DOIs in running text, lower case, without the punctuation around them, each once."""
    if "10." not in text:
        return ()
    found = (_plain(match[0].lower()) for match in islice(_DOI.finditer(_unescaped(text)), _DOIS))
    return tuple(dict.fromkeys(doi for doi in found if _ISSUE.search(doi) is None))


@functools.lru_cache(maxsize=1024)
def normal_doi(doi: str | None) -> str | None:
    """As DOIs are compared."""
    found = find_dois(doi[:500]) if doi else ()
    return found[0] if found else None


def is_part(doi: str, wanted: str) -> bool:
    """`x.s001`, `x-supplement`: made from the paper's DOI for one of its parts."""
    part = _COMPONENT.search(doi)
    return part is not None and _VERSION.sub("", doi[: part.start()]) == _VERSION.sub("", wanted) and doi != wanted


def is_part_doi(doi: str) -> bool:
    """The DOI is made as those of supplements are."""
    return _COMPONENT.search(doi) is not None


def same_doi(one: str, other: str) -> bool:
    """One paper: equal, or one continues the other (a version, the next word run into it), but not one of its parts."""
    if one == other:
        return True
    if is_part(one, other) or is_part(other, one):
        return False
    short, long = sorted((_VERSION.sub("", one), _VERSION.sub("", other)), key=len)
    # A digit that goes on is another number: 10.1/x.12 is not a part of 10.1/x.123.
    return long == short or (long.startswith(short) and not (short[-1].isdigit() and long[len(short)].isdigit()))


def is_placeholder(doi: str) -> bool:
    """Left over from a template."""
    return bool(_PLACEHOLDER.search(doi))


def may_be_twin(doi: str, wanted: str) -> bool:
    """The two DOIs may be of one paper: a preprint's, or a deposit's."""
    if any(name.startswith(DEPOSITS) for name in (doi, wanted)):
        return True
    if any(doi.startswith(server) and wanted.startswith(server) for server in ONE_DOI_A_PAPER):
        return False
    return any(name.startswith(PREPRINTS) for name in (doi, wanted))


def _unescaped(text: str) -> str:
    return text.replace("&lt;", "<").replace("&gt;", ">") if "&lt;" in text else text


def _plain(doi: str) -> str:
    """As it was registered: without the escapes of addresses and the punctuation of sentences."""
    if "%" in doi:
        doi = _ESCAPES.sub(lambda escape: chr(int(escape[1], 16)), doi)
    return _trim(doi)


def _trim(doi: str) -> str:
    while doi:
        if doi[-1] in ".,;:'’”" or (doi[-1] in ")]" and doi.count(doi[-1]) > doi.count({")": "(", "]": "["}[doi[-1]])):
            doi = doi[:-1]
        else:
            break
    return doi
