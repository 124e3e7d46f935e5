"""Four worker processes on two nodes share Postgres, Valkey, NATS and an S3 service, and everything fails in turn.

While they work, servers are restarted, flushed and killed, one node is cut from each server, its disk is filled and
workers are killed, in an order that a seed decides. Judged are the servers' own figures afterwards: nothing lost,
nothing doubled, nothing left behind, no host asked sooner than it may be; and nobody helped. EXT-01, QUE-23 to 25.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from tests.chaos.scores import Recovery, met_in_the_web, note
from tests.many_machines.fleet import LEASE_S, SERVERS, Fleet, running_fleet
from tests.waiting import eventually

from DocsToKG.ContentDownload.storage.cas import cas_key
from DocsToKG.ContentDownload.storage.temp import IN_MEMORY
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.files import Files
from DocsToKG.Sandbox.profile import SandboxServer

SEED = int(os.environ.get("FLEET_SEED", "7"))
SMALL, FULL = 100, int(os.environ.get("FLEET_WORKS", "5000"))
# What passes with time; what stays is the oracle's business, and has tests of its own.
FAULTS = replace(Faults.none(), rate_limited=0.01, server_error=0.01, truncated_length=0.01, reset=0.01, duplicate=0.02)

DISK = "the disks are full"
Fault = tuple[str, Callable[[], None]]


def faults(fleet: Fleet, *, short_s: float, long_s: float) -> list[Fault]:
    """Everything that befalls them, each with its name. `long_s` is longer than a lease."""
    found: list[Fault] = [
        ("postgres is restarted", partial(fleet.restart_postgres, kill=False)),
        ("postgres is killed", partial(fleet.restart_postgres, kill=True)),
        ("valkey is flushed", fleet.flush_valkey),
        ("valkey is killed", fleet.restart_valkey),
        ("nats is killed", fleet.restart_nats),
        ("a worker of a is killed", partial(fleet.kill_worker, 0)),
        ("a worker of b is killed", partial(fleet.kill_worker, 3)),
    ]
    for server in SERVERS:
        found.append((f"a is refused by {server}", partial(fleet.cut, server, "refuse", short_s)))
        # Long enough to lose what is held by leases there.
        hung_s = long_s if server in ("postgres", "valkey") else 2 * short_s
        found.append((f"a hears nothing from {server}", partial(fleet.cut, server, "hang", hung_s)))
    if fleet.nodes[0].has_disk:
        found.append((DISK, partial(fleet.fill_staging, short_s)))
    return found


def befall(
    fleet: Fleet, schedule: list[Fault], dois: list[str], recovery: Recovery, *, spread: bool, patience_s: float
) -> Iterator[str]:
    """Before each fault more works are queued, and it comes when the first node works on some of them; with `spread`
    when half of them are over. Gives the name of each that came, when it is over."""
    each = len(dois) // (len(schedule) + 1)
    fleet.begin(dois[each * len(schedule) :])
    for number, (name, fault) in enumerate(schedule):
        fleet.enqueue(dois[number * each : (number + 1) * each])
        if spread:
            fleet.wait_for(number * each + each // 2, within_s=patience_s)
        fleet.wait_until_at_work(ended=fleet.ended() + each // 2, within_s=patience_s)
        assert fleet.is_running(), fleet.said()
        began = time.monotonic()
        fault()
        recovery.mark()
        yield name
        states = {state: count for state, count in fleet.states().items() if count}
        print(f"{name}: {time.monotonic() - began:.1f} s, {states}", flush=True)
    fleet.let_end()


def in_waves(sandbox: SandboxServer, schedule: list[Fault]) -> list[str]:
    """All works; those whose files do not stay in memory come when the disks are full."""
    works = [sandbox.world.work(index) for index in range(sandbox.world.count)]
    large = [work for work in works if work.size_bytes > IN_MEMORY + 200_000]
    each = len(works) // (len(schedule) + 1)
    at = each * next((number for number, (name, _) in enumerate(schedule) if name == DISK), 0)
    others = [work for work in works if work not in large]
    return [work.doi for work in [*others[:at], *large, *others[at:]]]


def drain_through_faults(
    folder: Path,
    works: int,
    *,
    rate_factor: float,
    size: int,
    short_s: float,
    long_s: float,
    end_s: float,
    spread: bool = False,
) -> None:
    with (
        SandboxServer(
            works=works, seed=SEED, faults=FAULTS, files=Files.plain(), size_bytes=size, rate_factor=rate_factor
        ) as sandbox,
        running_fleet(folder, sandbox) as fleet,
    ):
        schedule = faults(fleet, short_s=short_s, long_s=long_s)
        random.Random(SEED).shuffle(schedule)
        met: Counter[str] = Counter()
        with Recovery(fleet.ended) as recovery:
            try:
                met.update(
                    befall(fleet, schedule, in_waves(sandbox, schedule), recovery, spread=spread, patience_s=end_s)
                )
                codes = fleet.wait_for_end(within_s=end_s)
            except AssertionError:  # patience is over: what is left is counted too
                tell(fleet, works, met, recovery)
                raise
        tell(fleet, works, met, recovery)
        assert codes == [0, 0], fleet.said()
        judge(fleet)
        print(f"{works} works, {len(fleet.objects())} objects, {fleet.states()}, requests: {fleet.requests()}")


def tell(fleet: Fleet, works: int, met: Counter[str], recovery: Recovery) -> None:
    faults = {**met, **met_in_the_web(fleet.sandbox.counters())}
    note("machines", jobs=works, faults=faults, recovery_s=recovery.seconds, **counted(fleet))


def counted(fleet: Fleet) -> dict[str, int]:
    """For the scorecard; `judge` says more of each. A work that is not in the ledger at all is lost as well."""
    jobs, objects, catalog = fleet.jobs(), fleet.objects(), fleet.catalog()
    found = dict.fromkeys(("lost", "doubled", "stuck", "wrong"), 0)
    for work in fleet.sandbox.truth()["works"]:
        job = jobs.get(work["doi"].lower()) or jobs.get(work["arxiv_id"].lower())
        if job is None:
            found["lost"] += 1
            continue
        is_over, digest = job["state"] in ("done", "skipped", "error"), job["sha256"]
        found["stuck"] += not is_over
        found["doubled"] += job["ends"] > 1
        if not work["reachable"]:
            found["wrong"] += job["state"] == "done"
        elif is_over and digest not in work["sha256"]:
            found["lost" if digest is None else "wrong"] += 1
        elif is_over:
            found["lost"] += cas_key(digest) not in objects or digest not in catalog.get(job["doc_id"], ())
    found["wrong"] += sum(key != cas_key(digest) for key, digest in objects.items())
    found["wrong"] += len(fleet.uploads()) + len(fleet.left_files()) + (not fleet.has_whole_history())
    return {**found, "impolite": len(fleet.violations())}


def judge(fleet: Fleet) -> None:
    """What the servers say: each paper once, in its place, asked for politely, and nothing else left."""
    jobs, objects, truth = fleet.jobs(), fleet.objects(), fleet.sandbox.truth()["works"]
    assert {job["state"] for job in jobs.values()} <= {"done", "skipped", "error"}, fleet.states()
    assert Counter(job["ends"] for job in jobs.values()) == {1: len(jobs)}
    assert all(key == cas_key(digest) for key, digest in objects.items())
    named, catalog, again = set(), fleet.catalog(), fleet.taken_up_again()
    # One that was cut off or killed with a file already stored may be followed by one that finds another version of it.
    second: set[str] = set()
    for work in truth:
        job = jobs[work["doi"].lower()] if work["doi"].lower() in jobs else jobs[work["arxiv_id"].lower()]
        if not work["reachable"]:
            assert job["state"] != "done", work["doi"]
            continue
        assert job["sha256"] in work["sha256"], (work["doi"], job)
        assert cas_key(job["sha256"]) in objects, (work["doi"], job)
        assert job["sha256"] in catalog[job["doc_id"]], (work["doi"], job)
        assert len(catalog[job["doc_id"]]) == 1 or job["doc_id"] in again, fleet.story(work["doi"])
        named.add(cas_key(job["sha256"]))
        if job["doc_id"] in again:
            second |= set(map(cas_key, work["sha256"]))
    extra = set(objects) - named
    assert extra <= second, [fleet.story(work["doi"]) for work in truth if extra & set(map(cas_key, work["sha256"]))]
    assert len(extra) <= 5 + len(truth) // 50
    print(f"{len(extra)} second versions, {len(again)} works taken up again")
    violations = fleet.violations()
    assert violations == [], json.dumps(violations, indent=1)
    assert fleet.leases() == 0
    # Who was killed last is there for others until its lease is over.
    eventually(lambda: not fleet.taken_slots(), "slots or signs of life that nobody has", within_s=5 * LEASE_S)
    assert fleet.has_whole_history()
    assert fleet.uploads() == []
    assert fleet.left_files() == []


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_nodes_store_every_paper_once_whatever_fails(tmp_path: Path) -> None:
    drain_through_faults(tmp_path, SMALL, rate_factor=10, size=600_000, short_s=0.8, long_s=LEASE_S + 1, end_s=300)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_two_nodes_store_five_thousand_papers_once_whatever_fails(tmp_path: Path) -> None:
    drain_through_faults(
        tmp_path, FULL, rate_factor=20, size=150_000, short_s=1.5, long_s=2 * LEASE_S, end_s=2400, spread=True
    )
