"""Commands about the configuration: show it, check it, explain it, change the user's own settings.

A command parses, calls, prints. Machine output goes to standard output, messages to standard error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from DocsToKG.ContentDownload.cli.options import ConfigOption, JsonOption

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.config.explain import Explanation
    from DocsToKG.ContentDownload.config.loader import Loaded


def show(
    config: ConfigOption = None,
    raw: Annotated[bool, typer.Option("--raw", help="One line of JSON with sorted keys.")] = False,
) -> None:
    """Show the merged configuration, secrets masked.

    Example: contentdownload print-config -c corpus.yaml, or content config show -c corpus.yaml
    """
    from DocsToKG.ContentDownload.config.models import to_printable

    printable = to_printable(_load(config).config)
    if raw:
        typer.echo(json.dumps(printable, sort_keys=True, separators=(",", ":")))
    else:
        typer.echo(json.dumps(printable, indent=2, ensure_ascii=False))


def validate(path: Annotated[str, typer.Argument(metavar="PATH", help="The file to check.")]) -> None:
    """Check a configuration file.

    Reads the file as a run would. Exit code 0: the file is valid; 1: the message names the wrong keys.

    Example: contentdownload validate-config corpus.yaml, or content config validate corpus.yaml
    """
    _load(path)
    typer.echo(f"{path}: valid", err=True)


def schema(
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to a file.")] = None,
) -> None:
    """Print the JSON Schema of the configuration.

    Example: contentdownload schema -o content.schema.json, or content config schema
    """
    from DocsToKG.ContentDownload.config.schema import json_schema

    text = json.dumps(json_schema(), indent=2, sort_keys=True)
    if output is None:
        typer.echo(text)
    else:
        output.write_text(text + "\n", encoding="utf-8")
        typer.echo(f"written to {output}", err=True)


def explain(config: ConfigOption = None, as_json: JsonOption = False) -> None:
    """Explain tiers, sources and limits.

    Example: contentdownload explain --json, or content config explain
    """
    from DocsToKG.ContentDownload.config.explain import explain as explained
    from DocsToKG.ContentDownload.resolvers import registry

    explanation = explained(_load(config).config, installed=registry.names())
    if as_json:
        typer.echo(json.dumps(explanation.to_dict(), indent=2))
    else:
        _print_explanation(explanation)


def set_(
    key: Annotated[str, typer.Argument(metavar="KEY", help="Dotted name, like contact or http.timeout_read_s.")],
    value: Annotated[str, typer.Argument(metavar="VALUE", help="The new value.")],
) -> None:
    """Write a setting to your own settings file.

    Example: content config set contact you@university.edu
    """
    from DocsToKG.ContentDownload.config.loader import set_user_value
    from DocsToKG.ContentDownload.errors import ConfigError

    try:
        file = set_user_value(key, value)
    except ConfigError as error:
        if not _is_good_without():
            raise
        raise typer.BadParameter(str(error)) from None
    typer.echo(f"{key} is set in {file}", err=True)


def _is_good_without() -> bool:
    """Whether the user's file is valid, so that the fault is in the command's arguments."""
    import os

    from DocsToKG.ContentDownload.config.environment import user_file_path
    from DocsToKG.ContentDownload.config.loader import load_config
    from DocsToKG.ContentDownload.errors import ConfigError

    file = user_file_path(os.environ)
    try:
        load_config(environ={}, user_file=file)
    except ConfigError:
        return False
    return file is not None


def get(key: Annotated[str, typer.Argument(metavar="KEY", help="Dotted name.")], config: ConfigOption = None) -> None:
    """Print one setting, and where it was set.

    Example: content config get orchestrator.max_workers
    """
    loaded = _load(config)
    value = _find(loaded, key)
    typer.echo(value if isinstance(value, str) else json.dumps(value))
    for line in _origins(loaded.origins, key):
        typer.echo(line, err=True)


def path() -> None:
    """Print where your own settings file is.

    Example: content config path
    """
    import os

    from DocsToKG.ContentDownload.config.environment import user_file_path
    from DocsToKG.ContentDownload.errors import ConfigError

    found = user_file_path(os.environ)
    if found is None:
        raise ConfigError("no home directory is known; set XDG_CONFIG_HOME")
    typer.echo(str(found))


def _origins(origins: Mapping[str, str], key: str) -> list[str]:
    """Where a setting comes from; of a section, each setting in it that was not shipped."""
    if key in origins:
        return [f"from {origins[key]}"]
    inside = [f"{name} from {origin}" for name, origin in sorted(origins.items()) if name.startswith(f"{key}.")]
    return [*inside, "the rest from the shipped defaults"] if inside else ["from the shipped defaults"]


def _load(path: str | None) -> Loaded:
    from DocsToKG.ContentDownload.config.loader import load_config_verbose

    loaded = load_config_verbose(path)
    for warning in loaded.warnings:
        typer.echo(f"Warning: {warning}", err=True)
    return loaded


def _find(loaded: Loaded, key: str) -> Any:
    from DocsToKG.ContentDownload.config.keys import find_node, nearest_key
    from DocsToKG.ContentDownload.config.models import to_printable
    from DocsToKG.ContentDownload.config.translate import canonical_keys
    from DocsToKG.ContentDownload.errors import ConfigError

    value: Any = to_printable(loaded.config)
    path = tuple(key.split("."))
    for part in path:
        if not isinstance(value, dict) or part not in value:
            same = canonical_keys(path)
            if same:
                raise ConfigError(f"{key} is another spelling of {' and '.join(same)}; use that")
            if find_node(path) is not None:
                raise ConfigError(f"{key} is not set; content config show lists what is")
            near = nearest_key(path)
            hint = f"did you mean {near}?" if near else "content config show lists them"
            raise ConfigError(f"{key} is not a setting; {hint}")
        value = value[part]
    return value


def _print_explanation(explanation: Explanation) -> None:
    from rich.console import Console

    console = Console(highlight=False, markup=False)
    if not console.is_terminal:
        # A file or a pipe has no width; nothing may be cut off there.
        console.width = 120
    console.print("Sources, in the order in which they are queried:")
    console.print(_source_table(explanation))
    factor = "" if explanation.rate_factor == 1 else f" (rates times {explanation.rate_factor:g})"
    console.print(f"\nLimits per host{factor}:")
    console.print(_limit_table(explanation))
    console.print()
    for view in (view for tier in explanation.tiers for view in tier.sources if view.way_out):
        console.print(f"{view.name}: {view.status.value}; {view.way_out}")
    unused = ", ".join(f"{view.name} ({view.status.value})" for view in explanation.unused)
    console.print(f"In no tier: {unused}")
    console.print(f"Forms taken, best first: {', '.join(explanation.formats)}")
    console.print(f"One work may cost: {_budget_text(explanation.budgets)}")
    console.print(f"Requests are signed: {explanation.user_agent}")


def _budget_text(budgets: Mapping[str, float]) -> str:
    return (
        f"{budgets['total_timeout_s']:g} s, {budgets['total_attempts']:g} requests for pages and files, "
        f"{budgets['max_concurrent']:g} sources at once, {budgets['per_source_s']:g} s for a source to answer "
        "(more where its timeout is longer)"
    )


def _source_table(explanation: Explanation) -> Any:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("tier", "source", "state", "key", "rate", "timeout", "tries", "robots"):
        table.add_column(heading, no_wrap=heading in ("source", "rate"))
    for tier in explanation.tiers:
        for place, view in enumerate(tier.sources):
            label = f"{tier.name} x{tier.parallel}" if place == 0 else ""
            robots = "obeys" if view.obeys_robots else "opts out"
            cells = (view.name, view.status.value, view.key or "-", view.rate, f"{view.timeout_s:g} s")
            table.add_row(label, *cells, str(view.max_attempts), robots)
    return table


def _limit_table(explanation: Explanation) -> Any:
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for heading in ("host", "at once", "rates"):
        table.add_column(heading, no_wrap=heading == "host")
    for host in explanation.hosts:
        rates = (f"{'' if role == '*' else role + ' '}{', '.join(texts)}" for role, texts in host.rates.items())
        table.add_row(host.host, str(host.max_concurrent), "; ".join(rates))
    return table
