"""Works that may not be had: who they are, why, and since when.

Knows `takedowns.json` beside the manifest and how a work is recognised: by any of its identifiers, and its file by the
digest. Does not remove anything. Promises: what is on the list is refused from the moment it was written, also when
the removal was cut off; a list that cannot be read stops the run instead of letting works through.
"""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.resolvers.ids.identifier import BadIdentifier, parse_identifier, to_work
from DocsToKG.ContentDownload.telemetry.snapshots import replacing

LIST = "takedowns.json"
LEARN_EVERY_S = 5.0  # how long another machine may still obtain what was taken down
_SCHEMES = {"doi": "doi", "arxiv_id": "arxiv", "pmcid": "pmcid", "pmid": "pmid", "openalex_id": "openalex"}


@dataclass(frozen=True, slots=True)
class Takedown:
    """One work that was taken down. `kept_for` are works whose file has the same bytes and stays; `pending` until all
    traces are gone; `undone_at` when it may be had again."""

    doc_id: str
    identifiers: tuple[str, ...]
    reason: str
    taken_at: str
    ticket: str | None = None
    sha256: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    paths: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    kept_for: tuple[str, ...] = ()
    pending: bool = True
    undone_at: str | None = None

    @property
    def stands(self) -> bool:
        return self.undone_at is None

    @property
    def sentence(self) -> str:
        """Why the work is refused."""
        ticket = f", ticket {self.ticket}" if self.ticket else ""
        return f"taken down on {self.taken_at[:10]} ({self.reason}{ticket})"

    @classmethod
    def from_dict(cls, entry: dict[str, Any]) -> Takedown:
        lists = {name: tuple(map(str, entry[name])) for name in ("identifiers", "sha256", "paths", "urls", "kept_for")}
        return cls(**{**entry, **lists, "sizes": tuple(map(int, entry.get("sizes", ())))})


class Share(Protocol):
    """A list that other machines write to as well."""

    def put(self, entry: Mapping[str, Any]) -> None: ...

    def add(self, entry: Mapping[str, Any]) -> None: ...

    def changed(self) -> list[dict[str, Any]]: ...


class Takedowns:
    """The list of one folder. Read it once per run; writing puts the whole list in place at once. With a `share`, what
    is written here is refused everywhere, and what others wrote is known after `learn`."""

    def __init__(self, root: Path, entries: Iterable[Takedown] = (), *, share: Share | None = None) -> None:
        self.path = root / LIST
        self.entries = list(entries)
        self._share = share
        self._has_learned = False
        self._looked_at = -math.inf
        self._looking = threading.Lock()
        self._by_id: dict[str, Takedown] = {}
        self._by_digest: dict[str, list[Takedown]] = {}
        self._index()

    @classmethod
    def read(cls, root: Path, *, share: Share | None = None) -> Takedowns:
        path = root / LIST
        try:
            entries = [Takedown.from_dict(entry) for entry in json.loads(path.read_bytes())["takedowns"]]
            return cls(root, entries, share=share)
        except FileNotFoundError:
            return cls(root, share=share)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise RecordError(
                f"{path} cannot be read ({error}); it says what is refused. Put a copy of it back, or move it away: "
                "the next run makes it anew from the lines of the record"
            ) from error

    def learn(self) -> list[Takedown]:
        """What other machines have written since the last look. It is to be carried out here as well."""
        if self._share is None:
            return []
        known = {(old.doc_id, old.taken_at): replace(old, pending=False) for old in self.entries}
        if not self._has_learned:
            # A list that was lost, or is new, has what its machines know.
            for entry in self.entries:
                self._share.add(asdict(entry))
            self._has_learned = True
        told = [replace(Takedown.from_dict(entry), pending=False) for entry in self._share.changed()]
        news = [replace(entry, pending=True) for entry in told if known.get((entry.doc_id, entry.taken_at)) != entry]
        if news:
            newer = {(entry.doc_id, entry.taken_at) for entry in news}
            self.entries = [old for old in self.entries if (old.doc_id, old.taken_at) not in newer] + news
            self._index()
        return news

    def _learn_at_times(self) -> None:
        """One thread looks now and then; the others go by what is known."""
        if time.monotonic() < self._looked_at + LEARN_EVERY_S:
            return
        if self._looking.acquire(blocking=False):
            try:
                self.learn()
                self._looked_at = time.monotonic()
            finally:
                self._looking.release()

    def refuses(self, work: WorkArtifact) -> str | None:
        """Why the work may not be had; None when it may."""
        if self._share is not None:
            self._learn_at_times()
        if not self._by_id:
            return None
        found = next((self._by_id[name] for name in names_of(work) if name in self._by_id), None)
        return found.sentence if found is not None else None

    def refuses_bytes(self, sha256: str, work_id: str) -> str | None:
        """Why these bytes may not be kept for this work."""
        for entry in self._by_digest.get(sha256, ()):
            if work_id not in entry.kept_for:
                return f"the file of {entry.doc_id}, {entry.sentence}"
        return None

    def standing(self, names: Iterable[str]) -> Takedown | None:
        """The takedown that stands against any of these names."""
        return next((self._by_id[name] for name in names if name in self._by_id), None)

    def put(self, entry: Takedown) -> None:
        """Add the entry, or replace the one of the same work and moment; on disk when this returns."""
        if self._share is not None:
            self._share.put(asdict(entry))
        same = (entry.doc_id, entry.taken_at)
        self.entries = [old for old in self.entries if (old.doc_id, old.taken_at) != same] + [entry]
        self.save()
        self._index()

    def save(self) -> None:
        """Put the list in place as it is known."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(self.path) as file:
            file.write(json.dumps({"takedowns": [asdict(old) for old in self.entries]}, indent=1).encode())

    def _index(self) -> None:
        standing = [entry for entry in self.entries if entry.stands]
        by_digest: dict[str, list[Takedown]] = {}
        for entry in standing:
            for digest in entry.sha256:
                by_digest.setdefault(digest, []).append(entry)
        # Other threads look meanwhile: each sees all of the old or all of the new.
        self._by_digest = by_digest
        self._by_id = {name: entry for entry in standing for name in entry.identifiers}

    def __bool__(self) -> bool:
        return bool(self.entries)


def names_of(work: WorkArtifact) -> tuple[str, ...]:
    """Every identifier of a work, each with its scheme, in the spelling that is compared."""
    names = [work.work_id]
    names += [f"{scheme}:{value}" for field, scheme in _SCHEMES.items() if (value := getattr(work, field))]
    for name in tuple(names):
        # One identifier may contain another: the DOI of a preprint names its arXiv number.
        known = _known(name)
        if known is not None:
            names += [known.work_id]
            names += [f"{scheme}:{value}" for field, scheme in _SCHEMES.items() if (value := getattr(known, field))]
    return tuple(dict.fromkeys(name.lower() for name in names))


def named_work(text: str) -> WorkArtifact:
    """The work that a user's text means; an unknown text is its own name."""
    return _known(text) or WorkArtifact(text)


def is_identifier(text: str) -> bool:
    """Whether the text is a name that a work may have anywhere, not only on this record."""
    return _known(text) is not None


def undone(entry: Takedown, at: str) -> Takedown:
    return replace(entry, undone_at=at, pending=True)


def _known(text: str) -> WorkArtifact | None:
    try:
        return to_work(parse_identifier(text))
    except BadIdentifier:
        return None
