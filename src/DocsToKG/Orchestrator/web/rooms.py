"""What can be asked: the services of one ledger, put together once. Knows no HTTP."""

from __future__ import annotations

from dataclasses import dataclass

from DocsToKG.Orchestrator.services.actions import ActionService
from DocsToKG.Orchestrator.services.backfills import BackfillService
from DocsToKG.Orchestrator.services.breakers import BreakerService
from DocsToKG.Orchestrator.services.bulk import BulkService
from DocsToKG.Orchestrator.services.dashboard import DashboardService
from DocsToKG.Orchestrator.services.history_feed import HistoryFeed
from DocsToKG.Orchestrator.services.idempotency import IdempotencyService
from DocsToKG.Orchestrator.services.incidents import IncidentService
from DocsToKG.Orchestrator.services.jobs import JobService, ServedLedger
from DocsToKG.Orchestrator.services.leases import LeaseService
from DocsToKG.Orchestrator.services.maintenance import MaintenanceService
from DocsToKG.Orchestrator.services.packruns import PackRunService
from DocsToKG.Orchestrator.services.quotas import QuotaService
from DocsToKG.Orchestrator.services.source_hosts import SourceHostService
from DocsToKG.Orchestrator.services.tally import Tally
from DocsToKG.Orchestrator.services.tenants import TenantService
from DocsToKG.Orchestrator.services.throttles import ThrottleService
from DocsToKG.Orchestrator.services.what_if import WhatIfService
from DocsToKG.Orchestrator.services.workers import WorkerService


@dataclass(frozen=True, slots=True)
class Rooms:
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


def rooms_of(ledger: ServedLedger) -> Rooms:
    jobs, tally = JobService(ledger), Tally()
    return Rooms(
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
