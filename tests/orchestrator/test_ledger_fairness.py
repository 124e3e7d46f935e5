"""Leasing is fair over hosts where they are known, keeps to priorities, and reads only what it hands out."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.traced import Traced

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.ledger.base import NewJob, Release
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger


def enqueue(ledger, **shares):
    """So many jobs of each host, sorted by host; `none` has no host."""
    names = [(host, n) for host, count in shares.items() for n in range(count)]
    ledger.enqueue_many([NewJob(f"{host}:{n}", {}, host_key=None if host == "none" else host) for host, n in names])


def hosts(jobs):
    return Counter(job.host_key or "none" for job in jobs)


@pytest.mark.slow
def test_one_host_does_not_fill_a_lease_while_others_wait(ledger):
    """ORC-03, EXT-03: ten thousand jobs of one host come first in age, and others still get their share: at least half
    of what equal turns would give."""
    enqueue(ledger, a=10_000, b=30, c=30)
    first, second = hosts(ledger.lease("w", 30, 60)), hosts(ledger.lease("w", 60, 60))
    assert (sum(first.values()), sum(second.values())) == (30, 60)
    assert min(first.values()) >= 5
    assert min(second.values()) >= 10


def test_places_that_small_hosts_do_not_need_go_to_the_others(ledger):
    enqueue(ledger, a=100, b=2, c=5)
    taken = hosts(ledger.lease("w", 20, 60))
    assert sum(taken.values()) == 20
    assert taken["b"] == 2
    assert taken["a"] >= 13
    assert sum(hosts(ledger.lease("w", 87, 60)).values()) == 87


def test_small_leases_go_round_over_the_hosts(ledger):
    """Whoever takes one job at a time must not take them all from the first host."""
    enqueue(ledger, a=50, b=50, c=50)
    assert [ledger.lease("w", 1, 60)[0].host_key for _ in range(7)] == ["a", "b", "c", "a", "b", "c", "a"]


def test_more_hosts_than_places_all_get_their_turn(ledger):
    enqueue(ledger, **{f"h{n:03}": 3 for n in range(50)})
    taken = Counter()
    for _ in range(10):
        taken += hosts(ledger.lease("w", 5, 60))
    assert taken == {f"h{n:03}": 1 for n in range(50)}


def test_jobs_of_one_host_and_jobs_without_one_go_by_age(ledger):
    enqueue(ledger, none=5, a=5)
    jobs = ledger.lease("w", 6, 60)
    assert hosts(jobs) == {"none": 3, "a": 3}
    for host in (None, "a"):
        assert [job.artifact_id[-1] for job in jobs if job.host_key == host] == ["0", "1", "2"]


def test_neither_kind_waits_for_the_other(ledger):
    enqueue(ledger, none=100, a=100)
    assert hosts(ledger.lease("w", 1, 60)[0] for _ in range(10)) == {"none": 5, "a": 5}


def test_a_higher_priority_goes_first_whatever_the_host(ledger):
    """EXT-02."""
    enqueue(ledger, a=5, none=5, b=5)
    ledger.enqueue_many(
        [NewJob("vip:1", {}, priority=9, host_key="a"), NewJob("vip:2", {}, priority=9), NewJob("low", {}, priority=-1)]
    )
    jobs = ledger.lease("w", 30, 60)
    assert {job.artifact_id for job in jobs[:2]} == {"vip:1", "vip:2"}
    assert [job.priority for job in jobs] == [9, 9, *[0] * 15, -1]


def test_a_release_that_names_a_host_puts_the_job_in_that_hosts_line(ledger):
    """EXT-05: jobs for one host stand together."""
    enqueue(ledger, none=4)
    for job in ledger.lease("w", 3, 60):
        ledger.release(Release(job.job_id, job.fence, job.lease_id, host_key="slow.example"))
    assert hosts(ledger.lease("w", 2, 60)) == {"slow.example": 1, "none": 1}


def test_a_job_type_finds_its_jobs_among_the_hosts_of_others(ledger):
    enqueue(ledger, **{f"h{n}": 2 for n in range(20)})
    ledger.enqueue_many([NewJob("mine", {}, job_type="mine", host_key="h7")])
    found = [job for _ in range(21) for job in ledger.lease("w", 1, 60, job_type="mine")]
    assert [job.artifact_id for job in found] == ["mine"]


@pytest.fixture
def traced(monkeypatch):
    """The ledger's connections, when asked for before it."""
    return Traced(monkeypatch, reading=True)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 8, 64])
def test_a_lease_reads_about_as_many_entries_as_it_hands_out(monkeypatch, path, limit):
    """No scan: SQLite's own count of virtual machine steps stays bounded whatever waits."""
    traced = Traced(monkeypatch)
    with SqliteLedger(path, clock=ManualClock()) as ledger:
        steps = steps_of_a_lease(ledger, traced, limit)
    assert steps < 5_000 + limit * 1_500


def steps_of_a_lease(ledger, traced, limit):
    enqueue(ledger, a=6000, none=2000, **{f"h{n:04}": 1 for n in range(2000)})
    ledger.heartbeat("w", 60)
    traced.clear()
    assert len(ledger.lease("w", limit, 60)) == limit
    return traced.steps


@pytest.mark.slow
@pytest.mark.parametrize("host", [None, "b"])
def test_many_jobs_of_another_type_in_front_cost_a_lease_nothing(traced, ledger, sql, host):
    """Counted in steps of SQLite's machine: bounded with a hundred thousand in front, found or not."""
    ledger.enqueue_many([NewJob(f"d:{n}", {}, host_key=host) for n in range(8)])
    ledger.enqueue_many([NewJob("p:0", {}, job_type="pack-run", priority=5, host_key=host)])
    sql(
        "INSERT INTO jobs (artifact_id, artifact_json, payload_digest, tenant, job_type, priority, state, due,"
        " max_attempts, host_key, next_eligible_at, created_at, updated_at)"
        " WITH RECURSIVE each (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM each WHERE n < 100000)"
        " SELECT 'p:' || n, '{}', '', 'default', 'pack-run', 5, 'queued', 1, 3, ?, 0, 0, 0 FROM each",
        host,
    )
    assert ledger.lease("w", 1, 60, job_type="neither") == []  # makes the indexes
    traced.clear()
    leased = [ledger.lease("w", 8, 60, job_type="content.download") for _ in range(2)]
    assert not ledger.wait_for_work(0.0, job_type="content.download")
    assert ledger.next_eligible_at("content.download") is None
    assert [[job.job_type for job in jobs] for jobs in leased] == [["content.download"] * 8, []]
    assert traced.steps < 40_000


shares = st.dictionaries(st.sampled_from(["none", "a", "b", "c", "d"]), st.integers(1, 12), min_size=1)


@pytest.mark.slow
@examples(25)
@given(shares, st.lists(st.integers(1, 9), min_size=1, max_size=6))
def test_every_lease_is_full_and_leaves_nobody_out(tmp_path_factory, left, limits):
    path = tmp_path_factory.mktemp("fair") / "ledger.sqlite"
    with SqliteLedger(path, clock=ManualClock()) as ledger:
        enqueue(ledger, **left)
        left = Counter(left)
        for limit in limits:
            before = sum(left.values())
            taken = hosts(ledger.lease("w", limit, 60))
            left -= taken
            assert sum(taken.values()) == min(limit, before)
            with_more = [taken[host] for host in left if host != "none"]
            known, waiting = taken.total() - taken["none"], len({*left, *taken} - {"none"})
            equal = known // 2 // waiting if waiting else 0
            assert not with_more or min(with_more) >= max(equal, 1 if known >= waiting else 0)
