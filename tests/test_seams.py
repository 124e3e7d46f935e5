"""Tests use what the product offers to everybody: a name that begins with `_` may change, or come and go with a thread.

Read from the text of the tests, so what is reached by `getattr` with a name that is put together is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# Of the language and of other libraries, or of classes that a test makes itself.
KNOWN = {"_exit", "_replace", "_asdict", "_fields", "_shutdown", "_run_exitfuncs"}
# Files that still reach further, and why. One that no longer does leaves the list.
STILL: dict[str, str] = {
    "conftest.py": "typer, asyncio",
    "conformance/postgres_server.py": "its own class",
    "orchestrator_web/conftest.py": "fastapi",
    "test_suite_rules.py": "the suite itself",
}


def reached(text: str) -> Iterator[str]:
    """The private names of others in a test's text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not is_own(node.value):
            yield node.attr
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("DocsToKG"):
            yield from (name.name for name in node.names if is_private(name.name))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setattr":
            words = [word.value for word in node.args if isinstance(word, ast.Constant) and isinstance(word.value, str)]
            yield from (word for word in words[:1] if is_private(word.rpartition(".")[2]))


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in KNOWN


def is_own(value: ast.expr) -> bool:
    return (isinstance(value, ast.Name) and value.id in ("self", "cls")) or (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id == "super"
    )


@pytest.mark.slow
def test_no_test_reaches_into_private_state() -> None:
    """A test that does passes or fails by how a thing is made, and at times by which thread was quicker."""
    found = {
        str(path.relative_to(TESTS)): sorted(set(reached(path.read_text("utf-8")))) for path in TESTS.rglob("*.py")
    }
    reaching = {name: names for name, names in found.items() if names}
    allowed = {name for name in reaching if any(fnmatch(name, place) for place in STILL)}
    assert {name: names for name, names in reaching.items() if name not in allowed} == {}
    clean = [place for place in STILL if not any(fnmatch(name, place) for name in allowed)]
    assert not clean, f"no longer in need of a place in STILL: {clean}"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a._b.c", ["_b"]),
        ("self._b, cls._c, super()._d(), a.__dict__, os._exit(1)", []),
        ("self._a._b", ["_b"]),
        ("from DocsToKG.x import _y, z", ["_y"]),
        ("patch.setattr('DocsToKG.x._Y', 1)", ["DocsToKG.x._Y"]),
        ("patch.setattr(x, '_y', '_z')", ["_y"]),
        ("patch.setattr(x, 'y', '_z')", []),
    ],
)
def test_what_is_reached_is_seen(text: str, names: list[str]) -> None:
    assert list(reached(text)) == names
