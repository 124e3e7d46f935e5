"""Identifiers of invented works, and the way back from each to the index it was made from.

DOIs follow the patterns of real registrants, odd characters and upper case included. A serial number of seven or more
digits hides in every DOI; arXiv ids, PMCIDs, PMIDs and OpenAlex ids are sums.
"""

from __future__ import annotations

import re
from hashlib import sha1

from DocsToKG.Sandbox.publishers import SERIAL_BASE
from DocsToKG.Sandbox.seeded_random import choose, fraction

PMC_BASE = 3_000_000
PMID_BASE = 20_000_000
OPENALEX_BASE = 2_000_000_000

_PLAIN_DOIS = (
    "10.5501/journal.opsh.{n}",
    "10.5502/s41586-{y}-{n}-4",
    "10.5503/j.cell.{y}.{n}",
    "10.5504/jc.v12i3.{n}",
    "10.55051/tide/{n}",
    "10.5506/bq/jbq{n}",
    "10.5507/{y}.03.11.{n}",
    "10.5508/fpsyg.{y}.{n}",
    "10.5509/JCO.{y}.{n}",
)
_ODD_DOIS = (
    "10.5510/S0140-6736({y}){n}-X",
    "10.5511/(SICI)1097-0258({y}0815)17:15<{n}::AID-SIM6>3.0.CO;2-I",
    "10.5512/{n}[{y}:abc]2.0;2",
    "10.5513//0033-2909.{n}",
    "10.5514/AMS#{n}",
    "10.5515/dir?id={n}",
)
_ARCHIVES = ("hep-th", "math", "astro-ph", "cond-mat", "quant-ph")
_NEW = re.compile(r"(\d{2})(\d{2})\.(\d{5})")
_OLD = re.compile(r"[a-z-]+/(\d{2})(\d{2})(\d{3})")
_NEW_MONTHS = 120  # 2015-01 to 2024-12
_OLD_MONTHS = 60  # 2000-01 to 2004-12


def doi_for(seed: int, index: int, year: int) -> str:
    patterns = _ODD_DOIS if fraction(seed, index, "odd doi") < 0.12 else _PLAIN_DOIS
    return choose(patterns, seed, index, "doi").format(n=SERIAL_BASE + index, y=year)


def arxiv_id_for(seed: int, index: int) -> str:
    """One in six is of the old style, while its three digits last."""
    if index // _OLD_MONTHS < 999 and fraction(seed, index, "old arxiv") < 1 / 6:
        number, month = divmod(index, _OLD_MONTHS)
        return f"{choose(_ARCHIVES, seed, index, 'archive')}/{month // 12:02d}{month % 12 + 1:02d}{number + 1:03d}"
    number, month = divmod(index, _NEW_MONTHS)
    return f"{15 + month // 12:02d}{month % 12 + 1:02d}.{number + 1:05d}"


def arxiv_index(arxiv_id: str) -> int | None:
    """The index an arXiv id without version was made from; whether that work has it is for the caller to see."""
    if match := _NEW.fullmatch(arxiv_id):
        year, month, number = map(int, match.groups())
        return (number - 1) * _NEW_MONTHS + (year - 15) * 12 + month - 1
    if match := _OLD.fullmatch(arxiv_id):
        year, month, number = map(int, match.groups())
        return (number - 1) * _OLD_MONTHS + year * 12 + month - 1
    return None


def pmcid_for(index: int) -> str:
    return f"PMC{PMC_BASE + index}"


def pmid_for(index: int) -> str:
    return str(PMID_BASE + index)


def openalex_id_for(index: int) -> str:
    return f"W{OPENALEX_BASE + index}"


def semantic_scholar_id_for(seed: int, index: int) -> str:
    """Forty hexadecimal digits, the first ten of them the index."""
    return f"{index:010x}{sha1(f'{seed}:{index}'.encode()).hexdigest()[:30]}"
