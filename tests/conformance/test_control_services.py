"""The services of operators, on every ledger: what they write, what they refuse, and what stays in the audit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from DocsToKG.core.breaker import BreakerSettings
from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.control.breakers import BreakerService
from DocsToKG.Orchestrator.control.incidents import IncidentService
from DocsToKG.Orchestrator.control.leader_election import Leader
from DocsToKG.Orchestrator.control.maintenance import MaintenanceService
from DocsToKG.Orchestrator.control.quotas import QuotaService
from DocsToKG.Orchestrator.control.tenants import TenantService, refuse_blocked
from DocsToKG.Orchestrator.control.throttles import ThrottleService
from DocsToKG.Orchestrator.errors import BadJob, BadPage, Conflict, NotFound, Refused
from DocsToKG.Orchestrator.ledger.base import NewJob
from DocsToKG.Orchestrator.ledger.control import version_of

Open = Callable[..., Any]
BY = {"actor": "ann", "reason": "more room", "ticket": "OPS-7"}


def audit(ledger: Any) -> list[tuple[Any, ...]]:
    words = "SELECT tenant, event, actor, reason, ticket FROM job_history ORDER BY seq"
    return [tuple(row) for row in ledger.read(lambda tx: tx.execute(words))]


def at_once(count: int, deed: Callable[[int], Any]) -> list[Any]:
    answers: list[Any] = []
    threads = [threading.Thread(target=lambda n=n: answers.append(deed(n))) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert len(answers) == count
    return answers


class TestQuotas:
    def test_a_quota_is_kept_with_who_and_why(self, ledger: Any, clock: ManualClock) -> None:
        """QUOTA-01, QUOTA-20."""
        quotas = QuotaService(ledger)
        made = quotas.set("a", "t", actor="ann")
        assert (made.max_active, made.max_per_hour, made.burst, made.version) == (100, 1000, 10, 1)
        again = quotas.set("a", "t", 5, 50, 2, **BY)
        assert (again.max_active, again.version, again.ticket, again.updated_at) == (5, 2, "OPS-7", clock.now())
        assert quotas.get("a", "t") == again
        quotas.set("b", "*", actor="ann")
        assert [(each.tenant, each.job_type) for each in quotas.list()] == [("a", "t"), ("b", "*")]
        assert [each.tenant for each in quotas.list("b")] == ["b"]
        assert ("a", "quota_set", "ann", "more room", "OPS-7") in audit(ledger)
        assert ledger.verify_history()

    def test_only_the_version_that_was_read_is_changed(self, ledger: Any) -> None:
        quotas = QuotaService(ledger)
        quotas.set("a", "t", actor="ann", if_version=0)
        with pytest.raises(Conflict) as told:
            quotas.set("a", "t", 1, actor="bob", if_version=0)
        assert told.value.version == 1
        quotas.set("a", "t", 1, actor="bob", if_version=1)
        with pytest.raises(Conflict):
            quotas.remove("a", "t", actor="ann", if_version=1)
        quotas.remove("a", "t", actor="ann", if_version=2)
        with pytest.raises(NotFound):
            quotas.get("a", "t")
        with pytest.raises(NotFound):
            quotas.remove("a", "t", actor="ann")

    @pytest.mark.parametrize("numbers", [(-1, 1, 1), (1, -1, 1), (1, 1, 10**12), (True, 1, 1), (1.5, 1, 1)])
    def test_odd_numbers_are_refused(self, ledger: Any, numbers: tuple[Any, ...]) -> None:
        with pytest.raises(BadJob):
            QuotaService(ledger).set("a", "t", *numbers, actor="ann")
        assert ledger.read(version_of) == 0

    def test_a_pool_is_requested_and_given_back(self, ledger: Any) -> None:
        """QUOTA-13, QUOTA-15 to QUOTA-17."""
        quotas = QuotaService(ledger)
        made = quotas.policies.create("pool", "Equal", 10, allow_burst=True, burst_multiplier=1.5, actor="ann")
        ledger.enqueue_many([NewJob("b:1", {}, tenant="b", job_type="t")])
        assert quotas.allocation("a", "t").policy_id == made.policy_id
        first = quotas.request("a", "t", 4)
        assert (first.granted, first.held) == (4, 4)
        more = quotas.request("a", "t", 100)
        assert more.held <= 10
        back = quotas.release("a", "t", 1000)
        assert (back.held, back.released) == (0, more.held)
        assert quotas.release("a", "t", 5).held == 0
        with pytest.raises(BadJob):
            quotas.request("a", "t", -1)

    def test_requests_at_once_never_take_more_than_there_is(self, open_ledger: Open) -> None:
        """QUOTA-16."""
        ledgers = [open_ledger() for _ in range(3)]
        QuotaService(ledgers[0]).policies.create("pool", "Equal", 20, actor="ann")
        given = at_once(12, lambda n: QuotaService(ledgers[n % 3]).request("a", "t", 3).granted)
        assert sum(given) == 20
        [summary] = QuotaService(ledgers[0]).summary()
        assert (summary.held, summary.total_capacity) == (20, 20)

    def test_requests_without_a_policy_go_by_the_quota(self, ledger: Any) -> None:
        quotas = QuotaService(ledger)
        assert quotas.request("a", "t", 7).granted == 7
        quotas.set("a", "t", 10, actor="ann")
        assert quotas.request("a", "t", 7).granted == 3

    def test_the_status_shows_both_limits_and_the_starts_left(self, ledger: Any, clock: ManualClock) -> None:
        """QUOTA-19."""
        quotas = QuotaService(ledger)
        quotas.set("a", "*", 50, 60, 2, actor="ann")
        quotas.policies.create("pool", "Fixed", 10, minimum_per_tenant=7, actor="ann")
        status = quotas.status("a", "t")
        assert (status.effective, status.allocation.share, status.starts_left) == (7, 7, 2)
        ledger.enqueue_many([NewJob(f"a:{n}", {}, tenant="a", job_type="t") for n in range(5)])
        assert len(ledger.lease("w", 10, 60)) == 2
        status = quotas.status("a", "t")
        assert (status.active, status.starts_left, status.next_start_at) == (2, 0, pytest.approx(clock.now() + 60))
        assert quotas.can_schedule("a", "t").until == pytest.approx(clock.now() + 60)

    def test_can_schedule_says_which_one_blocks(self, ledger: Any) -> None:
        """QUOTA-18."""
        quotas = QuotaService(ledger)
        assert quotas.can_schedule("a", "t").can_schedule
        quotas.set("a", "t", 0, actor="ann")
        assert quotas.can_schedule("a", "t").blocked_by == "quota"
        BreakerService(ledger).force_open("a", "jobtype:t", **BY)
        assert quotas.can_schedule("a", "t").blocked_by == "breaker"


class TestPolicies:
    def test_a_policy_is_made_read_changed_and_removed(self, ledger: Any) -> None:
        """QUOTA-10, QUOTA-14, QUOTA-20."""
        policies = QuotaService(ledger).policies
        made = policies.create("pool", "Equal", 10, **BY)
        assert (made.minimum_per_tenant, made.maximum_per_tenant, made.reserved_capacity) == (1, None, 0)
        assert (made.allow_burst, made.burst_multiplier, made.priority, made.enabled) == (False, 1.5, 0, True)
        other = policies.create("first", "Priority", 5, priority=9, job_type="t", enabled=False, actor="ann")
        assert [each.policy_id for each in policies.list()] == [other.policy_id, made.policy_id]
        assert [each.policy_id for each in policies.list(enabled=True)] == [made.policy_id]
        changed = policies.update(made.policy_id, {"total_capacity": 30}, actor="bob", if_version=1)
        assert (changed.total_capacity, changed.version, changed.strategy, changed.actor) == (30, 2, "Equal", "bob")
        with pytest.raises(Conflict) as told:
            policies.update(made.policy_id, {"priority": 1}, actor="bob", if_version=1)
        assert told.value.version == 2
        assert policies.get(made.policy_id) == changed
        policies.delete(made.policy_id, actor="ann")
        with pytest.raises(NotFound):
            policies.get(made.policy_id)
        events = [row[1] for row in audit(ledger)]
        assert events.count("policy_created") == 2
        assert events[-1] == "policy_deleted"

    @pytest.mark.parametrize(
        "changes",
        [
            {"strategy": "Greedy"},
            {"reserved_capacity": 11},
            {"minimum_per_tenant": 11},
            {"burst_multiplier": 0.5},
            {"burst_multiplier": "x"},
            {"total_capacity": -1},
            {"name": ""},
            {"colour": "red"},
        ],
    )
    def test_one_that_makes_no_sense_is_refused_and_nothing_is_changed(
        self, ledger: Any, changes: dict[str, Any]
    ) -> None:
        policies = QuotaService(ledger).policies
        made = policies.create("pool", "Equal", 10, actor="ann")
        with pytest.raises(BadJob):
            policies.update(made.policy_id, changes, actor="ann")
        assert policies.get(made.policy_id) == made


class TestBreakers:
    def test_a_service_opens_is_tested_and_closes(self, ledger: Any, clock: ManualClock) -> None:
        """BRK-01 to BRK-07, BRK-12."""
        breakers = BreakerService(ledger)
        assert breakers.check("a", "crossref").allowed
        for _ in range(10):
            breakers.record_failure("a", "crossref", "500")
        seen = breakers.check("a", "crossref")
        assert (seen.allowed, seen.state, seen.failure_rate, seen.retry_in_s) == (False, "open", 1.0, 30.0)
        assert breakers.check("b", "crossref").allowed
        clock.advance(30)
        assert [breakers.check("a", "crossref").allowed for _ in range(5)] == [True, True, True, False, False]
        for _ in range(3):
            breakers.record_success("a", "crossref")
        assert breakers.get("a", "crossref").state == "closed"
        changes = breakers.transitions("a", "crossref")
        assert {change.new_state for change in changes} == {"open", "half-open", "closed"}
        [incident] = IncidentService(ledger).list("a").incidents
        assert incident.source == "breaker:service:crossref"
        assert ledger.read(version_of) == 0  # what guards a service does not govern leasing

    def test_exactly_as_many_tests_pass_as_allowed_among_instances(self, open_ledger: Open) -> None:
        """BRK-07."""
        ledgers = [open_ledger() for _ in range(3)]
        first = BreakerService(ledgers[0])
        first.force_open("a", "pmc", **BY)
        first.unforce("a", "pmc", actor="ann")
        allowed = at_once(15, lambda n: BreakerService(ledgers[n % 3]).check("a", "pmc").allowed)
        assert sum(allowed) == 3

    def test_a_forced_state_holds_and_is_audited(self, ledger: Any, clock: ManualClock) -> None:
        """BRK-08, BRK-09."""
        breakers = BreakerService(ledger)
        breakers.force_open("a", "wayback", **BY)
        clock.advance(10_000)
        assert not breakers.check("a", "wayback").allowed
        assert breakers.check("a", "wayback").retry_in_s is None
        breakers.force_close("a", "doi", **BY)
        for _ in range(30):
            breakers.record_failure("a", "doi")
        assert breakers.check("a", "doi").allowed
        assert [each.service_id for each in breakers.list("a")] == ["doi", "wayback"]
        assert [each.service_id for each in breakers.list("a", "open")] == ["wayback"]
        assert breakers.list("b") == []
        assert ("a", "breaker_forced_open", "ann", "more room", "OPS-7") in audit(ledger)
        with pytest.raises(BadJob):
            breakers.list("a", "ajar")
        with pytest.raises(NotFound):
            breakers.get("a", "nothing")

    def test_a_server_that_says_when_is_believed(self, ledger: Any) -> None:
        """BRK-13: Retry-After lengthens the open time."""
        breakers = BreakerService(ledger)
        for _ in range(10):
            breakers.record_failure("a", "arxiv", retry_after_s=300)
        assert breakers.check("a", "arxiv").retry_in_s == 300.0

    def test_what_made_it_open_is_told(self, ledger: Any, clock: ManualClock) -> None:
        """API-12: the last reason that was given."""
        breakers = BreakerService(ledger)
        for _ in range(9):
            breakers.record_failure("a", "pmc")
        breakers.record_failure("a", "pmc", "no answer in 30 s")
        clock.advance(30)
        assert breakers.check("a", "pmc").allowed
        breakers.record_failure("a", "pmc", "503")
        told = [each.why for each in breakers.transitions("a", "pmc") if each.new_state == "open"]
        assert sorted(told) == ["10 of 10 failed: no answer in 30 s", "a test failed: 503"]

    def test_settings_of_its_own(self, ledger: Any) -> None:
        breakers = BreakerService(ledger)
        view = breakers.configure("a", "host:x.example", BreakerSettings(min_samples=2), actor="ann")
        assert view.settings.minimum_samples == 2
        breakers.record_failure("a", "host:x.example")
        breakers.record_failure("a", "host:x.example")
        assert breakers.get("a", "host:x.example").state == "open"


class TestThrottles:
    def test_applied_listed_and_lifted(self, ledger: Any, clock: ManualClock) -> None:
        """THR-03."""
        throttles = ThrottleService(ledger)
        pause = throttles.apply("a", job_type="t", pause=True, expires_in_s=60, **BY)
        assert (pause.mode, pause.expires_at, pause.origin) == ("pause", clock.now() + 60, "operator")
        clock.advance(1)
        limit = throttles.apply("a", source="s", max_active=2, actor="ann")
        assert [each.throttle_id for each in throttles.list("a")] == [limit.throttle_id, pause.throttle_id]
        clock.advance(60)
        assert [each.throttle_id for each in throttles.list("a")] == [limit.throttle_id]
        assert len(throttles.list("a", active=False)) == 2
        lifted = throttles.lift("a", limit.throttle_id, actor="bob")
        assert (lifted.lifted_by, lifted.lifted_at) == ("bob", clock.now())
        assert throttles.lift("a", limit.throttle_id, actor="eve") == lifted
        assert throttles.list("b", active=False) == []
        with pytest.raises(NotFound):
            throttles.lift("b", limit.throttle_id, actor="eve")

    @pytest.mark.parametrize(
        "words",
        [
            {},
            {"pause": True, "max_active": 1},
            {"max_active": -1},
            {"pause": True, "expires_in_s": 0},
            {"pause": True, "expires_in_s": float("nan")},
            {"pause": True, "source": ""},
        ],
    )
    def test_odd_ones_are_refused(self, ledger: Any, words: dict[str, Any]) -> None:
        with pytest.raises(BadJob):
            ThrottleService(ledger).apply("a", actor="ann", **words)

    def test_a_source_is_paused_once_and_shows_its_state(self, ledger: Any) -> None:
        """THR-01."""
        throttles = ThrottleService(ledger)
        throttles.source_seen("a", "arxiv", {"hosts": {"export.arxiv.example": {"state": "open"}}})
        one = throttles.pause_source("a", "arxiv", **BY)
        assert throttles.pause_source("a", "arxiv", **BY) == one
        [source] = throttles.sources("a")
        assert (source.name, source.paused, len(source.throttles)) == ("arxiv", True, 1)
        assert source.state["hosts"]["export.arxiv.example"]["state"] == "open"
        assert throttles.sources("b") == []
        assert len(throttles.resume_source("a", "arxiv", actor="ann")) == 1
        assert throttles.resume_source("a", "arxiv", actor="ann") == []
        assert not throttles.sources("a")[0].paused


class TestIncidents:
    def test_repeats_join_until_it_is_resolved(self, ledger: Any, clock: ManualClock) -> None:
        """INC-01, INC-02, INC-04."""
        incidents = IncidentService(ledger)
        first = incidents.raise_("a", "disk", "warning", "90 % full")
        clock.advance(5)
        again = incidents.raise_("a", "disk", "critical", "99 % full")
        assert (again.incident_id, again.count, again.severity) == (first.incident_id, 2, "critical")
        assert again.last_at == first.first_at + 5
        seen = incidents.acknowledge("a", first.incident_id, **BY)
        assert (seen.state, seen.actor, seen.ticket) == ("acknowledged", "ann", "OPS-7")
        assert incidents.raise_("a", "disk", "critical", "full").state == "acknowledged"
        with pytest.raises(Conflict):
            incidents.resolve("a", first.incident_id, actor="ann", if_version=1)
        incidents.resolve("a", first.incident_id, actor="ann")
        with pytest.raises(Conflict):
            incidents.acknowledge("a", first.incident_id, actor="ann")
        assert incidents.raise_("a", "disk", "warning", "again").incident_id != first.incident_id
        assert [each.state for each in incidents.list("a", "resolved").incidents] == ["resolved"]
        with pytest.raises(NotFound):
            incidents.get("b", first.incident_id)
        with pytest.raises(BadJob):
            incidents.raise_("a", "disk", "dire", "x")
        assert "incident_resolved" in [row[1] for row in audit(ledger)]

    def test_pages_go_on_where_they_ended(self, ledger: Any, clock: ManualClock) -> None:
        incidents = IncidentService(ledger)
        for n in range(7):
            incidents.raise_("a", f"s{n}", "info", "x")
            clock.advance(n % 2)
        sources, token = [], None
        while True:
            page = incidents.list("a", page_size=2, page_token=token)
            sources += [each.source for each in page.incidents]
            token = page.next_page_token
            if token is None:
                break
        assert sorted(sources) == [f"s{n}" for n in range(7)]
        with pytest.raises(BadPage):
            incidents.list("a", page_token="nonsense")

    def test_many_at_once_are_one(self, open_ledger: Open) -> None:
        ledgers = [open_ledger() for _ in range(2)]
        found = at_once(8, lambda n: IncidentService(ledgers[n % 2]).raise_("a", "s", "error", "x").incident_id)
        assert len(set(found)) == 1
        assert IncidentService(ledgers[0]).get("a", found[0]).count == 8


class TestSwitches:
    def test_maintenance(self, ledger: Any, clock: ManualClock) -> None:
        maintenance = MaintenanceService(ledger)
        assert not maintenance.status().on
        status = maintenance.on(**BY)
        assert (status.on, status.actor, status.reason, status.since) == (True, "ann", "more room", clock.now())
        assert not maintenance.off(actor="bob").on
        assert [row[1] for row in audit(ledger)] == ["maintenance_on", "maintenance_off"]

    def test_governing_starts_once(self, ledger: Any) -> None:
        MaintenanceService(ledger).start_governing()
        MaintenanceService(ledger).start_governing()
        assert ledger.read(version_of) == 1

    def test_tenants_are_blocked_and_weighed(self, ledger: Any) -> None:
        """OPS-05."""
        tenants = TenantService(ledger)
        ledger.read(lambda tx: refuse_blocked(tx, "a"))
        assert tenants.block("a", actor="ann", reason="abuse").blocked
        with pytest.raises(Refused) as told:
            ledger.read(lambda tx: refuse_blocked(tx, "a"))
        assert told.value.reason == "tenant_blocked"
        weighed = tenants.weigh("a", weight=3, priority=2, fixed=9, actor="ann", if_version=1)
        assert (weighed.weight, weighed.priority, weighed.fixed, weighed.blocked) == (3, 2, 9, True)
        with pytest.raises(Conflict):
            tenants.weigh("a", weight=1, actor="ann", if_version=1)
        with pytest.raises(BadJob):
            tenants.weigh("a", weight=0, actor="ann")
        assert [each.tenant for each in tenants.list(blocked=True)] == ["a"]
        unblocked = tenants.unblock("a", actor="ann")
        assert (unblocked.blocked, unblocked.weight) == (False, 3)
        assert tenants.get("new").version == 0

    def test_one_leads_until_it_resigns_or_is_silent(self, ledger: Any, clock: ManualClock) -> None:
        one, two = Leader(ledger, "sweep", holder="one", ttl_s=10), Leader(ledger, "sweep", holder="two", ttl_s=10)
        assert one.hold()
        assert not two.hold()
        clock.advance(9)
        assert one.hold()
        clock.advance(9)
        assert not two.hold()
        assert two.leading() == "one"
        clock.advance(1)
        assert one.leading() is None
        assert two.hold()
        assert not one.hold()
        two.resign()
        assert one.hold()
        one.resign()
        two.resign()
        assert one.leading() is None

    def test_of_many_that_run_one_leads(self, open_ledger: Open) -> None:
        ledgers = [open_ledger() for _ in range(3)]
        held = at_once(9, lambda n: Leader(ledgers[n % 3], "x", holder=f"i{n}", ttl_s=600).hold())
        assert sum(held) == 1
