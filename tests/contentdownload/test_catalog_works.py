"""The works of a record: which line decides, which works are meant, page by page (CLI-11)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from DocsToKG.ContentDownload.catalog.selection import STATES, Selection, read_selection
from DocsToKG.ContentDownload.catalog.store import Catalog
from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.telemetry import ManifestRecord, RunTelemetry
from DocsToKG.core.clock import ManualClock

NOW = 1_750_000_000.0  # 2025-06-15


def line(doc_id: str, outcome: str = "success", **fields: Any) -> ManifestRecord:
    held = {"sha256": "aa" * 32, "path": f"{doc_id}.pdf"} if outcome == "success" else {}
    return ManifestRecord(**{"doc_id": doc_id, "outcome": outcome, **held, **fields})


LINES = [
    line("doi:a", "error", reason="timeout", resolver="core"),
    line(
        "doi:a", title="Deep Nets 100%", year=2020, resolver="unpaywall", tier="direct_oa", license="CC-BY-4.0",
        version="publishedVersion", canonical_url="https://www.example.org/a.pdf", size_bytes=5,
    ),
    line(
        "doi:b", title="Shallow_Nets", year=2018, resolver="arxiv", tier="direct_oa", license="CC-BY-NC-4.0",
        version="submittedVersion", canonical_url="https://arxiv.example:8443/b.pdf", size_bytes=7,
    ),
    line("doi:b", "error", reason="timeout", resolver="core"),
    line("doi:c", title="No licence", resolver="core", url="https://deep.www.example.org/c", license_raw="own terms"),
    line("doi:d", "skip", reason="already-present"),
    line("doi:e", "skip", reason="filtered", explanation="Left out by your filters: year 1990."),
    line("doi:f", "skip", reason="robots"),
    line("doi:g", "error", reason="all_tiers_exhausted", cause="paywall"),
    line("doi:h", "skip", reason="filtered", stage="takedown", cause="taken-down"),
    line("doi:i", title="Gone"),
    line("doi:i", "skip", reason="filtered", stage="takedown", cause="taken-down"),
    line("doi:i", "skip", reason="filtered"),
]  # fmt: skip


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    root = tmp_path_factory.mktemp("record")
    clock = ManualClock(NOW)
    with RunTelemetry(root, run_id="r1", config_hash="c", clock=clock) as record:
        for one in LINES:
            record.finish(one)
            record.flush()
            clock.advance(86_400)
    with Catalog(root / "manifest.sqlite") as catalog:
        yield catalog


def found(catalog: Catalog, **options: Any) -> list[str]:
    chosen = read_selection(**options, now=NOW + 20 * 86_400)
    by_page = [work["doc_id"].removeprefix("doi:") for work in catalog.page(chosen, limit=100).works]
    streamed = [work["doc_id"].removeprefix("doi:") for work in catalog.each(chosen)]
    counted = catalog.stats(None, chosen)[0]["works"]
    assert (streamed, counted) == (by_page, len(by_page))  # three ways to the same works
    return by_page


def test_every_work_appears_once_by_the_line_that_decides(catalog: Catalog) -> None:
    works = {work["doc_id"]: work for work in catalog.each(Selection())}
    assert [work.removeprefix("doi:") for work in works] == list("abcdefghi")
    assert works["doi:a"]["state"] == "obtained"  # it failed before
    assert works["doi:b"]["state"] == "obtained"  # it failed after
    assert works["doi:i"]["state"] == "taken-down"  # whatever was obtained before, whatever was refused after
    assert works["doi:b"]["host"] == "arxiv.example:8443"
    assert works["doi:d"]["host"] is None


@pytest.mark.parametrize(
    ("options", "works"),
    [
        ({"sources": ["core"]}, "c"),
        ({"sources": ["core", "arxiv"]}, "bc"),
        ({"tiers": ["direct_oa"]}, "ab"),
        ({"hosts": ["www.example.org"]}, "a"),
        ({"hosts": [".example.org"]}, "ac"),
        ({"hosts": ["ARXIV.example"]}, "b"),
        ({"hosts": ["arxiv.example:8443"]}, "b"),
        ({"hosts": ["%"]}, ""),
        ({"year": "2019-"}, "a"),
        ({"year": "2018"}, "b"),
        ({"year": "-2020"}, "ab"),
        ({"licences": ["cc-by"]}, "a"),
        ({"licences": ["CC BY-NC"]}, "b"),
        ({"licences": ["CC-BY-3.0"]}, ""),
        ({"licences": ["cc-by-4.0"]}, "a"),
        ({"licences": ["own terms"]}, "c"),
        ({"licences": ["none"]}, "defghi"),
        ({"versions": ["published"]}, "a"),
        ({"versions": ["submittedVersion", "accepted"]}, "b"),
        ({"states": ["obtained"]}, "abc"),
        ({"states": ["taken-down", "robots"]}, "fhi"),
        ({"states": ["left_out"]}, "e"),
        ({"states": ["present"]}, "d"),
        ({"text": "nets"}, "ab"),
        ({"text": "deep nets"}, "a"),
        ({"text": "100%"}, "a"),
        ({"text": "w_n"}, "b"),
        ({"text": "%"}, "a"),
        ({"text": "filters"}, "e"),
        ({"since": "2025-06-24"}, "hi"),
        ({"until": "2025-06-16"}, "a"),
        ({"since": "2025-06", "until": "2025"}, "abcdefghi"),
        ({"until": "2025-05"}, ""),
        ({"since": "13d"}, "fghi"),
        ({"since": "2025-06-18T15:06:40Z"}, "cdefghi"),  # the day after, b failed once more, which decides nothing
        ({"run_id": "r1"}, "abcdefghi"),
        ({"run_id": "r2"}, ""),
        ({"sources": ["unpaywall"], "year": "2018"}, ""),
    ],
)
def test_works_are_chosen(catalog: Catalog, options: dict[str, Any], works: str) -> None:
    assert "".join(found(catalog, **options)) == works


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"year": "soon"}, "range of years"),
        ({"versions": ["final"]}, "there are published"),
        ({"states": ["nice"]}, "there are obtained"),
        ({"since": "yesterday"}, "write 2026-03-01"),
        ({"until": "2025-13-01"}, "is not a time"),
    ],
)
def test_a_choice_that_means_nothing_is_explained(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_selection(**options)


def test_hostile_values_are_values(catalog: Catalog) -> None:
    nasty = "x' OR 1=1 --"
    for kind in ("sources", "tiers", "hosts", "licences"):
        assert found(catalog, **{kind: [nasty]}) == []
    assert found(catalog, text=nasty) == []


@pytest.mark.parametrize("limit", [1, 2, 4, 9, 10])
def test_pages_together_are_all_works_in_order(catalog: Catalog, limit: int) -> None:
    seen, after, pages = [], 0, 0
    while True:
        page = catalog.page(Selection(), after=after, limit=limit)
        seen += [work["doc_id"] for work in page.works]
        pages += 1
        assert len(page.works) <= limit
        if page.after is None:
            break
        after = page.after
    assert seen == [work["doc_id"] for work in catalog.each(Selection())]
    assert pages == -(-9 // limit)


def test_stats_by_state_and_host_agree_with_the_works(catalog: Catalog) -> None:
    by_state = {row["state"]: row["works"] for row in catalog.stats("state")}
    assert by_state == {"obtained": 3, "present": 1, "left-out": 1, "robots": 1, "failed": 1, "taken-down": 2}
    assert set(by_state) == set(STATES)
    assert {row["host"]: row["works"] for row in catalog.stats("host", Selection(tiers=("direct_oa",)))} == {
        "www.example.org": 1,
        "arxiv.example:8443": 1,
    }
    assert catalog.stats("tier", Selection(run_id="nobody")) == []
    [nothing] = catalog.stats(None, Selection(run_id="nobody"))
    assert (nothing["works"], nothing["bytes"]) == (0, 0)


@pytest.mark.slow
def test_a_first_page_does_not_read_the_record_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured in steps of the database, not in seconds."""
    from tests.contentdownload.big_record import write_big_record

    opened: list[sqlite3.Connection] = []
    connect = sqlite3.connect

    def connecting(*words: Any, **named: Any) -> sqlite3.Connection:
        opened.append(connect(*words, **named))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", connecting)
    steps = []
    for works in (2_000, 20_000):
        path = write_big_record(tmp_path / str(works), works=works, with_events=False)
        with Catalog(path) as catalog:
            catalog.page(Selection(), limit=1)
            count = 0

            def tick() -> int:
                nonlocal count
                count += 1
                return 0

            opened[-1].set_progress_handler(tick, 10)
            assert len(catalog.page(Selection(), limit=50).works) == 50
            steps.append(count)
    assert steps[1] < 2 * steps[0]


def test_a_miss_is_found_by_the_hosts_of_its_copies(tmp_path: Path) -> None:
    """CLI-11: a work without a file has no address; its copies have, and the one that decided names the host."""

    def copy(url: str, reason: str) -> dict[str, Any]:
        return {"url": url, "source": "core", "reason": reason}

    walls = [copy("https://a.example.org/1", "http-status"), copy("https://B.other.example:8443/1", "login-wall")]
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock(NOW)) as record:
        record.finish(line("doi:1", "error", reason="all_tiers_exhausted", cause="login-wall", candidates=walls))
        record.finish(line("doi:2", "error", reason="all_tiers_exhausted", cause="odd", candidates=walls[:1]))
        record.finish(line("doi:3", "error", reason="all_tiers_exhausted"))
        record.finish(line("doi:4", canonical_url="https://example.org/4.pdf", candidates=walls[1:]))
    with Catalog(tmp_path / "manifest.sqlite") as catalog:
        assert found(catalog, states=["failed"], hosts=[".example.org"]) == ["1", "2"]
        assert found(catalog, hosts=["b.other.example"]) == ["1"], "a file that was had stands where it came from"
        assert found(catalog, hosts=["b.other.example:8443"]) == ["1"]
        assert found(catalog, hosts=["ample.org", "other.example"]) == []
        assert {work["doc_id"]: work["host"] for work in catalog.each(Selection())} == {
            "doi:1": "b.other.example:8443",
            "doi:2": "a.example.org",
            "doi:3": None,
            "doi:4": "example.org",
        }
        by_host = {row["host"]: row["failed"] for row in catalog.stats("host")}
        assert by_host == {"b.other.example:8443": 1, "a.example.org": 1, "unknown": 1, "example.org": 0}


@pytest.mark.parametrize("candidates", ["", "[", "{}", "[1]", '["x"]', '[{"url": 5}]', '[{"reason": "x"}]'])
def test_copies_that_somebody_else_wrote_are_no_hosts(tmp_path: Path, candidates: str) -> None:
    with RunTelemetry(tmp_path, run_id="r1", config_hash="c", clock=ManualClock(NOW)) as record:
        record.finish(line("doi:1", "error", reason="timeout"))
    with closing(sqlite3.connect(tmp_path / "manifest.sqlite")) as db, db:
        db.execute("UPDATE manifests SET candidates = ?", (candidates,))
    with Catalog(tmp_path / "manifest.sqlite") as catalog:
        assert found(catalog, hosts=["x"]) == []
        assert [work["host"] for work in catalog.each(Selection())] == [None]
