"""The measure of the house: code lines per package beside a budget, files, classes, functions and constructors.

A code line is one that is neither blank nor a comment nor part of a docstring. `opened` counts the modules that one
command loads because an import at the top of a module asks for them, read from the text and not by importing.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

SRC = Path(__file__).parent.parent / "src"
FEW_LINES, MANY_FILES, MANY_PARAMETERS = 30, 20, 8
WHOLE = {"code lines": 44_000, "files": 440, "classes": 750}
OPENED = {"DocsToKG.ContentDownload.runner.run": 150}
# What each package may hold, in code lines; together they are the whole.
BUDGET = {
    "ContentDownload": 850, "ContentDownload/api": 700, "ContentDownload/attestation": 360,
    "ContentDownload/catalog": 1600, "ContentDownload/cli": 1900, "ContentDownload/config": 1600,
    "ContentDownload/doctor": 500, "ContentDownload/export": 600, "ContentDownload/fallback": 800,
    "ContentDownload/index": 900, "ContentDownload/inputs": 500, "ContentDownload/net": 3100,
    "ContentDownload/orchestrator": 700, "ContentDownload/report": 540, "ContentDownload/maintenance": 700,
    "ContentDownload/resolvers": 2900,
    "ContentDownload/runner": 1300, "ContentDownload/storage": 1300, "ContentDownload/telemetry": 1700,
    "ContentDownload/validation": 2200, "Orchestrator": 450, "Orchestrator/cli": 550,
    "Orchestrator/audit": 1000, "Orchestrator/client": 550,
    "Orchestrator/control": 3000, "Orchestrator/events": 700, "Orchestrator/jobs": 900, "Orchestrator/ledger": 3500,
    "Orchestrator/notifications": 450, "Orchestrator/signing": 450, "Orchestrator/api": 3220,
    "Orchestrator/console": 80, "Sandbox": 2300, "core": 900, "transport": 1200,
}  # fmt: skip
_LAYOUT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip


class Module(NamedTuple):
    """What one file holds."""

    path: Path
    lines: int
    classes: int
    functions: list[int]  # the length of each, in lines
    constructors: dict[str, int]  # how many parameters each class takes


def read(path: Path) -> Module:
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return Module(
        path,
        len(code_lines(text, tree)),
        len(classes),
        [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions],
        {node.name: _parameters(node) for node in classes},
    )


def code_lines(text: str, tree: ast.AST) -> set[int]:
    """The numbers of the lines that hold code."""
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _LAYOUT:
            found.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                found.difference_update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found


def _parameters(node: ast.ClassDef) -> int:
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return len(each.args.posonlyargs) + len(each.args.args) + len(each.args.kwonlyargs) - 1
    return 0


def package_of(path: Path) -> str:
    """The first two folders below the root package: where a budget holds."""
    parts = path.relative_to(SRC / "DocsToKG").parts[:-1]
    kept = "/".join(parts[:2] if parts[:1] in (("ContentDownload",), ("Orchestrator",)) else parts[:1])
    return "ContentDownload/net" if kept == "ContentDownload/httpx" else kept


def opened(start: str, modules: Collection[str]) -> set[str]:
    """The modules that are loaded along with one, the packages above them included."""
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in seen or name not in modules:
            continue
        seen.add(name)
        waiting += [name.rpartition(".")[0], *_imports(name)]
    return seen


def _imports(name: str) -> Iterator[str]:
    path = SRC.joinpath(*name.split("."))
    tree = ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8"))
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.If | ast.Try) and "TYPE_CHECKING" not in ast.dump(getattr(node, "test", node)):
            waiting += node.body


def _name(path: Path) -> str:
    return ".".join(path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


def measure() -> dict[str, Any]:
    """All figures."""
    modules = [read(path) for path in sorted((SRC / "DocsToKG").rglob("*.py"))]
    names = {
        ".".join(module.path.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__") for module in modules
    }
    lines, folders = Counter[str](), Counter(module.path.parent for module in modules)
    for module in modules:
        lines[package_of(module.path)] += module.lines
    lengths = sorted(length for module in modules for length in module.functions)
    wide = {name: n for module in modules for name, n in module.constructors.items() if n > MANY_PARAMETERS}
    return {
        "code lines": sum(module.lines for module in modules),
        "files": len(modules),
        "classes": sum(module.classes for module in modules),
        "functions": len(lengths),
        "function: median lines": statistics.median(lengths),
        "function: 90th percentile": lengths[len(lengths) * 9 // 10],
        f"constructors with over {MANY_PARAMETERS} parameters": len(wide),
        f"folders with over {MANY_FILES} modules": sum(n > MANY_FILES for n in folders.values()),
        f"modules under {FEW_LINES} code lines": sum(0 < module.lines < FEW_LINES for module in modules),
        **{f"opened by {start.removeprefix('DocsToKG.')}": len(opened(start, names)) for start in OPENED},
        "packages": {name: {"lines": lines[name], "budget": BUDGET.get(name, 0)} for name in sorted({*lines, *BUDGET})},
        "wide": wide,
    }


def show(found: dict[str, Any]) -> None:
    budgets = {**WHOLE, **{f"opened by {start.removeprefix('DocsToKG.')}": most for start, most in OPENED.items()}}
    for name, value in found.items():
        if not isinstance(value, dict):
            print(f"{name:45} {value:>8,}" + (f"  of {budgets[name]:,}" if name in budgets else ""))
    print(f"\n{'package':32} {'code lines':>10} {'budget':>8}")
    for name, row in found["packages"].items():
        over = "  over" if row["lines"] > row["budget"] else ""
        print(f"{name or '(root)':32} {row['lines']:>10,} {row['budget']:>8,}{over}")


def main(arguments: Sequence[str] | None = None) -> int:
    words = argparse.ArgumentParser(prog="bench.house", description=__doc__)
    words.add_argument("--json", action="store_true", help="the figures as JSON, with the wide constructors by name")
    given = words.parse_args(arguments)
    found = measure()
    if given.json:
        print(json.dumps(found, indent=1))
    else:
        show(found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
