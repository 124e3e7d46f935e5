"""What every index is asked first: did it answer, and is the answer about our paper?

Knows the statuses that all of them share and the identifiers a paper goes by. Does not know any service's fields.
Promises: a busy service is a `TransientFailure`, every other odd answer a note; nothing else is raised.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from DocsToKG.ContentDownload.api.ports import Page
from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.resolvers.answers import read_object
from DocsToKG.ContentDownload.resolvers.base import refuse_busy

# The strongest first: where both sides know one of these, it decides.
_IDENTIFIERS = ("doi", "arxiv_id", "pmid", "pmcid")


def record_or_note(page: Page, *, service: str, check: str) -> Mapping[str, Any] | str:
    """The object answered, or a note why there is none; `check` tells the user of a refused call what to look at."""
    refuse_busy(page)
    if page.status == 404:
        return "not_in_index"
    if page.status in (401, 403):
        return f"refused: {service} answered {page.status}; {check}"
    if page.status != 200:
        return f"http-status: {page.status}"
    record = read_object(page)
    return "malformed_answer" if record is None else record


def other_paper(work: WorkArtifact, said: WorkArtifact) -> str | None:
    """A note when the answer is about another paper than `work`; silence on both sides is no contradiction."""
    for name in _IDENTIFIERS:
        ours, theirs = getattr(work, name), getattr(said, name)
        if ours is not None and theirs is not None:
            return None if ours == theirs else f"wrong-article: the answer is about {theirs}"
    return None
