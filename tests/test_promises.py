"""Every import path, command and file name that the interface promises exists."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from typer.main import get_command

ROOT = Path(__file__).parent.parent
PACKAGE = "DocsToKG.ContentDownload"

NAMES = {
    "api.types": "DownloadPlan DownloadStreamResult DownloadOutcome ResolverResult WorkArtifact",
    "bootstrap": "build_pipeline_from_config run_from_config",
    "cli.app": "app queue_app",
    "config": "load_config",
    "config.models": "ContentDownloadConfig OrchestratorConfig QueueConfig StorageConfig HishelConfig",
    "download_execution": "stream_candidate_payload finalize_candidate_download prepare_candidate_download",
    "errors": "SkipDownload DownloadError",
    "fallback": "FallbackOrchestrator",
    "httpx.client": "RateRetryClient TokenBucket",
    "httpx.hishel_build": "build_http_stack build_cache_transport",
    "orchestrator.limits": "KeyedLimiter host_key",
    "orchestrator.models": "JobState Job Result",
    "orchestrator.queue": "WorkQueue",
    "orchestrator.scheduler": "Orchestrator",
    "orchestrator.workers": "Worker",
    "pipeline": "ResolverPipeline",
    "runner": "DownloadRun",
    "telemetry": "RunTelemetry load_previous_manifest JsonlResumeLookup ManifestSchemaMigrator",
    "telemetry.otel": "global_providers",
}


@pytest.mark.slow
@pytest.mark.parametrize("module", NAMES)
def test_promised_names_can_be_imported(module: str) -> None:
    """BOOT-02 to BOOT-08, BOOT-11 to BOOT-14."""
    imported = importlib.import_module(f"{PACKAGE}.{module}")
    for name in NAMES[module].split():
        assert hasattr(imported, name), f"{module}.{name}"


@pytest.mark.slow
@pytest.mark.parametrize("module", ["orchestrator.models", "orchestrator.queue", "orchestrator.limits", "httpx.client"])
def test_promised_modules_import_on_their_own(module: str) -> None:
    """BOOT-02, BOOT-05: also where a module has the name of a library."""
    done = subprocess.run([sys.executable, "-c", f"import {PACKAGE}.{module}"], capture_output=True, text=True, cwd="/")
    assert done.returncode == 0, done.stderr


def test_the_promised_http_names_are_the_real_ones() -> None:
    from DocsToKG.ContentDownload.httpx import client
    from DocsToKG.ContentDownload.net.client import RateRetryClient
    from DocsToKG.core.bucket import TokenBucket

    assert client.RateRetryClient is RateRetryClient
    assert client.TokenBucket is TokenBucket


def commands(app: object) -> set[str]:
    found = set()
    for name, command in get_command(app).commands.items():  # type: ignore[arg-type, attr-defined]
        found.add(name)
        found |= {f"{name} {inner}" for inner in getattr(command, "commands", ())}
    return found


def test_promised_commands_exist_on_both_surfaces() -> None:
    """BOOT-15, BOOT-16, CLI-12."""
    from DocsToKG.ContentDownload.cli.app import app

    both = {"pull", "resume", "report", "catalog stats", "catalog query", "catalog show", "plan", "demo", "sandbox"}
    both |= {"config set", "config get", "config path"}
    queue = {
        f"queue {verb}"
        for verb in [
            "enqueue",
            "import",
            "run",
            "drain",
            "stats",
            "retry-failed",
            "retry",
            "pause",
            "resume",
            "list",
            "show",
        ]
    }
    engine = {"run", "print-config", "validate-config", "explain", "schema"}
    assert both | queue | engine <= commands(app)


@pytest.mark.slow
def test_console_scripts_start() -> None:
    """BOOT-15."""
    for script in ("content", "contentdownload", "docstokg-orchestrator"):
        program = Path(sys.executable).parent / script
        done = subprocess.run([str(program), "--help"], capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, done.stderr
        assert "Usage" in done.stdout


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "LICENSE",
        "Makefile",
        "dev",
        ".ci/run",
        "docs/pr8-orchestrator.md",
        "docs/glossary.md",
        "docs/tutorial/first-corpus.md",
        "docs/explanation/architecture.md",
        "docs/examples/dev.yaml",
        "docs/examples/prod.yaml",
        "src/DocsToKG/ContentDownload/ARCHITECTURE_orchestrator.md",
        "src/DocsToKG/ContentDownload/ARCHITECTURE_hishel.md",
        "tests/contentdownload/test_queue_basic.py",
        "tests/contentdownload/test_scheduler_limits.py",
        "tests/contentdownload/test_scheduler_recovery.py",
        "tests/contentdownload/test_cli_queue.py",
    ],
)
def test_promised_files_exist(name: str) -> None:
    assert (ROOT / name).stat().st_size > 0


def test_package_data_is_where_code_looks_for_it() -> None:
    """BOOT-14."""
    package = files(PACKAGE)
    for name in ("telemetry/telemetry_schema.sql", "telemetry/manifest.schema.json", "config/defaults/tiers.yaml"):
        assert package.joinpath(name).is_file(), name


def test_the_readme_is_short_and_its_commands_exist() -> None:
    from DocsToKG.ContentDownload.cli.app import app

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 120
    known = commands(app)
    shown = [line.split("content ", 1)[1].split()[0] for line in text.splitlines() if "./dev run content " in line]
    assert shown
    assert set(shown) <= known
    targets = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in ("demo", "test"):
        assert f"make {word}" in text
        assert f" {word}" in targets


def test_lock_files_carry_hashes_and_name_no_host() -> None:
    for name in ("runtime.txt", "dev.txt"):
        lock = (ROOT / "requirements" / name).read_text(encoding="utf-8")
        assert "://" not in lock
        pins = [line for line in lock.splitlines() if line and not line.startswith((" ", "#"))]
        assert pins
        assert lock.count("--hash=sha256:") >= len(pins)


EXTRAS = (
    "psycopg",
    "redis",
    "nats",
    "obstore",
    "fastapi",
    "strawberry",
    "securesystemslib",
    "opentelemetry",
    "pyarrow",
)


def test_the_core_install_has_no_servers_drivers() -> None:
    """BOOT-18: they are extras. (A checkout's environment has them all, so that every page can be followed.)"""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = " ".join(project["dependencies"])
    assert not [name for name in (*EXTRAS, "sqlalchemy", "boto3") if name in core]


@pytest.mark.slow
def test_a_run_completes_where_no_extra_is_installed(tmp_path: Path) -> None:
    """BOOT-18: as a plain install would, with every extra's package made impossible to import."""
    words = (
        f"import sys; sys.modules.update(dict.fromkeys({EXTRAS!r}))\n"
        "from DocsToKG.ContentDownload.cli.main import content\n"
        "sys.argv[1:] = ['demo', '--papers', '6', '--quiet', '--out', 'corpus']\n"
        "content()"
    )
    done = subprocess.run(
        [sys.executable, "-c", words], cwd=tmp_path, env=dict(os.environ, HOME=str(tmp_path)), capture_output=True,
        text=True, timeout=100,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert list((tmp_path / "corpus" / "PDF").iterdir())
