"""Permissions: which scope and which reason each operation needs, in one table for every route.

Knows scopes, roles and their aliases. Does not know tokens or HTTP. Promises: an operation that is not in the table
cannot be served.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

READ, OPERATE, QUOTA, BACKFILL = "orch:read", "orch:operate", "orch:quota", "orch:backfill"
SCOPES = (READ, OPERATE, QUOTA, BACKFILL)

_ALSO: Mapping[str, tuple[str, ...]] = {
    "orchestrator:*": SCOPES,
    "orchestrator:admin": SCOPES,
    "orchestrator:read": (READ,),
    "orchestrator:write": (OPERATE,),
    "orch:*": SCOPES,
}
_ROLES: Mapping[str, tuple[str, ...]] = {
    "Orch.Viewer": (READ,),
    "Orch.Operator": (READ, OPERATE),
    "Orch.Admin": SCOPES,
}

Demand = Literal["nothing", "operator", "quota", "backfill"]


@dataclass(frozen=True, slots=True)
class Permission:
    """What a caller needs. `demand` is the reason that must be given; `everyone` means the whole ledger, no tenant."""

    scopes: frozenset[str]
    demand: Demand = "nothing"
    everyone: bool = False
    waits: bool = False  # a long poll or a stream: the time limit of an answer is not for it
    own: bool = False  # about the caller itself: one of several tenants need not be named


def granted(scopes: Iterable[str], roles: Iterable[str]) -> frozenset[str]:
    """The scopes that a token's scopes and roles stand for; unknown ones are ignored."""
    found: set[str] = set()
    for word in scopes:
        found.update(_ALSO.get(word, (word,) if word in SCOPES else ()))
    for role in roles:
        found.update(_ROLES.get(role, ()))
    return frozenset(found)


def _needs(*scopes: str, demand: Demand = "nothing", everyone: bool = False, waits: bool = False) -> Permission:
    return Permission(frozenset(scopes), demand, everyone, waits)


_READS = _needs(READ)
_WORKS = _needs(OPERATE)  # a worker or a producer: what it does is its job, not an operator's decision
_DECIDES = _needs(OPERATE, demand="operator")
_DECIDES_FOR_ALL = _needs(OPERATE, demand="operator", everyone=True)
_GOVERNS = _needs(QUOTA, demand="quota")
_GOVERNS_ALL = _needs(QUOTA, demand="quota", everyone=True)

PERMISSIONS: Mapping[str, Permission] = {
    # jobs
    "listJobs": _READS, "getJob": _READS, "whyJob": _READS, "jobHistory": _READS, "submitJob": _WORKS,
    "submitJobs": _WORKS, "cancelJob": _DECIDES, "replayJob": _DECIDES, "clearLease": _DECIDES, "jobDetail": _READS,
    "jobSummary": _READS, "retryJob": _DECIDES,
    "previewBulkAction": _READS, "bulkCancel": _DECIDES, "bulkRetry": _DECIDES,
    "listActions": _READS,
    "listDeadLetters": _READS, "retryDeadLetters": _DECIDES,
    # workers, backfills
    "listWorkers": _READS, "reportWorker": _WORKS, "listBackfills": _READS, "getBackfill": _READS,
    "startBackfill": _needs(QUOTA, BACKFILL, demand="backfill"),
    # pack-runs
    "listPackRuns": _READS, "getPackRun": _READS, "registerPackRun": _WORKS, "heartbeatPackRun": _WORKS,
    "appendPackRunLogs": _WORKS, "readPackRunLogs": _READS, "publishPackRunArtifact": _WORKS,
    "listPackRunArtifacts": _READS, "finishPackRun": _WORKS,
    "followPackRunLogs": _needs(READ, waits=True),
    # leases
    "LeaseJob": _needs(OPERATE, waits=True), "renewLease": _WORKS, "renewLeases": _WORKS, "progressLease": _WORKS,
    "completeLease": _WORKS, "releaseLease": _WORKS,
    # quotas
    "listPolicies": _READS, "getPolicy": _READS, "createPolicy": _GOVERNS_ALL, "updatePolicy": _GOVERNS_ALL,
    "deletePolicy": _GOVERNS_ALL, "getAllocation": _READS, "requestQuota": _WORKS, "releaseQuota": _WORKS,
    "quotaStatus": _READS, "quotaSummary": _needs(READ, everyone=True), "canSchedule": _READS, "listQuotas": _READS,
    "previewPolicy": _needs(READ, everyone=True), "previewQuota": _READS,
    "getQuota": _READS, "setQuota": _GOVERNS, "removeQuota": _GOVERNS,
    # breakers
    "listBreakers": _READS, "getBreaker": _READS, "checkBreaker": _READS, "breakerTransitions": _READS,
    "recordSuccess": _WORKS, "recordFailure": _WORKS, "forceOpen": _DECIDES, "forceClose": _DECIDES,
    "unforceBreaker": _DECIDES, "configureBreaker": _DECIDES, "unconfigureBreaker": _DECIDES,
    # throttles and sources
    "applyThrottle": _DECIDES, "listThrottles": _READS, "getThrottle": _READS, "liftThrottle": _DECIDES,
    "listSources": _READS, "getSource": _READS, "reportHosts": _WORKS,
    "reportSource": _WORKS, "pauseSource": _DECIDES, "resumeSource": _DECIDES,
    # operations
    "listIncidents": _READS, "getIncident": _READS, "raiseIncident": _WORKS, "acknowledgeIncident": _DECIDES,
    "resolveIncident": _DECIDES, "getMaintenance": _READS, "setMaintenance": _DECIDES_FOR_ALL,
    "listTenants": _needs(READ, everyone=True), "getTenant": _needs(READ, everyone=True),
    "blockTenant": _DECIDES_FOR_ALL, "unblockTenant": _DECIDES_FOR_ALL, "weighTenant": _GOVERNS_ALL,
    # audit
    "exportAudit": _needs(READ, waits=True), "exportAuditOfAll": _needs(READ, everyone=True, waits=True),
    # dashboard
    "dashboardMetrics": _READS,
    # streams
    "streamJobs": _needs(READ, waits=True), "streamRuns": _needs(READ, waits=True),
    "streamDashboard": _needs(READ, waits=True), "readHistory": _READS,
    # metrics
    "readMetrics": _needs(READ, everyone=True),
    # graphql
    "graphqlQuery": _READS, "graphqlStream": _needs(READ, waits=True),
    # the caller itself, whatever its scopes
    "whoami": Permission(frozenset(), own=True),
}  # fmt: skip
