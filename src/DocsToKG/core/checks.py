"""What a check of an adapter reports, and the judgements that all checks share.

A check is a generator of findings beside the adapter that it checks. It promises: its first finding says whether the
thing can be used at all; it leaves nothing behind; it shows no secret. `content doctor` runs the checks.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """From good to bad."""

    OK = 0
    WARNING = 1  # it works, and an operator should know
    FAILED = 2  # a run would stop, or wait without end

    @property
    def word(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked, what was seen, and what to do about it."""

    subject: str
    level: Level
    seen: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A check by its name. Without what is `needed`, no work can be done."""

    name: str
    run: Callable[[], Iterator[Finding]]
    needed: bool = False


def ok(subject: str, seen: str) -> Finding:
    return Finding(subject, Level.OK, seen)


def warning(subject: str, seen: str, advice: str) -> Finding:
    return Finding(subject, Level.WARNING, seen, advice)


def failed(subject: str, seen: str, advice: str) -> Finding:
    return Finding(subject, Level.FAILED, seen, advice)


def missing_extra(extra: str) -> Finding:
    return failed("driver", "the package that speaks to it is not installed", f"pip install 'docstokg[{extra}]'")


_SKEW_S = 2.0
_FAR_S = 300.0  # signatures and certificates begin to fail


def is_here(host: str | None) -> bool:
    """Whether what goes to the host never leaves this machine; no host at all is a socket in the file system."""
    if not host or host.startswith(("/", "@")) or host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def encryption(host: str | None, encrypted: bool, advice: str) -> Finding:
    if encrypted:
        return ok("encryption", "TLS")
    if is_here(host):
        return ok("encryption", "none, and none needed on this machine")
    return warning("encryption", f"none on the way to {host}: passwords and data can be read there", advice)


def ask_time(ask: Callable[[], float]) -> tuple[float, float]:
    """How far the server's clock is ahead of ours, and how far that may be wrong, in seconds."""
    before = time.time()
    server = ask()
    after = time.time()
    return server - (before + after) / 2, (after - before) / 2


def clock(skew_s: float, unsure_s: float) -> Finding:
    """Leases follow the server's time; records, signatures and certificates follow ours."""
    certain_s = max(0.0, abs(skew_s) - unsure_s)
    side = "ahead of" if skew_s > 0 else "behind"
    if certain_s <= _SKEW_S:
        return ok("clock", f"within {max(0.1, abs(skew_s) + unsure_s):.1f} s of ours")
    more = "; signatures and certificates may be refused" if certain_s > _FAR_S else ""
    return warning(
        "clock",
        f"{abs(skew_s):.1f} s {side} ours{more}",
        "keep the clocks of all machines right by NTP (chrony, timesyncd)",
    )
