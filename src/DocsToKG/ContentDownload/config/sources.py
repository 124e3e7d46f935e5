"""Settings of the sources: which exist, how each is queried, in which tiers, within which budget.

Knows names, defaults and bounds. The shipped tiers, policies and host limits are data beside this
file; the rules that result for one source are in `rules`.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import Field, field_validator, model_validator

from DocsToKG.ContentDownload.config.aliases import canonical_source, long_source
from DocsToKG.ContentDownload.config.section import Numbers, RateText, Secret, Section, Words

_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,80}")
_SECRET_HEADER = re.compile(r"auth|cookie|token|secret|key", re.IGNORECASE)
_RESERVED_HEADERS = frozenset({"host", "connection", "content-length", "transfer-encoding", "range"})


class RetryConfig(Section):
    """When and how often a request is tried again."""

    max_attempts: int = Field(default=4, ge=1, le=20, description="Tries in all; a policy's max_retries plus one.")
    retry_statuses: Numbers = Field(default=(429, 500, 502, 503, 504), description="Statuses worth another try.")
    base_delay_ms: int = Field(
        default=200, ge=0, le=600_000, description="Wait after the first failure; doubles each time."
    )
    max_delay_ms: int = Field(
        default=4000, ge=0, le=600_000, description="Longest wait of our own; Retry-After may be longer."
    )
    jitter_ms: int = Field(
        default=100, ge=0, le=60_000, description="Random extra wait, so that workers do not march in step."
    )


class BucketConfig(Section):
    """A token bucket: an alternative to a policy's rate; where both are set the tighter governs."""

    capacity: float = Field(default=5.0, gt=0, le=100_000, description="Requests the bucket holds.")
    refill_per_sec: float = Field(default=1.0, gt=0, le=100_000, description="Requests added per second.")
    burst: float = Field(default=2.0, ge=0, le=100_000, description="Requests beyond the capacity after a quiet time.")


class ResolverConfig(Section):
    """One source."""

    enabled: bool = Field(default=True, description="Whether the source is used.")
    base_url: str | None = Field(default=None, description="Another address of the service; default: the public one.")
    retry: RetryConfig = Field(default=RetryConfig(), description="When a request is tried again.")
    rate_limit: BucketConfig | None = Field(default=None, description="Token bucket; default: the rate of the policy.")

    @field_validator("base_url")
    @classmethod
    def _web_address(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"https?://[^\s@/?#]+(/[^\s@?#]*)?", value):
            raise ValueError("must be an http or https address without a user name or a query")
        return value


class MailResolverConfig(ResolverConfig):
    email: str | None = Field(
        default=None, description="Address that requests to this service carry; default: contact."
    )

    @model_validator(mode="before")
    @classmethod
    def _mailto_is_email(cls, data: Any) -> Any:
        if isinstance(data, dict) and "mailto" in data and "email" not in data:
            return {("email" if key == "mailto" else key): value for key, value in data.items()}
        return data

    @field_validator("email")
    @classmethod
    def _checked(cls, value: str | None) -> str | None:
        return check_mail(value)


class KeyResolverConfig(ResolverConfig):
    api_key: Secret | None = Field(
        default=None, description="Key of the service. That of DOAJ is never sent, since its search asks for none."
    )


class DepositConfig(ResolverConfig):
    by_doi: bool = Field(
        default=True, description="Look every DOI up there; if not, only works of which a page there is known."
    )


class ArxivConfig(ResolverConfig):
    metadata: bool = Field(
        default=False, description="Also request title and year from arXiv; each request there takes three seconds."
    )


class PageConfig(ResolverConfig):
    """A source that reads pages."""

    site_rules: str | None = Field(
        default=None, min_length=1, description="File with site rules of your own, tried before the shipped ones."
    )


class DoiRedirectConfig(PageConfig):
    guess_share: float = Field(
        default=0.9,
        ge=0,
        le=1,
        description="Least measured share of right addresses of the rules that guess from a DOI; 0 uses all rules.",
    )


class LandingConfig(PageConfig):
    max_pages: int = Field(default=4, ge=1, le=50, description="Pages visited for one work.")


class ResolversConfig(Section):
    """The sources, and an order that goes before that of the tiers."""

    order: Words = Field(default=(), description="Sources to try first within their tier; others follow in tier order.")
    index: ResolverConfig = Field(
        default=ResolverConfig(), description="The offline index of open copies (index.path)."
    )
    unpaywall: MailResolverConfig = Field(default=MailResolverConfig(), description="Unpaywall: open copies by DOI.")
    arxiv: ArxivConfig = Field(default=ArxivConfig(), description="arXiv: PDF by arXiv id.")
    pmc: MailResolverConfig = Field(default=MailResolverConfig(), description="PubMed Central's open bucket, by PMCID.")
    doi_redirect: DoiRedirectConfig = Field(default=DoiRedirectConfig(), description="Follow the DOI to the publisher.")
    landing: LandingConfig = Field(default=LandingConfig(), description="PDF links in landing pages.")
    europe_pmc: ResolverConfig = Field(
        default=ResolverConfig(), description="Europe PMC: full text by DOI, PMID or PMCID."
    )
    wayback: ResolverConfig = Field(default=ResolverConfig(), description="Archived copies in the Wayback Machine.")
    crossref: MailResolverConfig = Field(
        default=MailResolverConfig(), description="Crossref: links a publisher registered."
    )
    openalex: KeyResolverConfig = Field(
        default=KeyResolverConfig(), description="OpenAlex: locations of a work, and queries."
    )
    semantic_scholar: KeyResolverConfig = Field(default=KeyResolverConfig(), description="Semantic Scholar: open PDFs.")
    core: KeyResolverConfig = Field(
        default=KeyResolverConfig(), description="CORE: copies in repositories; needs a key."
    )
    doaj: KeyResolverConfig = Field(default=KeyResolverConfig(), description="DOAJ: articles of open journals.")
    datacite: MailResolverConfig = Field(
        default=MailResolverConfig(), description="DataCite: address and licence of a DataCite DOI."
    )
    zenodo: KeyResolverConfig = Field(
        default=KeyResolverConfig(), description="Zenodo: files of a record; a token is optional."
    )
    hal: DepositConfig = Field(default=DepositConfig(), description="HAL: deposited files by DOI or HAL id.")
    osti: DepositConfig = Field(default=DepositConfig(), description="OSTI: full text of US energy research.")
    biorxiv: ResolverConfig = Field(default=ResolverConfig(), description="bioRxiv and medRxiv preprints.")
    figshare: KeyResolverConfig = Field(
        default=KeyResolverConfig(), description="figshare: files of an article; a token is optional."
    )
    dspace: ResolverConfig = Field(
        default=ResolverConfig(), description="DSpace repositories: files of an item, by handle."
    )
    fatcat: ResolverConfig = Field(default=ResolverConfig(), description="fatcat: archived copies with their hashes.")
    openaire: ResolverConfig = Field(default=ResolverConfig(), description="OpenAIRE Graph: copies in repositories.")
    idconv: MailResolverConfig = Field(
        default=MailResolverConfig(), description="NCBI's converter: the DOI of a PMCID or PMID."
    )
    identify: Words = Field(
        default=("idconv", "openalex"),
        description="Services that find the paper of an identifier that is not a DOI; queried before the tiers.",
    )

    @field_validator("order", "identify")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(canonical_source(name) for name in value))


class TierConfig(Section):
    """Sources that are queried together; the next tier starts when this one is exhausted."""

    name: str = Field(pattern=r"^[a-z0-9_]{1,40}$", description="Name in records and metrics.")
    parallel: int = Field(default=1, ge=1, le=16, description="Sources of this tier that run at once.")
    sources: Words = Field(min_length=1, description="Sources in the order they are tried.")

    @field_validator("sources")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        names = tuple(long_source(name) for name in value)
        if len(set(names)) < len(names):
            raise ValueError("names a source twice")
        return names


class PolicyConfig(Section):
    """How one source is queried."""

    timeout_s: float = Field(default=10.0, gt=0, le=3600, description="Seconds one request may take in all.")
    max_retries: int = Field(default=3, ge=0, le=19, description="Tries after the first.")
    rate_limit: RateText | None = Field(default=None, description="Rate like '10/second' or '0.33/second'.")
    obey_robots: bool = Field(default=True, description="Whether robots.txt is obeyed; APIs opt out.")
    custom_headers: dict[str, str] = Field(
        default_factory=dict, description="Headers sent to this source; {version} and {contact} are filled in."
    )

    @field_validator("custom_headers")
    @classmethod
    def _harmless(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            _check_header(name, text)
        return value


class BudgetsConfig(Section):
    """What one work may cost. Time spent waiting for a limit does not count."""

    total_timeout_s: float = Field(default=120.0, gt=0, le=86_400, description="Seconds of work in all.")
    total_attempts: int = Field(default=20, ge=1, le=1000, description="Requests in all, retries included.")
    max_concurrent: int = Field(default=3, ge=1, le=64, description="Sources of one work that run at once.")
    per_source_s: float = Field(
        default=10.0, gt=0, le=86_400, description="Seconds per source without a timeout of its own."
    )


def check_mail(value: str | None) -> str | None:
    """A usable contact address. Services refuse the placeholder domain, so we do it first."""
    if value is None:
        return None
    text = value.strip()
    if not re.fullmatch(r"[^@\s,;<>\"]{1,64}@[^@\s,;<>\"]{1,190}", text) or not (text.isascii() and text.isprintable()):
        raise ValueError("must be a mail address, like you@university.edu")
    if text.lower().endswith(("@example.com", ".example.com")):
        raise ValueError("must be your own mail address; services refuse example.com")
    return text


def _check_header(name: str, text: str) -> None:
    if not _HEADER_NAME.fullmatch(name) or name.lower() in _RESERVED_HEADERS:
        raise ValueError(f"{name[:80]!r} cannot be set as a header")
    if _SECRET_HEADER.search(name):
        raise ValueError(f"{name!r} looks like a credential; set the source's api_key instead")
    if not text.isprintable() or len(text) > 1000:
        raise ValueError(f"the value of {name!r} must be one printable line")
