"""An exchange that ends early, because the term of the shared limits ends and its slots may soon be another's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.tasks import called_off_by

T = TypeVar("T")


async def unless_cut(own: CancelToken, work: CancelToken, awaited: Awaitable[T]) -> T:
    """Await; raises `Cancelled` once `own`, the token of this exchange, is cancelled. Where it is that of the whole
    work, whoever runs the work sees to it."""
    if own is work:
        return await awaited
    try:
        return await called_off_by(own, _awaiting(awaited))
    except Cancelled:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the whole work was called off as well
            raise asyncio.CancelledError from None
        raise


async def _awaiting(awaited: Awaitable[T]) -> T:
    return await awaited
