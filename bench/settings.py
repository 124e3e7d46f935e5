"""The settings under which pulls are measured, and the processor's time they take. Imports no more than a pull does."""

from __future__ import annotations

import resource
from pathlib import Path

from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig

PUBLIC_ADDRESS = "93.184.216.34"  # what every name is said to have, so that the guard judges it as it would outside
UNLIMITED = "1000000/second"


def config(root: Path, *, port: int, workers: int, processes: int, per_host: int) -> ContentDownloadConfig:
    """The shipped settings, but for the caps that are measured and the rates, which must not matter here."""
    return load_config(
        None,
        {
            "contact": "bench@sandbox.invalid",
            "http": {
                "connect_to": {"*": f"plain://127.0.0.1:{port}"},
                "names": {"*": [PUBLIC_ADDRESS]},
                "max_connections": 1024,
                "max_keepalive": 1024,
            },
            "limits": {"default": {"rates": {"*": [UNLIMITED]}}, "store_path": str(root / "limits.sqlite")},
            "resolvers": {"identify": []},
            "tiers": [{"name": "only", "parallel": 1, "sources": ["landing_scrape_pdf"]}],
            "policies": {"landing_scrape_pdf": {"rate_limit": UNLIMITED}},
            "orchestrator": {"max_workers": workers // processes, "processes": processes, "max_per_host": per_host},
            "telemetry": {"manifest_path": str(root / "manifest.jsonl")},
            "storage": {"root_dir": str(root / "files"), "min_free_bytes": 0},
            "queue": {"path": str(root / "state" / "ledger.sqlite")},
            "hishel": {"base_path": str(root / "state" / "cache")},
        },
        environ={},
    )


def cpu_s() -> float:
    """The processor's time of this process and of those it has seen end."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
