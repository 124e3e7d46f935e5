"""The published schemas say what bundles, trust files and replay manifests really hold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from tests.orchestrator.eventful import afternoon, bundle, morning, ms

from DocsToKG.core.clock import ManualClock
from DocsToKG.Orchestrator.audit import layout
from DocsToKG.Orchestrator.audit import replay_manifest as replay
from DocsToKG.Orchestrator.audit.replay_manifest import manifest_of
from DocsToKG.Orchestrator.errors import BadBundle
from DocsToKG.Orchestrator.ledger.sqlite import SqliteLedger
from DocsToKG.Orchestrator.signing.keyring import write_trust
from DocsToKG.Orchestrator.signing.keys import new_signer

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "audit-bundle.schema.json"
OURS = new_signer("ours", ManualClock().now())
KINDS = {
    layout.MANIFEST: "manifest", layout.SIGNATURE: "envelope", layout.CHAINS: "chain", layout.HISTORY: "history",
    layout.JOBS: "job", layout.THROTTLES: "throttle", layout.QUOTAS: "action", layout.INCIDENTS: "action",
    layout.ACTIONS: "action",
}  # fmt: skip


def check(kind: str, value: Any) -> None:
    schema = {**json.loads(SCHEMA.read_text()), "$ref": f"#/$defs/{kind}"}
    Draft202012Validator(schema).validate(value)


@pytest.fixture
def ledger(tmp_path: Path, clock: ManualClock) -> Any:
    with SqliteLedger(tmp_path / "ledger.sqlite", clock=clock) as opened:
        morning(opened, clock)
        afternoon(opened, clock)
        yield opened


def test_every_line_of_a_bundle_fits_its_schema(ledger: Any, clock: ManualClock, tmp_path: Path) -> None:
    folder = bundle(ledger, 0, ms(clock), tmp_path / "day", [OURS]).path
    assert set(KINDS) == set(layout.ORDER)
    for name, kind in KINDS.items():
        lines = (folder / name).read_text().splitlines()
        assert lines, name
        for line in lines:
            check(kind, json.loads(line))


def test_a_trust_file_and_a_replay_manifest_fit_theirs(ledger: Any, tmp_path: Path) -> None:
    write_trust(tmp_path / "trust.json", [OURS.key])
    check("trust", json.loads((tmp_path / "trust.json").read_text()))
    check("replayManifest", json.loads(json.dumps(manifest_of(ledger, [OURS]))))


def test_no_job_of_a_manifest_goes_unchecked(ledger: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """One with more jobs than a manifest holds is none, and not one whose last jobs are believed as they come."""
    document = manifest_of(ledger, [])
    assert len(replay.checked(document, "m.json")) == len(document["jobs"]) > 1
    monkeypatch.setattr(replay, "MAX_JOBS", len(document["jobs"]) - 1)
    document["jobs"][-1]["input"] = {"another": "work"}
    with pytest.raises(BadBundle):
        replay.checked(document, "m.json")


def test_a_row_with_a_field_more_does_not_fit() -> None:
    with pytest.raises(Exception, match="additional"):
        check("signature", {"keyid": "x", "sig": "eA==", "more": 1})
