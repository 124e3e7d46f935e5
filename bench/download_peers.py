"""Other ways to download a list of addresses in Python: Scrapy's FilesPipeline, and a plain pool of threads.

Imports nothing of this project; runs in an environment that has Scrapy or httpx2. The last line it prints is JSON: when
the work began and ended, and the processor's time between the two, so that start-up is left out.

    python bench/download_peers.py scrapy|pool LIST FOLDER AT_ONCE
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any


class Watch:
    """From the start of the work to its end."""

    def __init__(self) -> None:
        self._began, self._cpu_s = time.time(), time.process_time()

    def told(self) -> str:
        return json.dumps(
            {
                "began": self._began,
                "ended": time.time(),
                "cpu_s": time.process_time() - self._cpu_s,
            }
        )


def scrapy(urls: list[str], folder: Path, at_once: int) -> str:
    """Tuned: many at once, no delays, no log, no robots, items from a callback. It does not flush to disk."""
    import scrapy as library  # type: ignore[import-not-found]
    from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found]

    told: list[Any] = []

    class Papers(library.Spider):  # type: ignore[misc]
        name = "papers"
        start_urls = (urls[0],)  # answered by the callback that hands out the items

        def parse(self, response: Any) -> Any:
            told.append(Watch())
            for url in urls:
                yield {"file_urls": [url]}

        def closed(self, reason: str) -> None:
            told.append(told[0].told())

    settings = {
        "CONCURRENT_REQUESTS": at_once,
        "CONCURRENT_REQUESTS_PER_DOMAIN": at_once,
        "CONCURRENT_ITEMS": at_once,
        "DOWNLOAD_DELAY": 0,
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "AUTOTHROTTLE_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        "COOKIES_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "ERROR",
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": str(folder),
        "REACTOR_THREADPOOL_MAXSIZE": 20,
    }
    process = CrawlerProcess(settings=settings)
    process.crawl(Papers)
    process.start()
    return str(told[-1])


def pool(urls: list[str], folder: Path, at_once: int) -> str:
    """What one writes on an afternoon: a client, threads, sha256 on the way, fsync and rename for every file."""
    import httpx2

    limits = httpx2.Limits(max_connections=2 * at_once, max_keepalive_connections=2 * at_once)
    with httpx2.Client(limits=limits, timeout=60) as client, ThreadPoolExecutor(at_once) as threads:

        def fetch(number: int, url: str) -> str:
            part, digest = folder / f"{number}.part", hashlib.sha256()
            with client.stream("GET", url) as response, open(part, "wb") as file:
                response.raise_for_status()
                for block in response.iter_bytes():
                    digest.update(block)
                    file.write(block)
                file.flush()
                os.fsync(file.fileno())
            part.rename(folder / f"{digest.hexdigest()}.pdf")
            return digest.hexdigest()

        watch = Watch()
        found = set(threads.map(fetch, range(len(urls)), urls))
        assert len(found) == len(urls), "papers are missing"
        return watch.told()


def main() -> int:
    way, listed, folder, at_once = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
    threading.stack_size(512 * 1024)
    measure = {"scrapy": scrapy, "pool": pool}[way]
    print(measure(listed.read_text().split(), folder, at_once))
    return 0


if __name__ == "__main__":
    sys.exit(main())
