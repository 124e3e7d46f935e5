"""A run for programs with an event loop of their own: the same as for others, and that loop goes on meanwhile."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contentdownload.stand_in import until

from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.ContentDownload.errors import FolderInUse
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue
from DocsToKG.ContentDownload.runner import DownloadRun, RunResult
from DocsToKG.Sandbox.profile import SandboxServer

MakeConfig = Callable[..., ContentDownloadConfig]
LONG_S = 60.0


def states(root: Path) -> dict[str, int]:
    with WorkQueue(str(root / "state" / "ledger.sqlite")) as queue:
        return {state: count for state, count in queue.stats().items() if count and state != "total"}


def good_files(server: SandboxServer, count: int) -> list[str]:
    copies = [copy for work in server.truth()["works"] for copy in work["copies"] if copy["kind"] == "repository"]
    return [copy["url"] for copy in copies if copy["good"]][:count]


def threads() -> set[str]:
    """Those of runs; the ones that read PDFs are the program's."""
    ours = ("content", "dispatch", "beat", "doubt")
    return {thread.name for thread in threading.enumerate() if thread.name.startswith(ours)}


@pytest.mark.slow
def test_an_awaited_run_ends_as_any_other_and_the_callers_loop_goes_on(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    asked, told = good_files(calm_sandbox, 10), []
    turns = 0

    async def alongside() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.005)

    async def program() -> RunResult:
        beside = asyncio.create_task(alongside())
        config = make_config(calm_sandbox, tmp_path)
        async with DownloadRun(config, on_outcome=lambda work_id, outcome: told.append(work_id)) as run:
            result = await run.aprocess_artifacts(asked)
        beside.cancel()
        return result

    result = asyncio.run(program())
    assert result.complete
    assert (result.successful, result.already) == (10, 0)
    assert len(told) == 10
    assert turns > 20
    assert threads() == set()
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        again = run.process_artifacts(asked)
    assert (again.rows, again.already) == (result.rows, 10)


@pytest.mark.slow
def test_a_cancelled_run_is_stopped_at_once_and_leaves_no_lease(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    asked = good_files(calm_sandbox, 25)
    slow = make_config(calm_sandbox, tmp_path, limits={"rate_factor": 1.0})
    ended = threading.Event()

    async def program() -> float:
        async with DownloadRun(slow, on_outcome=lambda work_id, outcome: ended.set()) as run:
            working = asyncio.create_task(run.aprocess_artifacts(asked))
            await until(ended.is_set)
            began = time.monotonic()
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working
            took_s = time.monotonic() - began
            assert run.status().active == 0
        return took_s

    assert asyncio.run(program()) < 6.0  # the grace of a stop would be eight
    left = states(tmp_path)
    assert left["queued"] > 0
    assert "in_progress" not in left
    assert threads() == set()
    with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
        assert run.process_artifacts(asked).complete


@pytest.mark.slow
def test_a_time_limit_around_a_run_ends_it(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    slow = make_config(calm_sandbox, tmp_path, limits={"rate_factor": 1.0})

    async def program() -> None:
        async with asyncio.timeout(1.0), DownloadRun(slow) as run:
            await run.aprocess_artifacts(good_files(calm_sandbox, 25))

    with pytest.raises(TimeoutError):
        asyncio.run(program())
    assert "in_progress" not in states(tmp_path)
    assert threads() == set()


def endless(begun: threading.Event) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"10.5555/endless.{number}"
        begun.set()


@pytest.mark.slow
def test_a_run_that_is_cancelled_while_it_reads_its_list_stops_reading(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    begun = threading.Event()

    async def program() -> None:
        async with DownloadRun(make_config(calm_sandbox, tmp_path)) as run:
            working = asyncio.create_task(run.aprocess_artifacts(endless(begun)))
            await until(begun.is_set)
            working.cancel()
            with pytest.raises(asyncio.CancelledError):
                await working

    asyncio.run(asyncio.wait_for(program(), LONG_S))
    assert "in_progress" not in states(tmp_path)


@pytest.mark.slow
def test_who_is_cancelled_while_a_run_opens_leaves_nothing_open(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    config = make_config(calm_sandbox, tmp_path)

    async def program() -> None:
        async def enter() -> None:
            async with DownloadRun(config):
                raise AssertionError("it was cancelled before")

        entering = asyncio.create_task(enter())
        await asyncio.sleep(0)
        entering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await entering

    asyncio.run(program())
    with DownloadRun(config):  # nobody else has the folder
        pass
    assert threads() == set()


@pytest.mark.slow
def test_what_keeps_a_run_from_opening_is_told_to_the_awaiting_program(
    calm_sandbox: SandboxServer, make_config: MakeConfig, tmp_path: Path
) -> None:
    config = make_config(calm_sandbox, tmp_path)

    async def program() -> None:
        async with DownloadRun(config):
            with pytest.raises(FolderInUse):
                async with DownloadRun(config):
                    raise AssertionError("the folder is taken")

    asyncio.run(program())
