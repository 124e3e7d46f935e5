"""Does a bot check stand where the answer should be? Guards send it as 403, 429 or 503, as if the server were busy.

Knows which answers are worth a look and how much of them; what a check looks like is `api.walls`'. Sends nothing.
"""

from __future__ import annotations

import re

from DocsToKG.ContentDownload.api.walls import WALL_STATUSES, Sight, Wall, first_wall
from DocsToKG.ContentDownload.net.body import StreamedBody

_LOOKED_AT_BYTES = 16 * 1024
_HTML = ("text/html", "application/xhtml")
_TITLE = re.compile(r"<title[^>]{0,200}>([^<]{0,300})")


async def is_bot_check(opened: StreamedBody) -> bool:
    """Whether the page answered is a guard's. Its beginning is read, and can be read again."""
    if opened.status not in WALL_STATUSES or opened.from_cache or opened.is_replay:
        return False
    if not (opened.content_type or "").strip().lower().startswith(_HTML):
        return False
    text = (await opened.look(_LOOKED_AT_BYTES)).decode("latin-1").lower()
    title = _TITLE.search(text)
    sight = Sight(text=text, url=opened.url.lower(), title=title[1] if title else "", short=True, bare=False)
    return first_wall(sight, of={Wall.CHALLENGE}) is not None
