"""Audit bundles from the command line: `docstokg-orchestrator audit`.

Exit code 1 says that something is not proved or could not be done.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.Orchestrator.cli.options import JsonOption, ServedOption, ServerFile, ledger_of, printable, settings_of

if TYPE_CHECKING:
    from DocsToKG.Orchestrator.audit.verify import Report
    from DocsToKG.Orchestrator.settings import ServerSettings
    from DocsToKG.Orchestrator.signing.keys import Trust

app = typer.Typer(no_args_is_help=True, help="Export the history as signed bundles, and verify them.")

Keys = Annotated[
    Path | None,
    typer.Option("--keys", metavar="DIR", help="Folder of your own keys.", show_default="keys, beside the ledger"),
]
TrustOption = Annotated[
    Path, typer.Option("--trust", metavar="KEYS", help="Trust file, public key file, or a folder of them.")
]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Accept keys that were valid at this time.", show_default="now"),
]
Threshold = Annotated[int, typer.Option("--threshold", min=1, help="How many trusted keys must have signed.")]
Key = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="NAME|ID", help="Sign with this key; may be repeated.", show_default="all"),
]


@app.command("export")
def export(
    start: Annotated[str, typer.Option("--from", metavar="TIME", help="Beginning, in UTC: 2026-11-01 or with a time.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR|FILE.tar.zst", help="File or folder to write; must not exist.")
    ],
    end: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help="End, not included.", show_default="now")
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only of this tenant.", show_default="all")] = None,
    key: Key = None,
    keys: Keys = None,
    ledger: ServedOption = None,
    config: ServerFile = None,
    as_json: JsonOption = False,
) -> None:
    """Write the history of a time range as a signed bundle: the same range gives the same bytes.

    Example: docstokg-orchestrator audit export --from 2026-11-01 --to 2026-12-01 -o november.tar.zst
    """
    from DocsToKG.Orchestrator.audit.export import export as write
    from DocsToKG.Orchestrator.audit.range_reader import Range

    settings = settings_of(ledger, config, signing_keys=keys)
    signers = folder_of(settings).signers(now(), key or ())
    with ledger_of(settings) as opened, _cleaned_up():
        until = opened.read(lambda tx: tx.now_ms) if end is None else _time("--to", end)
        made = write(opened, Range(_time("--from", start), until, tenant), signers, out)
    if as_json:
        typer.echo(json.dumps({"path": str(made.path), "rows": made.rows, "manifestSha256": made.manifest_sha256}))
        return
    typer.echo(f"{made.path}: {made.rows['history.jsonl']} rows of history, {made.rows['jobs.jsonl']} jobs")
    typer.echo(f"manifest sha256 {made.manifest_sha256}, signed by {', '.join(s.key.name for s in signers)}")


@app.command("verify")
def verify(
    bundles: Annotated[list[Path], typer.Argument(metavar="BUNDLE...", help="One, or several in their order.")],
    trust: TrustOption,
    at: At = None,
    threshold: Threshold = 1,
    as_json: JsonOption = False,
) -> None:
    """Verify bundles, without server or database. Several bundles must follow one another.

    Checks signatures, digests, counts, every hash chain, and that the history of each job leads to its state.
    A .json file is an answer of the service, or a replay manifest, that was saved: its signatures are checked.

    Example: docstokg-orchestrator audit verify october.tar.zst november.tar.zst --trust trust.json
    """
    from DocsToKG.Orchestrator.audit.saved_responses import is_answer, verify_answer
    from DocsToKG.Orchestrator.audit.verify import verify_sequence

    believed = trusted(trust, at, threshold)
    reports = [verify_answer(path, believed) for path in bundles if is_answer(path)]
    reports += verify_sequence([path for path in bundles if not is_answer(path)], believed)
    for report in reports:
        typer.echo(json.dumps(_json(report)) if as_json else _line(report))
    if not all(report.proved for report in reports):
        raise typer.Exit(1)


@app.command("manifest")
def manifest(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.json", help="What to write.")],
    job: Annotated[
        list[int] | None, typer.Option("--job", metavar="ID", help="Only this job; may be repeated.")
    ] = None,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only of this tenant.", show_default="all")] = None,
    key: Key = None,
    keys: Keys = None,
    ledger: ServedOption = None,
    config: ServerFile = None,
) -> None:
    """Write the signed replay manifest of jobs: what each was given, with digests, and what came of it.

    `content audit replay-check` does downloads again from the cache of a run and compares them with a manifest.

    Example: docstokg-orchestrator audit manifest --job 17 -o job-17.json
    """
    from DocsToKG.Orchestrator.audit.replay_manifest import manifest_of

    settings = settings_of(ledger, config, signing_keys=keys)
    signers = folder_of(settings).signers(now(), key or ())
    with ledger_of(settings) as opened:
        document = manifest_of(opened, signers, job_ids=job, tenant=tenant)
    out.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    typer.echo(f"{out}: {len(document['jobs'])} jobs, signed by {', '.join(s.key.name for s in signers)}")


def _json(report: Report) -> dict[str, Any]:
    signers = [
        {"keyid": key.key_id, "name": key.name, "trusted": key.key_id in report.trusted} for key in report.signers
    ]
    span = report.manifest.get("range")
    return {"path": str(report.path), "proved": report.proved, "problems": report.problems, "range": span,
            "tenant": report.manifest.get("tenant"), "signers": signers, "rows": report.rows}  # fmt: skip


def _line(report: Report) -> str:
    if not report.proved:
        return "\n".join([f"NOT PROVED  {report.path}", *(f"  {printable(one)}" for one in report.problems)])
    who = ", ".join(
        f"{key.name} ({key.key_id[:16]}{'' if key.key_id in report.trusted else ', not trusted'})"
        for key in report.signers
    )
    if not report.manifest:
        what = "whole" if report.rows["whole"] else f"{report.rows['signed']} entries, and nothing beside them"
        return f"proved  {report.path}  {what}; signed by {who}"
    span, rows = report.manifest["range"], report.rows
    return (
        f"proved  {report.path}  {span['from']} to {span['to']}, tenant {report.manifest['tenant'] or 'all'}:"
        f" {rows['history.jsonl']} rows of history, {rows['jobs.jsonl']} jobs, {len(report.chains)} chains;"
        f" signed by {who}"
    )


def trusted(path: Path, at: str | None, threshold: int) -> Trust:
    from DocsToKG.Orchestrator.signing.keyring import read_trust
    from DocsToKG.Orchestrator.signing.keys import Trust

    return Trust(read_trust(path), now() if at is None else _time("--at", at) / 1000, threshold)


def _time(option: str, text: str) -> int:
    """Milliseconds of a date or time; UTC where it names no zone."""
    try:
        found = datetime.fromisoformat(text)
        return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)
    except (ValueError, OverflowError):
        raise typer.BadParameter(f"{option}: {text[:40]!r} is no time; say 2026-11-01 or 2026-11-01T08:30Z") from None


def now() -> float:
    from DocsToKG.core.clock import SystemClock

    return SystemClock().now()


def folder_of(settings: ServerSettings) -> Any:
    from DocsToKG.Orchestrator.signing.keyring import KeyFolder

    return KeyFolder(settings.keys_path)


@contextmanager
def _cleaned_up() -> Iterator[None]:
    """Clean up on SIGTERM as on Ctrl+C."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
