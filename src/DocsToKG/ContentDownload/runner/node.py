"""Who works here: the name of this machine, and of one process on it.

A node's name is for people, and may be used twice by mistake; the worker id that is made of it is new with every
process, and it alone owns leases. Promises: two nodes of one name never touch each other's jobs.
"""

from __future__ import annotations

import re
import socket
from typing import TYPE_CHECKING

from DocsToKG.ContentDownload.bootstrap import Parts
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.orchestrator.scheduler import Orchestrator
from DocsToKG.core.ids import new_worker_id

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.orchestrator.reporting import Reporter
    from DocsToKG.Orchestrator.ledger.ledger import DatabaseLedger

_LONGEST = 63
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._-]+")


def worker_id_of(cfg: ContentDownloadConfig) -> str:
    return new_worker_id(node_id(cfg))


def node_id(cfg: ContentDownloadConfig) -> str | None:
    """As configured, else the host's name where machines share a queue. A queue of one machine needs none."""
    if cfg.queue.node_id is not None or cfg.queue.url is None:
        return cfg.queue.node_id
    return _NOT_IN_A_NAME.sub("-", socket.gethostname()).strip("._-")[:_LONGEST] or None


def reporter_of(
    cfg: ContentDownloadConfig, ledger: DatabaseLedger, orchestrator: Orchestrator, parts: Parts
) -> Reporter:
    """Tells the ledger who works here, on what, and how the hosts stand."""
    from DocsToKG.ContentDownload.orchestrator.reporting import Reporter, reports_of

    return Reporter(
        reports_of(ledger),
        orchestrator.worker_id,
        tally=parts.hosts,
        limits=parts.network.limits,
        breakers=parts.network.breakers,
        doing=lambda: {
            "run": parts.telemetry.run_id,
            "active": orchestrator.active,
            "held": orchestrator.held,
            "waits": dict(list(orchestrator.waits().items())[:20]),
        },
        node=node_id(cfg),
    )
