"""A service that has the queue: reached, its token taken for one tenant, and work leased by it.

Asks for a type of job that nobody submits: all is done as for a worker, and no job is ever had. Does not know which
ledger stands behind the service.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from DocsToKG.core.checks import Finding, ask_time, clock, encryption, failed, ok, warning
from DocsToKG.Orchestrator.errors import LedgerError

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.client import OrchestratorClient

_ANSWER_S = 4.0
_SETTING = "queue.orchestrator_url"
_PROBE = "doctor.probe"
_COUNT = "dashboardMetrics"  # by its name in the API: what a worker asks to know what is left
_NEW_TOKEN = "docstokg-orchestrator token new NAME --scope orch:operate --scope orch:read --tenant TENANT --out FILE"


def check_service(url: str, token_file: str | None, read_token: Callable[[str | None], str]) -> Iterator[Finding]:
    """The service at `url`, which admits whoever has the token in `token_file`."""
    from DocsToKG.Orchestrator.client import NotAdmitted, OrchestratorClient, ServiceUnavailable

    try:
        token = read_token(token_file)
    except LedgerError as error:
        yield failed("token", str(error), f"make one where the service is: {_NEW_TOKEN}")
        return
    try:
        with OrchestratorClient(url, token, timeout_s=_ANSWER_S, tries=1) as client:
            yield from _look(client, url, token_file)
    except NotAdmitted as error:
        yield failed("token", f"{url} refuses it: {error}", f"take another: {_NEW_TOKEN}")
    except ServiceUnavailable as error:
        yield failed("reachable", f"{url}: {error}", f"see to the service, its firewall and {_SETTING}")
    except LedgerError as error:
        advice = f"name what docstokg-orchestrator serve prints in {_SETTING}"
        yield failed("reachable", f"it does not answer as a queue: {error}", advice)


def _look(client: OrchestratorClient, url: str, token_file: str | None) -> Iterator[Finding]:
    who = client.whoami()
    if who["tenant"] is None:
        seen = f"it is for {', '.join(who['tenants']) or 'no tenant'}, and a worker works for one"
        yield failed("token", seen, f"take another: {_NEW_TOKEN}")
        return
    client.lease("docstokg-doctor", job_types=[_PROBE], lease_s=1.0)
    yield ok("reachable", url)
    parts = urlsplit(url)
    advice = f"put a proxy with TLS before the service, and use https:// in {_SETTING}"
    yield encryption(parts.hostname, parts.scheme == "https", advice)
    yield from _private(token_file)
    said = f"work for tenant {who['tenant']} was asked for, as {who['subject']}"
    if _COUNT not in who["operations"]:
        seen = f"{said}; what is left may not be counted, as queue run does"
        yield warning("permissions", seen, f"take a token that may read: {_NEW_TOKEN}")
        return
    yield ok("permissions", said)
    yield clock(*ask_time(lambda: _service_time(client)))


def _private(token_file: str | None) -> Iterator[Finding]:
    """A file that others may read is no place for a token."""
    if token_file and Path(token_file).stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        yield warning("token", f"{token_file} can be read by others", f"chmod 600 {token_file}")


def _service_time(client: OrchestratorClient) -> float:
    from DocsToKG.Orchestrator.views import parse_timestamp

    return parse_timestamp(str(client.dashboard()["at"]))
