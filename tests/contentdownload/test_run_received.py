"""Papers whose page turns out to be their file, judged by what the server has sent."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.contentdownload.one_source import alone

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
from DocsToKG.Sandbox.profile import SandboxServer


@pytest.mark.slow
def test_a_page_that_is_the_file_is_read_once(
    calm_sandbox: SandboxServer, make_config: Callable[..., ContentDownloadConfig], tmp_path: Path
) -> None:
    """RES-14: the name of nothing in these addresses says that a file lies there."""
    copies = {work["doi"]: copy for work in calm_sandbox.truth()["works"] for copy in work["copies"][:1]}
    files = [
        WorkArtifact(f"doi:{doi}", doi=doi, landing_urls=(copy["url"],))
        for doi, copy in copies.items()
        if copy["good"] and "/papers/" in copy["url"]
    ]
    calm_sandbox.reset()
    outcomes = alone("landing", calm_sandbox, tmp_path, files, make_config)
    sent = calm_sandbox.counters()
    assert len(files) >= 5
    assert {outcome.classification for outcome in outcomes.values()} == {"success"}
    assert sent["files_by_url"] == {work.landing_urls[0]: 1 for work in files}
    assert sent["by_host"] == {"www.tidewater-science.example": len(files) + 1}, "each file once, and robots.txt"
