"""A run whose files are in a bucket, from pull to takedown, by its commands. STO-06, STO-09."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from tests.contentdownload.conftest import client_settings
from tests.warm import WarmPrograms

from DocsToKG.ContentDownload.storage.bucket import Bucket
from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow

WORKS = 12


class Corpus:
    """A folder, a bucket, and the commands over them."""

    def __init__(self, sandbox: SandboxServer, root: Path, bucket: Bucket, programs: WarmPrograms) -> None:
        self.root = root
        self.programs = programs
        self.bucket = bucket
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("D")}
        settings = client_settings(sandbox, root / "run")
        for section in ("telemetry", "queue", "hishel"):
            del settings[section]
        settings["storage"] = {"min_free_bytes": 0, "root_dir": bucket.url}
        (root / "config.json").write_text(json.dumps(settings))
        dois = [work.doi for number in range(WORKS) if (work := sandbox.world.by_index(number)) is not None]
        (root / "ids.txt").write_text("\n".join(dois))

    def content(self, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = self.programs.run("content", words, env=self.environment, cwd=self.root)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done

    def pull(self) -> subprocess.CompletedProcess[str]:
        done = self.content("pull", "ids.txt", "-c", "config.json", "--out", "run", "--quiet")
        assert "Traceback" not in done.stderr
        return done

    def told(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.content(*words, "--run", "run", "--json", code=code).stdout)

    def keys(self) -> set[str]:
        return {found.key for found in self.bucket.list("cas")}


@pytest.fixture(params=["s3", "swift"])
def corpus(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: WarmPrograms
) -> Iterator[Corpus]:
    parts = urlsplit(request.getfixturevalue(f"{request.param}_url"))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{parts.hostname}:{parts.port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", unquote(parts.username or ""))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", parts.password or "")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    bucket = Bucket(parts.path.strip("/"), prefix=f"t-{uuid.uuid4().hex}")
    with SandboxServer(works=WORKS, seed=7, faults=Faults.none()) as sandbox:
        yield Corpus(sandbox, tmp_path, bucket, warm)


def test_a_corpus_in_a_bucket_is_pulled_checked_and_looked_after(corpus: Corpus) -> None:
    done = corpus.pull()
    assert corpus.bucket.url in done.stdout
    keys = corpus.keys()
    assert len(keys) > WORKS // 2
    assert not list((corpus.root / "run").glob("PDF/*"))
    assert not list((corpus.root / "run" / ".tmp").iterdir())

    works = corpus.told("catalog", "query", "--state", "obtained")["works"]
    assert {work["path"] for work in works} == keys
    (place,) = corpus.told("catalog", "where", works[0]["doc_id"])
    assert (place["path"], place["exists"]) == (f"{corpus.bucket.url}/{works[0]['path']}", True)

    # A second pull finds everything there and stores nothing.
    before = {found.key: found.modified for found in corpus.bucket.list("cas")}
    corpus.pull()
    assert {found.key: found.modified for found in corpus.bucket.list("cas")} == before

    corpus.bucket.put(works[1]["path"], b"damaged", 7, name="x.pdf")
    found = corpus.told("catalog", "verify", "--quiet", code=1)
    assert [one["doc_ids"] for one in found["damaged"]] == [[works[1]["doc_id"]]]
    corpus.content("catalog", "verify", "--repair", "--quiet", "--run", "run")
    assert corpus.bucket.digest(works[1]["path"]) == works[1]["sha256"]

    corpus.content("takedown", works[0]["doc_id"], "--run", "run", "--reason", "asked")
    assert corpus.keys() == keys - {works[0]["path"]}
    corpus.told("catalog", "where", works[0]["doc_id"], code=1)

    corpus.bucket.put(f"cas/sha256/ab/{'c' * 62}", b"nobody's", 8, name="x.pdf")
    assert corpus.told("catalog", "gc") == {"unnamed": [], "bytes": 0, "removed": 0}  # it is young


def test_a_bucket_that_cannot_be_used_is_said_before_anything_is_fetched(corpus: Corpus) -> None:
    corpus.environment["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1"
    done = corpus.content("pull", "ids.txt", "-c", "config.json", "--out", "run", "--quiet", code=1)
    assert "storage.s3_bucket" in done.stderr
    assert "AWS_ENDPOINT_URL" in done.stderr
    assert "Traceback" not in done.stderr
    assert corpus.environment["AWS_SECRET_ACCESS_KEY"] not in done.stderr
