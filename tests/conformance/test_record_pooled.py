"""The shared record behind a pooler that hands out sessions by the transaction."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from DocsToKG.ContentDownload.catalog.selection import Selection
from DocsToKG.ContentDownload.catalog.shared.catalog import SharedCatalog
from DocsToKG.ContentDownload.catalog.shared.server import SharedRecord
from DocsToKG.ContentDownload.errors import RecordError
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock

pytestmark = pytest.mark.slow


@pytest.fixture
def shared(postgres_url: str, pooled_url: str) -> Iterator[SharedRecord]:
    shared = SharedRecord(pooled_url, schema=f"t_{uuid4().hex[:16]}", patience_s=60)
    yield shared
    shared.close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA {shared.schema} CASCADE")


def test_nodes_write_and_ask_at_once_through_few_sessions(shared: SharedRecord, tmp_path: Path) -> None:
    def work(node: int) -> None:
        folder = tmp_path / str(node)
        with (
            RunTelemetry(
                folder, run_id=f"r{node}", config_hash="c", clock=ManualClock(), shared=shared, node=str(node)
            ) as record,
            SharedCatalog(shared, owns=False) as catalog,
        ):
            for number in range(20):
                name = f"doi:{node}-{number}"
                file = {"sha256": f"{number:064x}", "path": f"PDF/{name}", "lease_id": f"l-{node}-{number}"}
                record.finish(ManifestRecord(doc_id=name, outcome="success", size_bytes=1, **file))
                record.flush()
                assert catalog.find_download(name) is not None
                assert sum(1 for _ in catalog.each(Selection(run_id=f"r{node}"))) == number + 1
                assert catalog.figures(f"r{node}").obtained == number + 1

    with ThreadPoolExecutor(3) as nodes:
        list(nodes.map(work, range(3)))
    with SharedCatalog(shared, owns=False) as catalog:
        assert catalog.stats()[0]["obtained"] == 60
        assert len(list(catalog.files())) == 60
        assert catalog.query("SELECT count(*) FROM downloads").rows == [(60,)]
        with pytest.raises(RecordError, match="only reading"):
            catalog.query("DELETE FROM downloads")
        # What a question has set for its transaction is gone with it.
        assert catalog.stats()[0]["obtained"] == 60
