"""A console over a ledger that a real run works on."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from DocsToKG.Orchestrator.bootstrap import console_beside
from DocsToKG.Orchestrator.client.calls import Calls
from DocsToKG.Orchestrator.settings import load_settings

PATIENCE_MS = 90_000


@dataclass
class Console:
    """A console that is served, and the API behind it."""

    address: str
    calls: Calls = field(init=False)

    def __post_init__(self) -> None:
        self.calls = Calls(self.origin, self.token)

    @property
    def origin(self) -> str:
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    @property
    def token(self) -> str:
        return urlsplit(self.address).fragment.removeprefix("token=")

    def post(self, path: str, body: dict[str, Any] | None = None) -> Any:
        return self.calls.request("POST", path, body)

    def put(self, path: str, body: dict[str, Any]) -> Any:
        return self.calls.request("PUT", path, body)

    def get(self, path: str) -> Any:
        return self.calls.request("GET", path)


@contextmanager
def console_over(ledger: Path) -> Iterator[Console]:
    settings = load_settings(None, {"ledger": str(ledger), "port": 0, "drain_seconds": 1.0})
    with console_beside(settings) as address:
        console = Console(address)
        with console.calls:
            yield console


@dataclass
class Watched:
    """A page, what it asked for, and what it complained of."""

    page: Any
    console: Console
    asked: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def open(self, view: str) -> Any:
        """A view, with its first content there."""
        self.page.goto(f"{self.console.origin}/console/{view}")
        self.page.wait_for_selector("#main h1", timeout=PATIENCE_MS)
        return self.page

    def until(self, script: str) -> None:
        """Wait for an expression to hold. The page's policy forbids the browser's own way, which is `eval`."""
        deadline = time.monotonic() + 2 * PATIENCE_MS / 1000
        while not self.page.evaluate(script):
            assert time.monotonic() < deadline, script
            self.page.wait_for_timeout(50)

    def until_true(self, holds: Callable[[], bool]) -> None:
        """Wait for something outside of the page."""
        deadline = time.monotonic() + 2 * PATIENCE_MS / 1000
        while not holds():
            assert time.monotonic() < deadline, "it never came true"
            self.page.wait_for_timeout(50)

    def wait(self, words: str, where: str = "#main") -> None:
        self.page.locator(where, has_text=words).first.wait_for(timeout=PATIENCE_MS)

    def decide(self, button: str, verb: str, **fields: str) -> None:
        """Press a button that opens a dialog, fill it in with a reason, and confirm."""
        self.page.get_by_role("button", name=button, exact=True).first.click(timeout=PATIENCE_MS)
        for name, value in {"reason": "a test", "ticket": "T-1", **fields}.items():
            control = self.page.locator(f"dialog [name={name}]")
            if control.evaluate("(e) => e.tagName") == "SELECT":
                control.select_option(value)
            else:
                control.fill(value)
        self.page.locator("dialog").get_by_role("button", name=verb, exact=True).click(timeout=PATIENCE_MS)
        self.page.locator("dialog").wait_for(state="detached", timeout=PATIENCE_MS)

    def assert_quiet(self) -> None:
        away = [url for url in self.asked if not url.startswith((self.console.origin + "/", "data:", "blob:"))]
        assert away == [], "a request left the machine"
        assert self.complaints == []


@contextmanager
def watched(browser: Any, console: Console, **options: Any) -> Iterator[Watched]:
    """A page that holds the console's token, in a browser of its own; whatever it complains of fails the test."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
    context.set_default_timeout(PATIENCE_MS)
    seen = Watched(context.new_page(), console)
    seen.page.on("request", lambda request: seen.asked.append(request.url))
    seen.page.on("console", lambda message: seen.complaints.append(f"{message.type}: {message.text}"))
    seen.page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    seen.page.on("response", lambda answer: _judge(seen, answer))
    seen.page.goto(console.address)
    seen.page.wait_for_selector("#main h1")
    try:
        yield seen
        seen.assert_quiet()
    finally:
        context.close()


def _judge(seen: Watched, answer: Any) -> None:
    if answer.status >= 400:
        seen.complaints.append(f"{answer.status} {answer.request.method} {answer.url} {answer.text()[:300]}")


def jobs_of(source: str | None, count: int, start: int = 0) -> dict[str, Any]:
    """Bodies of jobs that the sandbox knows no papers of: they end soon, as failures."""
    named = {} if source is None else {"source": source}
    dois = [f"10.9999/none.{n}" for n in range(start, start + count)]
    return {
        "jobs": [
            {"artifactId": f"doi:{doi}", "payload": {"work_id": f"doi:{doi}", "doi": doi}, **named} for doi in dois
        ]
    }
