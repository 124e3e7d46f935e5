"""A list joined with an index: each work gets what the index knows of it before it is queued.

The whole list is joined at once, however long; its lines are spooled to disk meanwhile and keep their order. What is
added to a work is read by `resolvers/index.py`.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.index.engine import Limits
from DocsToKG.ContentDownload.index.reader import Access, Index, KnownWork
from DocsToKG.ContentDownload.inputs import InputLine
from DocsToKG.ContentDownload.resolvers.links.copy_facts import INDEX

_MOST_COPIES = 12  # that travel with a work
_FIELDS = {"doi": "doi", "arxiv": "arxiv_id", "pmcid": "pmcid", "pmid": "pmid", "openalex": "openalex_id"}


def joined(lines: Iterable[InputLine], root: Path, *, limits: Limits) -> Iterator[InputLine]:
    """The lines in their order, their works with what the index in `root` knows."""
    spill = limits.spill or Path(tempfile.gettempdir())
    spill.mkdir(parents=True, exist_ok=True)
    with Index(root, limits=replace(limits, spill=spill)) as index, tempfile.TemporaryFile(dir=spill) as waiting:
        answers = index.join(_spooled(lines, waiting))
        answer = next(answers, None)  # by now every line has been read
        waiting.seek(0)
        for number, line in enumerate(_unspooled(waiting)):
            if answer is not None and answer[0] == number:
                yield _with_known(line, answer[1], index.manifest.built_at)
                answer = next(answers, None)
            else:
                yield line


def names_of(work: WorkArtifact) -> tuple[str, ...]:
    """The names by which an index may know a work, strongest first."""
    named = ((scheme, getattr(work, field)) for scheme, field in _FIELDS.items())
    return tuple(f"{scheme}:{value}" for scheme, value in named if value is not None)


def learned(work: WorkArtifact, known: KnownWork, built_at: str) -> WorkArtifact:
    """The work with what the index knows of it. A work that the index does not know stays as it is."""
    if known.access is Access.UNKNOWN and not known.ids:
        return work
    metadata = {
        "access": str(known.access),
        "built_at": built_at,
        "copies": [{name: value for name, value in copy.items() if value} for copy in known.copies[:_MOST_COPIES]],
    }
    first, _, last = (known.pages or "").partition("-")
    found = WorkArtifact(
        work.work_id,
        title=known.title,
        publication_year=known.year,
        authors=known.authors,
        first_page=first or None,
        last_page=last or None,
        oa_status=known.oa_status,
        is_retracted=known.is_retracted,
        metadata={INDEX: metadata} if known.access is not Access.UNKNOWN else {},
        **_ids(known.ids),
    )
    return work.learn(found)


def _ids(names: Sequence[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        scheme, _, value = name.partition(":")
        found.setdefault(_FIELDS[scheme], value)
    return found


def _with_known(line: InputLine, known: KnownWork, built_at: str) -> InputLine:
    assert line.work is not None
    return replace(line, work=learned(line.work, known, built_at))


def _spooled(lines: Iterable[InputLine], file: IO[bytes]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The numbered names of the works, while the lines go to a file of our own."""
    for number, line in enumerate(lines):
        pickle.dump(line, file, protocol=pickle.HIGHEST_PROTOCOL)
        if line.work is not None and line.duplicate_of is None and (names := names_of(line.work)):
            yield number, names


def _unspooled(file: IO[bytes]) -> Iterator[InputLine]:
    while True:
        try:
            yield pickle.load(file)
        except EOFError:
            return
