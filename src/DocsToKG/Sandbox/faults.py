"""Faults of copies and services: which, how often, and where.

Each field of `Faults` is the share of copies (or of works, for those in `OF_WORKS`) that have it. Which copy has which
fault depends on the seed alone, so two runs of one world meet the same faults; how long a transient one lasts depends
on the number of the try. Knows no HTTP: the services turn a fault's name into bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from DocsToKG.Sandbox.seeded_random import fraction

# A retry gets past these.
TRANSIENT = frozenset(
    {"rate_limited", "server_error", "slow", "stalled", "truncated_length", "truncated_chunked", "reset"}
)
# The copy is good all the same.
HARMLESS = frozenset({"wrong_content_type", "no_head"})
# Index services have only these.
STATUS_FAULTS = frozenset({"rate_limited", "server_error"})
# Not of one copy: they choose the publisher or the file of a work.
OF_WORKS = frozenset({"duplicate", "robots_disallow", "robots_down", "crawl_delay"})


@dataclass(frozen=True, slots=True)
class Faults:
    """Shares from 0 to 1. The defaults leave nearly every open work one good copy."""

    rate_limited: float = 0.02
    server_error: float = 0.02
    slow: float = 0.01
    stalled: float = 0.003
    truncated_length: float = 0.01
    truncated_chunked: float = 0.01
    reset: float = 0.01
    html_as_pdf: float = 0.02
    challenge_403: float = 0.015
    challenge_200: float = 0.015
    cookie_loop: float = 0.01
    redirect_loop: float = 0.01
    redirect_private: float = 0.01
    wrong_article: float = 0.01
    gzip_bomb: float = 0.003
    tiny_stub: float = 0.01
    wrong_content_type: float = 0.02
    no_head: float = 0.03
    duplicate: float = 0.02
    robots_disallow: float = 0.02
    robots_down: float = 0.01
    crawl_delay: float = 0.01
    cover_only: float = 0.0
    first_page: float = 0.0
    supplement: float = 0.0
    notice: float = 0.0

    def __post_init__(self) -> None:
        for name, share in self.shares().items():
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"fault {name}: {share} is not a share between 0 and 1")

    @classmethod
    def none(cls) -> Faults:
        return cls(**{field.name: 0.0 for field in fields(cls)})

    def with_settings(self, settings: Iterable[str]) -> Faults:
        """These faults with `NAME=SHARE` words applied in order."""
        known = self.shares()
        changes: dict[str, float] = {}
        for word in settings:
            name, _, text = word.partition("=")
            if name not in known:
                raise ValueError(f"{name!r} is no fault; known are: {', '.join(known)}")
            try:
                changes[name] = float(text)
            except ValueError:
                raise ValueError(f"{word!r}: write a fault as NAME=SHARE, like slow=0.05") from None
        return replace(self, **changes)

    def shares(self) -> dict[str, float]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def settings_of(faults: Faults) -> list[str]:
    """The words `with_settings` needs to make these faults again."""
    return [f"{name}={share!r}" for name, share in faults.shares().items()]


def fault_of_copy(faults: Faults, seed: int, index: int, kind: str) -> str | None:
    """The one fault of a copy, or None."""
    shares = {name: share for name, share in faults.shares().items() if name not in OF_WORKS}
    return _pick(shares, fraction(seed, index, kind, "fault"))


def fault_of_index(faults: Faults, seed: int, index: int, service: str) -> str | None:
    """The fault an index service has when asked for a work."""
    shares = {name: share for name, share in faults.shares().items() if name in STATUS_FAULTS}
    return _pick(shares, fraction(seed, index, service, "index fault"))


def failing_tries(fault: str, seed: int, index: int, kind: str) -> int:
    """How many tries a transient fault spoils: a burst of server errors one or two, the others one."""
    if fault == "server_error":
        return 1 + (fraction(seed, index, kind, "burst") < 0.4)
    return 1


def _pick(shares: dict[str, float], at: float) -> str | None:
    # The largest shares come first, so that a fault set to 1 is met by every copy whatever the others say.
    for name, share in sorted(shares.items(), key=lambda item: -item[1]):
        if at < share:
            return name
        at -= share
    return None
