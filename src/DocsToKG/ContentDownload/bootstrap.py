"""Where the parts meet: everything is built from the configuration here, and closed in reverse.

The only room that sees the whole configuration, with `way_out`, which builds the network, and `holdings`, which opens
what is kept; everyone else is handed the slice or the numbers they use. One store and one record per run.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from DocsToKG.ContentDownload.api.ports import AttemptSink, NullSink
from DocsToKG.ContentDownload.api.types import DownloadPlan, Reason, SourceAttempt, WorkArtifact
from DocsToKG.ContentDownload.catalog.paths import MANIFEST
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.config.filters import Filters
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig, config_hash
from DocsToKG.ContentDownload.config.rules import (
    all_source_rules,
    source_shares,
    tier_plan,
)
from DocsToKG.ContentDownload.download_execution import CandidateDownload, DownloadRules
from DocsToKG.ContentDownload.errors import StorageError, TransientFailure
from DocsToKG.ContentDownload.fallback.in_flight import DeduplicatedDownload
from DocsToKG.ContentDownload.fallback.orchestrator import FallbackOrchestrator
from DocsToKG.ContentDownload.fallback.rules import SearchRules
from DocsToKG.ContentDownload.holdings import (
    database_path,
    new_store,
    open_answers,
    open_catalog,
    open_files,
    open_queue,
    open_removal,
    open_shared,
    open_store,
    shared_takedowns,
)
from DocsToKG.ContentDownload.pipeline import HeldFile, ResolverPipeline, WorkLimits
from DocsToKG.ContentDownload.resolvers import registry
from DocsToKG.ContentDownload.resolvers.links.copy_facts import is_over, knows_copies
from DocsToKG.ContentDownload.storage.local import LocalStore
from DocsToKG.ContentDownload.telemetry import RunTelemetry
from DocsToKG.ContentDownload.telemetry.events import Events
from DocsToKG.ContentDownload.telemetry.host_tally import HostTally
from DocsToKG.ContentDownload.telemetry.observability import Exports, Observability, open_observability
from DocsToKG.ContentDownload.telemetry.traces import Download
from DocsToKG.ContentDownload.validation.policy import ValidationRules
from DocsToKG.ContentDownload.way_out import (
    Network,
    is_cache_there,
    open_cache,
    open_limits,
    open_network,
    resolver_settings,
)
from DocsToKG.core.clock import Clock, SystemClock
from DocsToKG.core.ids import new_run_id, new_worker_id
from DocsToKG.core.tasks import LoopThread

__all__ = [
    "Network",
    "Parts",
    "build_pipeline_from_config",
    "database_path",
    "is_cache_there",
    "open_answers",
    "open_cache",
    "open_catalog",
    "open_files",
    "open_parts",
    "open_planning",
    "open_queue",
    "open_removal",
    "open_replaying",
    "open_shared",
    "open_store",
    "run_from_config",
]

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.maintenance.takedown_sync import TakedownSync
    from DocsToKG.ContentDownload.runner import RunResult


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run works with."""

    pipeline: ResolverPipeline
    telemetry: RunTelemetry
    store: LocalStore
    network: Network
    catalog: Catalog
    refetch: set[str]  # works that are fetched again although their file is known
    observability: Observability  # metrics, traces and the log, where they are configured
    events: Events  # what happens, told to them, to the record and to `hosts`
    hosts: HostTally  # requests by source and host

    def find_file(self, work_id: str) -> Path | None:
        """Where the record says the file of a work is."""
        found = self.catalog.find_download(work_id)
        return None if found is None else self.store.at(found.path)

    def is_there(self, work_id: str) -> bool | None:
        """Is the file of a work in its place, in its full size? None when no file is known."""
        found = self.catalog.find_download(work_id)
        if found is None:
            return None
        try:
            size = self.store.size_of(found.path)
        except TransientFailure as away:  # outside of a job there is nobody to come back later
            raise StorageError(away.detail) from None
        return size is not None and size == (found.size_bytes or size)

    def recorded_path(self, path: str | None) -> str | None:
        """A stored file as records name it: below the storage root."""
        return None if path is None else self.store.relative(path)


@contextmanager
def open_parts(
    cfg: ContentDownloadConfig,
    *,
    worker_id: str | None = None,
    run_id: str | None = None,
    clock: Clock | None = None,
    share: Literal["host", "guest"] | None = None,
) -> Iterator[Parts]:
    """Everything a run needs, ready to work; closed again when the block ends. `share` says whose the record is where
    several processes keep one."""
    from DocsToKG.ContentDownload.catalog.slo import judge_by

    clock, worker_id = clock or SystemClock(), worker_id or new_worker_id()
    root = Path(cfg.telemetry.manifest_path).parent
    database = database_path(cfg)
    with ExitStack() as stack:
        loop = stack.enter_context(LoopThread("content"))
        store = open_store(cfg, joining=share == "guest")
        shared = open_shared(cfg)
        if shared is not None:
            stack.callback(shared.close)
        if share != "guest":
            open_removal(cfg, clock=clock, shared=shared).finish()
        limits = stack.enter_context(closing(open_limits(cfg, clock)))
        telemetry = stack.enter_context(
            RunTelemetry(
                root,
                run_id=run_id or new_run_id(),
                config_hash=config_hash(cfg),
                clock=clock,
                sinks=(*cfg.telemetry.sinks, "sqlite"),
                database=database,
                worker_id=worker_id,
                notes=[*_notes(cfg), *limits.notes],
                share=share,
                judge=judge_by(cfg.slo, workers=cfg.orchestrator.max_workers * cfg.orchestrator.processes),
                shared=shared,
                node=cfg.queue.node_id or socket.gethostname(),
            )
        )
        catalog = stack.enter_context(open_catalog(cfg, shared))
        if share != "guest":
            open_removal(cfg, clock=clock, shared=shared).uphold()
        observability = stack.enter_context(
            open_observability(_exports(cfg), clock=clock, run_id=telemetry.run_id, worker_id=worker_id, share=share)
        )
        hosts = HostTally()
        events = Events(telemetry, *observability.listeners, hosts)
        network = stack.enter_context(
            open_network(cfg, store=store, attempts=events, clock=clock, limits=limits, loop=loop)
        )
        stack.callback(_note_network, network, telemetry, events)
        refetch: set[str] = set()
        if network.cache is not None:
            network.cache.reuse_for(lambda name: name in refetch and catalog.find_download(name) is not None)
            store.before_names(network.cache.entries.flush)
        pipeline = _pipeline(
            cfg,
            network,
            store,
            clock,
            attempts=events,
            traced=observability.traced,
            on_source=telemetry.source_attempt,
            already=lambda work: None if work.work_id in refetch else _already(catalog, store, work),
            takedowns=shared_takedowns(shared, cfg, clock),
            loop=loop,
            asks_servers=shared is not None or cfg.storage.backend != "fs",
            rejected=catalog.rejected(),
            # What is shared, others may have filled a moment later.
            starts_empty=shared is None and not catalog.query("SELECT 1 FROM downloads LIMIT 1").rows,
        )
        stack.callback(pipeline.close)
        yield Parts(pipeline, telemetry, store, network, catalog, refetch, observability, events, hosts)


@contextmanager
def open_planning(cfg: ContentDownloadConfig) -> Iterator[tuple[ResolverPipeline, Network]]:
    """A pipeline that only looks, and its way out: nothing is stored and nothing recorded."""
    clock = SystemClock()
    store = new_store(cfg)
    with (
        closing(open_limits(cfg, clock)) as limits,
        LoopThread("content") as loop,
        open_network(cfg, store=store, attempts=NullSink(), clock=clock, limits=limits, loop=loop) as network,
    ):
        pipeline = _pipeline(cfg, network, store, clock, attempts=NullSink(), loop=loop)
        try:
            yield pipeline, network
        finally:
            pipeline.close()


@contextmanager
def open_replaying(cfg: ContentDownloadConfig, place: Path) -> Iterator[ResolverPipeline]:
    """A pipeline that works from the cache and the store of a run alone and writes into `place`: nothing is sent, and
    nothing of the run is changed."""
    clock = SystemClock()
    kept = cfg.hishel.model_copy(
        update={
            "force_cache": True,
            "always_revalidate": False,
            "ttl_seconds": 10**10,
            "check_ttl_every_seconds": 10**9,
        }
    )
    alone = cfg.model_copy(
        update={
            "hishel": kept,
            "limits": cfg.limits.model_copy(update={"shared": False, "rate_factor": 10_000.0}),
            "rate_limit": cfg.rate_limit.model_copy(update={"backend": "local"}),
            "breakers": cfg.breakers.model_copy(update={"enabled": False}),
            "robots": cfg.robots.model_copy(update={"enabled": False}),
        }
    )
    with (
        closing(open_limits(alone, clock)) as limits,
        LoopThread("content") as loop,
        open_network(
            alone, store=open_store(cfg), attempts=NullSink(), clock=clock, limits=limits, offline=True, loop=loop
        ) as network,
    ):
        here = alone.model_copy(
            update={
                "storage": cfg.storage.model_copy(update={"root_dir": str(place)}),
                "telemetry": cfg.telemetry.model_copy(update={"manifest_path": str(place / MANIFEST)}),
            }
        )
        pipeline = _pipeline(here, network, open_store(here), clock, attempts=NullSink(), loop=loop)
        try:
            yield pipeline
        finally:
            pipeline.close()


def build_pipeline_from_config(cfg: ContentDownloadConfig) -> ResolverPipeline:
    """A pipeline for embedding: `process` obtains works; its attempts are recorded, its outcomes are the caller's.

    Its `close` closes everything that was opened for it.
    """
    stack = ExitStack()
    pipeline = stack.enter_context(open_parts(cfg)).pipeline
    pipeline.on_close(stack.close)
    return pipeline


def run_from_config(
    cfg: ContentDownloadConfig, artifacts: Iterable[str | Mapping[str, Any] | WorkArtifact]
) -> RunResult:
    """Obtain `artifacts` in one call; the same wiring as every command."""
    from DocsToKG.ContentDownload.runner import DownloadRun

    with DownloadRun(cfg) as run:
        return run.process_artifacts(artifacts)


def _notes(cfg: ContentDownloadConfig) -> list[str]:
    """What a reader of the summary must know to judge the figures."""
    notes = []
    if not cfg.robots.enabled:
        notes.append("robots.txt was not read in this run")
    if cfg.limits.rate_factor != 1.0:
        notes.append(f"every rate was multiplied by {cfg.limits.rate_factor:g}")
    return notes


def _exports(cfg: ContentDownloadConfig) -> Exports:
    """What of a run is exported. An endpoint of the environment may be meant for other programs."""
    shown = cfg.telemetry
    return Exports(
        metrics_port=shown.metrics_port,
        metrics_file=Path(shown.metrics_file).expanduser() if shown.metrics_file else None,
        every_s=shown.metrics_every_seconds,
        most_hosts=shown.metrics_hosts,
        otlp_endpoint=shown.otlp_endpoint or os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or None,
        insist=shown.otlp_endpoint is not None,
        log_level=shown.log_level,
        log_format=shown.log_format,
        log_file=Path(shown.log_file).expanduser() if shown.log_file else None,
    )


def _note_network(network: Network, telemetry: RunTelemetry, events: Events) -> None:
    """What whoever reads the figures should know: a cache that failed cost requests, a robots.txt copies."""
    troubles: Mapping[str, int] = network.cache.troubles if network.cache is not None else {}
    if troubles:
        telemetry.note(f"the cache failed and was gone past: {_counted(troubles)}")
    decisions: Mapping[str, int] = network.robots.decisions if network.robots is not None else {}
    events.on_robots(decisions)
    for note in network.blocklist.notes if network.blocklist is not None else ():
        telemetry.note(note)
    if set(decisions) - {"allowed", "exempt"}:
        telemetry.note(f"robots.txt was asked before each page and file: {_counted(decisions)}")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{what} {count}" for what, count in sorted(counts.items()))


def _pipeline(
    cfg: ContentDownloadConfig,
    network: Network,
    store: LocalStore,
    clock: Clock,
    *,
    attempts: AttemptSink,
    traced: Callable[[Download], Download] = lambda download: download,
    on_source: Callable[[SourceAttempt], None] = lambda attempt: None,
    already: Callable[[WorkArtifact], HeldFile | None] = lambda work: None,
    takedowns: TakedownSync | None = None,
    rejected: Collection[tuple[str, str]] = frozenset(),
    starts_empty: bool = False,
    asks_servers: bool = False,
    loop: LoopThread,
) -> ResolverPipeline:
    from DocsToKG.ContentDownload.maintenance.takedowns import Takedowns

    rules = all_source_rules(cfg)
    usable = {name for name in registry.names() if rules[name].enabled}
    tiers = tier_plan(cfg, only=usable)
    asks_services = cfg.index.path is None or cfg.index.then != "never"
    identify = [name for name in cfg.resolvers.identify if name in usable and asks_services]
    wanted = dict.fromkeys([*identify, *(name for tier in tiers for name in tier.sources)])
    refused = Takedowns.read(Path(cfg.telemetry.manifest_path).parent, share=takedowns)

    def barred(sha256: str, work_id: str) -> tuple[Reason, str] | None:
        if (why := refused.refuses_bytes(sha256, work_id)) is not None:
            return Reason.TAKEN_DOWN, why
        is_rejected = (work_id, sha256) in rejected
        return (Reason.WRONG_ARTICLE, "a person has looked at the file and rejected it") if is_rejected else None

    download = CandidateDownload(
        store,
        DownloadRules(
            cfg.download.max_bytes,
            cfg.download.min_pdf_bytes,
            cfg.download.head_enabled,
            cfg.download.formats,
            ValidationRules(
                unproved=cfg.proof.unproved,
                streams=cfg.proof.streams,
                keep_damaged=cfg.proof.keep_damaged,
                pages=cfg.proof.text.pages,
                last_pages=cfg.proof.text.last_pages,
                max_letters=cfg.proof.text.max_letters,
                workers=cfg.proof.text.workers,
                timeout_s=cfg.proof.text.timeout_seconds,
                memory_bytes=cfg.proof.text.memory_bytes,
            ),
        ),
        clock,
        attempts,
        barred=barred,
        keeping=network.gates.keeping,
    )
    supplements = None
    if cfg.download.supplements:
        from DocsToKG.ContentDownload.supplement_download import SupplementDownload

        supplements = SupplementDownload(store, cfg.download.max_bytes, cfg.download.max_supplements, barred)
    filters = Filters.of(cfg.filters)

    def refuse(work: WorkArtifact) -> str | None:
        return refused.refuses(work) or filters.refuses_work(work)

    def allow(plan: DownloadPlan, work: WorkArtifact) -> str | None:
        # What is learned of a work on the way may show that it is another's.
        return refused.refuses(work) or filters.refuses_plan(plan, work)

    sources = registry.build(wanted, settings=resolver_settings(rules))
    search_rules = SearchRules(
        identify=identify,
        formats=cfg.download.formats,
        source_s=source_shares(cfg),
        refuse=refuse,
        allow=allow,
        lacks=filters.lacks,
        knows_copies=lambda work: knows_copies(work) and not filters.lacks(work),
        is_over=is_over if cfg.index.then == "failed" else lambda tier, work: False,
        prepare=sources.prepare,
        release=store.release,
        on_source=on_source,
    )
    fallback = FallbackOrchestrator(
        tiers=[replace(tier, parallel=min(tier.parallel, cfg.budgets.max_concurrent)) for tier in tiers],
        resolvers=sources,
        clients=network.clients,
        download=traced(DeduplicatedDownload(download, open_stored=store.open, clock=clock, attempts=attempts)),
        clock=clock,
        rules=search_rules,
    )
    return ResolverPipeline(
        fallback=fallback,
        gates=network.gates,
        loop=loop,
        clock=clock,
        limits=WorkLimits(cfg.budgets.total_timeout_s, cfg.budgets.total_attempts),
        already=already,
        starts_empty=starts_empty,
        refuse=refuse,
        held_up=store.held_up,
        asks_servers=asks_servers,
        supplements=supplements,
    )


def _already(catalog: Catalog, store: LocalStore, work: WorkArtifact) -> HeldFile | None:
    """A file that was stored and recorded, though the ledger was not told: adopted instead of fetched again."""
    standing = catalog.standing(work.work_id)
    if standing is None:
        return None
    found, is_damaged = standing
    if is_damaged:
        store.drop_damaged(found.sha256, found.path)  # what is fetched can have its name
        return None
    size = store.size_of(found.path)
    if size is not None and size != found.size_bytes:
        store.drop_damaged(found.sha256, found.path)
        size = store.size_of(found.path)
    if size is None and store.adopt(found.sha256, found.path) is None:
        return None
    return HeldFile(found.sha256, found.size_bytes or 0)
