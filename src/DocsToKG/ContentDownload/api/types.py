"""The values that travel from an identifier to a proved file.

Knows the public tokens (outcomes, attempt statuses, reasons), which are a contract: records,
metrics and users' scripts rest on them. Does no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from DocsToKG.core.values import lean_dataclass

_TEXT = (str, type(None))


class OutcomeClass(StrEnum):
    SUCCESS = "success"
    SKIP = "skip"
    ERROR = "error"


class Role(StrEnum):
    """What a request is for; headers, limits and robots depend on it."""

    METADATA = "metadata"
    LANDING = "landing"
    ARTIFACT = "artifact"


class Verb(StrEnum):
    HEAD = "HEAD"
    GET = "GET"
    STREAM = "STREAM"
    ROBOTS = "ROBOTS"
    FINALIZE = "FINALIZE"


class AttemptStatus(StrEnum):
    HTTP_HEAD = "http-head"
    HTTP_GET = "http-get"
    HTTP_200 = "http-200"
    HTTP_304 = "http-304"
    CACHE_HIT = "cache-hit"
    RETRY = "retry"
    ROBOTS_FETCH = "robots-fetch"
    ROBOTS_DISALLOWED = "robots-disallowed"
    SIZE_MISMATCH = "size-mismatch"
    CONTENT_POLICY_SKIP = "content-policy-skip"
    DOWNLOAD_ERROR = "download-error"


class Reason(StrEnum):
    """Why an attempt, a candidate or a work ended as it did."""

    OK = "ok"
    # attempts (the contract of the attempts file)
    NOT_MODIFIED = "not-modified"
    ALREADY_PRESENT = "already-present"
    RETRY_AFTER = "retry-after"
    BACKOFF = "backoff"
    CONN_ERROR = "conn-error"
    ROBOTS = "robots"
    POLICY_TYPE = "policy-type"
    POLICY_SIZE = "policy-size"
    TIMEOUT = "timeout"
    TLS_ERROR = "tls-error"
    TOO_LARGE = "too-large"
    UNEXPECTED_CT = "unexpected-ct"
    SIZE_MISMATCH = "size-mismatch"
    DOWNLOAD_ERROR = "download-error"
    PATH_POLICY = "path-policy"
    SECURITY_POLICY = "security-policy"
    # bodies that are not the paper
    HTTP_STATUS = "http-status"
    HTML_INSTEAD_OF_PDF = "html-instead-of-pdf"
    CHALLENGE = "challenge"
    COOKIE_WALL = "cookie-wall"
    LOGIN_WALL = "login-wall"
    PAYWALL = "paywall"
    INTERSTITIAL = "interstitial"
    ROUTER = "router"
    EMPTY_BODY = "empty-body"
    TOO_SMALL = "too-small"
    TRUNCATED = "truncated"
    CORRUPT_PDF = "corrupt-pdf"
    CHECKSUM_MISMATCH = "checksum-mismatch"
    WRONG_ARTICLE = "wrong-article"
    SUPPLEMENT = "supplement"
    STUB = "stub"  # a cover, a preview of one page, a notice in place of the paper
    UNPROVED = "unproved"  # nothing in the file shows that it is the paper
    NO_FULL_TEXT = "no-full-text"  # XML or HTML that holds the abstract alone
    REDIRECT_LOOP = "redirect-loop"
    TOO_MANY_REDIRECTS = "too-many-redirects"
    BAD_URL = "bad-url"
    # works
    ALL_TIERS_EXHAUSTED = "all_tiers_exhausted"
    BUDGET_EXHAUSTED = "budget_exhausted"
    NO_OPEN_COPY = "no_open_copy"
    CLOSED = "closed"  # an index says that the paper is open nowhere
    OPEN_BUT_BLOCKED = "open-but-blocked"  # copies that are named, and refused by their hosts (401, 403, 451)
    GONE = "gone"  # copies or records that are named, and were removed (404, 410)
    EMBARGO = "embargo"  # a copy that opens on a later day
    BREAKER_OPEN = "breaker_open"
    UNKNOWN_IDENTIFIER = "unknown-identifier"
    FILTERED = "filtered"  # left out by the user's own filters, before any file was asked for
    TAKEN_DOWN = "taken-down"  # removed for good by `content takedown`, and refused since
    WORKER_EXCEPTION = "worker_exception"
    ENDED_WORKER = "ended_worker"  # it ended the process that worked on it and on nothing else, twice


class SourceOutcome(StrEnum):
    """How one source of a tier ended."""

    SUCCESS = "success"
    NO_PDF = "no_pdf"
    NONRETRYABLE = "nonretryable"
    RETRYABLE = "retryable"
    TIMEOUT = "timeout"
    SKIPPED = "skipped"
    ERROR = "error"


@lean_dataclass(frozen=True, slots=True)
class WorkArtifact:
    """One work to obtain: every identifier and link known of it. `work_id` carries its scheme (`doi:...`)."""

    work_id: str
    title: str | None = None
    publication_year: int | None = None
    doi: str | None = None
    arxiv_id: str | None = None
    pmcid: str | None = None
    pmid: str | None = None
    openalex_id: str | None = None
    landing_urls: tuple[str, ...] = ()
    pdf_urls: tuple[str, ...] = ()
    license: str | None = None
    oa_status: str | None = None
    is_retracted: bool | None = None  # None: nobody said
    metadata: Mapping[str, Any] = field(default_factory=dict)
    authors: tuple[str, ...] = ()  # "Family, Given" or "Given Family"
    first_page: str | None = None
    last_page: str | None = None
    journal: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Only what is known, ready for JSON."""
        return {key: value for key, value in asdict(self).items() if value not in (None, (), {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkArtifact:
        """The inverse of `to_dict`; unknown keys are kept under `metadata`."""
        known: dict[str, Any] = {}
        extra: dict[str, Any] = {}
        for key, value in data.items():
            (known if key in cls.__slots__ else extra)[key] = value
        for name in ("landing_urls", "pdf_urls", "authors"):
            known[name] = tuple(known.get(name) or ())
        known["metadata"] = {**(known.get("metadata") or {}), **extra}
        for name in ("title", "license", "oa_status", "first_page", "last_page", "journal"):
            if not isinstance(known.get(name), _TEXT):
                raise ValueError(f"{name} must be a text")
        return cls(**known)

    def learn(self, other: WorkArtifact) -> WorkArtifact:
        """This work with the gaps filled from `other`; nothing already known is replaced, links are added."""
        gaps: dict[str, Any] = {
            name: getattr(other, name)
            for name in self.__slots__
            if getattr(self, name) is None and getattr(other, name) is not None
        }
        gaps["landing_urls"] = tuple(dict.fromkeys(self.landing_urls + other.landing_urls))
        gaps["pdf_urls"] = tuple(dict.fromkeys(self.pdf_urls + other.pdf_urls))
        gaps["authors"] = self.authors or other.authors
        if self.first_page is not None:  # the two pages belong together
            gaps.pop("last_page", None)
        gaps["metadata"] = {**other.metadata, **self.metadata}
        if other.is_retracted:  # one index that knows of it outweighs another that has not heard of it
            gaps["is_retracted"] = True
        return replace(self, **gaps)


@lean_dataclass(frozen=True, slots=True)
class DownloadPlan:
    """One candidate file: where it may be, who said so, and what is known to check it against."""

    url: str
    resolver_name: str
    referer: str | None = None
    expected_mime: str | None = "application/pdf"  # or application/xml (JATS), text/html: full text in that form
    etag: str | None = None
    last_modified: str | None = None
    max_bytes_override: int | None = None
    version: str | None = None  # publishedVersion | acceptedVersion | submittedVersion
    license: str | None = None
    host_type: str | None = None  # publisher | repository
    evidence: str | None = None  # what named the link: url_for_pdf, citation_pdf_url, ...
    checksum: str | None = None  # published digest, "md5:<hex>", "sha1:<hex>" or "sha256:<hex>"
    size_bytes: int | None = None  # as announced, for estimates
    page_doi: str | None = None  # the DOI that the page which named the link is about
    is_guess: bool = False  # built by a rule from the identifier; nobody said that it exists


@lean_dataclass(frozen=True, slots=True)
class Supplement:
    """A file beside the paper, as a source names it."""

    url: str
    name: str
    source: str
    referer: str | None = None
    checksum: str | None = None  # published digest, as in a plan
    size_bytes: int | None = None


@lean_dataclass(frozen=True, slots=True)
class ResolverResult:
    """What a source proposes. `work` is the work as the source knows it; `notes` say why there is nothing."""

    plans: tuple[DownloadPlan, ...] = ()
    notes: tuple[str, ...] = ()
    work: WorkArtifact | None = None
    supplements: tuple[Supplement, ...] = ()


@lean_dataclass(frozen=True, slots=True)
class Hop:
    """One exchange on the way to a body."""

    url: str
    status: int


@lean_dataclass(frozen=True, slots=True)
class DownloadStreamResult:
    """A body that came whole, before its proof. `path_tmp` is None while it is held in memory, `md5` while nobody
    has asked for it."""

    path_tmp: Path | None
    bytes_written: int
    http_status: int
    content_type: str | None
    sha256: str
    md5: str | None
    final_url: str
    hops: tuple[Hop, ...] = ()
    etag: str | None = None
    last_modified: str | None = None
    content_length_hdr: int | None = None
    from_cache: bool = False
    revalidated: bool = False


@lean_dataclass(frozen=True, slots=True)
class StoredCopy:
    """A proved file in its place, with what the proof saw."""

    path: str  # the readable name
    sha256: str
    size_bytes: int
    mime: str
    stream: DownloadStreamResult
    duplicate: bool = False  # the store held these bytes already
    link: str = "none"  # how the readable name holds the bytes: hardlink, reflink, copy
    facts: Mapping[str, Any] = field(default_factory=dict)  # pages, encrypted, doi_seen, ...
    quarantined: str | None = None  # below the root: nothing in it shows that it is the paper, so others are tried


@lean_dataclass(frozen=True, slots=True)
class DownloadOutcome:
    """How a work ended. Only a success has a path; `meta` holds the fields of the manifest line."""

    ok: bool
    classification: str
    path: str | None = None
    reason: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.ok != (self.classification == OutcomeClass.SUCCESS):
            raise ValueError("an outcome is ok exactly when it is a success")
        if self.path is not None and not self.ok:
            raise ValueError("only a success has a path")


@lean_dataclass(frozen=True, slots=True)
class Attempt:
    """One line of the attempts record: every network or cache decision leaves one. URLs come masked."""

    ts: float
    resolver: str
    url: str
    verb: Verb
    status: AttemptStatus
    http_status: int | None = None
    content_type: str | None = None
    elapsed_ms: int | None = None
    bytes_written: int | None = None
    content_length_hdr: int | None = None
    reason: Reason | None = None
    # beyond the twelve columns of the CSV
    work_id: str | None = None
    host: str | None = None
    role: Role | None = None
    from_cache: bool = False
    revalidated: bool = False
    retry_after_s: float | None = None


@lean_dataclass(frozen=True, slots=True)
class SourceAttempt:
    """One source tried for a work: a row of `fallback_attempts`."""

    ts: float
    work_id: str
    tier: str
    source: str
    outcome: SourceOutcome
    reason: str | None = None
    host: str | None = None
    http_status: int | None = None
    elapsed_ms: int | None = None
    stage: str | None = None  # resolve: the source itself was asked; fetch: one of the files it named
