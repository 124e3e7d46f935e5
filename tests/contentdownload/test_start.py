"""What a pull loads before its first paper: no more than it needs (see docs/reference/benchmarks.md, `starting`)."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from bench import house

START = """
import json, sys
from pathlib import Path
from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.runner import DownloadRun

root = Path(sys.argv[1])
cfg = load_config(None, {
    "contact": "who@uni.example.edu",
    "telemetry": {"manifest_path": str(root / "manifest.jsonl")},
    "storage": {"root_dir": str(root), "min_free_bytes": 0},
    "queue": {"path": str(root / "state" / "ledger.sqlite")},
    "hishel": {"base_path": str(root / "state" / "cache")},
    "limits": {"store_path": str(root / "limits.sqlite")},
}, environ={})
with DownloadRun(cfg) as run:
    assert run.process_artifacts([]).complete
print(json.dumps(sorted(sys.modules)))
"""
# Servers and clients of other machines, formats of exports, and what only a paper needs.
NOT_LOADED = {
    "boto3", "botocore", "cryptography", "dramatiq", "duckdb", "fastapi", "hishel", "jinja2", "lxml", "nats", "numpy",
    "obstore", "opentelemetry", "pikepdf", "prometheus_client", "psycopg", "psycopg_pool", "pyarrow", "pypdfium2",
    "pypdfium2_raw", "redis", "rich", "sqlalchemy", "starlette", "strawberry", "tenacity", "typer", "uvicorn", "warcio",
}  # fmt: skip
OURS_NOT_LOADED = (
    "DocsToKG.ContentDownload.attestation",
    "DocsToKG.ContentDownload.cli",
    "DocsToKG.ContentDownload.doctor",
    "DocsToKG.ContentDownload.export",
    "DocsToKG.ContentDownload.index",
    "DocsToKG.ContentDownload.net.rfc9111",
    "DocsToKG.ContentDownload.report",
    "DocsToKG.ContentDownload.resolvers.landing",
    "DocsToKG.ContentDownload.resolvers.unpaywall",
    "DocsToKG.ContentDownload.validation.candidate",
    "DocsToKG.ContentDownload.validation.pdf",
    "DocsToKG.Orchestrator.api",
    "DocsToKG.Orchestrator.audit",
    "DocsToKG.Orchestrator.client",
    "DocsToKG.Orchestrator.events",
    "DocsToKG.Orchestrator.ledger.postgres",
    "DocsToKG.Sandbox",
)
# Both only ever get smaller; the aim is what `bench.house` prints beside the second.
_MODULE = re.compile(r"DocsToKG(?:\.\w+)+")
MOST_LOADED, MOST_OPENED = 295, 220


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> frozenset[str]:
    root = str(tmp_path_factory.mktemp("start"))
    done = subprocess.run(
        [sys.executable, "-c", START, root], stdout=subprocess.PIPE, text=True, check=True, timeout=60
    )
    return frozenset(json.loads(done.stdout))


def test_a_pull_starts_without_the_libraries_that_it_may_never_need(loaded: frozenset[str]) -> None:
    assert not {name.partition(".")[0] for name in loaded} & NOT_LOADED


@pytest.mark.parametrize("package", OURS_NOT_LOADED)
def test_a_pull_starts_without_what_belongs_to_other_commands_or_to_a_paper(
    loaded: frozenset[str], package: str
) -> None:
    assert not {name for name in loaded if name == package or name.startswith(f"{package}.")}


def test_a_pull_starts_with_few_modules(loaded: frozenset[str]) -> None:
    assert sum(name.partition(".")[0] == "DocsToKG" for name in loaded) <= MOST_LOADED


def test_importing_the_runner_opens_few_modules() -> None:
    assert len(house.opened("DocsToKG.ContentDownload.runner.run", _modules())) <= MOST_OPENED


def test_modules_that_are_named_in_texts_exist() -> None:
    """What is loaded by its name is found neither by a type checker nor by who renames it."""
    named: dict[str, str] = {}
    for path in Path(house.SRC, "DocsToKG").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE.fullmatch(node.value):
                named[node.value] = path.name
    assert len(named) > 1
    assert {name: where for name, where in named.items() if name not in _modules()} == {}


@cache
def _modules() -> frozenset[str]:
    paths = [path.relative_to(house.SRC).with_suffix("") for path in Path(house.SRC, "DocsToKG").rglob("*.py")]
    return frozenset(".".join(path.parts).removesuffix(".__init__") for path in paths)
