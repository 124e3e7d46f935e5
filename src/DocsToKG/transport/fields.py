"""Header fields that are looked up often.

An exchange asks some thirty times for a header, most of which are not there. httpx2 reads all fields anew for each
question; here they are read once, until one is changed. Names, values and their order are httpx2's.
"""

from __future__ import annotations

from collections.abc import ItemsView, Sequence
from functools import lru_cache, partial
from typing import Any

import httpx2

from DocsToKG.transport.engine import Headers, by_name


class Fields(httpx2.Headers):
    """httpx2's headers with an index by name."""

    _encoding: str | None = None
    _index: dict[str, str] | None = None
    _text: list[tuple[str, str]] | None = None  # what came, until somebody asks for its bytes
    _raw: list[tuple[bytes, bytes, bytes]]
    template: Fields | None = None  # whose list and index these are, as long as nothing is changed
    _pairs: tuple[tuple[str, str], ...] | None = None  # of a template

    @classmethod
    def sent(cls, named: dict[str, str]) -> Fields:
        """What a request says: one host is told the same again and again."""
        known = _known(tuple(named.items()))
        made = cls.__new__(cls)
        made.template = known
        made._raw = known._raw
        made._index = known._index or known._by_name()
        made._encoding = known._encoding
        return made

    @classmethod
    def of(cls, headers: Headers) -> Fields:
        """What an engine's response says."""
        made = cls.__new__(cls)
        made._text = list(headers.raw)
        made._index = dict(headers.named)
        made._encoding = "utf-8"
        return made

    @property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """Every field as it is spelled, as an engine takes it."""
        if self.template is None:
            encoding = self._encoding or self.encoding
            return [(name.decode(encoding), value.decode(encoding)) for name, _, value in self._list]
        known = self.template
        if known._pairs is None:
            encoding = known._encoding or known.encoding
            known._pairs = tuple((name.decode(encoding), value.decode(encoding)) for name, _, value in known._raw)
        return known._pairs

    @property
    def _list(self) -> list[tuple[bytes, bytes, bytes]]:  # made when it is asked for
        if self._text is not None:
            as_bytes = partial(str.encode, encoding=self._encoding or "ascii")
            self._raw = [(as_bytes(name), as_bytes(name.lower()), as_bytes(value)) for name, value in self._text]
            self._text = None
        return self._raw

    @_list.setter
    def _list(self, made: list[tuple[bytes, bytes, bytes]]) -> None:
        self._raw = made

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
        count = len(self._raw if self._text is None else self._text)
        return list(index.items()) if len(index) == count else super().multi_items()

    def get_list(self, key: str, split_commas: bool = False) -> list[str]:
        return super().get_list(key, split_commas) if key in self else []

    def __setitem__(self, key: str, value: str) -> None:
        self._leave_template()
        index, name = self._index or self._by_name(), key.lower()
        if name in index:
            super().__setitem__(key, value)
        elif self._text is not None and key.isascii() and value.isascii():
            self._text.append((key, value))
        else:
            encoding = self._encoding or self.encoding
            self._list.append((key.encode(encoding), name.encode(encoding), value.encode(encoding)))
        index[name] = value

    def __delitem__(self, key: str) -> None:
        self._leave_template()
        super().__delitem__(key)
        self._index = None

    def update(self, headers: Any = None) -> None:  # type: ignore[override]  # as httpx2 has it
        self._leave_template()
        super().update(headers)
        self._index = None

    def _leave_template(self) -> None:
        if self.template is not None:
            self.template = None
            self._raw = list(self._raw)
            self._index = None

    def _by_name(self) -> dict[str, str]:
        if self._text is not None:
            self._index = index = by_name(self._text)
            return index
        try:
            self._index = index = self._read(self._encoding or "ascii")
        except UnicodeDecodeError:
            self._index = index = self._read(self.encoding)
        else:
            self._encoding = self._encoding or "ascii"
        return index

    def _read(self, encoding: str) -> dict[str, str]:
        return by_name((name.decode(encoding), value.decode(encoding)) for _, name, value in self._list)


@lru_cache(maxsize=256)
def _known(named: tuple[tuple[str, str], ...]) -> Fields:
    return Fields(named)
