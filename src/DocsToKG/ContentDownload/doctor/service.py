"""A service that has the queue: reached, its token taken for one tenant, and work leased by it.

Asks for a type of job that nobody submits: all is done as for a worker, and no job is ever had. Does not know which
ledger stands behind the service.
"""

from __future__ import annotations

import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from DocsToKG.ContentDownload.doctor import remote
from DocsToKG.ContentDownload.doctor.base import Finding, failed, ok, warning
from DocsToKG.ContentDownload.orchestrator.queue import token_in
from DocsToKG.Orchestrator.errors import LedgerError

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.client import OrchestratorClient

_ANSWER_S = 4.0
_SETTING = "queue.orchestrator_url"
_PROBE = "doctor.probe"
_COUNT = "dashboardMetrics"  # by its name in the API: what a worker asks to know what is left
_NEW_TOKEN = "docstokg-orchestrator token new NAME --scope orch:operate --scope orch:read --tenant TENANT --out FILE"


@dataclass(slots=True)
class ServiceCheck:
    """The service at `url`, which lets in whoever has the token in `token_file`."""

    name: str
    url: str
    token_file: str | None
    needed: bool = True

    def look(self) -> Iterator[Finding]:
        from DocsToKG.Orchestrator.client import NotAdmitted, OrchestratorClient, ServiceAway

        try:
            token = token_in(self.token_file)
        except LedgerError as error:
            yield failed("token", str(error), f"make one where the service is: {_NEW_TOKEN}")
            return
        try:
            with OrchestratorClient(self.url, token, timeout_s=_ANSWER_S, tries=1) as client:
                yield from self._look(client)
        except NotAdmitted as error:
            yield failed("token", f"{self.url} refuses it: {error}", f"take another: {_NEW_TOKEN}")
        except ServiceAway as error:
            yield failed("reachable", f"{self.url}: {error}", f"see to the service, its firewall and {_SETTING}")
        except LedgerError as error:
            advice = f"name what docstokg-orchestrator serve prints in {_SETTING}"
            yield failed("reachable", f"it does not answer as a queue: {error}", advice)

    def _look(self, client: OrchestratorClient) -> Iterator[Finding]:
        who = client.whoami()
        if who["tenant"] is None:
            seen = f"it is for {', '.join(who['tenants']) or 'no tenant'}, and a worker works for one"
            yield failed("token", seen, f"take another: {_NEW_TOKEN}")
            return
        client.lease("docstokg-doctor", job_types=[_PROBE], lease_s=1.0)
        yield ok("reachable", self.url)
        parts = urlsplit(self.url)
        advice = f"put a proxy with TLS before the service, and use https:// in {_SETTING}"
        yield remote.encryption(parts.hostname, parts.scheme == "https", advice)
        yield from self._kept()
        said = f"work for tenant {who['tenant']} was asked for, as {who['subject']}"
        if _COUNT not in who["operations"]:
            seen = f"{said}; what is left may not be counted, as queue run does"
            yield warning("permissions", seen, f"take a token that may read: {_NEW_TOKEN}")
            return
        yield ok("permissions", said)
        yield remote.clock(*remote.ask_time(lambda: _service_time(client)))

    def _kept(self) -> Iterator[Finding]:
        """A file that others may read is no place for a token."""
        if self.token_file and Path(self.token_file).stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
            yield warning("token", f"{self.token_file} can be read by others", f"chmod 600 {self.token_file}")


def _service_time(client: OrchestratorClient) -> float:
    from DocsToKG.Orchestrator.client.api import moment

    return moment(str(client.dashboard()["at"]))
