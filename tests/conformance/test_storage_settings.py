"""A bucket in the settings, and the budget of the folder where files wait for it."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import mkstemp
from typing import Any

import pytest

from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.config.models import StorageConfig
from DocsToKG.ContentDownload.errors import ConfigError
from DocsToKG.ContentDownload.storage.staging import Budget, StagedFile


def test_the_root_may_be_a_bucket(tmp_path: Path) -> None:
    """STO-06."""
    (tmp_path / "c.yaml").write_text("storage: {root_dir: 's3://papers/a/b', staging_bytes: 20000000}\n")
    storage = load_config(tmp_path / "c.yaml", environ={}).storage
    assert (storage.backend, storage.s3_bucket, storage.s3_prefix) == ("s3", "papers", "a/b")
    assert (storage.root_dir, storage.staging_bytes) == ("data/docs", 20_000_000)


def test_a_command_that_names_a_folder_leaves_the_files_in_the_bucket(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("storage: {root_dir: 's3://papers'}\n")
    storage = load_config(tmp_path / "c.yaml", {"storage": {"root_dir": "/run"}}, environ={}).storage
    assert (storage.backend, storage.s3_bucket, storage.root_dir) == ("s3", "papers", "/run")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{root_dir: 's3://papers', backend: fs}", "disagree"),
        ("{root_dir: 's3://papers', s3_bucket: other}", "disagree"),
        ("{root_dir: 's3://papers', cas_enabled: false}", "cas_enabled"),
        ("{root_dir: 's3://'}", "s3_bucket"),
        ("{root_dir: 's3://papers', staging_bytes: 1}", "staging_bytes"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "c.yaml").write_text(f"storage: {text}\n")
    with pytest.raises(ConfigError, match=said):
        load_config(tmp_path / "c.yaml", environ={})


def test_a_bucket_is_never_taken_for_a_folder() -> None:
    with pytest.raises(ValueError, match="s3_bucket"):
        StorageConfig(root_dir="s3://papers")


def test_the_first_in_line_always_has_room_to_finish() -> None:
    """Eight works that each grow to the largest size, in small steps, in a budget for two and a half of them."""
    budget = Budget(250, largest=100)
    start = threading.Barrier(8)

    def grow() -> None:
        start.wait()
        me = threading.get_ident()
        for _ in range(20):
            budget.take(me, 5)
        budget.give_back(me, 100)

    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(grow) for _ in range(8)]:
            future.result(timeout=20)
    assert budget.used == 0
    assert budget.peak <= 250


def test_a_file_larger_than_the_budget_goes_alone() -> None:
    budget = Budget(10, largest=100)
    budget.take(1, 8)
    budget.take(1, 50)
    waited = threading.Event()

    def other() -> None:
        budget.take(2, 1)
        waited.set()

    thread = threading.Thread(target=other)
    thread.start()
    assert not waited.wait(0.05)
    budget.give_back(1, 58)
    assert waited.wait(60)
    thread.join()


def staged(folder: Path, **words: Any) -> StagedFile:
    return StagedFile(lambda: mkstemp(dir=folder), where=str(folder), **words)


def test_files_that_one_thread_fetches_by_turns_share_the_budget(tmp_path: Path) -> None:
    """Each is a work of its own: the second waits for the first, whoever made them."""
    budget = Budget(100, largest=60)
    first, second = (staged(tmp_path, budget=budget, in_memory=0) for _ in range(2))
    with second:
        with first:
            first.write(b"x" * 10)
            second.write(b"y" * 40)
            more = threading.Thread(target=second.write, args=(b"y" * 20,))
            more.start()
            first.write(b"x" * 50)
            assert budget.used == 100
            more.join(0.05)
            assert more.is_alive()
        more.join(60)
        assert budget.used == 60
    assert (budget.used, budget.peak) == (0, 100)


def test_what_was_wrapped_in_a_file_is_of_the_same_work(tmp_path: Path) -> None:
    budget = Budget(100, largest=100)
    with staged(tmp_path, budget=budget, in_memory=0) as outer:
        outer.write(b"x" * 10)
        with outer.another() as inner:
            inner.write(b"y" * 80)  # whoever is not the first in line would wait for it here
            assert budget.used == 90
    assert budget.used == 0


def test_a_staged_file_gives_back_what_it_held_however_it_ends(tmp_path: Path) -> None:
    budget = Budget(1000, largest=500)
    with staged(tmp_path, budget=budget, in_memory=10) as temp:
        temp.write(b"x" * 10)
        assert budget.used == 0
        temp.write(b"y" * 90)
        assert budget.used == 100
        assert temp.path.read_bytes() == b"x" * 10 + b"y" * 90
    assert budget.used == 0
