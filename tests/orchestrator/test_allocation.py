"""Shares of a common capacity (QUOTA-05 to QUOTA-17), over examples and over anything hypothesis thinks of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from DocsToKG.Orchestrator.jobs.allocation import (
    AllocationPolicy,
    Strategy,
    TenantClaim,
    allocate,
    burst_limit,
    grant,
    policy_for,
    release,
)


def policy(strategy: Strategy, total: int, **more: object) -> AllocationPolicy:
    return AllocationPolicy("p", strategy, total, **more)  # type: ignore[arg-type]


def tenants(*names: str) -> list[TenantClaim]:
    return [TenantClaim(name) for name in names]


@some.composite
def policies(draw: some.DrawFn) -> AllocationPolicy:
    total = draw(some.integers(0, 300))
    most = draw(some.none() | some.integers(0, 300))
    least = draw(some.integers(0, min(20, total if most is None else most)))
    return AllocationPolicy(
        "p",
        draw(some.sampled_from(Strategy)),
        total,
        minimum_per_tenant=least,
        maximum_per_tenant=most,
        reserved_capacity=draw(some.integers(0, total)),
        allow_burst=draw(some.booleans()),
        burst_multiplier=draw(some.floats(1.0, 4.0)),
    )


claims = some.lists(
    some.builds(
        TenantClaim,
        tenant=some.text("abcdef", min_size=1, max_size=3),
        weight=some.integers(1, 50),
        priority=some.integers(-2, 5),
        demand=some.none() | some.integers(0, 200),
        fixed=some.none() | some.integers(0, 200),
    ),
    max_size=12,
    unique_by=lambda claim: claim.tenant,
)


def test_equal_divides_the_whole_among_the_active() -> None:
    assert allocate(policy(Strategy.EQUAL, 10), tenants("a", "b", "c")) == {"a": 4, "b": 3, "c": 3}


def test_proportional_follows_the_weights() -> None:
    three = [TenantClaim("a", weight=1), TenantClaim("b", weight=2), TenantClaim("c", weight=7)]
    assert allocate(policy(Strategy.PROPORTIONAL, 100), three) == {"a": 10, "b": 20, "c": 70}


def test_what_the_maximum_cuts_off_goes_to_the_others() -> None:
    three = [TenantClaim("a", weight=1), TenantClaim("b", weight=1), TenantClaim("c", weight=8)]
    shares = allocate(policy(Strategy.PROPORTIONAL, 100, maximum_per_tenant=40), three)
    assert shares == {"a": 30, "b": 30, "c": 40}


def test_a_light_tenant_still_has_its_minimum() -> None:
    two = [TenantClaim("a", weight=1), TenantClaim("b", weight=99)]
    assert allocate(policy(Strategy.PROPORTIONAL, 100, minimum_per_tenant=10), two) == {"a": 10, "b": 90}


def test_priority_serves_the_most_important_first_up_to_what_it_wants() -> None:
    three = [TenantClaim("a"), TenantClaim("b", priority=2, demand=6), TenantClaim("c", priority=1)]
    assert allocate(policy(Strategy.PRIORITY, 10), three) == {"a": 1, "b": 6, "c": 3}


def test_fair_share_gives_the_minimum_and_shares_the_rest_by_need() -> None:
    three = [TenantClaim("a", demand=2), TenantClaim("b", demand=50), TenantClaim("c", demand=50)]
    shares = allocate(policy(Strategy.RESERVED_WITH_FAIR_SHARE, 32, minimum_per_tenant=4), three)
    assert shares == {"a": 4, "b": 14, "c": 14}


def test_fixed_gives_each_its_own_whatever_it_wants() -> None:
    two = [TenantClaim("a", fixed=7, demand=0), TenantClaim("b", fixed=30)]
    assert allocate(policy(Strategy.FIXED, 10, maximum_per_tenant=20), two) == {"a": 7, "b": 20}


def test_the_reserve_stays_for_the_important_when_others_ask_for_everything() -> None:
    """QUOTA-12."""
    ordinary = tenants("a", "b")
    alone = allocate(policy(Strategy.EQUAL, 100, reserved_capacity=40), ordinary)
    assert sum(alone.values()) == 60
    together = allocate(policy(Strategy.EQUAL, 100, reserved_capacity=40), [*ordinary, TenantClaim("vip", priority=1)])
    assert together == {"a": 30, "b": 30, "vip": 40}


def test_burst_is_given_only_where_it_is_allowed_and_capacity_idles() -> None:
    """QUOTA-13, QUOTA-16."""
    shy, bold = (policy(Strategy.EQUAL, 10, allow_burst=allowed) for allowed in (False, True))
    assert grant(shy, share=4, held={"a": 4}, tenant="a", asked=3).granted == 0
    more = grant(bold, share=4, held={"a": 3}, tenant="a", asked=9)
    assert (more.granted, more.burst_used) == (3, 2)  # the rest of the share, then half as much again
    assert grant(bold, share=4, held={"a": 4, "b": 6}, tenant="a", asked=1).granted == 0


def test_a_share_that_another_has_borrowed_is_not_given_twice() -> None:
    """QUOTA-16: what one tenant holds as burst is gone until it is given back, but for amounts that are fixed."""
    pool = policy(Strategy.EQUAL, 10, allow_burst=True)
    borrowed = grant(pool, share=5, held={}, tenant="a", asked=9).granted
    assert borrowed == 7
    assert grant(pool, share=5, held={"a": borrowed}, tenant="b", asked=5).granted == 3
    own = policy(Strategy.FIXED, 10, minimum_per_tenant=7)
    assert grant(own, share=7, held={"a": 7}, tenant="b", asked=7).granted == 7


def test_nobody_gives_back_more_than_it_has() -> None:
    """QUOTA-17."""
    assert release(3, 2) == 1
    assert release(3, 9) == 0


def test_the_policy_of_highest_priority_counts_and_the_specific_one_at_a_tie() -> None:
    """QUOTA-14."""
    rules = [
        AllocationPolicy("all", Strategy.EQUAL, 10),
        AllocationPolicy("pdf", Strategy.EQUAL, 10, job_type="pdf"),
        AllocationPolicy("top", Strategy.EQUAL, 10, priority=5, job_type="csv"),
        AllocationPolicy("off", Strategy.EQUAL, 10, priority=9, enabled=False),
    ]
    chosen = [policy_for(rules, job_type) for job_type in ("pdf", "csv", "other")]
    assert [each.policy_id for each in chosen if each] == ["pdf", "top", "all"]
    assert policy_for([], "pdf") is None


@pytest.mark.parametrize(
    "wrong",
    [{"total_capacity": -1}, {"reserved_capacity": 11}, {"minimum_per_tenant": 20}, {"burst_multiplier": 0.5}],
)
def test_a_policy_that_contradicts_itself_is_refused(wrong: dict[str, int]) -> None:
    given_ = {"total_capacity": 10} | wrong
    with pytest.raises(ValueError):
        AllocationPolicy("p", Strategy.EQUAL, **given_)


@pytest.mark.slow
@given(policies(), claims)
def test_shares_keep_their_bounds_and_never_exceed_the_capacity(
    rule: AllocationPolicy, asked: list[TenantClaim]
) -> None:
    """QUOTA-11."""
    shares = allocate(rule, asked)
    assert shares.keys() == {claim.tenant for claim in asked}
    assert all(0 <= share <= rule.most_each for share in shares.values())
    if rule.strategy is Strategy.FIXED:
        return
    assert sum(shares.values()) <= rule.total_capacity
    if rule.minimum_per_tenant * len(asked) <= rule.total_capacity - rule.reserved_capacity:
        assert all(share >= rule.minimum_per_tenant for share in shares.values())


@pytest.mark.slow
@given(policies(), claims)
def test_the_order_of_the_tenants_does_not_matter(rule: AllocationPolicy, asked: list[TenantClaim]) -> None:
    assert allocate(rule, asked) == allocate(rule, asked[::-1])


@pytest.mark.slow
@given(policies(), claims)
def test_ordinary_tenants_never_touch_the_reserve(rule: AllocationPolicy, asked: list[TenantClaim]) -> None:
    if rule.strategy is Strategy.FIXED:
        return
    shares = allocate(rule, asked)
    ordinary = sum(shares[claim.tenant] for claim in asked if claim.priority <= 0)
    assert ordinary <= rule.total_capacity - rule.reserved_capacity


@pytest.mark.slow
@given(policies(), claims, some.data())
def test_grants_never_exceed_what_burst_allows(
    rule: AllocationPolicy, asked: list[TenantClaim], data: some.DataObject
) -> None:
    """QUOTA-13, QUOTA-16: whatever is asked in whatever order, nobody holds more than its limit."""
    shares = allocate(rule, asked)
    held = dict.fromkeys(shares, 0)
    for _ in range(8 if shares else 0):
        tenant = data.draw(some.sampled_from(sorted(shares)))
        given_ = grant(rule, share=shares[tenant], held=held, tenant=tenant, asked=data.draw(some.integers(0, 100)))
        held[tenant] += given_.granted
        assert held[tenant] <= burst_limit(rule, shares[tenant])
        if given_.burst_used or rule.strategy is not Strategy.FIXED:
            assert sum(held.values()) <= rule.total_capacity
