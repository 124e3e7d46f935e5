"""What a licence is called: SPDX names for what indexes, repositories and publishers say. Pure.

Knows the Creative Commons family in its many spellings and a few others that papers carry. Does not judge what a
licence permits. Promises: what is not recognised gives None, so that the words of the source stay the only claim.
"""

from __future__ import annotations

import re
from functools import lru_cache

# Texts come from outside; a licence is named in its first words or not at all.
_LONGEST_TEXT = 500
# Indexes drop the version; what they call plain "cc-by" is, by far, the current one.
_CURRENT = "4.0"
_VERSIONS = ("1.0", "2.0", "2.1", "2.5", "3.0", "4.0")
_KINDS = ("by", "by-sa", "by-nd", "by-nc", "by-nc-sa", "by-nc-nd")
# The translations to one country's law that SPDX lists; others keep the words of their source.
_PORTS = {
    "by-2.5": ("au",),
    "by-3.0": ("at", "au", "de", "igo", "nl", "us"),
    "by-nc-3.0": ("de",),
    "by-nc-nd-3.0": ("de", "igo"),
    "by-nc-sa-2.0": ("de", "fr", "uk"),
    "by-nc-sa-3.0": ("de", "igo"),
    "by-nd-3.0": ("de",),
    "by-sa-2.0": ("uk",),
    "by-sa-2.1": ("jp",),
    "by-sa-3.0": ("at", "de", "igo"),
}
_ADDRESS = re.compile(
    r"(?:https?://)?(?:www\.)?creativecommons\.org/(?:licenses/(?P<kind>[a-z-]+)(?:/(?P<version>\d\.\d))?"
    r"(?:/(?P<port>[a-z]{2,3})(?=/|$))?|publicdomain/(?P<free>zero|mark)(?:/1\.0)?)(?:[/?#.].*)?",
)
_LONG_WORDS = (
    ("creative commons", "cc"),
    ("attribution", "by"),
    ("non commercial", "nc"),
    ("noncommercial", "nc"),
    ("no derivatives", "nd"),
    ("no derivs", "nd"),
    ("noderivatives", "nd"),
    ("noderivs", "nd"),
    ("share alike", "sa"),
    ("sharealike", "sa"),
)
_SHORT = re.compile(
    r"cc (?P<kind>by(?: (?:nc|nd|sa))*)(?: (?:v )?(?P<version>\d\.\d))?(?: (?P<port>[a-z]{2,3}|igo))?"
    r"(?: (?:international|unported|generic|license|licence|deed|public|[a-z]{2}))*"
)
_ZERO = re.compile(r"cc ?0(?: (?:v )?1\.0)?(?: (?:universal|public|domain|dedication|license|licence))*|cc zero.{0,40}")
_MARK = re.compile(r"(?:cc )?(?:public domain mark|pdm)(?: 1\.0)?")
_OTHERS = {
    "mit": "MIT",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "bsd 3 clause": "BSD-3-Clause",
    "bsd 2 clause": "BSD-2-Clause",
    "odc by": "ODC-By-1.0",
    "odc by 1.0": "ODC-By-1.0",
    "odbl": "ODbL-1.0",
    "odbl 1.0": "ODbL-1.0",
    "pddl": "PDDL-1.0",
    "pddl 1.0": "PDDL-1.0",
    "ogl uk 3.0": "OGL-UK-3.0",
    "etalab 2.0": "etalab-2.0",
}
_FREE = {"CC0-1.0": "cc0", "CC-PDM-1.0": "public-domain"}
_ORDER = ("by", "nc", "nd", "sa")


def spdx(text: str | None) -> str | None:
    """The SPDX name of the licence a source speaks of; None when it names none that is known."""
    return _named(_plain(text)) if text else None


@lru_cache(maxsize=256)  # sources speak of few
def _named(plain: str) -> str | None:
    match = _ADDRESS.fullmatch(plain)
    if match is not None:
        free = {"zero": "CC0-1.0", "mark": "CC-PDM-1.0"}
        return free[match["free"]] if match["free"] else _creative(match["kind"], match["version"], match["port"])
    words = _words(plain)
    if _ZERO.fullmatch(words):
        return "CC0-1.0"
    if _MARK.fullmatch(words):
        return "CC-PDM-1.0"
    match = _SHORT.fullmatch(words)
    if match is not None:
        return _creative(match["kind"].replace(" ", "-"), match["version"], match["port"])
    return _OTHERS.get(words)


def family(text: str | None) -> str | None:
    """The licence without version and country, in small letters (`cc-by-nc`, `cc0`, `mit`), to compare by; else None.

    Countries' own versions of Creative Commons count with their family, though SPDX may have no name for them.
    """
    match = _ADDRESS.fullmatch(_plain(text)) or _SHORT.fullmatch(_words(_plain(text)))
    kind = _kind(match["kind"].replace(" ", "-")) if match is not None and match["kind"] else None
    if kind is not None:
        return f"cc-{kind}"
    name = spdx(text)
    if name is None:
        return "public-domain" if _words(_plain(text)) == "public domain" else None
    return _FREE.get(name) or re.sub(r"-\d[\d.]*$", "", name.lower())


def _creative(kind: str, version: str | None, port: str | None) -> str | None:
    kind_name = _kind(kind)
    chosen = version or _CURRENT
    if kind_name is None or chosen not in _VERSIONS:
        return None
    name = f"{kind_name}-{chosen}"
    if port is None:
        return f"CC-{name.upper()}"
    return f"CC-{name}-{port}".upper() if port in _PORTS.get(name, ()) else None


def _kind(text: str) -> str | None:
    """The parts of a licence in the order in which its name has them."""
    parts = text.split("-")
    ordered = "-".join(sorted(set(parts), key=lambda part: _ORDER.index(part) if part in _ORDER else 9))
    return ordered if ordered in _KINDS else None


def _plain(text: str | None) -> str:
    return (text or "")[:_LONGEST_TEXT].strip().lower()


def _words(plain: str) -> str:
    """Words and version numbers, one blank between them; the long names of the parts made short."""
    words = " ".join(re.findall(r"[a-z]+|\d+(?:\.\d+)*", plain))
    for long, short in _LONG_WORDS:
        words = words.replace(long, short)
    return re.sub(r"^ccby\b", "cc by", words)
