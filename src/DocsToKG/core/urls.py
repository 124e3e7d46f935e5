"""Canonical URLs and the keys made from them.

Parsing is WHATWG's (ada), so hosts come out in ASCII form with odd spellings resolved, as the
sockets below will see them. Two forms: the request form keeps the query as given, the index
form sorts it and drops tracking parameters, so that two spellings of one address are one.
"""

from __future__ import annotations

import re
from urllib.parse import urljoin

import ada_url

_TRACKING = re.compile(
    r"utm_[a-z_]+|gclid|fbclid|yclid|msclkid|mc_eid|mc_cid|igshid|mkt_tok|_hsenc|_hsmi|spm", re.IGNORECASE
)
_SECRET = re.compile(
    r"api_?key|apikey|key|email|mailto|token|access_token|password|secret|signature|sig|x-amz-.*|x-goog-.*|awsaccesskeyid",
    re.IGNORECASE,
)
_USER_INFO = re.compile(r"^([a-z][a-z0-9+.-]*://)[^/?#]*@", re.IGNORECASE)
_PERCENT = re.compile(r"%([0-9a-fA-F]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class BadUrl(ValueError):
    """The text is not an absolute http or https URL."""


def request_url(url: str) -> str:
    """The form that is sent: canonical host, port, path and percent-encoding, query order kept, no fragment."""
    parsed = _parse(url)
    return _assemble(parsed, _percent(parsed.search))


def index_url(url: str) -> str:
    """The form that is compared: as `request_url`, with tracking parameters dropped and the query sorted."""
    parsed = _parse(url)
    pairs = [pair for pair in _percent(parsed.search).removeprefix("?").split("&") if pair]
    kept = sorted(pair for pair in pairs if not _TRACKING.fullmatch(pair.split("=", 1)[0]))
    return _assemble(parsed, "?" + "&".join(kept) if kept else "")


canonical_url = index_url


def host_key(url: str) -> str:
    """`host` or `host:port`, lower case, without default ports or user info."""
    return str(_parse(url).host)


def join_url(base: str, link: str) -> str:
    """An absolute URL for `link` found on `base`; raises `BadUrl` when it leads nowhere we can go."""
    try:
        return request_url(urljoin(base, link.strip()))
    except ValueError as error:
        raise BadUrl(f"not a usable link: {link[:200]!r}") from error


def mask_url(url: str) -> str:
    """The URL as it may be written down: user info dropped, values of keys, addresses and signatures become `***`."""
    head, mark, query = _USER_INFO.sub(r"\1", url).partition("?")
    query, hash_mark, fragment = query.partition("#")
    return head + mark + "&".join(_mask_pair(pair) for pair in query.split("&")) + hash_mark + fragment


def _mask_pair(pair: str) -> str:
    name, equals, value = pair.partition("=")
    return f"{name}=***" if equals and value and _SECRET.fullmatch(name) else pair


def _parse(url: str) -> ada_url.URL:
    try:
        parsed = ada_url.URL(url.strip())
    except ValueError as error:
        raise BadUrl(f"not an absolute URL: {url[:200]!r}") from error
    if parsed.protocol not in ("http:", "https:") or not parsed.hostname:
        raise BadUrl(f"not an http or https URL: {url[:200]!r}")
    return parsed


def _assemble(parsed: ada_url.URL, search: str) -> str:
    return f"{parsed.protocol}//{parsed.host}{_percent(parsed.pathname) or '/'}{search if search != '?' else ''}"


def _percent(text: str) -> str:
    # Decoding can bring two characters together that look like a new escape ("%%34%31"), so go on until nothing moves.
    while (normal := _PERCENT.sub(_normal_percent, text)) != text:
        text = normal
    return text


def _normal_percent(match: re.Match[str]) -> str:
    char = chr(int(match[1], 16))
    return char if char in _UNRESERVED else match[0].upper()
