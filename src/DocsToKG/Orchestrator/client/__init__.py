"""The ledger from afar: a small typed client over HTTP, and a ledger made of it. Knows the API, and no database."""

from DocsToKG.Orchestrator.client.api import OrchestratorClient
from DocsToKG.Orchestrator.client.calls import NotAdmitted, ServiceUnavailable
from DocsToKG.Orchestrator.client.remote import RemoteLedger

__all__ = ["NotAdmitted", "OrchestratorClient", "RemoteLedger", "ServiceUnavailable"]
