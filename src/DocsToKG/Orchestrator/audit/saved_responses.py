"""Verify saved responses of the service, and replay manifests: every object in a file that carries signatures.

Promises: keys, moment and threshold as for bundles; a file without signatures is not proved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from DocsToKG.Orchestrator.audit.verify import Report
from DocsToKG.Orchestrator.control.jobs.views import job_digest
from DocsToKG.Orchestrator.errors import BadBundle, NotVerified
from DocsToKG.Orchestrator.signing import statements
from DocsToKG.Orchestrator.signing.keys import Trust

MAX_BYTES = 64 * 1_048_576
REPLAY_SCHEMA = "docstokg.replay-manifest.v1"


def is_answer(path: Path) -> bool:
    return path.suffix == ".json" and not path.is_dir()


def verify_answer(path: Path, trust: Trust) -> Report:
    """Check a saved answer or a replay manifest."""
    report = Report(path, trusted=trust.ids)
    try:
        answer = read_answer(path)
        parts = list(statements.signed_parts(answer))
    except (OSError, ValueError, RecursionError) as error:
        said = error.strerror if isinstance(error, OSError) else "it is not JSON, says a name twice, or is too large"
        report.problems.append(f"{path.name}: cannot be read: {said}")
        return report
    if not parts:
        report.problems.append(f"{path.name}: nothing in it is signed")
    try:
        for place in statements.unsigned_parts(answer):
            report.wrong(f"{path.name}{place}", "is not signed, though what stands beside it is")
        for place, part in parts:
            problem = _problem(part, trust, report)
            if problem is not None:
                report.wrong(f"{path.name}{place}", problem)
    except BadBundle as error:
        report.problems.append(str(error))
    report.rows = {"signed": len(parts), "whole": len(parts) == 1 and not parts[0][0]}
    return report


def _problem(part: Mapping[str, Any], trust: Trust, report: Report) -> str | None:
    kind = statements.REPLAY if part.get("schema") == REPLAY_SCHEMA else statements.ANSWER
    try:
        ids = statements.verify(part, kind, trust.keys, trust.now, trust.threshold)
    except NotVerified as error:
        return f"is not to be believed ({error.reason}): {error}"
    known = {key.key_id: key for key in report.signers}
    report.signers = list({**known, **{key.key_id: key for key in trust.keys if key.key_id in ids}}.values())
    if "jobDigest" in part and "artifactId" in part and part["jobDigest"] != _job_digest(part):
        return "its jobDigest is not that of its fields"
    return None


def _job_digest(part: Mapping[str, Any]) -> str | None:
    try:
        return job_digest({**part, "jobId": part["id"]})
    except KeyError:
        return None


def read_answer(path: Path) -> Any:
    """The JSON of a file; ValueError where there is none, or more of it than an answer has."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError
    return json.loads(data, object_pairs_hook=_each_once)


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name that is told twice means one thing to one reader and another to the next."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found
