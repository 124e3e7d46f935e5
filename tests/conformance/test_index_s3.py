"""Snapshots and lists in a bucket: listed, fetched part by part, and not kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from obstore.store import S3Store
from tests.conformance.conftest import BUCKET, s3_environment
from tests.contentdownload.index_files import built, works, write_lines

from DocsToKG.ContentDownload.errors import InputError
from DocsToKG.ContentDownload.index.engine import Limits
from DocsToKG.ContentDownload.index.planning import plan_list


@pytest.fixture
def bucket(s3_url: str, monkeypatch: pytest.MonkeyPatch) -> S3Store:
    for name, value in s3_environment(s3_url).items():
        monkeypatch.setenv(name, value)
    return S3Store(BUCKET, client_options={"allow_http": os.environ["AWS_ENDPOINT_URL"].startswith("http://")})


@pytest.mark.slow
def test_a_snapshot_and_a_list_are_read_from_a_bucket(bucket: S3Store, tmp_path: Path) -> None:
    for number in range(3):
        part = write_lines(tmp_path / f"part_{number}.gz", works(20, first=20 * number))
        bucket.put(f"index/works/updated_date=2026-06-0{number + 1}/part_0000.gz", part.read_bytes())
    bucket.put("index/works/manifest", b"{}")
    bucket.put("index/ids.csv", b"doi\n10.5555/work.0\n10.5555/work.59\n10.5555/none\n")
    manifest = built(tmp_path / "oa", f"s3://{BUCKET}/index/works/")
    assert (manifest.works, manifest.sources["openalex"].files) == (60, 3)
    assert built(tmp_path / "one", f"s3://{BUCKET}/index/works/updated_date=2026-06-02").works == 20
    assert not (tmp_path / "oa" / "building").exists()
    limits = Limits(spill=tmp_path / "spill")
    source = f"s3://{BUCKET}/index/ids.csv"
    plan = plan_list(tmp_path / "oa", [source], limits=limits, spill=tmp_path / "spill", asks_services=False)
    assert (plan.open, plan.closed, plan.unknown) == (1, 1, 1)


def test_an_empty_place_in_a_bucket_is_said(bucket: S3Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"s3://.*/nothing: no file of openalex is there"):
        built(tmp_path / "oa", f"s3://{BUCKET}/nothing")
    with pytest.raises(InputError, match=r"s3://.*/none\.gz cannot be read"):
        built(tmp_path / "oa", f"s3://{BUCKET}/none.gz")
