"""The services of one ledger, put together once. Knows no HTTP."""

from __future__ import annotations

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
from DocsToKG.Orchestrator.control.preview import PreviewService
from DocsToKG.Orchestrator.control.quotas import QuotaService
from DocsToKG.Orchestrator.control.tenants import TenantService
from DocsToKG.Orchestrator.control.throttles import ThrottleService
from DocsToKG.Orchestrator.control.workers.hosts import SourceHostService
from DocsToKG.Orchestrator.control.workers.leases import LeaseService
from DocsToKG.Orchestrator.control.workers.registry import WorkerService


class Services:
    """The services of one ledger."""

    def __init__(self, ledger: ServedLedger) -> None:
        self.ledger = ledger
        self.answers = IdempotencyService(ledger)
        self.jobs = JobService(ledger)
        self.bulk = BulkService(ledger, self.jobs)
        self.actions = ActionService(ledger)
        self.leases = LeaseService(ledger)
        self.workers = WorkerService(ledger)
        self.backfills = BackfillService(ledger)
        self.pack_runs = PackRunService(ledger)
        self.feed = HistoryFeed(ledger)
        self.dashboard = DashboardService(ledger)
        self.quotas = QuotaService(ledger)
        self.preview = PreviewService(ledger)
        self.breakers = BreakerService(ledger)
        self.throttles = ThrottleService(ledger)
        self.source_hosts = SourceHostService(ledger)
        self.incidents = IncidentService(ledger)
        self.maintenance = MaintenanceService(ledger)
        self.tenants = TenantService(ledger)
