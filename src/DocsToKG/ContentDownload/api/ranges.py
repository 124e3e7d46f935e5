"""The rest of a file that broke off: by what it is asked for, and which answer is it (RFC 9110 sections 13.1.5 and 14).

Pure: headers in, values out. Promises: a file is gone on with only under a strong validator, and only by an answer that
names the same validator, the same length and exactly the bytes that are missing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple

from DocsToKG.core.urls import mask_url
from DocsToKG.core.values import lean_dataclass

# Less is had anew as cheaply, and each answer must bring so much more, so that no file is asked for without end.
LEAST_BYTES = 1 << 20

_CONTENT_RANGE = re.compile(r"bytes +([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18})", re.IGNORECASE)
_STRONG_TAG = re.compile(r'"[!#-~]{1,200}"')
_LONGEST_DATE = 64
# A date stands for one content only where the file had been at rest for a while (RFC 9110 section 8.8.2.2).
_AT_REST_S = 60.0


class ContentRange(NamedTuple):
    """Bytes `first` to `last`, both counted, of `total`."""

    first: int
    last: int
    total: int


@lean_dataclass(frozen=True, slots=True)
class Whole:
    """A file that may be asked for from any byte on. `name` is the header that `validator` stood in."""

    url: str
    total: int
    name: str
    validator: str


@lean_dataclass(frozen=True, slots=True)
class Rest:
    """What is missing of a file, from byte `start` on."""

    whole: Whole
    start: int

    @property
    def length(self) -> int:
        return self.whole.total - self.start

    def lies_at(self, url: str) -> bool:
        """A link may be signed anew each time."""
        return mask_url(url) == mask_url(self.whole.url)

    def wishes(self) -> dict[str, str]:
        """The headers to ask with: the rest if the file is still the one that began, else all of it."""
        return {"Range": f"bytes={self.start}-", "If-Range": self.whole.validator}

    def is_in(self, url: str, status: int, headers: Mapping[str, str]) -> bool:
        """Whether an answer brings it, and nothing else. Header names are lower case."""
        whole = self.whole
        if status != 206 or not self.lies_at(url) or "content-encoding" in headers:
            return False
        missing, length = (self.start, whole.total - 1, whole.total), str(self.length)
        return (
            content_range(headers.get("content-range", "")) == missing
            and headers.get("content-length", length) == length
            and headers.get(whole.name) == whole.validator
        )


def whole_of(url: str, headers: Mapping[str, str], total: int | None) -> Whole | None:
    """The file that began to come under these headers; None where its rest cannot be asked for by itself."""
    if total is None or "content-encoding" in headers or headers.get("accept-ranges", "").strip().lower() == "none":
        return None
    tag = headers.get("etag")
    if tag is not None:
        # Beside a weak tag a date is no better (RFC 9110 section 13.1.5).
        return Whole(url, total, "etag", tag) if _STRONG_TAG.fullmatch(tag) else None
    changed, sent = headers.get("last-modified", ""), headers.get("date", "")
    return Whole(url, total, "last-modified", changed) if _was_at_rest(changed, sent) else None


def content_range(text: str) -> ContentRange | None:
    """What a Content-Range says, where it names all three numbers and they make sense."""
    match = _CONTENT_RANGE.fullmatch(text)
    if match is None:
        return None
    said = ContentRange(int(match[1]), int(match[2]), int(match[3]))
    return said if said.first <= said.last < said.total else None


def _was_at_rest(changed: str, sent: str) -> bool:
    if len(changed) > _LONGEST_DATE or not (changed.isascii() and changed.isprintable()):
        return False
    try:
        return (parsedate_to_datetime(sent) - parsedate_to_datetime(changed)).total_seconds() >= _AT_REST_S
    except (TypeError, ValueError, OverflowError):
        return False
