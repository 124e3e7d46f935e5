"""What the pages show: their blocks by kind, and the lines of shell that a reader would type."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("deploy", "docs", "src")
PAGES = sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

# What cannot be done here, by the beginning of the line, and who does it instead.
NOT_HERE: Mapping[str, str] = {
    "make demo": "sets up from nothing, as .ci/run does with a clean checkout; the demo itself is run by the tutorial",
    "make test": "is the suite that this is a part of",
    "pip install": "fetches from the internet; tests/test_docs.py sees that the extras exist",
    "./dev run python docs/generate.py": "would change the checkout; tests/test_docs.py runs it with --check",
    "docstokg-orchestrator serve -c": "needs keys at an invented address; tests/conformance/test_web_killed.py does it",
}
# Kinds of blocks that are run or read wherever they stand, and those that a test takes from their page.
EVERYWHERE = {"sh", "console", "yaml"}
ON_THEIR_PAGES: Mapping[str, set[str]] = {
    "README.md": {"python"},
    "docs/howto/run-on-many-machines.md": {"sql"},
    "docs/howto/send-events.md": {"python"},
    "docs/howto/watch-the-queue.md": {"python"},
}
# Blocks without a kind, in which there is nothing to type.
NOT_RUN: Mapping[str, str] = {
    "docs/explanation/caching.md": "a drawing",
    "docs/explanation/leases.md": "a drawing",
    "docs/explanation/politeness.md": "a list in its order",
    "docs/howto/share-limits-with-redis.md": "words for a server; test_doctor.py tries the rights",
    "docs/reference/metrics.md": "a tree of spans",
    "src/DocsToKG/ContentDownload/ARCHITECTURE_orchestrator.md": "a drawing",
}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, kind: str) -> list[str]:
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(body) for _, word, body in found if word == kind]


def kinds(page: Path) -> set[str]:
    return {word for _, word, _ in _FENCE.findall(page.read_text(encoding="utf-8"))}


def shown_lines(page: Path) -> list[str]:
    """The lines of shell, in their order: blocks of `sh`, and what follows a prompt in a `console`."""
    lines = []
    for _, kind, body in _FENCE.findall(page.read_text(encoding="utf-8")):
        for line in textwrap.dedent(body).splitlines():
            if kind == "sh" and line.strip() and not line.strip().startswith("#"):
                lines.append(line.strip())
            elif kind == "console" and line.startswith("$ "):
                lines.append(line[2:].strip())
    return lines


def is_elsewhere(line: str) -> bool:
    return line.startswith(tuple(NOT_HERE))


def lines_of(page: Path) -> list[str]:
    return [line for line in shown_lines(page) if not is_elsewhere(line)]
