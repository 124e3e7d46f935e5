"""Page tokens: a position in a list as opaque text.

Does not know what is listed. Promises: a token that was not made here, or was made for another list, raises `BadPage`;
a number in a position is one that a ledger can hold; a page has between 1 and 500 entries.
"""

from __future__ import annotations

import base64
import binascii
import json

from DocsToKG.Orchestrator.errors import BadJob, BadPage

DEFAULT_PAGE_SIZE = 50
MAX_PAGE_SIZE = 500
_MAX_TOKEN = 512


def token(kind: str, *position: int | str) -> str:
    """The text that stands for a position in a list of this kind."""
    words = json.dumps([kind, *position], separators=(",", ":"), ensure_ascii=True).encode("ascii")
    return base64.urlsafe_b64encode(words).decode("ascii").rstrip("=")


def position(kind: str, text: str, shape: tuple[type, ...]) -> tuple[int | str, ...]:
    """The position that a text stands for. `shape` names the types of its parts."""
    if not text or len(text) > _MAX_TOKEN or not text.isascii():
        raise BadPage("this page token was not handed out here; begin again without one")
    try:
        words = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        found = json.loads(words)
    except (binascii.Error, ValueError, RecursionError):
        raise BadPage("this page token was not handed out here; begin again without one") from None
    if not isinstance(found, list) or tuple(map(type, found)) != (str, *shape) or found[0] != kind:
        raise BadPage("this page token belongs to another list; begin again without one")
    if any(isinstance(part, int) and not 0 <= part < 2**63 for part in found[1:]):
        raise BadPage("this page token was not handed out here; begin again without one")
    return tuple(found[1:])


def number(kind: str, text: str | None) -> int | None:
    """The one number that a text stands for; None without a text."""
    if text is None:
        return None
    (found,) = position(kind, text, (int,))
    if found == 0:
        raise BadPage("this page token was not handed out here; begin again without one")
    return int(found)


def page_size(asked: int | None) -> int:
    """How many entries a page has. More than there may be is cut; fewer than one is refused."""
    if asked is None:
        return DEFAULT_PAGE_SIZE
    if asked < 1:
        raise BadJob("page_size must be at least 1")
    return min(asked, MAX_PAGE_SIZE)
