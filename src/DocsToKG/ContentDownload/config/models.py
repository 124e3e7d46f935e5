"""The configuration: one frozen, validated tree.

Knows every setting with its default, bounds and description. Does not know files, environment or
command lines (`loader`), nor what follows for one source (`rules`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from DocsToKG.ContentDownload.config.aliases import canonical_source, long_source
from DocsToKG.ContentDownload.config.filters import FiltersConfig
from DocsToKG.ContentDownload.config.merge import complete
from DocsToKG.ContentDownload.config.network import (
    BreakersConfig,
    HishelConfig,
    HostLimitConfig,
    HttpConfig,
    LimitsConfig,
    ProxyConfig,
    RateLimitConfig,
    RobotsConfig,
)
from DocsToKG.ContentDownload.config.observability import ObservingConfig, SloConfig
from DocsToKG.ContentDownload.config.section import Secret, Section, Words
from DocsToKG.ContentDownload.config.sources import (
    BucketConfig,
    BudgetsConfig,
    PolicyConfig,
    ResolverConfig,
    ResolversConfig,
    RetryConfig,
    TierConfig,
    check_mail,
)
from DocsToKG.core.digest import canonical_json, sha256_hex

__all__ = [
    "BreakersConfig",
    "BucketConfig",
    "BudgetsConfig",
    "CatalogConfig",
    "ContentDownloadConfig",
    "DownloadConfig",
    "FiltersConfig",
    "HishelConfig",
    "HostLimitConfig",
    "HttpConfig",
    "IndexConfig",
    "LimitsConfig",
    "OrchestratorConfig",
    "PolicyConfig",
    "ProofConfig",
    "ProofTextConfig",
    "ProxyConfig",
    "QueueConfig",
    "RateLimitConfig",
    "ResolverConfig",
    "ResolversConfig",
    "RetryConfig",
    "RobotsConfig",
    "SloConfig",
    "StorageConfig",
    "TelemetryConfig",
    "TierConfig",
    "config_hash",
    "to_printable",
]


class DownloadConfig(Section):
    """How a file is fetched and checked."""

    atomic_write: Literal[True] = Field(
        default=True,
        description="Always on: a file is written under a temporary name, then renamed, so that no reader sees a part.",
    )
    verify_content_length: Literal[True] = Field(
        default=True, description="Always on: a body whose length is not the announced one is refused."
    )
    chunk_size_bytes: int = Field(
        default=1_048_576, ge=4096, le=67_108_864, description="Bytes read and written at once."
    )
    head_enabled: bool = Field(
        default=False,
        description="Probe with HEAD before a GET. Off: it doubles the requests, many hosts answer it wrongly, "
        "and type and size are checked on the GET itself before the body is read.",
    )
    max_bytes: int = Field(default=134_217_728, ge=1024, description="Largest file accepted, counted after decoding.")
    min_pdf_bytes: int = Field(default=1024, ge=0, description="Smaller PDFs are refused as stubs.")
    formats: Words = Field(
        default=("pdf",),
        min_length=1,
        description="Forms of a paper that are taken, of pdf, xml (JATS full text) and html (full text), best first.",
    )

    supplements: bool = Field(
        default=False,
        description="Also store the supplements that a paper's page, PubMed Central or its deposit lists; "
        "nothing proves them but their length and published digest.",
    )
    max_supplements: int = Field(default=20, ge=1, le=1000, description="Most such files of one paper.")

    @field_validator("formats")
    @classmethod
    def _known_forms(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        forms = tuple(dict.fromkeys(word.lower() for word in value))
        unknown = [name for name in forms if name not in ("pdf", "xml", "html")]
        if unknown:
            raise ValueError(f"{unknown[0][:40]!r} is not a format; there are pdf, xml and html")
        return forms


class ProofTextConfig(Section):
    """How much of a PDF is read to compare it with the work. Before a file is refused up to 40 pages are read."""

    pages: int = Field(default=2, ge=1, le=40, description="First pages that are read.")
    last_pages: int = Field(
        default=1, ge=0, le=10, description="Number of last pages that are read, for the references."
    )
    max_letters: int = Field(default=20_000, ge=1000, le=200_000, description="Letters of one page that are read.")
    workers: int = Field(
        default=0, ge=0, le=64, description="Processes that read and judge PDFs; 0: one a core, at most four."
    )
    timeout_seconds: float = Field(
        default=20.0, ge=1, le=600, description="A file that takes longer is unproved, and its process is replaced."
    )
    memory_bytes: int = Field(
        default=1 << 30, ge=1 << 28, description="Most memory of such a process; a file that needs more is unproved."
    )


class ProofConfig(Section):
    """How a PDF is proved to be the paper, whole and undamaged."""

    unproved: Literal["by-evidence", "keep", "quarantine", "refuse"] = Field(
        default="by-evidence",
        description="What happens to a PDF that has too little to compare, like a scan without text. keep: it is kept "
        "and marked `unproved`. quarantine: it waits while other copies are tried, and then until `content catalog "
        "unproved` settles it; its work counts as not obtained. refuse: the next copy is tried. by-evidence: kept "
        "where its address stands in the work's own record, else quarantine.",
    )
    streams: Literal["all", "sample", "none"] = Field(
        default="all",
        description="Streams of a PDF that are decoded to tell damage. all costs about 4 ms of a worker process for "
        "each MB that they decode to; sample decodes 40 streams; none keeps damaged files.",
    )
    keep_damaged: bool = Field(default=False, description="Keep a damaged PDF and mark it, instead of refusing it.")
    text: ProofTextConfig = Field(default=ProofTextConfig(), description="How much of a PDF is read.")


class TelemetryConfig(ObservingConfig):
    """Which records a run writes, and where; what it shows of itself while it works."""

    sinks: Words = Field(default=("csv", "jsonl", "sqlite"), description="Records written, of csv, jsonl and sqlite.")
    manifest_path: str = Field(
        default="runs/content/manifest.jsonl", min_length=1, description="The manifest; its folder is the output root."
    )

    @field_validator("sinks")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in value if name not in ("csv", "jsonl", "sqlite")]
        if unknown:
            raise ValueError(f"{unknown[0][:40]!r} is not a sink; there are csv, jsonl and sqlite")
        return tuple(dict.fromkeys(value))


def _shown(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


class QueueConfig(Section):
    """Where the work queue lives."""

    backend: Literal["sqlite", "postgres"] = Field(default="sqlite", description="sqlite: one machine; postgres: many.")
    path: str = Field(default="state/workqueue.sqlite", min_length=1, description="File of the sqlite backend.")
    wal_mode: bool = Field(default=True, description="Write-ahead log: readers do not block the writer.")
    connection_string: Secret | None = Field(default=None, description="Database of the postgres backend.")
    listen_connection_string: Secret | None = Field(
        default=None, description="The server itself, to listen for wake-ups, when connection_string is a pooler's."
    )
    signal: Literal["local", "pg_notify", "redis", "nats"] | None = Field(
        default=None,
        description="How processes wake each other when work comes; without, they find it by asking. "
        "local: within one process; default: pg_notify with postgres, else local.",
    )
    signal_url: Secret | None = Field(
        default=None, description="Server of the redis or nats signal: redis://host:6379/0, or nats://host:4222."
    )
    signal_channel: str = Field(
        default="docstokg",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$",
        description="First part of the stream (redis) or subject (nats) that wake-ups go by; queues that share a "
        "broker and should not wake each other have different ones. pg_notify is told apart by database and schema.",
    )
    orchestrator_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s@?#]+$",
        description="A service that serves the queue (docstokg-orchestrator serve); then no database is needed here.",
    )
    token_file: str | None = Field(default=None, min_length=1, description="File with the token for orchestrator_url.")
    node_id: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$",
        description="Name of this machine in the queue and its history; default: with postgres the host's, else none.",
    )
    history_retention_days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="Whole months of the queue's history that ended longer ago are removed (postgres); default: kept.",
    )

    @model_validator(mode="after")
    def _history_lies_in_months(self) -> QueueConfig:
        if self.history_retention_days is not None and self.backend != "postgres":
            raise ValueError(
                "history_retention_days goes with backend postgres, where history lies in months; "
                "the history of a sqlite queue is kept as long as its file"
            )
        return self

    @model_validator(mode="after")
    def _signal_fits(self) -> QueueConfig:
        if self.signal == "pg_notify" and self.backend != "postgres":
            raise ValueError(
                "signal pg_notify goes with backend postgres, through the database of queue.connection_string; "
                "processes on one sqlite file wake each other by redis or nats, or find work by asking (local)"
            )
        return self

    @property
    def url(self) -> str | None:
        """The server's address, where the queue is on one."""
        return _shown(self.connection_string) if self.backend == "postgres" else None

    @property
    def is_file(self) -> bool:
        """Of this machine: the queue is on no server, nor behind a service."""
        return self.url is None and self.orchestrator_url is None

    @property
    def listen_url(self) -> str | None:
        return _shown(self.listen_connection_string)

    @property
    def signal_address(self) -> str | None:
        """Where the wake-ups go through."""
        return _shown(self.connection_string if self.signal == "pg_notify" else self.signal_url)


class OrchestratorConfig(Section):
    """How many jobs run at once, and what happens to one that fails or whose worker dies."""

    max_workers: int = Field(default=8, ge=1, le=1024, description="Jobs that run at once in one process.")
    processes: int = Field(default=1, ge=1, le=64, description="Processes that work on the queue together.")
    max_per_resolver: dict[str, int] = Field(
        default_factory=dict, description="Exchanges at once by source, in all processes that share the limits."
    )
    default_per_resolver: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="The same for each source that is not in max_per_resolver; default: no limit but the workers.",
    )
    max_per_host: int = Field(default=4, ge=1, le=1024, description="Exchanges at once with one host.")
    lookahead: int | None = Field(
        default=None, ge=1, description="Leased jobs a process holds, waiting ones included; default: 64 x max_workers."
    )
    lease_ttl_seconds: int = Field(
        default=600, ge=1, description="A job whose worker is silent this long is given to another."
    )
    heartbeat_seconds: int = Field(default=30, ge=1, description="How often a worker says that it lives.")
    max_job_attempts: int = Field(default=3, ge=1, le=100, description="Tries of one job before it ends in error.")
    retry_backoff_seconds: int = Field(default=60, ge=0, description="Delay of the second try; doubles each time.")
    jitter_seconds: int = Field(default=15, ge=0, description="Random extra delay.")
    drain_seconds: float = Field(
        default=8.0,
        ge=0,
        le=3600,
        description="After SIGTERM or Ctrl+C, how long `queue run` lets running jobs finish.",
    )

    @field_validator("max_per_resolver")
    @classmethod
    def _at_least_one(cls, value: dict[str, int]) -> dict[str, int]:
        for name, limit in value.items():
            canonical_source(name)
            if limit < 1:
                raise ValueError(f"{name} must be at least 1; to switch a source off set resolvers.{name}.enabled")
        return value

    @model_validator(mode="after")
    def _lease_outlives_heartbeat(self) -> OrchestratorConfig:
        if self.lease_ttl_seconds <= self.heartbeat_seconds:
            raise ValueError("lease_ttl_seconds must be greater than heartbeat_seconds, else live workers lose jobs")
        return self

    @property
    def leases_held(self) -> int:
        return self.lookahead or 64 * self.max_workers


class StorageConfig(Section):
    """Where files are kept."""

    backend: Literal["fs", "s3"] = Field(default="fs", description="fs: local disk; s3: an object store.")
    root_dir: str = Field(
        default="data/docs",
        min_length=1,
        description="Folder of the files (of the temporary ones with s3), or s3://bucket/prefix.",
    )
    cas_enabled: bool = Field(default=True, description="Keep each content once, under its SHA-256.")
    layout: Literal["policy_path"] = Field(
        default="policy_path", description="Always policy_path: readable names, linked to the content."
    )
    min_free_bytes: int = Field(default=536_870_912, ge=0, description="A run does not start with less free space.")
    s3_bucket: str | None = Field(default=None, description="Bucket of the s3 backend.")
    s3_prefix: str = Field(default="", description="Key prefix of the s3 backend.")
    staging_bytes: int = Field(
        default=4_294_967_296,
        ge=16_777_216,
        description="Most bytes on the local disk on their way to s3; what would go over it waits.",
    )

    @model_validator(mode="after")
    def _complete(self) -> StorageConfig:
        if self.backend == "s3" and not self.s3_bucket:
            raise ValueError("the s3 backend needs s3_bucket (or artifacts.root: s3://bucket/prefix)")
        if self.root_dir.startswith("s3://"):
            raise ValueError("root_dir is the local folder here; name the bucket with backend: s3 and s3_bucket")
        if self.backend == "s3" and not self.cas_enabled:
            raise ValueError("the s3 backend needs cas_enabled: true, since keys are made of the content")
        return self


class IndexConfig(Section):
    """The offline index of open copies, which a list is joined with when it is queued."""

    path: str | None = Field(default=None, min_length=1, description="Folder of the index; default: none is used.")
    then: Literal["never", "failed", "always"] = Field(
        default="failed",
        description="When services are asked too. failed: Wayback where the copies in the index failed, and all "
        "of them for works it does not know; always: all of them, also for works closed in the index; never: none.",
    )
    memory_bytes: int = Field(
        default=2_147_483_648, ge=268_435_456, description="Memory for the join; the rest goes to state/spill."
    )


class CatalogConfig(Section):
    """Where the catalog of works and files lives."""

    backend: Literal["sqlite", "postgres"] = Field(default="sqlite", description="sqlite: a file; postgres: a server.")
    path: str | None = Field(
        default=None, description="File of the sqlite backend; default: manifest.sqlite beside the manifest."
    )
    connection_string: Secret | None = Field(default=None, description="Database of the postgres backend.")
    pool_size: int = Field(default=10, ge=1, le=1000, description="Connections to the postgres backend.")
    schema_name: str = Field(
        default="docstokg_record",
        pattern=r"^[a-z_][a-z0-9_]{0,47}$",
        description="Schema of the postgres backend; each corpus on one server has its own.",
    )

    @property
    def url(self) -> str | None:
        """The server's address, where the catalog is on one."""
        return _shown(self.connection_string) if self.backend == "postgres" else None


class ContentDownloadConfig(Section):
    """All settings. Built by `load_config`; `ContentDownloadConfig()` holds the shipped ones."""

    version: Literal[1] = Field(default=1, description="Version of this format.")
    contact: str | None = Field(default=None, description="Your email address, which requests to services carry.")
    http: HttpConfig = Field(default=HttpConfig(), description="The HTTP client.")
    robots: RobotsConfig = Field(default=RobotsConfig(), description="robots.txt.")
    hishel: HishelConfig = Field(default=HishelConfig(), description="The HTTP cache.")
    resolvers: ResolversConfig = Field(default=ResolversConfig(), description="The sources.")
    tiers: tuple[TierConfig, ...] = Field(default=(), min_length=1, description="Sources in the order of the search.")
    policies: dict[str, PolicyConfig] = Field(default_factory=dict, description="How each source is queried.")
    filters: FiltersConfig = Field(default=FiltersConfig(), description="Works and copies that are left out.")
    budgets: BudgetsConfig = Field(default=BudgetsConfig(), description="What one work may cost.")
    limits: LimitsConfig = Field(default=LimitsConfig(), description="Limits of each host.")
    breakers: BreakersConfig = Field(default=BreakersConfig(), description="Leaving failing hosts alone.")
    rate_limit: RateLimitConfig = Field(default=RateLimitConfig(), description="Where rates are counted.")
    download: DownloadConfig = Field(default=DownloadConfig(), description="Fetching and checking files.")
    proof: ProofConfig = Field(default=ProofConfig(), description="Proving that a PDF is the paper.")
    telemetry: TelemetryConfig = Field(default=TelemetryConfig(), description="Records of a run.")
    index: IndexConfig = Field(default=IndexConfig(), description="The offline index of open copies.")
    queue: QueueConfig = Field(default=QueueConfig(), description="The work queue.")
    orchestrator: OrchestratorConfig = Field(default=OrchestratorConfig(), description="Workers, leases and retries.")
    storage: StorageConfig = Field(default=StorageConfig(), description="Where files are kept.")
    catalog: CatalogConfig = Field(default=CatalogConfig(), description="Where the catalog lives.")
    slo: SloConfig = Field(default=SloConfig(), description="Service levels that a run is held to.")

    @model_validator(mode="before")
    @classmethod
    def _with_shipped_settings(cls, data: Any) -> Any:
        return complete(data) if isinstance(data, Mapping) else data

    @field_validator("contact")
    @classmethod
    def _real_address(cls, value: str | None) -> str | None:
        return check_mail(value)

    @field_validator("tiers")
    @classmethod
    def _each_source_once(cls, value: tuple[TierConfig, ...]) -> tuple[TierConfig, ...]:
        for kind, names in (("tier", [t.name for t in value]), ("source", [s for t in value for s in t.sources])):
            twice = [name for name in names if names.count(name) > 1]
            if twice:
                raise ValueError(f"the {kind} {twice[0]!r} is there twice")
        return value

    @field_validator("policies")
    @classmethod
    def _of_known_sources(cls, value: dict[str, PolicyConfig]) -> dict[str, PolicyConfig]:
        return {long_source(name): policy for name, policy in value.items()}

    @model_validator(mode="after")
    def _backends_have_addresses(self) -> ContentDownloadConfig:
        for backend, wanted, address, key in (
            (self.hishel.backend, "redis", self.hishel.redis_url, "hishel.redis_url"),
            (self.hishel.backend, "s3", self.hishel.s3_bucket, "hishel.s3_bucket"),
            (self.rate_limit.backend, "redis", self.rate_limit.redis_url, "rate_limit.redis_url"),
            (self.queue.backend, "postgres", self.queue.connection_string, "queue.connection_string"),
            (self.queue.signal, "pg_notify", self.queue.connection_string, "queue.connection_string"),
            (self.queue.signal, "redis", self.queue.signal_url, "queue.signal_url"),
            (self.queue.signal, "nats", self.queue.signal_url, "queue.signal_url"),
            (self.catalog.backend, "postgres", self.catalog.connection_string, "catalog.connection_string"),
        ):
            if backend == wanted and address is None:
                raise ValueError(f"{key} is needed for the backend {wanted!r}")
        return self


def config_hash(config: ContentDownloadConfig) -> str:
    """`sha256:` and the digest of the merged settings; of a secret only whether it is set."""
    return "sha256:" + sha256_hex(canonical_json(_plain(config, hidden=True)))


def to_printable(config: ContentDownloadConfig) -> dict[str, Any]:
    """The settings as plain data, secrets masked."""
    return dict(_plain(config, hidden="***"))


def _plain(value: Any, *, hidden: Any) -> Any:
    if isinstance(value, SecretStr):
        return hidden
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name), hidden=hidden) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {key: _plain(item, hidden=hidden) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item, hidden=hidden) for item in value]
    return value
