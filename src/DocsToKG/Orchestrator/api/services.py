"""What can be asked: the services of one ledger, put together once. Knows no HTTP."""

from __future__ import annotations

from dataclasses import dataclass

from DocsToKG.Orchestrator.control.backfills import BackfillService
from DocsToKG.Orchestrator.control.breakers import BreakerService
from DocsToKG.Orchestrator.control.dashboard import DashboardService
from DocsToKG.Orchestrator.control.history.decisions import ActionService
from DocsToKG.Orchestrator.control.history.feed import HistoryFeed
from DocsToKG.Orchestrator.control.idempotency import IdempotencyService
from DocsToKG.Orchestrator.control.incidents import IncidentService
from DocsToKG.Orchestrator.control.jobs.bulk import BulkService
from DocsToKG.Orchestrator.control.jobs.service import JobService, ServedLedger
from DocsToKG.Orchestrator.control.maintenance import MaintenanceService
from DocsToKG.Orchestrator.control.pack_runs import PackRunService
from DocsToKG.Orchestrator.control.preview import WhatIfService
from DocsToKG.Orchestrator.control.quotas import QuotaService
from DocsToKG.Orchestrator.control.tenants import TenantService
from DocsToKG.Orchestrator.control.throttles import ThrottleService
from DocsToKG.Orchestrator.control.workers.hosts import SourceHostService
from DocsToKG.Orchestrator.control.workers.latency import Tally
from DocsToKG.Orchestrator.control.workers.leases import LeaseService
from DocsToKG.Orchestrator.control.workers.registry import WorkerService


@dataclass(frozen=True, slots=True)
class Services:
    """The services of one ledger."""

    ledger: ServedLedger
    answers: IdempotencyService
    jobs: JobService
    bulk: BulkService
    actions: ActionService
    leases: LeaseService
    workers: WorkerService
    backfills: BackfillService
    pack_runs: PackRunService
    feed: HistoryFeed
    dashboard: DashboardService
    quotas: QuotaService
    what_if: WhatIfService
    breakers: BreakerService
    throttles: ThrottleService
    source_hosts: SourceHostService
    incidents: IncidentService
    maintenance: MaintenanceService
    tenants: TenantService
    tally: Tally


def services_of(ledger: ServedLedger) -> Services:
    jobs, tally = JobService(ledger), Tally()
    return Services(
        ledger=ledger,
        answers=IdempotencyService(ledger),
        jobs=jobs,
        bulk=BulkService(ledger, jobs),
        actions=ActionService(ledger),
        leases=LeaseService(ledger, tally=tally),
        workers=WorkerService(ledger),
        backfills=BackfillService(ledger),
        pack_runs=PackRunService(ledger),
        feed=HistoryFeed(ledger),
        dashboard=DashboardService(ledger),
        quotas=QuotaService(ledger),
        what_if=WhatIfService(ledger),
        breakers=BreakerService(ledger),
        throttles=ThrottleService(ledger),
        source_hosts=SourceHostService(ledger),
        incidents=IncidentService(ledger),
        maintenance=MaintenanceService(ledger),
        tenants=TenantService(ledger),
        tally=tally,
    )
