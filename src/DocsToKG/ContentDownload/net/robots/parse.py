"""The text of a robots.txt made plain for its parser, and the spellings of an address that its rules are asked about.

Pure. What RFC 9309 leaves open, and what sites get wrong, is read against us: a record that nobody knows ends no group,
a rule without its slash is meant, an `Allow` that cannot be read allows nothing.
Promises: one pass over at most 500 KiB; a result for any bytes.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Protocol
from urllib.parse import urlsplit

# Groups that name us in any of our names are all under this one, so that the parser joins them.
PRODUCT = "DocsToKG"
_OTHERS = "somebody else"  # no robot has a blank in its name
_ENDS = re.compile(r"\r\n|\r|\n")
# What the parser knows, with its misspellings. Records of other names belong to no group and end none (RFC 9309
# section 2.2.4).
_RECORD = re.compile(
    r"(?P<field>user[-\s]?agent|allow|crawl[-\s]delay|request[-\s]rate|visit[-\s]time"
    r"|disallow(?:s|ed)?|dissallow|dissalow|disalow|diasllow|disallaw)(?:\s*:\s*|\s+|$|(?=/))(?P<value>.*)",
    re.IGNORECASE | re.DOTALL,
)
_TOKEN = re.compile(r"[a-z_-]+(?=/\d)", re.IGNORECASE)
# The parser would take these for ends of lines, and blanks inside a path are escaped anyway.
_UNSEEN = re.compile(r"[\x00-\x20\x7f\x85\xa0\u2028\u2029]")
_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_ABSOLUTE = re.compile(r"https?://(?P<host>[^/?#\s]*)(?P<path>/.*)?", re.IGNORECASE)


class Rules(Protocol):
    """A parsed robots.txt."""

    def can_fetch(self, url: str, user_agent: str) -> bool: ...


def names_of(user_agent: str) -> frozenset[str]:
    """The names by which a site may mean us, in lower case: the product's, and that with which requests are signed."""
    signed = re.match(r"[^\s/();,]+", user_agent)
    return frozenset({PRODUCT.lower(), *((signed[0].lower(),) if signed is not None else ())})


def plain_rules(body: bytes, *, names: Collection[str], host: str) -> str:
    """The records of groups, one a line; `names` are ours in lower case, `host` the one that the file is of."""
    kept = (_plain(line, names, host) for line in _ENDS.split(text_of(body)))
    return "\n".join(record for record in kept if record is not None)


def allows(rules: Rules, url: str) -> bool:
    """Whether no spelling of the address is forbidden: servers give the same answer to several of them."""
    return all(rules.can_fetch(spelling, PRODUCT) for spelling in _spellings(url))


def text_of(body: bytes) -> str:
    """UTF-8, as the RFC has it, unless the file says otherwise. A byte order mark would hide the first group.

    An octet that is not UTF-8 stands as its escape, which is how it stands in an address.
    """
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", errors="replace")
    text = body.decode("utf-8-sig", errors="surrogateescape")
    return _NOT_UTF8.sub(lambda octet: f"%{ord(octet[0]) - 0xDC00:02X}", text)


def _plain(line: str, names: Collection[str], host: str) -> str | None:
    """A record as the parser should see it; None for one of no group."""
    record = _RECORD.fullmatch(line.partition("#")[0].strip())
    if record is None:
        return None
    field, value = record["field"].lower(), record["value"].strip()
    if field.startswith("user"):
        return f"User-agent: {_name(value, names)}"
    if field == "allow":
        return f"Allow: {_allowed(value)}"
    if field.startswith(("crawl", "request", "visit")):
        return f"{field.replace(' ', '-')}: {_UNSEEN.sub(' ', value)}"
    return f"Disallow: {_forbidden(value, host)}"


def _name(value: str, names: Collection[str]) -> str:
    """One name for us, and one for all other robots: a group may be for thousands of names, and the parser keeps all
    its rules for each of them. A version after a name is no part of it, and a group for nobody is for everybody."""
    token = _TOKEN.match(value)
    name = (token[0] if token is not None else value).strip().lower()
    bare = name.replace("*", "")
    if not bare:
        return "*"
    return PRODUCT if bare in names else _OTHERS


def _allowed(value: str) -> str:
    """An empty `Allow` says nothing; one that is no path, or is not UTF-8, allows nothing either."""
    return _escaped(value) if value.startswith(("/", "*")) and _is_utf8(value) else ""


def _forbidden(value: str, host: str) -> str:
    """A path without its slash begins at the root, and a whole address of this host is its path; another host's is not
    ours."""
    if not value or value.startswith(("/", "*", "$")):
        return _escaped(value)
    if (whole := _ABSOLUTE.fullmatch(value)) is not None:
        return _escaped(whole["path"] or "/") if _is_same(whole["host"], host) else ""
    return _escaped(f"/{value}")


def _is_same(one: str, other: str) -> bool:
    return one.lower().removeprefix("www.") == other.lower().removeprefix("www.")


def _escaped(path: str) -> str:
    return _UNSEEN.sub(lambda sign: "".join(f"%{octet:02X}" for octet in sign[0].encode()), path)


def _is_utf8(path: str) -> bool:
    """Whether the escapes of a path are letters: the parser holds all others for one and the same."""
    octets = re.sub(rb"%([0-9A-Fa-f]{2})", lambda escape: bytes([int(escape[1], 16)]), path.encode("utf-8", "replace"))
    try:
        octets.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _spellings(url: str) -> tuple[str, ...]:
    """As asked for, with escaped slashes as themselves, and with those of the query escaped (RFC 9309 section 2.2.2
    compares them so). All other escapes the parser sees to."""
    if "%" not in url and "?" not in url:
        return (url,)
    plain = re.sub(r"%2f", "/", url, flags=re.IGNORECASE)
    place, mark, query = url.partition("?")
    coded = f"{place}{mark}{query.replace('/', '%2F')}"
    return tuple(dict.fromkeys((url, plain, coded)))


def host_of_origin(origin: str) -> str:
    try:
        return urlsplit(origin).hostname or ""
    except ValueError:
        return ""
