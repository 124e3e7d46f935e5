"""What lies on a disk or in a store, where a crash, a full disk or somebody else may have written: records, lists,
rules, entries of the cache."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from unittest import mock

from tests.fuzz.target import Target, in_a_file, text

from DocsToKG.ContentDownload.errors import ConfigError, RecordError
from DocsToKG.ContentDownload.inputs.queue_lines import read_lines
from DocsToKG.ContentDownload.maintenance.takedowns import LIST, Takedowns
from DocsToKG.ContentDownload.net.entries import StoredAnswer
from DocsToKG.ContentDownload.resolvers.site_rules.load import rules_with
from DocsToKG.ContentDownload.storage import credentials
from DocsToKG.ContentDownload.storage import uploads as unfinished
from DocsToKG.ContentDownload.storage.bucket import Bucket
from DocsToKG.ContentDownload.storage.credentials import Key, find_key
from DocsToKG.ContentDownload.telemetry.recovery import load_last_csv
from DocsToKG.ContentDownload.telemetry.resume import ResumeController
from DocsToKG.Orchestrator.api.auth.tokens import BadTokenFile, TokenFile


def resume(path: Path) -> None:
    assert all(isinstance(name, str) for name in ResumeController(path.parent).completed_ids)


def last_csv(path: Path) -> None:
    assert all(row["doc_id"] for row in load_last_csv(path))
    resume(path)


def queue_lines(data: bytes) -> None:
    for line in read_lines(io.BytesIO(data)):
        assert line.problem or (line.artifact_id and line.artifact is not None)


def cache_entry(data: bytes) -> None:
    """What the store of entries counts as a miss, and nothing else."""
    with contextlib.suppress(ValueError, TypeError, RecursionError):
        StoredAnswer.from_json(data, "1" * 32)


def takedowns(path: Path) -> None:
    found = Takedowns.read(path.parent).standing(["doi:10.5555/a"])
    assert found is None or found.sentence


def uploads(data: bytes) -> None:
    """What a bucket lists of uploads that were begun, on every page."""
    bucket = mock.Mock(spec=Bucket, prefix="")
    with mock.patch.object(unfinished, "ask", return_value=(200, text(data))):
        for name, _, begun in unfinished.begun_uploads(bucket, unfinished.Signer(Key("a", "b"), "r")):
            assert name.startswith("cas/")
            assert begun.tzinfo is not None


def bucket_key(data: bytes) -> None:
    """What the place that hands out keys answers, whichever it is. A key, or none."""
    said = {"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:9/", "AWS_ROLE_ARN": "r"}
    with mock.patch.object(credentials, "ask", return_value=text(data)):
        find_key({**said, "AWS_WEB_IDENTITY_TOKEN_FILE": __file__})


def token_file(path: Path) -> None:
    TokenFile(path).find("dtk_x")


TARGETS = {
    "manifest": Target(in_a_file("manifest.jsonl", resume), (RecordError,), is_json=True),
    "last-csv": Target(in_a_file("last.csv", last_csv), (RecordError,)),
    "queue-lines": Target(queue_lines, is_json=True),
    "cache-entry": Target(cache_entry, is_json=True),
    "takedowns": Target(in_a_file(LIST, takedowns), (RecordError,), is_json=True),
    "token-file": Target(in_a_file("tokens.json", token_file), (BadTokenFile,), is_json=True),
    "uploads": Target(uploads, (OSError, ValueError)),
    "bucket-key": Target(bucket_key, is_json=True),
    "site-rules": Target(in_a_file("rules.yaml", rules_with), (ConfigError,)),
}
