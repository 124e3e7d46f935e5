"""Clock, cancel, digest, ids and values."""

from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import replace

import pytest

from DocsToKG.core.cancel import Cancelled, CancelToken
from DocsToKG.core.clock import ManualClock, SystemClock, utc_iso
from DocsToKG.core.digest import canonical_json, sha256_hex
from DocsToKG.core.ids import new_run_id, new_worker_id
from DocsToKG.core.values import lean_dataclass


def test_a_cancelled_token_runs_each_callback_once() -> None:
    token, calls = CancelToken(), []
    token.on_cancel(lambda: calls.append("a"))
    forget = token.on_cancel(lambda: calls.append("b"))
    forget()
    token.cancel()
    token.cancel()
    token.on_cancel(lambda: calls.append("late"))
    assert calls == ["a", "late"]
    with pytest.raises(Cancelled):
        token.raise_if_cancelled()


def test_a_child_is_cancelled_with_its_parent_and_not_the_other_way_round() -> None:
    parent = CancelToken()
    child, other = CancelToken(parent), CancelToken(parent)
    child.cancel()
    assert not parent.cancelled
    parent.cancel()
    assert other.cancelled


def test_a_closed_child_leaves_nothing_with_its_parent() -> None:
    parent = CancelToken()
    child = CancelToken(parent)
    left = weakref.ref(child)
    child.close()
    del child
    gc.collect()
    assert left() is None
    assert not parent.cancelled


def test_a_cancel_reaches_a_thread_that_waits() -> None:
    token, woken = CancelToken(), threading.Event()
    with token.calling(woken.set):
        threading.Thread(target=token.cancel).start()
        assert woken.wait(60)


def test_times_are_written_one_way() -> None:
    assert utc_iso(1_750_000_000.0259) == "2025-06-15T15:06:40.025Z"
    clock = ManualClock()
    before = clock.now(), clock.monotonic()
    clock.advance(2.5)
    assert (clock.now() - before[0], clock.monotonic() - before[1]) == (2.5, 2.5)
    assert SystemClock().now() > 1_700_000_000


def test_equal_values_have_equal_bytes() -> None:
    """CFG-29 rests on this."""
    assert canonical_json({"b": 1, "a": "ü"}) == canonical_json({"a": "ü", "b": 1}) == '{"a":"ü","b":1}'.encode()
    assert sha256_hex(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


def test_ids_are_new_each_time() -> None:
    assert len({new() for new in (new_run_id, new_worker_id) for _ in range(10)}) == 20
    assert new_worker_id().startswith("cdw-")


def test_a_lean_value_is_compared_hashed_and_has_no_room_for_more() -> None:
    @lean_dataclass(frozen=True, slots=True)
    class Spot:
        x: int
        y: int = 0

    assert Spot(1) == replace(Spot(2), x=1)
    assert {Spot(1), Spot(1, 0)} == {Spot(1)}
    with pytest.raises(AttributeError):
        object.__setattr__(Spot(1), "z", 1)
