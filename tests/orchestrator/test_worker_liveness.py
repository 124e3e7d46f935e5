from __future__ import annotations

import errno
import os
from collections.abc import Collection

import pytest

from DocsToKG.Orchestrator.control.workers import liveness
from DocsToKG.Orchestrator.control.workers.liveness import Presence, free_dead
from DocsToKG.Orchestrator.errors import BadJob, LedgerError
from DocsToKG.Orchestrator.ledger.base import WorkerEnd


def test_a_living_worker_keeps_its_leases(ledger, path, lease_one):
    with Presence(path, "alive"):
        lease_one("alive")
        assert free_dead(ledger) == 0
        assert ledger.stats()["in_progress"] == 1


def test_a_workers_file_is_gone_when_it_leaves(path):
    with Presence(path, "alive") as here:
        assert here.path.read_text().strip().isdigit()
        assert here.path.parent.name == path.name + ".workers"
    assert not here.path.exists()


def test_a_file_that_nobody_holds_frees_its_workers_leases(ledger, path, lease_one):
    with Presence(path, "me") as here:
        left_behind = here.path.with_name("dead.lock")
        left_behind.write_text("1\n")
        lease_one("dead")
        assert free_dead(ledger, path) == 1
        assert not left_behind.exists()
        assert here.path.exists()
    assert ledger.stats()["queued"] == 1


def test_without_any_worker_nothing_is_freed(ledger):
    assert free_dead(ledger) == 0


def test_two_processes_cannot_be_one_worker(path, monkeypatch):
    monkeypatch.setattr(liveness, "TRIES", 2)
    with Presence(path, "twin"), pytest.raises(LedgerError, match="another process"), Presence(path, "twin"):
        pass


def test_a_worker_may_come_back_under_its_name(path):
    for _ in range(2):
        with Presence(path, "again") as here:
            assert here.path.exists()


@pytest.mark.parametrize("worker_id", ["", "../escape", "a/b", ".hidden", "a\nb", "x" * 200])
def test_a_worker_id_is_a_plain_file_name(worker_id, path):
    with pytest.raises(BadJob):
        Presence(path, worker_id)


def test_a_failed_freeing_leaves_the_file_for_the_next(path, ledger):
    class Broken:
        def __init__(self) -> None:
            self.path = path

        def release_worker(
            self, worker_id: str, in_hand: Collection[int] | None = (), *, end: WorkerEnd | None = None
        ) -> int:
            raise LedgerError("disk full")

    folder = path.with_name(path.name + ".workers")
    folder.mkdir()
    (folder / "dead.lock").write_text("")
    with pytest.raises(LedgerError):
        free_dead(Broken())
    assert (folder / "dead.lock").exists()
    assert free_dead(ledger) == 0
    assert not (folder / "dead.lock").exists()


def test_leases_that_cannot_be_given_back_leave_the_file_behind(path, ledger, lease_one):
    class Full:
        def __init__(self) -> None:
            self.path = path

        def release_worker(
            self, worker_id: str, in_hand: Collection[int] | None = (), *, end: WorkerEnd | None = None
        ) -> int:
            raise LedgerError("disk full")

    with Presence(path, "leaving") as here:
        lease_one("leaving")
        here.give_back(Full())
    assert here.path.exists()
    assert free_dead(ledger) == 1
    assert ledger.stats()["queued"] == 1
    assert not here.path.exists()


def test_leases_that_are_given_back_leave_nothing(path, ledger, lease_one):
    with Presence(path, "leaving") as here:
        lease_one("leaving")
        here.give_back(ledger)
    assert ledger.stats()["queued"] == 1
    assert not here.path.exists()


def test_more_jobs_than_there_are_places_are_simply_not_noted(path):
    with Presence(path, "busy") as here:
        hand = here.in_hand()
        places = [hand.take(number) for number in range(1, 200)]
        assert places[-1] is None
        for place in places:
            hand.drop(place)
        assert hand.take(7) is not None


@pytest.mark.parametrize("spoiled", [b"1\n" + b"9" * 99, b"\0" * 71, b"1\n 7\n\xff\xfe\n 3", b"1\n" + b"9" * 19, b""])
def test_a_spoiled_note_is_no_trouble(spoiled, ledger, path, lease_one):
    folder = path.with_name(path.name + ".workers")
    folder.mkdir(exist_ok=True)
    (folder / "dead.lock").write_bytes(spoiled)
    lease_one("dead")
    assert free_dead(ledger) == 1
    assert ledger.stats()["queued"] == 1


def test_on_a_full_disk_nothing_is_noted_and_nothing_breaks(path, monkeypatch):
    def no_room(*words: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    with Presence(path, "full") as here:
        before = here.path.read_bytes()
        monkeypatch.setattr(os, "pwrite", no_room)
        hand = here.in_hand()
        hand.drop(hand.take(7))
        assert here.path.read_bytes() == before


def test_a_file_that_a_child_inherits_is_held_while_either_lives(path, ledger, lease_one):
    job = lease_one("child")
    with Presence(path, "child") as parent:
        parent.in_hand()
        inherited = os.dup(parent.fileno())
        with Presence(path, "child", inherits=inherited) as child:
            child.in_hand().note_stage(job.job_id, "verify")
        assert free_dead(ledger) == 0
        assert parent.noted_stage() == (job.job_id, "verify")
        assert parent.settle(ledger) == 1
    assert not parent.path.exists()
    assert ledger.stats()["queued"] == 1


def test_a_parent_that_cannot_settle_leaves_the_file_for_the_next(path, ledger, lease_one):
    lease_one("child")
    with Presence(path, "child") as parent:
        ledger.close()
        with pytest.raises(LedgerError):
            parent.settle(ledger)
    assert parent.path.exists()


@pytest.mark.parametrize("spoiled", [b"", b"[1]\n", b"[1, 2, 3]\n", b"{}\n", b"\xff\n", b'[1, "ve'])
def test_a_spoiled_stage_is_none(spoiled, path):
    with Presence(path, "child") as parent:
        parent.in_hand().note_stage(7, "verify")
        where = parent.path.read_bytes().index(b'[7, "verify"]')
        os.pwrite(parent.fileno(), spoiled + b"\n", where)
        assert parent.noted_stage() is None
