"""Which of a deposit's files is the paper?

Knows usual names of supplements and covers, and that papers are often named after their title. Pure: compares names,
types and sizes; the validation of the downloaded bytes decides.
Promises: a word of the title never excludes a file; of many files that cannot be told apart none is chosen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from DocsToKG.ContentDownload.api.types import Supplement

# More than this many files that look alike are a collection, of which any single one would be a wrong paper.
_MOST = 3
_WORDS_OF_TITLE = 12
_SHORTEST_WORD = 4
_NOT_THE_PAPER = re.compile(
    r"supp|suppl\w*|supporting|supportinginfo\w*|moesm\d*|esm\d*|append(?:ix|ices)\w*|annexe?s?|additional|attachment"
    r"|cover|coverpage|frontmatter|toc|readme|licen[cs]e|checklist|questionnaire|codebook|reviewers?|rebuttal"
    r"|fig(?:ure)?s?\d*|tables?\d*"
)
# These stand beside a paper, but may be all that a deposit is about.
_BESIDE_IT = re.compile(r"slides?|poster|presentation|talk|handout|flyer")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class DepositedFile:
    """A file as a repository's record describes it."""

    name: str
    url: str
    size_bytes: int | None = None
    checksum: str | None = None
    mime: str | None = None


def papers_among(
    files: Iterable[DepositedFile], *, title: str | None, is_text: bool = True
) -> tuple[DepositedFile, ...]:
    """The PDFs that may be the paper called `title`, the likeliest first.

    Beside data or code (`is_text` false) a PDF counts only when it bears the title: others are its documentation.
    """
    words = title_words(title)
    pdfs = [file for file in files if _is_pdf(file) and not _is_something_else(file.name, words)]
    scores = {file: _title_score(file.name, words) for file in pdfs}
    titled = [file for file in pdfs if words and scores[file] >= min(2, len(words))]
    if titled:
        return tuple(sorted(titled, key=lambda file: _rank(file, scores))[:_MOST])
    if not is_text or len(pdfs) > _MOST:
        return ()
    return tuple(sorted(pdfs, key=lambda file: _stands_beside(file.name)))


def other_files(
    papers: Collection[DepositedFile], files: Iterable[DepositedFile], source: str
) -> tuple[Supplement, ...]:
    """The other files of a deposit whose paper was found."""
    if not papers:
        return ()
    others = (file for file in files if file not in papers)
    return tuple(
        Supplement(file.url, file.name, source, checksum=file.checksum, size_bytes=file.size_bytes) for file in others
    )


def title_words(title: str | None) -> frozenset[str]:
    """The telling words at the start of a title, in plain letters; file names are rarely longer."""
    found = [word for word in re.findall(r"\w+", _plain(title or "")) if len(word) >= _SHORTEST_WORD]
    return frozenset(found[:_WORDS_OF_TITLE])


def _rank(file: DepositedFile, scores: Mapping[DepositedFile, int]) -> tuple[bool, int, int]:
    return _stands_beside(file.name), -scores[file], -(file.size_bytes or 0)


def _is_pdf(file: DepositedFile) -> bool:
    mime = (file.mime or "").partition(";")[0].strip().lower()
    named = file.name.lower().endswith(".pdf")
    return named or (mime == "application/pdf" and "." not in file.name[-6:])


def _is_something_else(name: str, title: frozenset[str]) -> bool:
    parts = _parts(name)
    # Chemists call the supporting information "SI"; elsewhere in a name the letters may be silicon.
    if parts and parts[-1].rstrip("0123456789") == "SI":
        return True
    plain = (_plain(part) for part in parts)
    return any(_NOT_THE_PAPER.fullmatch(part) and part not in title for part in plain)


def _stands_beside(name: str) -> bool:
    return any(_BESIDE_IT.fullmatch(_plain(part)) for part in _parts(name))


def _title_score(name: str, title: frozenset[str]) -> int:
    """How many words of the title the name holds, also when they are run together."""
    squeezed = "".join(re.findall(r"\w+", _plain(name)))
    return sum(word in squeezed for word in title)


def _parts(name: str) -> list[str]:
    stem = name[:300].rpartition(".")[0] or name[:300]
    return [part for part in re.split(r"[\W_]+", _HUMP.sub(" ", stem)) if part]


def _plain(text: str) -> str:
    split = unicodedata.normalize("NFKD", text[:2000])
    return "".join(char for char in split if not unicodedata.combining(char)).lower()
