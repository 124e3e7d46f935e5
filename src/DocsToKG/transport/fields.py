"""Header fields that are looked up often.

An exchange asks some thirty times for a header, most of which are not there. httpx2 reads all fields anew for each
question; here they are read once, until one is changed. Names, values and their order are httpx2's.
"""

from __future__ import annotations

from collections.abc import ItemsView, Sequence
from functools import lru_cache
from typing import Any

import httpx2


class Fields(httpx2.Headers):
    """httpx2's headers with an index by name."""

    _encoding: str | None = None
    _index: dict[str, str] | None = None

    @classmethod
    def sent(cls, named: dict[str, str]) -> Fields:
        """What a request says: one host is told the same again and again."""
        known = _known(tuple(named.items()))
        made = cls.__new__(cls)
        made._list = list(known._list)
        made._index = dict(known._index or known._by_name())
        made._encoding = known._encoding
        return made

    @classmethod
    def received(cls, pairs: Sequence[tuple[bytes, bytes]]) -> Fields:
        """What an answer says, name by name as it came."""
        made = cls.__new__(cls)
        made._list = [(name, name.lower(), value) for name, value in pairs]
        return made

    def __getitem__(self, key: str) -> str:
        return (self._index or self._by_name())[key.lower()]

    def get(self, key: str, default: Any = None) -> Any:
        return (self._index or self._by_name()).get(key.lower(), default)

    def __contains__(self, key: Any) -> bool:
        return key.lower() in (self._index or self._by_name())

    def items(self) -> ItemsView[str, str]:
        return dict(self._index or self._by_name()).items()

    def multi_items(self) -> list[tuple[str, str]]:
        index = self._index or self._by_name()
        # Names that come once each are what the index holds.
        return list(index.items()) if len(index) == len(self._list) else super().multi_items()

    def get_list(self, key: str, split_commas: bool = False) -> list[str]:
        return super().get_list(key, split_commas) if key in self else []

    def __setitem__(self, key: str, value: str) -> None:
        index, name = self._index or self._by_name(), key.lower()
        if name in index:
            super().__setitem__(key, value)
        else:
            encoding = self._encoding or self.encoding
            self._list.append((key.encode(encoding), name.encode(encoding), value.encode(encoding)))
        index[name] = value

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self._index = None

    def update(self, headers: Any = None) -> None:  # type: ignore[override]  # as httpx2 has it
        super().update(headers)
        self._index = None

    def _by_name(self) -> dict[str, str]:
        try:
            self._index = index = self._read(self._encoding or "ascii")
        except UnicodeDecodeError:
            self._index = index = self._read(self.encoding)
        else:
            self._encoding = self._encoding or "ascii"
        return index

    def _read(self, encoding: str) -> dict[str, str]:
        index: dict[str, str] = {}
        for _, raw_name, raw_value in self._list:
            name, value = raw_name.decode(encoding), raw_value.decode(encoding)
            index[name] = f"{index[name]}, {value}" if name in index else value
        return index


@lru_cache(maxsize=256)
def _known(named: tuple[tuple[str, str], ...]) -> Fields:
    return Fields(named)
