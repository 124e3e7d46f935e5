"""The in-memory engine keeps the promises that callers rely on."""

from __future__ import annotations

import pytest
from tests.transport.curl_support import ask, get, run

from DocsToKG.core.clock import ManualClock
from DocsToKG.transport.engine import Engine
from DocsToKG.transport.errors import BodyTooLarge, BodyTooShort, DeadlineExceeded, NotSent
from DocsToKG.transport.memory import MemoryEngine, Reply


def engine(reply, **given):
    return MemoryEngine(lambda request: reply, **given)


def test_a_handler_answers_plainly_or_as_a_coroutine():
    async def later(request):
        return Reply(404, [("X-A", "1")], b"gone " + request.url.encode())

    async def main():
        first: Engine = engine(Reply(body=b"now"))
        assert await get(first) == b"now"
        response = await MemoryEngine(later).fetch(ask("http://a.org/"))
        assert (response.status, response.headers["x-a"], response.url) == (404, "1", "http://a.org/")
        assert await response.read() == b"gone http://a.org/"

    run(main())


def test_errors_come_after_the_blocks_before_them():
    broken = BodyTooShort(expected=10, received=4)

    async def main():
        response = await engine(Reply(body=[b"part", broken])).fetch(ask())
        assert await anext(response) == b"part"
        with pytest.raises(BodyTooShort):
            await anext(response)

    run(main())


def test_time_passes_where_the_handler_says_and_deadlines_hold():
    clock = ManualClock()

    async def sleep(seconds):
        clock.advance(seconds)

    async def main():
        slow = engine(Reply(body=[b"a", 5.0, b"b"], delay_s=2.0), clock=clock, sleep=sleep)
        began = clock.monotonic()
        assert await get(slow) == b"ab"
        assert clock.monotonic() - began == 7.0
        with pytest.raises(DeadlineExceeded):
            await get(slow, deadline=clock.monotonic() + 6.0)
        with pytest.raises(DeadlineExceeded):
            await get(slow, deadline=clock.monotonic() + 1.0)

    run(main())


def test_hooks_and_caps_are_those_of_any_engine():
    calls = []

    async def main():
        one = engine(Reply(headers=[("Content-Length", "4")], body=b"body"))
        with pytest.raises(NotSent):
            await one.fetch(ask(before_send=lambda: False))
        assert one.requests == []
        await one.fetch(ask(on_sent=lambda: calls.append("sent")))
        assert calls == ["sent"]
        with pytest.raises(BodyTooLarge):
            await get(one, max_bytes=3)
        with pytest.raises(BodyTooLarge):
            await one.fetch(ask(max_announced=3))
        assert await get(one, method="HEAD", max_announced=3) == b""
        await one.aclose()
        with pytest.raises(RuntimeError):
            await one.fetch(ask())

    run(main())
