"""A plan that is called off leaves no look-up behind that could ask a closed network."""

from __future__ import annotations

import threading
import time

from tests.contentdownload.search_bench import Source, bench

from DocsToKG.ContentDownload.api.types import WorkArtifact
from DocsToKG.ContentDownload.runner.planning import looked_up


def test_who_stops_reading_plans_ends_the_look_ups_first() -> None:
    slow = Source("a", ("https://a.org/1",), delay_s=0.3)
    works = [WorkArtifact(f"doi:10.1/{number}", doi=f"10.1/{number}") for number in range(20)]
    found = looked_up(bench(slow).pipeline(), works)
    assert next(found)[0] is works[0]
    found.close()  # type: ignore[attr-defined]
    asked = len(slow.asked)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith(("plan", "pipeline"))]
    time.sleep(0.4)
    assert len(slow.asked) == asked < len(works)
