"""`content audit`: replay manifests of a run, and doing its downloads again from the cache to compare them.

A command parses, calls, prints. Bundles of a ledger are `docstokg-orchestrator audit`.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.catalog.folder import folder_settings
from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.options import JsonOption, RunOption
from DocsToKG.ContentDownload.cli.tables import printable

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.Orchestrator.signing.keys import Signer


def manifest(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="What to write, such as replay.json.")],
    run: RunOption = Path(),
    job: Annotated[
        list[int] | None, typer.Option("--job", metavar="ID", help="Only this job; may be repeated.")
    ] = None,
    keys: Annotated[
        Path | None, typer.Option("--keys", metavar="DIR", help="Sign with the keys of this folder.")
    ] = None,
) -> None:
    """Write the replay manifest of a run: what each job was given, with digests, settings, versions and outcome.

    Example: content audit manifest --run corpus -o replay.json
    """
    from DocsToKG.ContentDownload.config.models import config_hash
    from DocsToKG.Orchestrator.audit.replay_manifest import manifest_of
    from DocsToKG.Orchestrator.ledger.opening import open_ledger

    cfg = folder_settings(run)
    about = {"configHash": config_hash(cfg), "run": run.resolve().name}
    path = _ledger_of(cfg)
    with open_ledger(path, url=cfg.queue.url, wal=None) as ledger:
        document = manifest_of(ledger, _signers(keys), job_ids=job, about=about)
    out.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    typer.echo(f"{out}: {len(document['jobs'])} jobs{', signed' if 'signatures' in document else ''}")


def replay_check(
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="Written by `content audit manifest`.")],
    run: RunOption = Path(),
    trust: Annotated[
        Path | None, typer.Option("--trust", metavar="KEYS", help="The manifest must be signed by one of these.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Repeat the downloads of a manifest offline, from the cache of the run, and compare the digests.

    The command sends nothing and changes nothing in the run. Exit code 1: a file differs; 3: the cache no longer holds
    what a file needs.

    Example: content audit replay-check replay.json --run corpus --trust trust.json
    """
    from DocsToKG.ContentDownload.config.models import config_hash
    from DocsToKG.ContentDownload.replaying import replay
    from DocsToKG.Orchestrator.audit.replay_manifest import checked

    cfg = folder_settings(run)
    document = _believed(manifest, trust)
    jobs = checked(document, manifest.name)
    if document["about"].get("configHash") not in (None, config_hash(cfg)):
        typer.echo("Warning: the settings of the run have changed since the manifest was written.", err=True)
    found: Counter[str] = Counter()
    for one in replay(cfg, jobs):
        found[one.verdict] += 1
        if as_json:
            typer.echo(json.dumps(asdict(one)))
        elif one.verdict != "same":
            typer.echo(printable(f"{one.verdict}  job {one.job_id}  {one.artifact_id}  {one.detail or ''}"))
    if not as_json:
        typer.echo(f"{sum(found.values())} jobs: " + ", ".join(f"{count} {word}" for word, count in found.items()))
    if found["different"]:
        raise typer.Exit(ExitCode.FAILED)
    if found["not kept"]:
        raise typer.Exit(ExitCode.INCOMPLETE)


def _ledger_of(cfg: ContentDownloadConfig) -> Path:
    from DocsToKG.Orchestrator.errors import LedgerUnusable

    path = Path(cfg.queue.path)
    if cfg.queue.url is None and not path.is_file():
        raise LedgerUnusable(f"there is no ledger at {path}; name the folder of a run with --run")
    return path


def _signers(keys: Path | None) -> list[Signer]:
    from DocsToKG.core.clock import SystemClock
    from DocsToKG.Orchestrator.signing.keyring import KeyFolder

    return [] if keys is None else KeyFolder(keys).signers(SystemClock().now())


def _believed(path: Path, trust: Path | None) -> Any:
    from DocsToKG.core.clock import SystemClock
    from DocsToKG.Orchestrator.audit.saved_responses import read_answer, verify_answer
    from DocsToKG.Orchestrator.errors import BadBundle
    from DocsToKG.Orchestrator.signing.keyring import read_trust
    from DocsToKG.Orchestrator.signing.keys import Trust

    if trust is not None:
        report = verify_answer(path, Trust(read_trust(trust), SystemClock().now()))
        if not report.proved:
            raise BadBundle(path.name, report.problems[0])
    try:
        return read_answer(path)
    except (OSError, ValueError, RecursionError):
        raise BadBundle(path.name, "cannot be read as JSON") from None
