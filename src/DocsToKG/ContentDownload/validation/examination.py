"""Read a file, judge it, and read more of it before it is refused.

Knows the order: the first pages and the last one, the verdict, then, where that would refuse the file or leave it
unproved, up to forty pages. Promises: the future always ends, and with a verdict; what the engine could not read is
unproved with the engine's reason.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from DocsToKG.ContentDownload.validation import thresholds
from DocsToKG.ContentDownload.validation.document import DocumentText, ReadOptions, StreamReport, TextFailure
from DocsToKG.ContentDownload.validation.identity import NOWHERE, Origin, Proof, Verdict, judge
from DocsToKG.ContentDownload.validation.known_work import KnownWork
from DocsToKG.ContentDownload.validation.worker_pool import Source, TextEngine

_LAST_PAGES = 3  # references end before appendices and biographies


@dataclass(frozen=True, slots=True)
class Examination:
    """The verdict on a file, and what it rests on."""

    verdict: Verdict
    text: DocumentText | TextFailure | None = None
    streams: StreamReport | None = None

    @property
    def damage(self) -> tuple[str, ...]:
        """The streams that do not decode, each with its object and error."""
        return self.streams.damaged if self.streams is not None else ()

    def record(self) -> dict[str, Any]:
        """The verdict, its evidence and what was read, for the manifest."""
        return {
            "proof": str(self.verdict.proof),
            "kind": str(self.verdict.kind) if self.verdict.kind else None,
            "whole": str(self.verdict.wholeness),
            "evidence": [note[:200] for note in self.verdict.evidence[:20]],
            "read": self.text.record() if self.text is not None else None,
            "streams": self.streams.record() if self.streams is not None else None,
            "damaged": [*self.damage[:3]],
        }


def examine(
    engine: TextEngine,
    source: Source,
    known: KnownWork,
    options: ReadOptions | None = None,
    *,
    origin: Origin = NOWHERE,
) -> Future[Examination]:
    """Judge the file in the background. A path must stay until the future ends. Under `text=False` no text is read,
    and with `streams="none"` beside it nothing at all."""
    options = options or ReadOptions()
    done: Future[Examination] = Future()
    if not options.text and options.streams == "none":
        done.set_result(Examination(Verdict(Proof.NOT_JUDGED)))
        return done

    def first(read: Future[DocumentText | TextFailure]) -> None:
        _settle(done, lambda: look(read.result()))

    def look(text: DocumentText | TextFailure) -> Examination | None:
        found = conclude(known, text, origin)
        if not found.verdict.look_through or found.damage:
            return found
        deeper = replace(
            options,
            pages=max(options.pages, thresholds.LOOK_THROUGH_PAGES),
            last_pages=max(options.last_pages, _LAST_PAGES),
            streams="none",
        )
        engine.submit(source, deeper).add_done_callback(
            lambda read: _settle(done, lambda: _deepened(known, found, read.result(), origin))
        )
        return None

    engine.submit(source, options).add_done_callback(first)
    return done


def conclude(known: KnownWork, text: DocumentText | TextFailure, origin: Origin = NOWHERE) -> Examination:
    """The verdict on what was read."""
    if isinstance(text, TextFailure):
        proof = Proof.UNPROVED if known.is_comparable else Proof.NOT_JUDGED
        return Examination(Verdict(proof, evidence=(text.reason,)), text, text.streams)
    verdict = judge(known, text, origin) if text.pages else Verdict(Proof.NOT_JUDGED)
    return Examination(verdict, text, text.streams)


def _deepened(known: KnownWork, found: Examination, text: DocumentText | TextFailure, origin: Origin) -> Examination:
    """The verdict on more pages. When those cannot be read, no refusal rests on the first ones."""
    if isinstance(text, TextFailure):
        return replace(found, verdict=Verdict(Proof.UNPROVED, evidence=(text.reason, *found.verdict.evidence)))
    return Examination(judge(known, text, origin), text, found.streams)


def _settle(done: Future[Examination], conclude: Any) -> None:
    try:
        result = conclude()
        if result is not None:
            done.set_result(result)
    except BaseException as error:  # a caller waits for it
        done.set_exception(error)
