"""Read a file, judge it, and read more of it before it is refused.

Runs in a worker process, as reading and judging hostile text may take any time. Knows the order: the first pages and
the last one, the verdict, then, where that would refuse the file or leave it unproved, up to forty pages. Promises:
there is always a verdict; what the engine could not read is unproved with the engine's reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from DocsToKG.ContentDownload.validation.identity import thresholds
from DocsToKG.ContentDownload.validation.identity.kinds import Kind
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.metadata import declared_title, named_dois
from DocsToKG.ContentDownload.validation.identity.signs import Origin
from DocsToKG.ContentDownload.validation.identity.verdict import Proof, Verdict, judge
from DocsToKG.ContentDownload.validation.identity.wholeness import Whole
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, ReadOptions, StreamReport, TextFailure

Read = Callable[[ReadOptions], DocumentText | TextFailure]

_LAST_PAGES = 3  # references end before appendices and biographies
_NOTES = 20
_NOTE_CHARS = 200


@dataclass(frozen=True, slots=True)
class Examination:
    """The verdict on a file, and what it rests on. `read` tells what was read, or why nothing was."""

    verdict: Verdict
    read: Mapping[str, Any] = field(default_factory=dict)
    streams: StreamReport | None = None
    dois: tuple[str, ...] = ()  # that the file declares or shows on its first pages
    title: str | None = None  # that the file declares
    producer: str | None = None

    @property
    def damage(self) -> tuple[str, ...]:
        """The streams that do not decode, each with its object and error."""
        return self.streams.damaged if self.streams is not None else ()

    @property
    def failure(self) -> str | None:
        """Why the text could not be read."""
        return self.read.get("failure")

    def record(self) -> dict[str, Any]:
        """The verdict, its evidence and what was read, for the manifest."""
        return {
            "proof": str(self.verdict.proof),
            "kind": str(self.verdict.kind) if self.verdict.kind else None,
            "whole": str(self.verdict.wholeness),
            "evidence": list(self.verdict.evidence),
            "read": dict(self.read),
            "streams": self.streams.record() if self.streams is not None else None,
            "damaged": [*self.damage[:3]],
        }

    def to_json(self) -> dict[str, Any]:
        """For the way from the worker to the run."""
        return {
            "proof": self.verdict.proof,
            "kind": self.verdict.kind,
            "whole": self.verdict.wholeness,
            "evidence": [note[:_NOTE_CHARS] for note in self.verdict.evidence[:_NOTES]],
            "read": dict(self.read),
            "streams": self.streams.to_json() if self.streams is not None else None,
            "dois": self.dois,
            "title": self.title,
            "producer": self.producer,
        }

    @classmethod
    def from_json(cls, data: Any) -> Examination:
        """Raises `ValueError` when the reply has another shape."""
        try:
            verdict = Verdict(
                Proof(data["proof"]),
                Kind(data["kind"]) if data["kind"] else None,
                tuple(str(note)[:_NOTE_CHARS] for note in data["evidence"][:_NOTES]),
                Whole(data["whole"]),
            )
            return cls(
                verdict,
                read=dict(data["read"]),
                streams=StreamReport.from_json(data["streams"]) if data["streams"] else None,
                dois=tuple(str(doi)[:300] for doi in data["dois"]),
                title=str(data["title"])[:1_000] if data["title"] else None,
                producer=str(data["producer"])[:_NOTE_CHARS] if data["producer"] else None,
            )
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise ValueError(f"not an examination: {error}") from error


def examine(known: KnownWork, read: Read, options: ReadOptions, origin: Origin) -> Examination:
    """Judge the file that `read` reads. Under `text=False` of the options only its streams are looked at."""
    text = read(options)
    found = conclude(known, text, origin)
    if not found.verdict.look_through or found.damage:
        return found
    deeper = replace(
        options,
        pages=max(options.pages, thresholds.LOOK_THROUGH_PAGES),
        last_pages=max(options.last_pages, _LAST_PAGES),
        streams="none",
    )
    more = read(deeper)
    if isinstance(more, TextFailure):
        # No refusal rests on the first pages alone.
        return replace(found, verdict=Verdict(Proof.UNPROVED, evidence=(more.reason, *found.verdict.evidence)))
    return replace(conclude(known, more, origin), streams=found.streams)


def conclude(known: KnownWork, text: DocumentText | TextFailure, origin: Origin) -> Examination:
    """The verdict on what was read."""
    if isinstance(text, TextFailure):
        proof = Proof.UNPROVED if known.is_comparable else Proof.NOT_JUDGED
        return Examination(Verdict(proof, evidence=(text.reason,)), text.record(), text.streams)
    if not text.pages:
        return Examination(Verdict(Proof.NOT_JUDGED), streams=text.streams)
    return Examination(
        judge(known, text, origin),
        text.record(),
        text.streams,
        named_dois(text),
        declared_title(text),
        text.info.get("Producer", "")[:_NOTE_CHARS] or None,
    )
