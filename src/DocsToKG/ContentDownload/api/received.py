"""A file that came where a page was asked for, kept until somebody asks for its address.

Pure. Implements `OpenBody` over bytes in memory; what is found out of the file goes to the answer that it came with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.api.types import Hop

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.api.ports import OpenBody


class ReceivedBody:
    """`answer` has been read to its end and closed; `data` are its decoded bytes."""

    def __init__(self, answer: OpenBody, data: bytes) -> None:
        self.url: str = answer.url
        self.status: int = answer.status
        self.headers: Mapping[str, str] = answer.headers
        self.hops: tuple[Hop, ...] = answer.hops
        self.from_cache: bool = answer.from_cache
        self.revalidated: bool = answer.revalidated
        self.size = len(data)
        self._answer = answer
        self._data = data

    async def arriving(self) -> None:
        return None

    def chunks(self) -> Iterator[bytes]:
        return iter((self._data,))

    def close(self) -> None:
        self._data = b""

    def confirm(self, sha256: str) -> None:
        self._answer.confirm(sha256)

    def reject(self) -> None:
        self._answer.reject()
