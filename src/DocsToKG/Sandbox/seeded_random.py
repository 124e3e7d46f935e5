"""Random numbers that are a function of a key.

There is no state, so works, faults and files can be made in any order and process, and come out equal.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b
from typing import TypeVar

T = TypeVar("T")


def fraction(*key: object) -> float:
    """A number from 0 up to 1 that depends on the key only."""
    return _number(key) / 2.0**64


def choose(options: Sequence[T], *key: object) -> T:
    return options[_number(key) % len(options)]


def stream(*key: object) -> random.Random:
    """A generator of its own for a key that needs many draws."""
    return random.Random(_number(key))


def _number(key: tuple[object, ...]) -> int:
    text = "\x1f".join(map(str, key))
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big")
