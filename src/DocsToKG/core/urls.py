"""Canonical URLs and the keys made from them.

Parsing is WHATWG's (ada), so hosts come out in ASCII form with odd spellings resolved, as the
sockets below will see them. Two forms: the request form keeps the query as given, the index
form sorts it and drops tracking parameters, so that two spellings of one address are one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import unquote_plus, urljoin

import ada_url

_TRACKING = re.compile(
    r"utm_[a-z_]+|gclid|fbclid|yclid|msclkid|mc_eid|mc_cid|igshid|mkt_tok|_hsenc|_hsmi|spm", re.IGNORECASE
)
# Masking is for records and messages alone, so a readable word too few does less harm than a key too many.
_SECRET = re.compile(
    r".*(?:(?<!mon)(?<!don)(?<!tur)(?<!hoc)key(?![-_]?word|note|board)|token|secret|passw|passphrase|signature|credential"
    r"|auth(?!or(?!i[sz]))|jwt|sess(?:ion|id)|hmac|e[-_.]?mail|mailto).*"
    r"|pass|pwd|sig|sign|code|policy|ticket|sid|mail|googleaccessid|saml(?:response|art)|_*hdn[et].*|x-(?:amz|goog)-.*",
    re.IGNORECASE | re.DOTALL,
)
_LONGEST_NAME = 200
_LONGEST_TEXT = 64 * 1024
_LONGEST_HOST = 255  # with its port; no name is longer than 253 (RFC 1035 section 2.3.4)
_USER_INFO = re.compile(r"(://)[^/?#]*@")
# A text may have been cut in the middle of a password: what follows a host and a colon and is no port.
_CUT_USER_INFO = re.compile(r"(://)[^/?#@\[\]:]*:(?!\d{1,5}\W*$)[^/?#@\]]+$")
_PATH_PAIR = re.compile(r"(;)([^;=/]+)=([^;/]+)")
_QUERY_PAIR = re.compile(r"([?&;#])([^?&;#=]+)=([^&;#]+)")
_INNER_NAME = re.compile(r"[?&;#]([^?&;#=]+)=")
# Nothing of a word without one of these is ever masked; most words have none.
_MARKS = re.compile(r"[=?]|://")
_WORD = re.compile(r"[^\s<>\"'`]+")
# Text may have been escaped more than once: all backslashes of a run go.
_JSON_ESCAPE = re.compile(r"(?<!\\)\\++(?:u00(2[36f]|3[abdf]|40)|(/))", re.IGNORECASE)
_PERCENT = re.compile(r"%([0-9a-fA-F]{2})")
# What no parser would change: a plain name for a host (no number, port or coded letters), a path without escapes and
# without segments that begin with a dot, a query without escapes.
PLAIN_URL = re.compile(
    r"https?://(?:(?!xn--)[a-z0-9-]+\.)*(?!xn--)[a-z][a-z0-9-]*"
    r"(?:/(?!\.)[A-Za-z0-9_~!$&()*+,;=:@.-]*)+(?:\?[A-Za-z0-9_~!$&()*+,;=:@./?-]+)?"
)
# Nothing of such a text is ever masked: no user, no pairs, nothing after a colon but the host.
_OPEN = re.compile(r"[^:?#;@]*(?:://[^:?#;@]*)?")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class BadUrl(ValueError):
    """The text is not an absolute http or https URL."""


# One exchange asks for the forms of its address a dozen times; few are remembered, as hostile ones may be long.
@lru_cache(maxsize=256)
def request_url(url: str) -> str:
    """The form that is sent: canonical host, port, path and percent-encoding, query order kept, no fragment."""
    plain = url if PLAIN_URL.fullmatch(url) else parsed_url(url)
    # Hosts are keys of limits, records and jobs, which are all bounded.
    if len(plain) > _LONGEST_HOST and len(plain.split("/", 3)[2]) > _LONGEST_HOST:
        raise BadUrl("the name of the host is longer than any host's")
    return plain


def parsed_url(url: str) -> str:
    parsed = _parse(url)
    search = _percent(parsed.search)
    return f"{parsed.protocol}//{parsed.host}{_percent(parsed.pathname) or '/'}{search if search != '?' else ''}"


@lru_cache(maxsize=256)
def index_url(url: str) -> str:
    """The form that is compared: as `request_url`, with tracking parameters dropped and the query sorted."""
    place, _, query = request_url(url).partition("?")
    if not query:
        return place
    pairs = [pair for pair in query.split("&") if pair]
    kept = sorted(pair for pair in pairs if not _TRACKING.fullmatch(pair.split("=", 1)[0]))
    return f"{place}?{'&'.join(kept)}" if kept else place


canonical_url = index_url


@lru_cache(maxsize=256)
def host_key(url: str) -> str:
    """`host` or `host:port`, lower case, without default ports or user info."""
    return request_url(url).split("/", 3)[2]


def join_url(base: str, link: str) -> str:
    """An absolute URL for `link` found on `base`; raises `BadUrl` when it leads nowhere we can go."""
    try:
        return request_url(urljoin(base, link.strip()))
    except ValueError as error:
        raise BadUrl(f"not a usable link: {mask_text(link[:200])!r}") from error


@lru_cache(maxsize=256)
def mask_url(url: str) -> str:
    """The URL as it may be written down: user info and tracking parameters dropped, values of keys, addresses and
    signatures become `***`."""
    return url if _OPEN.fullmatch(url) else _mask(url)


def _mask(url: str) -> str:
    return _masked(_untracked(url))


def has_secret(url: str) -> bool:
    """Whether `mask_url` hides anything of the URL."""
    return _OPEN.fullmatch(url) is None and _masked(url) != url


def _masked(url: str) -> str:
    shown = _CUT_USER_INFO.sub(r"\1***", _USER_INFO.sub(r"\1", url))
    path = re.match(r"[^?#]*", shown)
    end = path.end() if path else 0
    return _PATH_PAIR.sub(_mask_pair, shown[:end]) + _QUERY_PAIR.sub(_mask_pair, shown[end:])


def mask_text(text: str) -> str:
    """The text with everything masked that `mask_url` masks in a URL, wherever one stands in it.

    Texts are cut after 64 Ki characters. Escapes of JSON inside a URL are undone, so that it is recognised.
    """
    cut = text[:_LONGEST_TEXT] + ("..." if len(text) > _LONGEST_TEXT else "")
    plain = _JSON_ESCAPE.sub(lambda match: "/" if match[2] else chr(int(match[1], 16)), cut)
    return _WORD.sub(_mask_word, plain) if _MARKS.search(plain) else plain


def _mask_word(match: re.Match[str]) -> str:
    word = match[0]
    return _mask(word) if _MARKS.search(word) else word


def _untracked(url: str) -> str:
    """The text without the parameters that follow a reader around; nothing else of it changes (SEC-02)."""
    place, mark, rest = url.partition("?")
    query, hash_mark, fragment = rest.partition("#")
    if not mark or "#" in place:
        return url
    pairs = query.split("&")
    kept = [pair for pair in pairs if not _is_tracking(pair.partition("=")[0])]
    if len(kept) == len(pairs):
        return url
    return place + ("?" + "&".join(kept) if any(kept) else "") + hash_mark + fragment


def _is_tracking(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _TRACKING.fullmatch(unquote_plus(name)) is not None


def _mask_pair(match: re.Match[str]) -> str:
    mark, name, value = match[1], match[2], match[3]
    return f"{mark}{name}=***" if _is_secret(name) or _carries_secret(value) else match[0]


def _is_secret(name: str) -> bool:
    return len(name) > _LONGEST_NAME or _SECRET.fullmatch(unquote_plus(name)) is not None


def _carries_secret(value: str) -> bool:
    """Whether a value is itself an address with a key in it, escaped at most twice."""
    inner = unquote_plus(unquote_plus(value)) if "%" in value else value
    return any(_is_secret(name) for name in _INNER_NAME.findall(inner)) or _USER_INFO.search(inner) is not None


def _parse(url: str) -> ada_url.URL:
    try:
        parsed = ada_url.URL(url.strip())
    except ValueError as error:
        raise BadUrl(f"not an absolute URL: {mask_text(url[:200])!r}") from error
    if parsed.protocol not in ("http:", "https:") or not parsed.hostname:
        raise BadUrl(f"not an http or https URL: {mask_text(url[:200])!r}")
    return parsed


def _percent(text: str) -> str:
    normal = _PERCENT.sub(_normal_percent, text)
    is_settled = normal == text or _PERCENT.sub(_normal_percent, normal) == normal
    return normal if is_settled else _settled(normal)


def _settled(text: str) -> str:
    """Decoding can bring characters together that look like a new escape (`%%34%31`), and what that gives can again.
    Each is seen as soon as its last character is there, so that thousands in one another are read once.
    """
    out: list[str] = []
    for char in text:
        out.append(char)
        while len(out) > 2 and out[-3] == "%" and (escape := _PERCENT.fullmatch("".join(out[-3:]))) is not None:
            out[-3:] = normal = _normal_percent(escape)
            if len(normal) > 1:
                break
    return "".join(out)


def _normal_percent(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if char in _UNRESERVED else match[0].upper()
