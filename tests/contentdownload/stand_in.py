"""A pipeline whose works do as a test says; its loop, its limits and the queues before them are real."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol

from DocsToKG.ContentDownload.api.gates import Gate, NotYet, Permit
from DocsToKG.ContentDownload.api.ports import Call
from DocsToKG.ContentDownload.api.types import DownloadOutcome, Role, WorkArtifact
from DocsToKG.ContentDownload.net.limits.host_limits import HostLimits
from DocsToKG.ContentDownload.net.limits.queues import PermitQueues
from DocsToKG.ContentDownload.pipeline import JobContext
from DocsToKG.core.clock import SystemClock
from DocsToKG.core.tasks import LoopThread

SUCCESS = DownloadOutcome(True, "success", path="x.pdf", reason="ok", meta={"sha256": "a" * 64})


class Exchange(Protocol):
    def __call__(self, url: str, resolver: str = "r") -> contextlib.AbstractAsyncContextManager[Permit]: ...


# A work's way: what it is, what it was given, and how it exchanges something with a host.
Act = Callable[[WorkArtifact, JobContext, Exchange], Awaitable[DownloadOutcome]]


class StandIn:
    """As much of a pipeline as the scheduler sees; at most `most` exchanges at once."""

    def __init__(self, act: Act, limits: HostLimits, *, most: int) -> None:
        self.loop = LoopThread("content")
        self.gates = PermitQueues(limits, clock=SystemClock(), most=most)
        self.limits = limits
        self._act = act

    async def obtain(self, artifact: WorkArtifact, ctx: JobContext) -> DownloadOutcome:
        return await self._act(artifact, ctx, self._exchange_of(artifact, ctx))

    def process(self, artifact: WorkArtifact, ctx: JobContext) -> DownloadOutcome:
        return self.loop.run(self.obtain(artifact, ctx), cancel=ctx.cancel)

    def _exchange_of(self, artifact: WorkArtifact, ctx: JobContext) -> Exchange:
        @contextlib.asynccontextmanager
        async def exchange(url: str, resolver: str = "r") -> AsyncIterator[Permit]:
            call = Call(artifact.work_id, ctx.cancel, waits=ctx.waits)
            with ctx.waits.branch() if ctx.waits is not None else contextlib.nullcontext():
                permit = await self.gates.permit(Gate(url, resolver, Role.ARTIFACT), call)
                try:
                    yield permit
                finally:
                    permit.release()

        return exchange

    def occupy(self, host: str) -> Permit:
        """Somebody else has a slot of the host."""
        taken = self.limits.ask(Gate(f"https://{host}/", "test", Role.ARTIFACT))
        assert not isinstance(taken, NotYet)
        return taken

    def close(self) -> None:
        self.loop.close()


async def until(holds: Callable[[], object]) -> None:
    """Wait for what another thread does, and let the others on the loop go on."""
    while not holds():  # noqa: ASYNC110  # events of asyncio are not for threads
        await asyncio.sleep(0.002)
