"""Leases among tenants under rules: never beyond the room, fair, none wasted, always the same answer."""

from __future__ import annotations

import random
from collections import Counter, deque

import pytest
from hypothesis import given
from hypothesis import strategies as some

from DocsToKG.core.breaker import BreakerState
from DocsToKG.Orchestrator.jobs.allocation import AllocationPolicy, Strategy
from DocsToKG.Orchestrator.jobs.fair_share import Gate, Lane, Rules, Running, TenantRule, Usage, Waiting, share
from DocsToKG.Orchestrator.jobs.quota import Bucket, Quota
from DocsToKG.Orchestrator.jobs.throttling import Throttle

NOW = 1_000_000
HOUR = 3_600_000


def line(tenant, count, *, job_type="t", source="", priority=0, first=1, more=False):
    return Waiting(Lane(tenant, job_type, source), [(-priority, first + n) for n in range(count)], more)


def given_to(shares):
    return Counter(lane.tenant for lane, _ in shares.picks)


names = some.sampled_from(["a", "b", "c", "d"])
types = some.sampled_from(["t", "u"])
sources = some.sampled_from(["", "s"])


@some.composite
def lanes(draw):
    found = draw(some.lists(some.tuples(names, types, sources), unique=True, max_size=8))
    ids = iter(random.Random(draw(some.integers(0, 1000))).sample(range(1000, 1100), 100))
    return [
        Waiting(Lane(*lane), sorted((-draw(some.integers(0, 2)), next(ids)) for _ in range(draw(some.integers(0, 9)))))
        for lane in found
    ]


@some.composite
def rule_sets(draw):
    keys = some.tuples(names | some.just("*"), types | some.just("*"))
    quotas = draw(
        some.dictionaries(keys, some.builds(Quota, some.integers(0, 6), some.integers(0, 9), some.integers(0, 5)))
    )
    throttles = draw(
        some.lists(
            some.builds(
                Throttle,
                some.uuids().map(str),
                names | some.just("*"),
                some.none() | types,
                some.none() | sources,
                some.none() | some.integers(0, 4),
                some.none() | some.sampled_from([NOW - 1, NOW + 5000]),
            ),
            max_size=2,
        )
    )
    total = draw(some.integers(0, 12))
    policies = [
        AllocationPolicy(
            "p", draw(some.sampled_from(Strategy)), total, minimum_per_tenant=min(1, total),
            allow_burst=draw(some.booleans()), job_type=draw(some.none() | types),
        )
    ]  # fmt: skip
    gates = draw(
        some.dictionaries(
            some.tuples(names, types),
            some.sampled_from(
                [
                    Gate(BreakerState.OPEN, False, NOW + 9000),
                    Gate(BreakerState.OPEN, True, None),
                    Gate(BreakerState.HALF_OPEN, False, None, 2),
                ]
            ),
            max_size=2,
        )
    )
    return Rules(
        tenants={name: TenantRule(weight=draw(some.integers(1, 5)), blocked=draw(some.booleans())) for name in "ab"},
        quotas=quotas,
        policies=policies if draw(some.booleans()) else [],
        throttles=throttles,
        gates=gates,
    )


standings = some.builds(
    lambda counts: Usage({Lane(*lane): Running(n, NOW + 100) for lane, n in counts.items()}),
    some.dictionaries(some.tuples(names, types, sources), some.integers(1, 4), max_size=4),
)


@pytest.mark.slow
@given(some.integers(0, 30), lanes(), rule_sets(), standings)
def test_nobody_is_given_more_than_there_is_room_for(limit, waiting, rules, usage):
    """QUOTA-02, QUOTA-03, BRK-04, THR-02: every limit that can be checked afterwards holds."""
    shares = share(limit, waiting, rules, usage, NOW)
    taken = shares.count()
    assert len(shares.picks) <= limit
    assert len({job_id for _, job_id in shares.picks}) == len(shares.picks)
    after = Counter({lane: running.n for lane, running in usage.running.items()})
    after.update(taken)
    for lane in taken:
        assert not rules.tenant(lane.tenant).blocked
        for counted in (lane.job_type, "*"):
            quota = rules.quotas.get((lane.tenant, counted)) or rules.quotas.get(("*", counted))
            if quota is None:
                continue

            def mine(each, counted=counted, tenant=lane.tenant):
                return each.tenant == tenant and counted in ("*", each.job_type)

            assert sum(n for each, n in after.items() if mine(each)) <= quota.max_active
            assert sum(n for each, n in taken.items() if mine(each)) <= max(1, quota.burst)
        for throttle in rules.throttles:
            if throttle.fits(lane) and throttle.holds(NOW):
                assert throttle.max_active is not None
                assert sum(n for each, n in after.items() if throttle.fits(each)) <= throttle.max_active
        gate = rules.gates.get(lane[:2])
        assert gate is None or sum(n for each, n in taken.items() if each[:2] == lane[:2]) <= (gate.places or 0)
        for policy in rules.policies:
            if policy.job_type in (None, lane.job_type) and policy.strategy is not Strategy.FIXED:
                fitting = [each for each in after if policy.job_type in (None, each.job_type)]
                assert sum(after[each] for each in fitting) <= policy.total_capacity


@pytest.mark.slow
@given(some.integers(0, 30), lanes(), rule_sets(), standings)
def test_a_place_stays_empty_only_when_all_that_waits_is_held(limit, waiting, rules, usage):
    shares = share(limit, waiting, rules, usage, NOW)
    taken = shares.count()
    left = [each.lane for each in waiting if taken[each.lane] < len(each.queue)]
    if len(shares.picks) < limit:
        assert set(left) <= set(shares.held)
    for lane, held in shares.held.items():
        assert lane in left
        assert held.words
        assert held.until is None or held.until > NOW


@pytest.mark.slow
@given(some.integers(0, 30), lanes(), rule_sets(), standings, some.randoms())
def test_the_same_question_in_any_order_has_the_same_answer(limit, waiting, rules, usage, chance):
    first = share(limit, waiting, rules, usage, NOW)
    shuffled = list(waiting)
    chance.shuffle(shuffled)
    assert share(limit, shuffled, rules, usage, NOW).picks == first.picks


@pytest.mark.slow
@given(some.integers(1, 30), lanes())
def test_within_a_tenant_priority_comes_before_age(limit, waiting):
    """JOB-06."""
    shares = share(limit, waiting, Rules(), Usage(), NOW)
    for tenant in given_to(shares):
        mine = sorted(entry for each in waiting if each.lane.tenant == tenant for entry in each.queue)
        picked = [job_id for lane, job_id in shares.picks if lane.tenant == tenant]
        assert picked == [job_id for _, job_id in mine[: len(picked)]]


def test_the_tenant_with_least_running_for_its_weight_goes_first():
    rules = Rules(tenants={"a": TenantRule(weight=4)})
    usage = Usage({Lane("a", "t"): Running(4), Lane("b", "t"): Running(2)})
    shares = share(8, [line("a", 9), line("b", 9, first=50)], rules, usage, NOW)
    assert given_to(shares) == {"a": 7, "b": 1}  # 11 and 3 run then: as near to 4:1 as it can be


def test_turns_are_kept_while_every_job_ends_before_the_next_lease():
    """One place at a time, nothing ever running: weights still count, and nobody starves."""
    rules, turns, got = Rules(tenants={"a": TenantRule(weight=3)}), {}, Counter()
    for _ in range(400):
        shares = share(1, [line("a", 5), line("b", 5, first=50)], rules, Usage(turns=turns), NOW)
        turns = shares.turns
        got.update(given_to(shares))
    assert got["a"] == pytest.approx(300, abs=2)


def test_one_that_was_away_has_no_claim_on_the_past():
    turns, got = {}, Counter()
    for _ in range(100):
        turns = share(1, [line("a", 5)], Rules(), Usage(turns=turns), NOW).turns
    for _ in range(20):
        shares = share(1, [line("a", 5), line("b", 5, first=50)], Rules(), Usage(turns=turns), NOW)
        turns = shares.turns
        got.update(given_to(shares))
    assert got["a"] == pytest.approx(10, abs=1)


def test_a_lane_that_was_not_read_to_its_end_stops_the_granting_there():
    shares = share(10, [line("a", 2, more=True), line("b", 20, first=50)], Rules(), Usage(), NOW)
    assert shares.short == {Lane("a", "t")}
    assert given_to(shares)["b"] <= 3


def test_what_is_in_the_way_is_named_in_order_with_its_time():
    """Maintenance, blocked tenant, throttle, breaker, quota."""
    lane = Lane("a", "t", "s")
    everything = Rules(
        maintenance="disk",
        tenants={"a": TenantRule(blocked=True, blocked_reason="abuse")},
        quotas={("a", "t"): Quota(0, 60, 1)},
        throttles=[Throttle("th1", "a", source="s", expires_at=NOW + 10, reason="slow")],
        gates={("a", "t"): Gate(BreakerState.OPEN, False, NOW + 20)},
    )
    steps = [
        ("maintenance", None, "leasing is halted for maintenance: disk"),
        ("tenant", None, "tenant a is blocked: abuse"),
        ("throttle", NOW + 10, "tenant a, source s is paused by throttle th1: slow"),
        ("breaker", NOW + 20, "the breaker of job type t is open"),
        ("quota", None, "tenant a runs all 0 that its quota allows for t"),
    ]
    parts = ["maintenance", "tenants", "throttles", "gates", "quotas"]
    words = {part: getattr(everything, part) for part in parts}
    for part, expected in zip(parts, steps, strict=True):
        held = share(1, [Waiting(lane, [(0, 1)])], Rules(**words), Usage(), NOW).held[lane]
        assert held == expected
        del words[part]
    assert share(1, [Waiting(lane, [(0, 1)])], Rules(**words), Usage(), NOW).picks == [(lane, 1)]


def test_a_quota_for_every_type_counts_them_together_and_one_of_every_tenant_each_by_itself():
    rules = Rules(quotas={("*", "*"): Quota(3, 1000, 10), ("b", "*"): Quota(5, 1000, 10)})
    waiting = [line("a", 9), line("a", 9, job_type="u", first=20), line("b", 9, first=50)]
    assert given_to(share(30, waiting, rules, Usage(), NOW)) == {"a": 3, "b": 5}


def test_a_lane_without_tokens_says_when_the_next_may_start():
    """JOB-05, QUOTA-03."""
    rules = Rules(quotas={("a", "t"): Quota(100, 60, 2)})
    usage = Usage(buckets={("a", "t"): Bucket(0.5, NOW)})
    shares = share(5, [line("a", 3)], rules, usage, NOW)
    assert not shares.picks
    assert shares.held[Lane("a", "t")].until == NOW + 30_000
    assert share(5, [line("a", 3)], rules, usage, NOW + 30_000).starts()["a", "t"] == 1


def test_an_expired_throttle_holds_nothing():
    rules = Rules(throttles=[Throttle("x", "*", expires_at=NOW)])
    assert len(share(5, [line("a", 3)], rules, Usage(), NOW).picks) == 3


def jain(values):
    return sum(values) ** 2 / (len(values) * sum(value * value for value in values))


def run_day(rules, *, slots, ticks, flood, trickles, rate, seed=1):
    """One tenant has a long queue from the start; the others get a job now and then. Who starts how many?"""
    chance = random.Random(seed)
    queues = {"flood": deque((0, n) for n in range(flood))}
    queues |= {f"trickle{n:02}": deque() for n in range(trickles)}
    ids, running, started, turns = iter(range(flood, 10**9)), [], Counter(), {}
    for tick in range(ticks):
        for tenant, queue in queues.items():
            while tenant != "flood" and len(queue) < 3 and chance.random() < rate:
                queue.append((0, next(ids)))
        running = [(tenant, end) for tenant, end in running if end > tick]
        counts = Counter(tenant for tenant, _ in running)
        waiting = [
            Waiting(Lane(tenant, "t"), list(queue)[:slots], len(queue) > slots) for tenant, queue in queues.items()
        ]
        usage = Usage({Lane(tenant, "t"): Running(n) for tenant, n in counts.items()}, turns=turns)
        shares = share(slots - len(running), waiting, rules, usage, NOW + tick)
        turns = shares.turns
        for lane, _ in shares.picks:
            queues[lane.tenant].popleft()
            started[lane.tenant] += 1
            running.append((lane.tenant, tick + chance.randint(2, 6)))
    return started


@pytest.mark.slow
def test_equal_tenants_get_equal_parts_while_one_floods():
    """QUOTA-05: with one tenant of 100,000 jobs and 20 that trickle in, Jain's index is at least 0.95."""
    policy = AllocationPolicy("p", Strategy.EQUAL, 42)
    started = run_day(Rules(policies=[policy]), slots=42, ticks=300, flood=100_000, trickles=20, rate=0.8)
    assert len(started) == 21
    assert jain(list(started.values())) >= 0.95


@pytest.mark.slow
def test_equal_parts_need_no_policy():
    started = run_day(Rules(), slots=21, ticks=300, flood=100_000, trickles=20, rate=0.9)
    assert len(started) == 21
    assert jain(list(started.values())) >= 0.95


@pytest.mark.slow
@pytest.mark.parametrize("with_policy", [True, False])
def test_weights_are_kept_within_ten_percent_while_one_floods(with_policy):
    """QUOTA-06."""
    weights = {"flood": 4} | {f"trickle{n:02}": 1 + n % 3 for n in range(20)}
    policies = [AllocationPolicy("p", Strategy.PROPORTIONAL, sum(weights.values()))] if with_policy else []
    rules = Rules(policies=policies, tenants={name: TenantRule(weight=weight) for name, weight in weights.items()})
    started = run_day(rules, slots=sum(weights.values()), ticks=800, flood=100_000, trickles=20, rate=0.97)
    per_weight = [started[name] / weight for name, weight in weights.items()]
    middle = sum(per_weight) / len(per_weight)
    assert all(abs(value / middle - 1) <= 0.10 for value in per_weight)


@pytest.mark.slow
def test_what_trickles_in_waits_for_nobody():
    """20 tenants that ask for little get all of it, and the flood gets the rest."""
    started = run_day(Rules(), slots=42, ticks=400, flood=100_000, trickles=20, rate=0.02)
    asked = run_day(Rules(), slots=10_000, ticks=400, flood=0, trickles=20, rate=0.02)
    trickled = sum(n for name, n in started.items() if name != "flood")
    assert trickled == pytest.approx(sum(asked.values()), rel=0.15)
    assert started["flood"] > 3 * trickled
