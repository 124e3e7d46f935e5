"""What disks, proxies and cut transfers do to the bytes of a PDF."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

_BLOCK = 512


def zeroed(data: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(600, len(data) - 4_000)
    return data[:at] + bytes(_BLOCK) + data[at + _BLOCK :]


def flipped(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(20):
        changed[chance.randrange(600, len(data) - 2_000)] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) // 3, len(data) - 100)]


def swapped(data: bytes, chance: random.Random) -> bytes:
    one, two = sorted(chance.sample(range(600, len(data) - 4_000, _BLOCK), 2))
    between = data[one + _BLOCK : two]
    return data[:one] + data[two : two + _BLOCK] + between + data[one : one + _BLOCK] + data[two + _BLOCK :]


DAMAGES: Mapping[str, Callable[[bytes, random.Random], bytes]] = {
    "a zeroed block": zeroed,
    "twenty flipped bits": flipped,
    "a cut tail": cut,
    "two swapped blocks": swapped,
}
