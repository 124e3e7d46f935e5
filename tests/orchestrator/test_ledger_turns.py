"""On SQLite, half of the places of a lease go to the hosts where most waits."""

from __future__ import annotations

from collections import Counter

from DocsToKG.Orchestrator.ledger.base import NewJob


def enqueue(ledger, shares):
    jobs = [NewJob(f"{host}:{n}", {}, host_key=host) for host, count in shares.items() for n in range(count)]
    ledger.enqueue_many(jobs)


def hosts(jobs):
    return Counter(job.host_key for job in jobs)


def test_the_other_half_of_a_lease_goes_where_most_waits(ledger):
    enqueue(ledger, {"a": 2000, "b": 30, "c": 30})
    assert hosts(ledger.lease("w", 30, 60)) == {"a": 20, "b": 5, "c": 5}
    assert hosts(ledger.lease("w", 60, 60)) == {"a": 40, "b": 10, "c": 10}


def test_a_large_host_is_not_done_long_after_the_others(ledger):
    """In equal turns it would still have 200 jobs when the others have none."""
    left = Counter({**{f"h{n}": 40 for n in range(9)}, "large": 240})
    enqueue(ledger, left)
    alone = 0
    while left:
        jobs = ledger.lease("w", 60, 600)
        assert set(hosts(jobs)) == set(left), "nobody is left out"
        left -= hosts(jobs)
        alone = left["large"] if list(left) == ["large"] else alone
    assert alone <= 60


def test_the_jobs_of_a_lease_are_spread_evenly_over_its_hosts(ledger):
    enqueue(ledger, {"a": 40, "b": 10})
    order = [job.host_key for job in ledger.lease("w", 50, 60)]
    assert Counter(order[:25]) == {"a": 20, "b": 5}


def test_what_waits_is_counted_anew_after_a_second(ledger, clock):
    """A host that others have brought more for since."""
    enqueue(ledger, {"a": 100, "b": 100})
    ledger.lease("w", 4, 60)
    ledger.enqueue_many([NewJob(f"more:{n}", {}, host_key="b") for n in range(900)])
    clock.advance(2)
    taken = hosts(ledger.lease("w", 40, 60))
    assert taken["b"] >= 29


def test_hosts_where_as_much_waits_get_as_many(ledger):
    """Places that cannot be shared out whole do not all go to one host."""
    enqueue(ledger, {f"h{n}": 20 for n in range(40)})
    for _ in range(4):
        assert set(hosts(ledger.lease("w", 64, 60)).values()) == {1, 2}


def test_a_host_of_any_name_has_its_turn(ledger):
    names = ['quo"te', "back\\slash", "comma,host", "bücher.example", "\U0001f4da.example", "12"]
    enqueue(ledger, dict.fromkeys(names, 3))
    assert hosts(ledger.lease("w", 18, 60)) == dict.fromkeys(names, 3)
