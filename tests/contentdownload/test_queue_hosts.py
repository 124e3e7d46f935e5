"""Works given by their address: leasing goes round over their hosts from the first lease on (EXT-03, ORC-03)."""

from __future__ import annotations

import pytest

from DocsToKG.ContentDownload.config.loader import load_config
from DocsToKG.ContentDownload.inputs import coerce_works
from DocsToKG.ContentDownload.orchestrator.queue import WorkQueue, first_host
from DocsToKG.ContentDownload.runner import DownloadRun


@pytest.mark.parametrize(
    ("artifact_id", "host"),
    [
        ("url:https://Files.Example.org/a.pdf", "files.example.org"),
        ("url:http://files.example.org:8080/a?b=c", "files.example.org:8080"),
        ("url:https://files.example.org:443/", "files.example.org"),
        ("url:https://user:word@files.example.org/", "files.example.org"),
        ("doi:10.1371/journal.pone.0262026", None),
        ("url:", None),
        ("url:ftp://files.example.org/a", None),
        ("url:not an address", None),
        ("https://files.example.org/a", None),
    ],
)
def test_only_an_address_names_the_host_that_is_asked_first(artifact_id, host):
    assert first_host(artifact_id) == host


def test_input_sorted_by_host_is_leased_in_turns(tmp_path):
    hosts = [f"host-{n}.example.org" for n in range(4)]
    with WorkQueue(tmp_path / "q.sqlite") as queue:
        queue.bulk_import((f"url:https://{host}/{n}.pdf", {}, None) for host in hosts for n in range(50))
        queue.enqueue("doi:10.1/x", {})
        leased = [queue.job(job["id"]).artifact_id for job in queue.lease("w", 9, 60)]
    addresses = [work for work in leased if work.startswith("url:")]
    assert [sum(host in address for address in addresses) for host in hosts] == [2, 2, 2, 2]
    assert "doi:10.1/x" in leased


def test_a_run_knows_the_hosts_of_its_addresses_before_it_asks_anybody(tmp_path):
    cfg = load_config(
        None,
        {
            "telemetry": {"manifest_path": str(tmp_path / "manifest.jsonl")},
            "storage": {"root_dir": str(tmp_path / "files")},
            "queue": {"path": str(tmp_path / "state" / "ledger.sqlite")},
            "hishel": {"base_path": str(tmp_path / "state" / "cache")},
            "limits": {"store_path": str(tmp_path / "limits.sqlite")},
        },
        environ={},
    )
    works = ["https://one.example.org/a.pdf", "https://two.example.org/b.pdf", "10.1371/journal.pone.0262026"]
    with DownloadRun(cfg) as run:
        run.enqueue(coerce_works(works))
    with WorkQueue(cfg.queue.path) as queue:
        hosts = [job.host_key for job in queue.ledger.list_jobs()]
    assert hosts == ["one.example.org", "two.example.org", None]
