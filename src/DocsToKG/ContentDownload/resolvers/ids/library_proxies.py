"""The address that was meant where a library's proxy, a link resolver or an API of an index stands in front of it.

Pure. Knows the hosts that EZproxy and WAM make (`doi-org.ezproxy.uni.edu`, `www.jx.org.proxy.uni.edu`,
`0-doi.org.lib.uni.edu`), log-in pages that carry their target, addresses that are escaped as a whole, and services that
are asked by DOI.
Promises: an address of none of these comes back as it was; a target is taken out of another at most twice.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote, urlsplit

_WHOLLY_ESCAPED = re.compile(r"https?%(?:25){0,3}3a%(?:25){0,3}2f", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?://)?(?P<host>[a-z0-9.-]{3,253})(?::\d{1,5})?(?P<rest>/[^\s]*)", re.IGNORECASE)
# A label of the proxy's own name; what stands before it is the host that was meant.
_PROXY_LABEL = re.compile(
    r"(?:ez|lib|ezlib|web|www|rp|e)?-?prox(?:y|ies)(?:-?[a-z]{0,2}\d)?|(?:lib)?ezp(?:-[a-z]{2,6})?\d?|ez"
    r"|idm|remotexs|remotlog|knjiznica",
    re.IGNORECASE,
)
_DOI_HOST = re.compile(r"(?:0-)?(?:dx|www)?[.-]?doi[.-]org\.(?:[a-z0-9-]+\.)+[a-z]{2,10}", re.IGNORECASE)
_ENDS = frozenset(
    {"com", "org", "net", "edu", "gov", "uk", "de", "fr", "jp", "cn", "nl", "eu", "au", "ca", "it", "es", "br", "ch",
     "info", "io"}
)  # fmt: skip
_BY_DOI = (
    ("libkey.io", "/"),
    ("oadoi.org", "/"),
    ("unpaywall.org", "/"),
    ("hdl.handle.net", "/"),
    ("api.crossref.org", "/works/"),
    ("api.crossref.org", "/v1/works/"),
    ("search.crossref.org", "/search/works?q="),
    ("api.unpaywall.org", "/v2/"),
    ("api.datacite.org", "/dois/"),
    ("commons.datacite.org", "/doi.org/"),
)
_DOI = re.compile(r"10(?:\.|%2e)\d{4,9}(?:/|%(?:25){0,3}2f)", re.IGNORECASE)
_TARGETS = ("url", "qurl", "target", "targeturl", "return", "u")
_LOGIN = re.compile(r"/(?:login|connect|validate|wayf)\b|^/?\?", re.IGNORECASE)
_MOST_LAYERS = 2
_LONGEST_QUERY = 2048


def target_address(text: str) -> str:
    """The address behind proxies and resolvers; the same text where there are none."""
    if _WHOLLY_ESCAPED.match(text):
        for _ in range(4):
            text = unquote(text) if _WHOLLY_ESCAPED.match(text) else text
    for _ in range(_MOST_LAYERS):
        inner = _inner(text)
        if inner is None:
            break
        text = inner
    return text


def _inner(text: str) -> str | None:
    match = _ADDRESS.fullmatch(text)
    if match is None:
        return None
    host, rest = match["host"].lower(), match["rest"]
    if _DOI_HOST.fullmatch(host):
        return f"https://doi.org{rest}"
    if (doi := _asked_by_doi(host.removeprefix("www."), rest)) is not None:
        return f"https://doi.org/{doi}"
    labels = host.split(".")
    marks = [place for place, label in enumerate(labels[:-1]) if _PROXY_LABEL.fullmatch(label)]
    if not marks:
        return None
    return _target(rest) or _behind_proxy(labels[: marks[-1]] or [], rest)


def _asked_by_doi(host: str, rest: str) -> str | None:
    for known, path in _BY_DOI:
        if host == known and rest.lower().startswith(path) and _DOI.match(rest[len(path) :]):
            return rest[len(path) :]
    return None


def _target(rest: str) -> str | None:
    """The address that a log-in page leads on to. Older ones are not escaped, and end with their own query."""
    path, _, query = rest.partition("?")
    if not _LOGIN.search(path or rest):
        return None
    plain = re.search(r"(?:^|&)q?url=(?P<target>https?://.+)", query, re.IGNORECASE)
    if plain is not None:
        return plain["target"]
    for name, value in parse_qsl(query[:_LONGEST_QUERY]):
        if name.lower() in _TARGETS and value.lower().startswith(("http://", "https://")):
            return value
    return None


def _behind_proxy(labels: list[str], rest: str) -> str | None:
    """The host that was meant, whose dots a proxy with a certificate of its own writes as hyphens."""
    meant = ".".join(labels)
    if len(labels) == 1:
        # A hyphen of the host itself is doubled.
        meant = labels[0].replace("--", "\0").replace("-", ".").replace("\0", "-")
    meant = re.sub(r"^0[.-]", "", meant)
    is_host = meant.count(".") >= 1 and meant.rpartition(".")[2] in _ENDS and ".." not in meant
    return f"https://{meant}{rest}" if is_host and _is_parsed(meant) else None


def _is_parsed(host: str) -> bool:
    try:
        return urlsplit(f"https://{host}").hostname == host
    except ValueError:
        return False
