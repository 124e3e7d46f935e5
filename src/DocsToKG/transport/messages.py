"""A request and an answer as httpx2 has them, made with nothing that an exchange of ours does not use.

httpx2 looks for a body to encode, a charset, a jar and a history in all of them, and reads their headers and address
anew. Promises: whoever is handed one finds every attribute that httpx2's own has.
"""

from __future__ import annotations

from typing import Any

import httpx2

NO_BODY = httpx2.ByteStream(b"")


class LightRequest(httpx2.Request):
    """A request without a body, whose address and headers are ready. They and `extensions` are kept, not copied."""

    def __init__(self, method: str, url: httpx2.URL, headers: httpx2.Headers, extensions: dict[str, Any]) -> None:
        self.method = method
        self.url = url
        self.headers = headers
        self.extensions = extensions
        self.stream = NO_BODY


class LightResponse(httpx2.Response):
    """An answer whose body is still to come. Its headers and `extensions` are kept, not copied."""

    def __init__(
        self,
        status: int,
        headers: httpx2.Headers,
        stream: httpx2.SyncByteStream | httpx2.AsyncByteStream,
        extensions: dict[str, Any],
    ) -> None:
        self.status_code = status
        self.headers = headers
        self.stream = stream
        self.extensions = extensions
        self._request = None
        self.next_request = None
        self.history = []
        self.is_closed = False
        self.is_stream_consumed = False
        self.default_encoding = "utf-8"
        self._num_bytes_downloaded = 0

    def close(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            assert isinstance(self.stream, httpx2.SyncByteStream)
            self.stream.close()

    async def aclose(self) -> None:
        if not self.is_closed:
            self.is_closed = True
            assert isinstance(self.stream, httpx2.AsyncByteStream)
            await self.stream.aclose()
