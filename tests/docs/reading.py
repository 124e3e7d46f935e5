"""What the pages show: their blocks by kind, and the lines of shell that a reader would type."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
_FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)

# What cannot be done here, by the beginning of the line, and who does it instead.
NOT_HERE: Mapping[str, str] = {
    "make demo": "sets up from nothing, which tests/test_dev_script.py does; the demo itself is run by the tutorial",
    "make test": "is the suite that this is a part of",
    "pip install": "fetches from the internet",
    "./dev run python docs/generate.py": "would change the checkout; tests/test_docs.py runs it with --check",
    "docstokg-orchestrator serve -c": "needs keys at an invented address; conformance/test_web_postgres.py does it",
}


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path, kind: str) -> list[str]:
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return [textwrap.dedent(body) for _, word, body in found if word == kind]


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
