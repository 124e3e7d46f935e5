"""Header fields that are looked up often.

An exchange asks some thirty times for a header, most of which are not there. httpx2 reads all fields anew for each
question; here they are read once, until one is changed. Names, values and their order are httpx2's.
"""

from __future__ import annotations

from typing import Any

import httpx2


class Fields(httpx2.Headers):
    """httpx2's headers with an index by name."""

    _index: dict[str, str] | None = None

    def __getitem__(self, key: str) -> str:
        return self._by_name()[key.lower()]

    def get(self, key: str, default: Any = None) -> Any:
        return self._by_name().get(key.lower(), default)

    def __contains__(self, key: Any) -> bool:
        return key.lower() in self._by_name()

    def __setitem__(self, key: str, value: str) -> None:
        super().__setitem__(key, value)
        if self._index is not None:
            self._index[key.lower()] = value

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._index = None

    def update(self, headers: Any = None) -> None:  # type: ignore[override]  # as httpx2 has it
        super().update(headers)
        self._index = None

    def _by_name(self) -> dict[str, str]:
        if self._index is None:
            index: dict[str, str] = {}
            encoding = self.encoding
            for raw_name, raw_value in self.raw:
                name, value = raw_name.lower().decode(encoding), raw_value.decode(encoding)
                index[name] = f"{index[name]}, {value}" if name in index else value
            self._index = index
        return self._index
