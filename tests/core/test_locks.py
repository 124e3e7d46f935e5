from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

from DocsToKG.core.locks import lock_soon


def opened(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT)


def test_a_lock_that_somebody_lets_go_of_in_time_is_ours(tmp_path: Path) -> None:
    theirs, ours = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    fcntl.flock(theirs, fcntl.LOCK_EX)
    threading.Timer(0.1, os.close, [theirs]).start()
    assert lock_soon(ours, within_s=30)
    os.close(ours)


def test_a_lock_is_not_waited_for_while_its_owner_stays(tmp_path: Path) -> None:
    theirs, ours = opened(tmp_path / "lock"), opened(tmp_path / "lock")
    fcntl.flock(theirs, fcntl.LOCK_EX)
    began = time.monotonic()
    assert not lock_soon(ours, within_s=30, is_leaving=lambda: False)
    assert time.monotonic() - began < 25
    assert not lock_soon(ours, within_s=0)
    os.close(theirs)
    os.close(ours)
