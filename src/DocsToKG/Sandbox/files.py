"""How the files of the invented literature are written: which rendering each has, and which have a cover.

`Files` is data. Files without a rendering are plain. Knows no works: a random key decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from DocsToKG.Sandbox.pdf.renderings import RENDERINGS
from DocsToKG.Sandbox.seeded_random import fraction

COVER = "cover"
PLAIN = "plain"
# About what open papers of the last thirty years look like inside.
USUAL: Mapping[str, float] = {
    "latex": 0.2, "word": 0.16, "indesign": 0.18, "columns": 0.1, "tagged": 0.07, "forms": 0.03, "ascii85": 0.03,
    "unencoded": 0.02, "type1": 0.03, "type3": 0.02, "ocr": 0.04, "scan": 0.01, "cjk": 0.02, "japanese": 0.02,
    "rtl": 0.01, "arabic": 0.01,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Files:
    """Shares from 0 to 1: of each rendering among all files, and of a repository's files that have a cover."""

    renderings: Mapping[str, float] = field(default_factory=lambda: USUAL)
    cover: float = 0.3

    def __post_init__(self) -> None:
        for name, share in {**self.renderings, COVER: self.cover}.items():
            if name not in RENDERINGS and name != COVER:
                raise ValueError(f"{name!r} is no rendering; known are: {', '.join(RENDERINGS)}, {COVER}")
            if not 0.0 <= share <= 1.0:
                raise ValueError(f"rendering {name}: {share} is not a share between 0 and 1")
        if sum(self.renderings.values()) > 1.000001:
            raise ValueError("the shares of all renderings are more than 1 together")

    @classmethod
    def plain(cls) -> Files:
        return cls({}, 0.0)

    def with_settings(self, settings: Iterable[str]) -> Files:
        """These files with `NAME=SHARE` words applied in order."""
        renderings, cover = dict(self.renderings), self.cover
        for word in settings:
            name, _, text = word.partition("=")
            try:
                share = float(text)
            except ValueError:
                raise ValueError(f"{word!r}: write a rendering as NAME=SHARE, like latex=0.5") from None
            if name == COVER:
                cover = share
            else:
                renderings[name] = share
        return replace(self, renderings=renderings, cover=cover)

    def settings(self) -> list[str]:
        """The words that make these files out of plain ones."""
        return [f"{name}={share!r}" for name, share in {**self.renderings, COVER: self.cover}.items()]

    def rendering(self, *key: object) -> str:
        at = fraction(*key, "rendering")
        for name, share in self.renderings.items():
            if at < share:
                return name
            at -= share
        return PLAIN

    def has_cover(self, *key: object) -> bool:
        return fraction(*key, COVER) < self.cover
