"""A small scholarly web for the tests that need one, and the commands of the product as a user runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.warm import PROGRAMS, WarmPrograms

from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.Sandbox.profile import SandboxServer

WORKS = 60


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxServer]:
    """The default world, with its faults."""
    with SandboxServer(works=WORKS, seed=7) as server:
        yield server


@pytest.fixture(scope="module")
def calm_sandbox() -> Iterator[SandboxServer]:
    """The same world without faults."""
    from DocsToKG.Sandbox.faults import Faults

    with SandboxServer(works=WORKS, seed=7, faults=Faults.none()) as server:
        yield server


def client_settings(server: SandboxServer, root: Path, **more: Any) -> dict[str, Any]:
    """Point the product at the sandbox and into `root`; retries come after a second, not a minute."""
    settings: dict[str, Any] = {
        **server.profile(),
        "orchestrator": {"max_workers": 8, "retry_backoff_seconds": 1, "jitter_seconds": 0},
        "robots": {"unreachable_seconds": 1},
        "telemetry": {"manifest_path": str(root / "manifest.jsonl")},
        "storage": {"root_dir": str(root), "min_free_bytes": 0},
        "queue": {"path": str(root / "state" / "ledger.sqlite")},
        "hishel": {"base_path": str(root / "state" / "cache")},
    }
    for key, value in more.items():
        settings[key] = {**settings[key], **value} if isinstance(settings.get(key), dict) else value
    return settings


def client_config(server: SandboxServer, root: Path, **more: Any) -> ContentDownloadConfig:
    return load_config(None, client_settings(server, root, **more), environ={}, user_file=root / "no-such-file")


@pytest.fixture(scope="session")
def make_config() -> Callable[..., ContentDownloadConfig]:
    """`make_config(server, root, section={...})`."""
    return client_config


@pytest.fixture
def clean_environment(tmp_path: Path) -> dict[str, str]:
    """A user's shell with an empty home and none of our variables."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DTKG_", "DOCSTOKG_"))}
    for key in ("UNPAYWALL_EMAIL", "XDG_CONFIG_HOME"):
        kept.pop(key, None)
    return {**kept, "HOME": str(tmp_path / "home"), "COLUMNS": "200"}


Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def content(clean_environment: dict[str, str], tmp_path: Path, warm: WarmPrograms) -> Command:
    """Run `content ...` (or another program of the product) to its end."""

    def run(*words: str, program: str = "content", stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        if program in PROGRAMS:
            return warm.run(program, words, stdin=stdin, env=clean_environment, cwd=tmp_path)
        return subprocess.run(
            [*program_words(program), *words],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=250,
            env=clean_environment,
            cwd=tmp_path,
        )

    return run


def program_words(program: str) -> list[str]:
    if program == "cli_v2":
        return [sys.executable, "-m", "DocsToKG.ContentDownload.cli_v2"]
    return [str(Path(sys.executable).parent / program)]


@pytest.fixture
def config_file(tmp_path: Path) -> Callable[..., Path]:
    """A configuration file that points at a sandbox; paths are left to the command."""

    def write(server: SandboxServer, **more: Any) -> Path:
        settings = client_settings(server, tmp_path / "run", **more)
        for section in ("telemetry", "queue", "hishel"):
            del settings[section]
        settings["storage"] = {"min_free_bytes": 0}
        path = tmp_path / "sandbox.json"
        path.write_text(json.dumps(settings))
        return path

    return write
