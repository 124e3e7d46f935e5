"""A run: works in, proved files and an honest row for each out."""

from DocsToKG.ContentDownload.runner.run import DownloadRun, run_queue
from DocsToKG.ContentDownload.runner.status import RunResult, RunStatus

__all__ = ["DownloadRun", "RunResult", "RunStatus", "run_queue"]
