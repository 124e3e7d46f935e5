"""May we ask for this URL, and what do we say about ourselves?

Knows https-first with an allowlist for plain http, the headers of each role, and which credentials
belong to which host. Does no I/O except handing a request on.
Promises: a credential is sent over https to its own host only, and is invisible above this transport.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote_plus, urlencode, urlsplit, urlunsplit

import httpx2

from DocsToKG.ContentDownload.api.types import Reason, Role
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.core.backoff import RetryPolicy
from DocsToKG.core.urls import BadUrl, host_key, mask_url, request_url
from DocsToKG.core.values import lean_dataclass

_ACCEPT = {
    Role.METADATA: "application/json, application/xml;q=0.9, text/xml;q=0.9, text/html;q=0.5, */*;q=0.3",
    Role.LANDING: "text/html, application/xhtml+xml, application/pdf;q=0.8, */*;q=0.3",
    Role.ARTIFACT: "application/pdf, application/octet-stream;q=0.8, */*;q=0.3",
}
# What may follow a redirect to another host; anything else could carry a credential.
_PORTABLE = frozenset({"accept", "accept-encoding", "accept-language", "user-agent"})
# A shorter key is no secret, and would be found in every other address.
_SHORTEST_KEY = 6
_LONGEST_URL = 8192
# What a redirect must not carry to another host. Narrower than what records mask: a request must not lose its meaning.
_CREDENTIAL = re.compile(
    r"api_?key|key|e?mail(?:to)?|(?:access_)?token|password|secret|signature|sig|x-amz-.*|x-goog-.*|awsaccesskeyid",
    re.I,
)


def role_headers(role: Role, agent: str, extra: Mapping[str, str]) -> dict[str, str]:
    """The headers of one request, names in lower case; `extra` wins, also over the User-Agent."""
    # Files are asked for as they are, so that length and checksum mean the stored bytes.
    encoding = "identity" if role is Role.ARTIFACT else "gzip, deflate"
    headers = {"user-agent": agent, "accept": _ACCEPT[role], "accept-encoding": encoding}
    return headers | {name.lower(): value for name, value in extra.items()}


def portable_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """What is left of `headers` once a redirect has left the host they were meant for."""
    return {name: value for name, value in headers.items() if name.lower() in _PORTABLE}


@dataclass(frozen=True, slots=True)
class SourcePolicy:
    """How one source is asked.

    `timeout_s` bounds a whole exchange with an API or a page and each single wait, unless `wait_s` says otherwise of
    the waits; `deadline_s` bounds the whole transfer of a file, which may be large. A body that brings next to nothing
    for `trickle_s` is given up.
    A pause longer than `inline_cap_s` that a server asks for sends the job back. A file is handed on `chunk_bytes` at
    a time.
    """

    name: str
    timeout_s: float = 60.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    obey_robots: bool = True  # False exempts requests to the API itself, never files or pages
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    inline_cap_s: float = 60.0
    max_page_bytes: int = 16 * 1024 * 1024
    deadline_s: float = 900.0
    trickle_s: float = 10.0
    chunk_bytes: int | None = None
    wait_s: float | None = None


@dataclass(frozen=True, slots=True)
class HostCredentials:
    """What one host needs to know us by. Never shown."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    params: Mapping[str, str] = field(default_factory=dict, repr=False)


@lean_dataclass(frozen=True, slots=True)
class Admitted:
    """A URL that may be asked for. `fallback` is the plain http original, when its host may be asked that way."""

    url: str
    fallback: str | None = None
    was_http: bool = False


class UrlPolicy:
    """https only, except for hosts the operator listed; credentials never travel to another host."""

    def __init__(self, *, http_hosts: Iterable[str] = (), credentials: Mapping[str, HostCredentials] | None = None):
        self._http_hosts = frozenset(host.lower() for host in http_hosts)
        held = (credentials or {}).values()
        self._secrets = frozenset(value for each in held for value in each.params.values() if value)
        # The key of a header stands last in it, after a word like Bearer.
        words = (value.split()[-1:] for each in held for value in each.headers.values())
        self._keys = tuple({key for word in words for key in word if len(key) >= _SHORTEST_KEY})

    def admit(self, url: str) -> Admitted:
        """The form of `url` to ask for; raises `CandidateRejected(bad-url)`."""
        try:
            plain = request_url(url)
        except BadUrl as error:
            raise CandidateRejected(Reason.BAD_URL, "not an http or https URL", url=mask_url(url[:500])) from error
        if len(plain) > _LONGEST_URL:
            raise CandidateRejected(Reason.BAD_URL, "the URL is too long", url=mask_url(plain[:500]))
        if plain.startswith("https://"):
            return Admitted(plain)
        secure = request_url("https" + plain.removeprefix("http"))
        return Admitted(secure, fallback=plain if self.allows_http(plain) else None, was_http=True)

    def allows_http(self, url: str) -> bool:
        """Is the host of `url` listed, with or without its port?"""
        host = host_key(url)
        return host in self._http_hosts or (urlsplit(url).hostname or "") in self._http_hosts

    def leave(self, origin: str, target: str) -> str:
        """`target` without the credentials that a redirect from another host copied into it.

        Where one of our keys is woven into the rest of the address, the redirect is not followed.
        """
        if host_key(origin) == host_key(target):
            return target
        ours = {value for name, value in _pairs(origin) if value and _CREDENTIAL.fullmatch(name)} | self._secrets
        parts = urlsplit(target)
        pairs = [(pair, unquote_plus(pair.partition("=")[2])) for pair in parts.query.split("&")]
        kept = [pair for pair, value in pairs if value not in ours and not self._holds_key(value)]
        left = urlunsplit(parts._replace(query="&".join(kept)))
        if self._holds_key(unquote_plus(left)):
            raise CandidateRejected(Reason.SECURITY_POLICY, "a redirect would carry our key away", url=mask_url(origin))
        return left

    def _holds_key(self, text: str) -> bool:
        return any(key in text for key in self._keys)


class CredentialTransport(httpx2.AsyncBaseTransport):
    """Adds each host's credentials below the cache, on https only."""

    def __init__(
        self, next_transport: httpx2.AsyncBaseTransport, *, credentials: Mapping[str, HostCredentials]
    ) -> None:
        self._next = next_transport
        self._credentials = {host.lower(): held for host, held in credentials.items()}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._next.handle_async_request(self._with_credentials(request))

    def _with_credentials(self, request: httpx2.Request) -> httpx2.Request:
        if not self._credentials or request.url.scheme != "https":
            return request
        held = self._credentials.get(host_key(str(request.url)))
        return request if held is None else _signed(request, held)

    async def aclose(self) -> None:
        await self._next.aclose()


def _signed(request: httpx2.Request, held: HostCredentials) -> httpx2.Request:
    url = str(request.url)
    if held.params:
        url += ("&" if request.url.query else "?") + urlencode(held.params)
    headers = httpx2.Headers(request.headers)
    headers.update(held.headers)
    return httpx2.Request(
        request.method, url, headers=headers, stream=request.stream, extensions=dict(request.extensions)
    )


def _pairs(url: str) -> list[tuple[str, str]]:
    return parse_qsl(urlsplit(url).query)
