"""The static limits: which count, and how many starts an hour may see."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from DocsToKG.Orchestrator.jobs.quota import Bucket, Quota, filled, full, limits_of, next_start_at, spent, starts_left
from DocsToKG.Orchestrator.jobs.throttling import Lane, Throttle

HOUR = 3_600_000


@given(
    some.integers(1, 5000),
    some.integers(0, 50),
    some.lists(some.tuples(some.integers(0, 400_000), some.integers(1, 60)), max_size=120),
)
def test_no_hour_has_more_starts_than_allowed_together_with_the_burst(per_hour, burst, asks):
    """QUOTA-03, for every hour that begins with a start, over any pattern of asking."""
    quota, bucket, now, starts = Quota(10**6, per_hour, burst), None, 0, []
    for wait, asked in asks:
        now += wait
        bucket = filled(quota, bucket, now)
        given_now = min(asked, starts_left(quota, bucket))
        bucket = spent(bucket, given_now)
        starts += [now] * given_now
    for start in starts:
        assert sum(start <= other < start + HOUR for other in starts) <= per_hour + burst


@given(some.integers(1, 10_000), some.integers(0, 50), some.floats(0, 50), some.integers(0, 10**12))
def test_the_moment_that_is_named_is_when_the_next_may_start(per_hour, burst, tokens, at):
    quota = Quota(1, per_hour, burst)
    bucket = Bucket(min(tokens, max(1, burst)), at)
    moment = next_start_at(quota, bucket)
    assert moment is not None
    assert starts_left(quota, filled(quota, bucket, moment)) >= 1
    if starts_left(quota, bucket) == 0 and moment > at + 1:
        assert starts_left(quota, filled(quota, bucket, moment - 2)) == 0


def test_none_an_hour_means_none_ever():
    quota = Quota(10, 0, 5)
    assert starts_left(quota, full(quota, 0)) == 0
    assert next_start_at(quota, full(quota, 0)) is None


def test_a_limit_of_the_tenant_comes_before_that_of_every_tenant():
    own, of_all, of_type, everything = Quota(1), Quota(2), Quota(3), Quota(4)
    quotas = {("a", "t"): own, ("a", "*"): of_all, ("*", "t"): of_type, ("*", "*"): everything}
    assert limits_of(quotas, "a", "t") == [(("a", "t"), own), (("a", "*"), of_all)]
    assert limits_of(quotas, "b", "t") == [(("b", "t"), of_type), (("b", "*"), everything)]
    assert limits_of(quotas, "a", "u") == [(("a", "*"), of_all)]
    assert limits_of({}, "a", "t") == []


def test_a_throttle_fits_what_it_names():
    lane = Lane("a", "t", "s")
    for fitting in (
        Throttle("1", "a"),
        Throttle("1", "*", "t"),
        Throttle("1", "a", "*", "s"),
        Throttle("1", "a", "t", "s"),
    ):
        assert fitting.fits(lane)
    for other in (Throttle("1", "b"), Throttle("1", "a", "u"), Throttle("1", "a", None, "x")):
        assert not other.fits(lane)
    assert Throttle("1", "a", "t", "s").scope == "tenant a, job type t, source s"
    assert Throttle("1", "*").scope == "everything"
