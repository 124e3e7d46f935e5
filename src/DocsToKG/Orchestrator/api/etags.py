"""Changes that must not overwrite what somebody else changed meanwhile: `ETag` and `If-Match` over versions."""

from __future__ import annotations

import re

from DocsToKG.Orchestrator.api.errors import Problem
from DocsToKG.Orchestrator.api.routing import Answer, RequestContext
from DocsToKG.Orchestrator.api.schemas import Shown

_TAG = re.compile(r'"v(\d{1,15})"')


def tagged(body: Shown, version: int) -> Answer:
    return Answer(body, headers={"ETag": f'"v{version}"'})


def version_wanted(ctx: RequestContext) -> int | None:
    """The version that the caller has read; None where it does not care."""
    given = ctx.request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    found = _TAG.fullmatch(given.strip())
    if found is None:
        raise Problem(412, "VERSION_CONFLICT", "If-Match is not an ETag that was handed out here")
    return int(found[1])
