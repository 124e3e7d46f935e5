"""What is looked at: a function of bytes, the errors that it may end in, and whether its input has the form of JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

NOW = 1_790_000_000.0


class Target(NamedTuple):
    """`is_json` inputs are also changed in their structure, not only in their bytes."""

    check: Callable[[bytes], object]
    allowed: tuple[type[Exception], ...] = ()
    is_json: bool = False


def in_a_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """The same of what reads a file: the bytes lie in one of that name, alone in its folder."""

    def check(data: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            read(path)

    return check


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
