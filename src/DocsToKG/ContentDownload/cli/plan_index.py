"""`content plan --index`: what a list comes to, without asking anyone."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from DocsToKG.ContentDownload.cli.group import ExitCode
from DocsToKG.ContentDownload.cli.tables import json_text, print_table, size_text

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig
    from DocsToKG.ContentDownload.index.planning import HostPlan, ListPlan

_SHOWN = 10
_OF_A_USER = ("arxiv.org",)  # whose limits hold for all machines of a user together


def plan_from_index(cfg: ContentDownloadConfig, sources: list[str], *, as_json: bool) -> None:
    """Print the plan of the list; exit code 3 when some works have no open copy."""
    from DocsToKG.ContentDownload.index.engine import Limits
    from DocsToKG.ContentDownload.index.planning import plan_list

    assert cfg.index.path is not None
    with tempfile.TemporaryDirectory(prefix="docstokg-plan-") as spill:
        limits = Limits(cfg.index.memory_bytes, spill=Path(spill))
        root, asks = Path(cfg.index.path).expanduser(), cfg.index.then != "never"
        plan = plan_list(root, sources, limits=limits, spill=Path(spill), asks_services=asks)
    hosts = plan.hosts(_rate_of(cfg))
    if as_json:
        typer.echo(json_text(_as_json(plan, hosts)))
    else:
        _print(plan, hosts, asks=asks)
    if plan.open < plan.lines.works or plan.lines.unusable:
        raise typer.Exit(ExitCode.INCOMPLETE)


def _rate_of(cfg: ContentDownloadConfig) -> Callable[[str], float]:
    """The requests per second that the configured limits allow for a host."""
    from DocsToKG.ContentDownload.config.rules import host_rules

    default, hosts = host_rules(cfg)

    def per_second(host: str) -> float:
        rates = hosts.get(host, default).rates
        slowest = min((rate.per_second for some in rates.values() for rate in some), default=1.0)
        return slowest * cfg.limits.rate_factor

    return per_second


def _as_json(plan: ListPlan, hosts: list[HostPlan]) -> dict[str, Any]:
    return {
        "index_built_at": plan.built_at,
        "lines": plan.lines.lines,
        "works": plan.lines.works,
        "lines_without_identifier": plan.lines.unusable,
        "open": plan.open,
        "closed": plan.closed,
        "unknown": plan.unknown,
        "copies": plan.copies,
        "by_source": dict(plan.by_source.most_common()),
        "by_host": dict(plan.by_host.most_common()),
        "by_license": dict(plan.by_license.most_common()),
        "by_version": dict(plan.by_version.most_common()),
        "requests": sum(plan.requests.values()),
        "size_bytes": plan.size_bytes,
        "money_usd": 0,
        "hours": hosts[0].hours if hosts else 0.0,
        "hosts": [{"host": one.host, "requests": one.requests, "hours": one.hours} for one in hosts],
    }


def _print(plan: ListPlan, hosts: list[HostPlan], *, asks: bool) -> None:
    works = plan.lines.works
    typer.echo(
        f"{works:,} works in {plan.lines.lines:,} lines, by the index built at {plan.built_at}; no service was asked."
    )
    rest = "a pull asks services for them" if asks else "a pull does not ask services for them"
    print_table(
        ("", "works", "why"),
        [
            ("open", f"{plan.open:,}", f"{plan.copies:,} copies are known"),
            ("closed", f"{plan.closed:,}", "not available: the index's sources list no open copy"),
            ("unknown to the index", f"{plan.unknown:,}", rest),
            ("lines without identifier", f"{plan.lines.unusable:,}", "name no paper"),
        ],
    )
    for what, counts in (
        ("source", plan.by_source),
        ("license", plan.by_license),
        ("version", plan.by_version),
        ("host", plan.by_host),
    ):
        typer.echo(f"First copies by {what}: {_most(counts)}")
    requests = sum(plan.requests.values())
    typer.echo(f"At least {requests:,} requests, no money, about {size_text(plan.size_bytes)} (1.5 MB a paper).")
    if hosts:
        rows = [(one.host, f"{one.requests:,}", f"{one.hours:,.1f}") for one in hosts[:_SHOWN]]
        print_table(("host", "requests", "hours"), rows, title="Time at the limits of the configuration")
        typer.echo(_bottleneck(hosts))


def _bottleneck(hosts: list[HostPlan]) -> str:
    """Which host decides how long it takes, and what would change that."""
    first = hosts[0]
    text = f"At least {first.hours:,.1f} hours in all: {first.host} takes longest"
    if first.host.endswith(_OF_A_USER):
        text += ", and its limit holds for all your machines together"
    else:
        text += "; a second network address halves that, a second machine behind the same address does not"
    return f"{text}. Without it: {hosts[1].hours:,.1f} hours." if len(hosts) > 1 else f"{text}."


def _most(counts: Counter[str]) -> str:
    more = len(counts) - _SHOWN
    shown = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(_SHOWN))
    return (shown or "none") + (f" and {more:,} more" if more > 0 else "")
