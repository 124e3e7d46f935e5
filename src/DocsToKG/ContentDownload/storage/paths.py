"""Names people read: `PDF/<year>__<title-slug>__<id>.pdf`.

Knows what a file name may be on the disks of other systems too. Touches the disk only to resolve links.
Promises: two different works never share a name, also where case does not count; no name leaves
the root; every part is plain ASCII and under 255 bytes.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import unicodedata
from pathlib import Path

from DocsToKG.ContentDownload.api.types import Reason, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected

FOLDERS = {"pdf": "PDF", "html": "HTML", "xml": "XML"}
SUPPLEMENTS = "SUPPLEMENTS"
QUARANTINE = "QUARANTINE"  # files of which nobody knows whether they are the paper
NO_DATE = "n.d."  # as bibliographies write a missing year
NO_TITLE = "untitled"

_SLUG_CHARS = 80
_ID_CHARS = 96
_HASH_CHARS = 12
_EXTENSION_CHARS = 12
_COMPONENT_BYTES = 255
_PATH_CHARS = 1024
_OWN_FOLDERS = frozenset({"cas", ".tmp"})  # the store's own: no readable name may lie in them
_LETTERS = str.maketrans({"ß": "ss", "æ": "ae", "Æ": "ae", "ø": "o", "Ø": "o", "ł": "l", "Ł": "l", "đ": "d", "ı": "i"})
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_NOT_ID = re.compile(r"[^a-z0-9.-]+")
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f<>:"|?*\\]')
_RESERVED = re.compile(r"(con|prn|aux|nul|clock\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)


def human_path(work: WorkArtifact, *, kind: str = "pdf") -> str:
    """The relative path under which people find the work: `PDF/2021__deep-nets__doi-10.1-x_1f2e3d4c5b6a.pdf`."""
    return f"{FOLDERS[kind]}/{_name(work)}.{kind}"


def quarantine_path(work: WorkArtifact, *, kind: str = "pdf") -> str:
    """The same for a file that waits for somebody to look at it."""
    return f"{QUARANTINE}/{_name(work)}.{kind}"


def supplement_path(work: WorkArtifact, name: str) -> str:
    """A file beside the paper, in a folder of the work's own: `SUPPLEMENTS/2021__deep-nets__doi-10.1-x/table-1.csv`."""
    stem, dot, extension = name.rpartition(".")
    plain = _NOT_ID.sub("-", (stem if dot else name).lower())[:_ID_CHARS].strip(".-") or "file"
    end = _NOT_SLUG.sub("", extension.lower())[:_EXTENSION_CHARS] if dot else ""
    # What means a device on some systems is no name for a file.
    plain = f"{plain}-file" if _RESERVED.fullmatch(plain) else plain
    return f"{SUPPLEMENTS}/{_name(work)}/{f'{plain}.{end}' if end else plain}"


def _name(work: WorkArtifact) -> str:
    return f"{year_part(work.publication_year)}__{title_slug(work.title)}__{safe_id(work.work_id)}"


def year_part(year: int | None) -> str:
    """Four digits, or `n.d.` when no believable year is known."""
    return str(year) if year is not None and 1000 <= year <= 2999 else NO_DATE


def title_slug(title: str | None) -> str:
    """Lower-case ASCII words joined by `-`, at most 80 characters, cut between words; `untitled` when none is left."""
    if not title:
        return NO_TITLE
    # Decomposing can lengthen a character many times, so the cap comes first.
    letters = unicodedata.normalize("NFKD", title[:1000].translate(_LETTERS))
    slug = _NOT_SLUG.sub("-", letters.encode("ascii", "ignore").decode().lower()).strip("-")
    if len(slug) > _SLUG_CHARS:
        whole_words = slug[: _SLUG_CHARS + 1].rpartition("-")[0]
        slug = whole_words or slug[:_SLUG_CHARS]
    return slug or NO_TITLE


def safe_id(work_id: str) -> str:
    """The id in `a-z 0-9 . -`; when that is not the id itself, `_` and a short hash of the id follow.

    An id that needs no change holds no `_`, so it can never equal a changed one; two changed ids differ
    in their hash. Upper case counts as a change, so ids that differ only in case stay apart on every disk.
    """
    plain = _NOT_ID.sub("-", work_id.lower()).strip(".-")[:_ID_CHARS]
    if plain == work_id and plain:
        return plain
    digest = hashlib.sha256(work_id.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{plain}_{digest}"


def numbered(relative: str, number: int) -> str:
    """A sibling of the path for other bytes of the same work: `...__2.pdf`."""
    stem, extension = posixpath.splitext(relative)
    return f"{stem}__{number}{extension}"


def inside(root: Path, relative: str) -> Path:
    """`root / relative`, proved to stay below `root`; raises `CandidateRejected(path-policy)` otherwise."""
    parts = relative.split("/")
    if len(relative) > _PATH_CHARS or parts[0].lower() in _OWN_FOLDERS or not all(map(is_plain, parts)):
        raise CandidateRejected(Reason.PATH_POLICY, f"not a name for a stored file: {relative[:200]!r}")
    target = root.joinpath(*parts)
    # A folder below the root may be a symbolic link that leads elsewhere.
    if not target.parent.resolve().is_relative_to(root.resolve()):
        raise CandidateRejected(Reason.PATH_POLICY, f"leads out of the storage root: {relative[:200]!r}")
    return target


def is_plain(part: str) -> bool:
    """One path component that means the same file on every system."""
    return (
        part not in ("", ".", "..")
        and part.isascii()
        and len(part) <= _COMPONENT_BYTES
        and not part.endswith((".", " "))
        and not part.startswith(" ")
        and not _FORBIDDEN.search(part)
        and not _RESERVED.fullmatch(part)
    )
