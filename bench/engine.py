"""What one exchange costs in the HTTP engine: processor time of this process for 1,000 files from nginx on loopback.

`floor` is libcurl through pycurl with nothing around it: no tasks, no guard, no limits, bytes thrown away. `engine` is
`CurlEngine` with a task for each exchange, a name to look up, an address to judge and a body that is read.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pycurl

from bench.nginx import Nginx
from DocsToKG.transport.connect import ConnectTo
from DocsToKG.transport.curl import CurlEngine
from DocsToKG.transport.engine import Limits, Request
from DocsToKG.transport.guard import AddressGuard
from DocsToKG.transport.names import StaticNames

_SIZES = {"20 KB": 20_000, "1.2 MB": 1_200_000}
_HEADERS = (("User-Agent", "bench/1 (+mailto:ops@example.org)"), ("Accept", "application/pdf"))


class Figure(NamedTuple):
    cpu_s: float  # for 1,000 exchanges
    items_s: float


def measure(work: Callable[[], None], count: int) -> Figure:
    began, cpu = time.monotonic(), time.process_time()
    work()
    return Figure((time.process_time() - cpu) * 1000 / count, count / (time.monotonic() - began))


def by_engine(port: int, size: int, count: int, at_once: int) -> Figure:
    async def main() -> Figure:
        engine = CurlEngine(
            guard=AddressGuard(),
            names=StaticNames({"*": ["93.184.216.34"]}),
            connect_to=ConnectTo({"*": f"plain://127.0.0.1:{port}"}),
            max_idle=at_once,
        )
        numbers = iter(range(count))

        async def one() -> None:
            limits = Limits(deadline=time.monotonic() + 60, max_bytes=size)
            response = await engine.fetch(Request("GET", "https://papers.example.org/file", _HEADERS, limits=limits))
            received = 0
            async for block in response:
                received += len(block)
            if received != size:
                raise RuntimeError(f"{received} bytes came in place of {size}")

        async def many() -> None:
            for _ in numbers:
                await asyncio.create_task(one())

        await one()
        began, cpu = time.monotonic(), time.process_time()
        await asyncio.gather(*(many() for _ in range(at_once)))
        figure = Figure((time.process_time() - cpu) * 1000 / count, count / (time.monotonic() - began))
        await engine.aclose()
        return figure

    return asyncio.run(main())


def by_floor(port: int, count: int, at_once: int) -> Figure:
    multi = pycurl.CurlMulti()
    handles = []
    for _ in range(at_once):
        curl = pycurl.Curl()
        curl.setopt(pycurl.URL, f"http://127.0.0.1:{port}/file")
        curl.setopt(pycurl.PROXY, "")
        curl.setopt(pycurl.HEADERFUNCTION, lambda line: None)
        curl.setopt(pycurl.WRITEFUNCTION, lambda data: None)
        handles.append(curl)

    def work() -> None:
        left = count
        started = 0
        for curl in handles[:count]:
            multi.add_handle(curl)
            started += 1
        while left:
            multi.perform()
            _, good, failed = multi.info_read()
            if failed:
                raise RuntimeError(f"libcurl failed with code {failed[0][1]}")
            for curl in good:
                left -= 1
                multi.remove_handle(curl)
                if started < count:
                    multi.add_handle(curl)
                    started += 1
            if not good:
                multi.select(1.0)

    figure = measure(work, count)
    multi.close()
    return figure


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__)
    words.add_argument("--count", type=int, default=2000, help="files of 20 KB in a round; a tenth of the large ones")
    words.add_argument("--at-once", type=int, default=64)
    words.add_argument("--rounds", type=int, default=3, help="the best of each is told")
    return words


def main() -> None:
    given = parser().parse_args()
    print(f"{'':8} {'':8} {'CPU-s/1000':>10} {'items/s':>9}")
    for name, size in _SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "root"
            root.mkdir()
            (root / "file").write_bytes(b"x" * size)
            count = given.count if size < 100_000 else max(1, given.count // 10)
            with Nginx(Path(folder) / "nginx", root=root, hosts=1) as nginx:
                for who in ("floor", "engine"):
                    figures = [
                        by_floor(nginx.port, count, given.at_once)
                        if who == "floor"
                        else by_engine(nginx.port, size, count, given.at_once)
                        for _ in range(given.rounds)
                    ]
                    best = min(figures)
                    print(f"{name:8} {who:8} {best.cpu_s:10.3f} {best.items_s:9.0f}")


if __name__ == "__main__":
    main()
