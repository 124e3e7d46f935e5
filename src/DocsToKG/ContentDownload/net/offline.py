"""A way out that leads nowhere: for working from the cache alone.

Promises: not one packet is sent. What the cache does not have is refused at once and not tried again.
"""

from __future__ import annotations

import httpx2

from DocsToKG.transport.errors import AddressRefused


class NoNetwork(httpx2.AsyncBaseTransport):
    """Stands where the real transport stands."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request.url.host)
        raise AddressRefused("nothing is sent: the cache has no answer to this")
