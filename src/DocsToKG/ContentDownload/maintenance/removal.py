"""Take a work down: its bytes leave the store, the readable folders and the cache; a tombstone stays.

Knows the order: first the list, from which the work is refused; then the bytes; then the record; then the list says
that it is done. Every step may be repeated, so that what was cut off is finished by whoever comes next. Promises: bytes
that also stand for another work stay, and it is said whose they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.catalog.selection import GIVEN_BACK, TAKEN_DOWN
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.catalog.unproved import QUARANTINED
from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.maintenance.results import update_results
from DocsToKG.ContentDownload.maintenance.takedowns import (
    Takedown,
    Takedowns,
    is_identifier,
    named_work,
    names_of,
    undone,
)
from DocsToKG.ContentDownload.maintenance.tombstones import add_line, forget_files, last_lines, refill, tombstone
from DocsToKG.ContentDownload.net.entries import EntryStore
from DocsToKG.ContentDownload.storage.cas import cas_key
from DocsToKG.ContentDownload.storage.files import READABLE, StoredFiles, digest_of
from DocsToKG.ContentDownload.telemetry.manifest import ManifestRecord
from DocsToKG.core.clock import Clock, utc_iso
from DocsToKG.core.urls import BadUrl, index_url

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.maintenance.takedown_sync import TakedownSync

_TEXT_CHARS = 2_000
_KNOWN_AS = ". Known as "
_REASON = re.compile(r"Taken down on [-0-9]+ \((.*)\)\. Known as ")


class Removal:
    """Takes works of one folder down. Nothing else may run in the folder meanwhile.

    `known_work` gives a work as it was asked for, with all identifiers; `open_cache` the entries of the HTTP cache.
    """

    def __init__(
        self,
        root: Path,
        *,
        database: Path,
        files: StoredFiles,
        sinks: Sequence[str],
        clock: Clock,
        run_id: str,
        known_work: Callable[[str], WorkArtifact | None] = lambda doc_id: None,
        open_cache: Callable[[], EntryStore | None] = lambda: None,
        open_catalog: Callable[[], Catalog | None] | None = None,
        share: TakedownSync | None = None,
    ) -> None:
        self._root = root
        self._database = database
        self._files = files
        self._sinks = sinks
        self._clock = clock
        self._run_id = run_id
        self._known_work = known_work
        self._open_cache = open_cache
        self._open_catalog = open_catalog or (lambda: Catalog(database) if database.is_file() else None)
        self._share = share
        self.list = Takedowns.read(root, share=share)

    def take_down(self, text: str, *, reason: str, ticket: str | None = None) -> Takedown:
        """Take down the work that `text` names, by an identifier or the first digits of its file's digest. A work that
        was never obtained is refused from now on."""
        self._settle()
        work = self._work(text)
        standing = self.list.standing(names_of(work))
        if standing is not None:
            return standing
        if not is_identifier(text) and not self._is_known(work.work_id):
            raise InputError(
                f"{text[:80]!r} names no work: give one on record, the first digits (6 or more) of its file's sha256, "
                "or an identifier (DOI, arXiv, PMCID, pmid:..., OpenAlex, URL)"
            )
        entry = self._entry(work, reason, ticket)
        self.list.put(entry)
        return self._carry_out(entry)

    def knows(self, text: str) -> bool:
        """Whether the folder was asked for the work that `text` names, or its record tells of it."""
        self._refill()
        return self._is_known(self._work(text).work_id)

    def _is_known(self, doc_id: str) -> bool:
        if self._known_work(doc_id) is not None:
            return True
        with self._catalog() as catalog:
            return catalog is not None and catalog.show(doc_id, limit=1) is not None

    def _catalog(self) -> contextlib.AbstractContextManager[Catalog | None]:
        return self._open_catalog() or contextlib.nullcontext()

    def undo(self, text: str) -> Takedown | None:
        """Let the work be had again; its files do not come back by themselves. None when nothing stands against it."""
        self._settle()
        standing = self.list.standing(names_of(self._work(text)))
        if standing is None:
            return None
        entry = undone(standing, utc_iso(self._clock.now()))
        self.list.put(entry)
        return self._carry_out(entry)

    def finish(self) -> list[Takedown]:
        """Finish what was cut off, or begun by other machines; returns what that was."""
        if self.list.learn():
            self.list.save()
        pending = [entry for entry in self.list.entries if entry.pending]
        if pending:
            self._refill()
        return [self._carry_out(entry) for entry in pending]

    def uphold(self) -> int:
        """See to it that no file is on record for what was taken down, and that the list knows what the record tells;
        returns how many files were on record."""
        self._recall()
        if self._share is not None:
            self._share.forget_files()
        return forget_files(self._database, [entry.doc_id for entry in self.list.entries if entry.stands])

    def _settle(self) -> None:
        self._refill()
        self._recall()
        self.finish()

    def _refill(self) -> None:
        """A database that was lost tells of no file; begun with a line of ours alone, it would never be filled."""
        refill(self._root, self._database, attempts=self._share is None)  # a shared record has the requests

    def _recall(self) -> None:
        """Should the list be lost, the lines of the record still say what is refused."""
        if self.list.path.exists():
            return
        for doc_id, sha256, cause, said, taken_at in last_lines(self._database):
            if cause == TAKEN_DOWN:
                names = said.rpartition(_KNOWN_AS)[2].removesuffix(".").split(", ") if _KNOWN_AS in said else []
                known = dict.fromkeys([*names_of(named_work(doc_id)), *names])
                digests = (sha256,) if sha256 else ()
                why = _REASON.match(said)
                reason = why[1] if why else "as the record tells"
                self.list.put(Takedown(doc_id, tuple(known), reason, taken_at, sha256=digests, pending=False))

    def _carry_out(self, entry: Takedown) -> Takedown:
        if entry.stands:
            self._remove_bytes(entry)
        line = self._tombstone(entry)
        add_line(self._root, line, database=self._database, sinks=self._sinks, clock=self._clock)
        if self._share is not None:
            self._share.send(self._database)
            self._share.forget_files()
        update_results(self._root, entry.doc_id, entry.sentence if entry.stands else None)
        done = replace(entry, pending=False)
        self.list.put(done)
        return done

    def _work(self, text: str) -> WorkArtifact:
        """The work as the record knows it; a digest leads to the work whose file it is."""
        named = named_work(text)
        with self._catalog() as catalog:
            if catalog is None:
                return named
            names = dict.fromkeys((named.work_id, *names_of(named), text))
            history = next((found for name in names if (found := catalog.show(name)) is not None), None)
        if history is not None and len(docs := {line["doc_id"] for line in history.lines}) > 1:
            raise InputError(f"several works have this file: {', '.join(sorted(docs))}; name the one that is meant")
        doc_id = history.lines[-1]["doc_id"] if history is not None and history.lines else named.work_id
        known = self._known_work(doc_id) or named_work(doc_id)
        work = replace(known.learn(named), work_id=doc_id)
        seen = (
            next((line["doi_seen"] for line in reversed(history.lines) if line["doi_seen"]), None) if history else None
        )
        return replace(work, doi=seen) if seen and not work.doi else work

    def _entry(self, work: WorkArtifact, reason: str, ticket: str | None) -> Takedown:
        digests: list[str] = []
        sizes: set[int] = set()
        paths: list[str] = []
        others: set[str] = set()
        with self._catalog() as catalog:
            for held in catalog.downloads_of(work.work_id) if catalog is not None else ():
                digests.append(held.sha256)
                sizes |= {held.size_bytes} if held.size_bytes is not None else set()
                paths += [held.path] if held.path else []
                others |= (
                    {other.doc_id for other in catalog.holders(held.sha256)} - {work.work_id} if catalog else set()
                )
            for waiting in catalog.unproved() if catalog is not None else ():
                if waiting.doc_id == work.work_id and waiting.state == QUARANTINED:
                    digests.append(waiting.sha256)
                    paths.append(waiting.path)
            for file in catalog.supplements(work.work_id) if catalog is not None else ():
                digests.append(file.sha256)
                sizes |= {file.size_bytes} if file.size_bytes is not None else set()
                paths.append(file.path)
            urls = sorted(catalog.urls_of(work.work_id)) if catalog is not None else []
        return Takedown(
            doc_id=work.work_id,
            identifiers=names_of(work),
            reason=reason,
            taken_at=utc_iso(self._clock.now()),
            ticket=ticket,
            sha256=tuple(dict.fromkeys(digests)),
            sizes=tuple(sorted(sizes)),
            paths=tuple(dict.fromkeys(paths)),
            urls=tuple(urls),
            kept_for=tuple(sorted(others)),
        )

    def _remove_bytes(self, entry: Takedown) -> None:
        kept, named = self._still_named(entry)
        gone = set(entry.sha256) - kept
        for path in entry.paths:
            if path not in named:
                self._files.delete(path)
        for digest in gone:
            self._files.delete(cas_key(digest))
        self._remove_copies(gone, entry.sizes, named)
        self._forget_cached(entry, gone)

    def _still_named(self, entry: Takedown) -> tuple[set[str], set[str]]:
        """Digests and paths that other works have."""
        kept: set[str] = set()
        named: set[str] = set()
        with self._catalog() as catalog:
            if catalog is not None:
                for digest in entry.sha256:
                    others = [held for held in catalog.holders(digest) if held.doc_id != entry.doc_id]
                    kept |= {digest} if others else set()
                    named |= {held.path for held in others if held.path}
        return kept, named

    def _remove_copies(self, gone: Collection[str], sizes: Collection[int], named: Collection[str]) -> None:
        """Names that no record knows may hold the same bytes."""
        if not gone:
            return
        for folder in READABLE:
            for file in list(self._files.list(folder)):
                if file.size in sizes and file.key not in named:
                    found = digest_of(self._files, file.key)
                    if found is not None and found[0] in gone:
                        self._files.delete(file.key)

    def _forget_cached(self, entry: Takedown, gone: Collection[str]) -> None:
        entries = self._open_cache()
        if entries is None:
            return
        try:
            keys = {_cache_key(url) for url in entry.urls}
            keys |= {
                _cache_key(answer.url) for answer in entries.walk() if answer is not None and answer.sha256 in gone
            }
            for key in keys - {None}:
                for answer in entries.find(key or ""):
                    entries.remove(key or "", answer.id)
        finally:
            entries.close()

    def _tombstone(self, entry: Takedown) -> ManifestRecord:
        word = TAKEN_DOWN if entry.stands else GIVEN_BACK
        said = entry.sentence if entry.stands else f"{entry.sentence}; this was undone on {str(entry.undone_at)[:10]}"
        return tombstone(
            entry.doc_id,
            run_id=self._run_id,
            cause=word,
            explanation=f"{said[:1].upper()}{said[1:]}{_KNOWN_AS}{', '.join(entry.identifiers)}."[:_TEXT_CHARS],
            sha256=entry.sha256[0] if entry.sha256 else None,
            lease_id=f"{word}-{entry.taken_at}",
        )


def _cache_key(url: str) -> str | None:
    """What the cache files an address under; None for what is no address."""
    try:
        return hashlib.sha256(index_url(url).encode()).hexdigest()
    except (BadUrl, ValueError):
        return None
