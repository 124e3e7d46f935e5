"""Take the pictures of docs/console from a live sandbox run: `python -m tests.console.take_screenshots`.

Needs chromium and playwright. Where Pillow is installed the pictures are made smaller with it.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.browsing import opened_browser
from tests.console.conftest import Console

OUT = Path(__file__).parents[2] / "docs" / "console"
SIZE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 780}
WHY = {"reason": "the archive asked us to wait", "ticket": "OPS-214"}


@contextmanager
def live_run(folder: Path) -> Iterator[Console]:
    """A demo that works for a while, with its console."""
    command = [
        str(Path(sys.executable).with_name("content")),
        "demo",
        "--papers",
        "1200",
        "--workers",
        "6",
        "--console",
    ]
    process = subprocess.Popen(
        [*command, "--quiet", "--out", str(folder)], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    assert process.stderr is not None
    try:
        line = next(line for line in process.stderr if line.startswith("Console: "))
        console = Console(line.removeprefix("Console: ").strip())
        with console.calls:
            yield console
    finally:
        process.terminate()
        process.wait(60)


def furnish(console: Console) -> dict[str, str]:
    """What a run alone does not have: decisions, quotas, an incident, a pack-run."""
    console.post("/sources/wayback/pause", WHY)
    console.post("/circuit-breakers/core/force-open", {"reason": "answers with errors since noon", "ticket": "OPS-215"})
    console.put("/quotas/content.download", {"maxActive": 800, "maxPerHour": 90_000, "burst": 800, **WHY})
    policy = {"name": "fair between projects", "strategy": "Proportional", "totalCapacity": 900, **WHY}
    console.post("/quota-governance/policies", policy)
    incident = {"source": "host:www.gatehouse.example", "severity": "warning", "cause": "every request is challenged"}
    console.post("/incidents", incident)
    console.post("/limits/throttle", {"jobType": "pack-run", "maxActive": 0, "reason": "one runner is enough today"})
    run = console.post("/pack-runs", {"project": "open-corpus", "channel": "nightly", "heartbeatSeconds": 600})[
        "packRunId"
    ]
    lines = [
        "reading 1,200 identifiers",
        "1,200 works on the ledger",
        "checking what is there already",
        "packing shard 1 of 8",
    ]
    console.post(f"/pack-runs/{run}/logs", {"lines": [{"line": line} for line in lines]})
    console.post(
        f"/pack-runs/{run}/logs", {"lines": [{"line": "shard 1: 3 works have no licence", "stream": "stderr"}]}
    )
    digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    shard = {
        "name": "shard-0001.tar",
        "digest": digest,
        "uri": "s3://corpus/shard-0001.tar",
        "mime": "application/x-tar",
    }
    console.post(f"/pack-runs/{run}/artifacts", {**shard, "size": 48_211_968})
    return {"run": run}


def take(page: Any, name: str) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    path = OUT / f"{name}.png"
    page.screenshot(path=path)
    if importlib.util.find_spec("PIL"):
        from PIL import Image

        Image.open(path).convert("RGB").quantize(256, kmeans=1, dither=Image.Dither.NONE).save(path, optimize=True)


def main() -> int:
    os.environ.setdefault("XDG_STATE_HOME", tempfile.mkdtemp())
    with tempfile.TemporaryDirectory() as folder, live_run(Path(folder)) as console, opened_browser() as browser:
        page = browser.new_page(viewport=SIZE)
        page.goto(console.address)
        time.sleep(20)  # so that there is something to see
        made = furnish(console)
        failed = console.get("/jobs?status=failed&search=gatehouse&page_size=1")["jobs"][0]["id"]
        views = {
            "overview": "overview", "jobs": "jobs", "job": f"job/{failed}", "sources": "sources", "workers": "workers",
            "quotas": "quotas", "breakers": "breakers?key=core", "incidents": "incidents", "feed": "feed",
            "pack-run": f"run/{made['run']}",
        }  # fmt: skip
        for name, view in views.items():
            page.goto(f"{console.origin}/console/{view}")
            page.wait_for_selector("#main h1")
            page.wait_for_timeout(4000 if name == "feed" else 1500)
            take(page, name)
        page.goto(f"{console.origin}/console/quotas")
        page.get_by_role("button", name="New policy…").click()
        page.locator("dialog .preview").wait_for()
        take(page, "what-if")
        page.keyboard.press("Escape")
        for name, options in {"overview-dark": {"color_scheme": "dark"}, "job-phone": {"viewport": PHONE}}.items():
            other = browser.new_page(**{"viewport": SIZE, **options})
            other.goto(console.address)
            other.wait_for_selector("#main h1")
            if name == "job-phone":
                other.goto(f"{console.origin}/console/job/{failed}")
                other.wait_for_selector(".why")
            other.wait_for_timeout(1500)
            take(other, name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
