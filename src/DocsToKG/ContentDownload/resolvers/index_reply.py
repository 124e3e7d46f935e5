"""What the answers of all indexes have in common: the meaning of a status, and whether it is our paper they speak of.

Knows the statuses that all of them share and the identifiers a paper goes by. Does not know any service's fields.
A service that is busy is no answer: the client has raised `TransientFailure` before anyone gets to read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact

# The strongest first: where both sides know one of these, it decides.
_IDENTIFIERS = ("doi", "arxiv_id", "pmid", "pmcid")
_DAY = re.compile(r"(?:19|20)\d\d-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", re.ASCII)


def why_nothing(status: int, service: str, check: str) -> str:
    """The note for an answer that is no record; `check` tells the user of a refused call what to look at."""
    if status == 404:
        return "not_in_index"
    if status == 410:
        return f"{Reason.GONE}: {service} has deleted the record"
    if status in (401, 403):
        return f"refused: {service} answered {status}; {check}"
    return f"http-status: {status}"


def embargo_note(until: str | None) -> str:
    """The note for a copy that opens on a day: `embargo: until 2027-05-01`, or `embargo` where no day is told."""
    day = _DAY.match(until or "")
    return f"{Reason.EMBARGO}: until {day[0]}" if day is not None else Reason.EMBARGO


def other_paper(work: WorkArtifact, said: WorkArtifact, *, by: Sequence[str] = _IDENTIFIERS) -> str | None:
    """A note when the answer is about another paper than `work`; silence on both sides is no contradiction.

    `by` are the identifiers that decide, the strongest first.
    """
    for name in by:
        ours, theirs = getattr(work, name), getattr(said, name)
        if ours is not None and theirs is not None:
            return None if ours == theirs else f"wrong-article: the answer is about {theirs}"
    return None
