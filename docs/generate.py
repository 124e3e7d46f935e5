"""Write the reference pages that follow from the code: `python docs/generate.py`, or `--check` to compare only.

Knows the command lines, the settings and the error classes by looking at them. Promises: equal code gives equal
pages, so that a page which differs has gone stale.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretStr
from pydantic.fields import FieldInfo
from typer.main import get_command

import DocsToKG
from DocsToKG.ContentDownload.cli.tables import markdown_table

REFERENCE = Path(__file__).parent / "reference"
NOTE = "<!-- Written by docs/generate.py from the code. Change the code, then run it again. -->"

COMMANDS_TEXT = """\
`content` and `contentdownload` are two names of one program ([two names](../howto/two-programs.md));
`python -m DocsToKG.ContentDownload.cli_v2` starts it, too. `docstokg-orchestrator` reads a ledger and serves it over
HTTP. In a clone, put `./dev run` before each command. [Exit codes](exit-codes.md) are the same for all commands."""
SETTINGS_TEXT = """\
A file (YAML or JSON) is named with `-c FILE` or by `DOCSTOKG_CONTENT_CONFIG`. Later beats earlier: shipped settings,
your own (`content config set`, in the file that `content config path` names), the file, the environment, the command
line. A variable is `DOCSTOKG_CONTENT_` and the key in capitals with `__` for the dot:
`DOCSTOKG_CONTENT_ORCHESTRATOR__MAX_WORKERS=16`. An unknown key is an error that names the nearest one.
`contentdownload print-config` shows what holds, `contentdownload explain` what it means, and `contentdownload schema`
prints the JSON Schema for editors. [A full example](../examples/full.yaml)."""
ERRORS_TEXT = """\
A class answers one question: what should the caller do? The detail is in its `reason` and its message, which names
the thing and the way out. How a work ends is no exception but a `DownloadOutcome`. A command that meets one prints
its message and leaves 1, or 2 for `InputError`: [exit codes](exit-codes.md). `SkipDownload` is another name of
`CandidateRejected`, `DownloadError` of `TransientFailure`."""


HTTP_TEXT = """\
What `docstokg-orchestrator serve` answers under `/api/v1/orchestrator`; `/api/jobs` is the same as
`/api/v1/orchestrator/jobs`, and so on. `/openapi/orchestrator.json` describes every field (OpenAPI 3.1), and
`/.well-known/openapi` says where it is; `/healthz` and `/readyz` need no token. Events are described in
[event envelope](../modules/orchestrator/event-envelope.md), and how to begin in
[serve the ledger](../howto/serve-the-ledger.md).

A call carries `Authorization: Bearer TOKEN`. A token for several tenants names one in `X-Tenant`; `for *` needs a token
for all of them. What must be said comes in the body or in `X-Reason` and `X-Ticket`, and is kept. A POST with an
`Idempotency-Key` acts once. Lists have `page_size` and `page_token`. `If-Match` with the `ETag` of a policy, quota,
tenant or incident changes only the version that was read. Every error is
`{"error": {"code", "message", "trace_id"}}`."""
SERVER_TEXT = """\
In a YAML or JSON file that `serve -c FILE` names. Without one the service opens the queue of the folder, listens on
this machine only, and takes the tokens of `docstokg-orchestrator token`."""

METRICS_TEXT = """\
What a run shows of itself while it works: figures, spans and a log. All of it is off unless you ask for it:
[how to watch a run](../howto/watch-the-queue.md). Names are exported as they stand; no unit is added to them.
No label is a URL or the name of a work. A label has at most 64 values (`reason` and `status` 128, `host` as
`telemetry.metrics_hosts` says) of printable characters; what comes after those is `other`, and
`contentdownload_labels_folded_total` counts it. A value that is missing is `none`.

Gauges are looked up when somebody asks, in the ledger or in the processes, and never counted up and down, so that they
cannot drift. With `--processes` one page stands for the whole run."""
FAMILY_TEXTS = {
    "contentdownload": ("The queue and its jobs", ""),
    "content": (
        "The network and the yield",
        "`content_queue_depth` is `contentdownload_queue_depth`, and one exchange feeds `content_http_latency_ms` as "
        "well as `contentdownload_http_latency_ms`, unless the cache answered. `content_yield_ratio` leaves out works "
        "that were there already or that your filters refuse, as the report does. `host` is the key of a breaker that "
        "is a source's (`resolver:...`).",
    ),
    "job": (
        "Jobs of any type",
        "`job_failures_total` is `contentdownload_jobs_failed_total`, `job_retry_total` the sum of "
        "`contentdownload_jobs_retried_total`. The last three stay at nothing where no pack run is.",
    ),
    "more": ("More", ""),
}
SPANS_TEXT = """\
```
enqueue
  schedule, lease
  worker_execute
    job
      artifact
        content.process_work
          resolve.tier
            http.request
            download
              prepare, stream
              finalize
                verify
              http.request
      catalog.write
      complete
orchestrator.dispatch
```

The trace that begins when a work is put on the ledger goes on in whatever process works on it: a job carries its
`traceparent`. A job that a producer gave one continues the producer's trace. `url` is masked.

Behind a service (`otlp_endpoint` in its settings, or `opentelemetry-instrument` around it), the service makes
`enqueue`, `schedule`, `lease` and a `complete` of its own, with `job.type` and `tenant`; the worker's
`worker_execute` is below `lease`.
`job.outcome` is `done`, `skipped`, `error`, `retried`, `released` or `lost`."""
EVENTS_TEXT = """\
A line has `timestamp`, `level`, `event`, `run_id`, `job_id` (null where it is about no job) and `workerId`; a line
about a job has `jobId`, `jobType`, `tenant`, `leaseId` and `artifact_id` as well, and `incident: true` is for
operators. Keys and signatures in addresses are masked, control characters escaped, values cut after 500 characters and
lines after 8,000. `reason` of a `backoff` is `429`, `5xx`, `robots-denied`, `rate-limit` or what the connection failed
with; `decision` of `robots` is `fetched`, `blocked`, `timeout`, `unreachable` or the status that answered."""


def main(words: Sequence[str]) -> int:
    pages = {
        "cli.md": cli_page(),
        "config.md": config_page(),
        "errors.md": errors_page(),
        "metrics.md": metrics_page(),
        "http-api.md": http_page(),
    }
    stale = [name for name, text in pages.items() if _read(REFERENCE / name) != text]
    if "--check" in words:
        for name in stale:
            print(f"docs/reference/{name} is stale: run python docs/generate.py", file=sys.stderr)
        return 1 if stale else 0
    REFERENCE.mkdir(exist_ok=True)
    for name in stale:
        (REFERENCE / name).write_text(pages[name], encoding="utf-8")
    print(f"written: {', '.join(stale) or 'nothing, all pages are fresh'}")
    return 0


def _read(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _page(title: str, *parts: Iterable[str]) -> str:
    lines = [f"# {title}", "", NOTE]
    for part in parts:
        lines += ["", *part]
    return "\n".join(lines) + "\n"


def _first_words(text: str | None) -> str:
    """The first paragraph of a docstring in one line."""
    return " ".join((inspect.cleandoc(text or "").split("\n\n")[0]).split())


# command lines


def cli_page() -> str:
    from DocsToKG.ContentDownload.cli.app import app
    from DocsToKG.Orchestrator.cli.app import app as ledger_app

    content, ledger = get_command(app), get_command(ledger_app)
    return _page(
        "Commands",
        [COMMANDS_TEXT],
        ["## Options before the command", "", *_parameters(content)],
        ["## `content` and `contentdownload`"],
        *(_command(f"content {name}", content.commands[name]) for name in content.commands),
        ["## `docstokg-orchestrator`"],
        *(_command(f"docstokg-orchestrator {name}", ledger.commands[name]) for name in ledger.commands),
    )


def _command(name: str, command: Any) -> list[str]:
    if inner := getattr(command, "commands", None):
        lines = [f"### `{name}`", "", _first_words(command.help)]
        for word, child in inner.items():
            lines += ["", *_command(f"{name} {word}", child)]
        return lines
    usage = " ".join([name, *_usage(command)])
    return [f"### `{name}`", "", _first_words(command.help), "", f"`{usage}`", "", *_parameters(command)]


def _usage(command: Any) -> Iterator[str]:
    for param in command.params:
        if param.param_type_name == "argument":
            shown = param.metavar or param.name.upper()
            yield shown if param.required or shown.startswith("[") else f"[{shown}]"
    if any(param.param_type_name == "option" and not param.hidden for param in command.params):
        yield "[OPTIONS]"


def _parameters(command: Any) -> list[str]:
    # How completion is installed depends on the shell that asks, so it is not part of the page.
    shown = [param for param in command.params if not param.hidden and "completion" not in param.name]
    if not shown:
        return ["No options."]
    return markdown_table(("option", "default", "meaning"), (_parameter(param) for param in shown))


def _parameter(param: Any) -> tuple[str, str, str]:
    if param.param_type_name == "argument":
        name = f"`{param.metavar or param.name.upper()}`"
    else:
        name = ", ".join(f"`{spelling}`" for spelling in (*param.opts, *param.secondary_opts))
        if not param.is_flag:
            name += f" {_value_name(param)}"
    return name, _default_of(param), param.help or ""


def _default_of(param: Any) -> str:
    if param.required:
        return "needed"
    if isinstance(param.show_default, str):  # in words, where it follows from something else
        return param.show_default
    return "" if getattr(param, "is_flag", False) else _literal(param.default)


def _value_name(param: Any) -> str:
    kind = _bare(param.type_descriptor.annotation)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return " or ".join(f"`{member.value}`" for member in kind)
    if get_origin(kind) is Literal:
        return " or ".join(f"`{word}`" for word in get_args(kind))
    bounds = _bounds(param.min, param.max)
    return f"{param.metavar or 'N' if kind in (int, float) else param.metavar or 'TEXT'}{bounds and f', {bounds}'}"


# settings


def config_page() -> str:
    from DocsToKG.ContentDownload.config.environment import KNOWN_VARIABLES, SHORT_NAMES
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig

    simple = {name: info for name, info in ContentDownloadConfig.model_fields.items() if not _section_of(info)}
    return _page(
        "Settings",
        [SETTINGS_TEXT],
        ["## General", "", *_settings("", simple)],
        *(
            [f"## {name}", "", info.description or "", "", *_section(name, _section_of(info))]
            for name, info in ContentDownloadConfig.model_fields.items()
            if _section_of(info)
        ),
        [
            "## Other spellings",
            "",
            "Accepted, and translated to the keys above.",
            "",
            *markdown_table(("key", "value", "sets"), _other_spellings()),
        ],
        [
            "## Other variables",
            "",
            *markdown_table(
                ("variable", "sets"),
                [
                    *(
                        (f"`DOCSTOKG_CONTENT_{key.upper()}`", f"`{'.'.join(path)}`")
                        for key, path in SHORT_NAMES.items()
                    ),
                    ("`DOCSTOKG_CONTENT_RATE_LIMIT_<SOURCE>`", "`policies.<source>.rate_limit`"),
                    *((f"`{name}`", f"`{'.'.join(path)}`") for name, path in KNOWN_VARIABLES.items()),
                ],
            ),
            "",
            "`DTKG_` works as a prefix too; where both are set, `DOCSTOKG_CONTENT_` holds.",
        ],
    )


def _other_spellings() -> Iterator[tuple[str, str, str]]:
    from DocsToKG.ContentDownload.config.keys import TRANSLATED_KEYS
    from DocsToKG.ContentDownload.config.translate import canonical_keys

    # A value of a known key, so not in the list of keys.
    yield "`storage.backend`", "`sqlite` or `postgres`", "`catalog.backend`, `queue.backend`"
    for key, kind in TRANSLATED_KEYS.items():
        same = canonical_keys(tuple(key.split("."))) or [key.replace(".mailto", ".email")]
        yield f"`{key}`", _type_name(kind), _codes(same)


def _section(name: str, section: tuple[str, type[BaseModel]] | None) -> list[str]:
    assert section is not None
    suffix, model = section
    if name != "resolvers":
        return _settings(name + suffix, model.model_fields)
    return _sources(model)


def _sources(model: type[BaseModel]) -> list[str]:
    """The sources share their keys: listed once, with the sources that have a key of their own."""
    sources = {name: section[1] for name, info in model.model_fields.items() if (section := _section_of(info))}
    plain = {name: info for name, info in model.model_fields.items() if name not in sources}
    shared = set.intersection(*(set(kind.model_fields) for kind in sources.values()))
    first = next(iter(sources.values()))
    own = sorted({key for kind in sources.values() for key in kind.model_fields} - shared)
    keys = {name: info for name, info in first.model_fields.items() if name in shared}
    rows = [(f"`{name}`", model.model_fields[name].description) for name in sources]
    lines = [*_settings("resolvers", plain), "", *markdown_table(("source", "is"), rows)]
    lines += ["", "Keys of every source:", "", *_settings("resolvers.<source>", keys)]
    for key in own:
        having = [name for name, kind in sources.items() if key in kind.model_fields]
        info = sources[having[0]].model_fields[key]
        names = ", ".join(f"`{name}`" for name in having)
        lines += ["", f"`resolvers.<source>.{key}` ({_type(info)}): {info.description} Sources that have it: {names}."]
    return lines


def _settings(prefix: str, fields: dict[str, FieldInfo]) -> list[str]:
    return markdown_table(("key", "value", "default", "meaning"), _rows(prefix, fields))


def _rows(prefix: str, fields: dict[str, FieldInfo]) -> Iterator[tuple[str, str, str, str]]:
    for name, info in fields.items():
        key = f"{prefix}.{name}" if prefix else name
        section = _section_of(info)
        if section is not None:
            yield from _rows(key + section[0], section[1].model_fields)
        else:
            yield f"`{key}`", _type(info), _default(info), info.description or ""


def _section_of(info: FieldInfo) -> tuple[str, type[BaseModel]] | None:
    """The model below a field, and how its key goes on: directly, per entry of a list, per name."""
    kind = _bare(info.annotation)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return "", kind
    inner = _bare(get_args(kind)[-1 if get_origin(kind) is dict else 0]) if get_args(kind) else None
    if isinstance(inner, type) and issubclass(inner, BaseModel):
        return (".<name>" if get_origin(kind) is dict else "[]"), inner
    return None


def _type(info: FieldInfo) -> str:
    kind = _bare(info.annotation)
    if get_origin(kind) is Literal:
        return " or ".join(_literal(choice) for choice in get_args(kind))
    low = next((bound for item in info.metadata for bound in (getattr(item, "ge", None),) if bound is not None), None)
    above = next((item.gt for item in info.metadata if getattr(item, "gt", None) is not None), None)
    high = next((item.le for item in info.metadata if getattr(item, "le", None) is not None), None)
    bounds = _bounds(low, high, above)
    return f"{_type_name(kind)}{bounds and f', {bounds}'}"


def _type_name(kind: Any) -> str:
    names = {
        bool: "`true` or `false`",
        int: "whole number",
        float: "number",
        str: "text",
        SecretStr: "secret",
        Path: "file",
    }
    if get_origin(kind) is dict:
        return f"name to {_type_name(_bare(get_args(kind)[1]))}"
    if get_origin(kind) is tuple:
        return f"list of {_type_name(_bare(get_args(kind)[0]))}s"
    return names[kind]


def _bounds(low: float | None, high: float | None, above: float | None = None) -> str:
    start = "" if low is None else f"{low:.15g}" if high is not None else f"at least {low:.15g}"
    if above is not None:
        start = f"above {above:.15g}"
    if high is None:
        return start
    return f"{start} to {high:.15g}" if low is not None else f"{start}, at most {high:.15g}".removeprefix(", ")


def _default(info: FieldInfo) -> str:
    return "needed" if info.is_required() else _literal(info.get_default(call_default_factory=True))


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if value is None or value in ("", (), {}, []):
        return ""
    if isinstance(value, Enum):
        return f"`{value.value}`"
    if isinstance(value, tuple | list):
        return f"`{', '.join(map(str, value))}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _bare(annotation: Any) -> Any:
    """The type inside `Annotated` and `X | None`."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _bare(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        return _bare(kinds[0]) if len(kinds) == 1 else annotation
    return annotation


# the HTTP API


def http_page() -> str:
    from DocsToKG.Orchestrator.api.app import RESOURCES
    from DocsToKG.Orchestrator.settings import ServerSettings

    simple = {name: info for name, info in ServerSettings.model_fields.items() if not _section_of(info)}
    nested = {name: section for name, info in ServerSettings.model_fields.items() if (section := _section_of(info))}
    return _page(
        "HTTP API",
        [HTTP_TEXT],
        *(["## " + str(resource.router.tags[0]), "", *_routes(resource)] for resource in RESOURCES),
        ["## Settings of the service", "", SERVER_TEXT, "", *_settings("", simple)],
        *(
            [f"### {name}", "", _first_words(model.__doc__), "", *_settings(name, model.model_fields)]
            for name, (_, model) in nested.items()
        ),
    )


def _routes(resource: Any) -> list[str]:
    from DocsToKG.Orchestrator.api.auth.permissions import PERMISSIONS

    says = {"nothing": "", "operator": "reason", "quota": "quota_reason", "backfill": "reason, ticket, backfill_*"}
    rows = []
    for route in resource.router.routes:
        permission = PERMISSIONS[route.operation_id]
        scopes = ", ".join(f"`{scope}`" for scope in sorted(permission.scopes)) + (
            " for `*`" if permission.everyone else ""
        )
        [method] = route.methods
        rows.append((f"`{method} {route.path}`", scopes, says[permission.demand], route.summary))
    return markdown_table(("route", "scope", "must say", "does"), rows)


# errors


def errors_page() -> str:
    from DocsToKG.ContentDownload.errors import ContentDownloadError
    from DocsToKG.Orchestrator.errors import AuditError, LedgerError, SigningError

    found = list(error_classes())
    trees = {
        "Obtaining papers": [kind for kind in found if issubclass(kind, ContentDownloadError)],
        "The ledger": [kind for kind in found if issubclass(kind, LedgerError)],
        "Keys and signatures": [kind for kind in found if issubclass(kind, SigningError)],
        "Audit bundles": [kind for kind in found if issubclass(kind, AuditError)],
        "The transport": [kind for kind in found if kind.__module__.startswith("DocsToKG.transport.")],
    }
    listed = {kind for tree in trees.values() for kind in tree}
    trees["Between modules"] = [kind for kind in found if kind not in listed]
    return _page(
        "Errors",
        [ERRORS_TEXT],
        *([f"## {title}", "", *_error_table(tree)] for title, tree in trees.items()),
    )


def error_classes() -> Iterator[type[BaseException]]:
    """Every error the product defines, the sandbox left out, by module and place."""
    seen = set()
    for module in pkgutil.walk_packages(DocsToKG.__path__, "DocsToKG."):
        if module.name.startswith("DocsToKG.Sandbox") or module.name.endswith(("__main__", "cli_v2")):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            mine = isinstance(value, type) and value.__module__ == module.name
            if mine and not value.__name__.startswith("_") and issubclass(value, BaseException) and value not in seen:
                seen.add(value)
                yield value


def _error_table(tree: list[type[BaseException]]) -> list[str]:
    rows = (
        (f"`{kind.__name__}`", f"`{kind.__base__.__name__}`", f"`{kind.__module__}`", _first_words(kind.__doc__))
        for kind in tree
        if kind.__base__ is not None
    )
    return markdown_table(("class", "is a", "in", "meaning"), rows)


# figures, spans and log


def metrics_page() -> str:
    from DocsToKG.ContentDownload.telemetry.job_log import EVENTS
    from DocsToKG.ContentDownload.telemetry.metrics import FAMILIES, WAIT_EVENTS
    from DocsToKG.ContentDownload.telemetry.traces import SPANS

    spans = [[f"`{name}`", text, _codes(about)] for name, (text, about) in SPANS.items()]
    waits = [[f"`{event}`", f"`ms`, `{kind}`"] for kind, event in WAIT_EVENTS.items()]
    events = [[f"`{name}`", level, text] for name, (level, text) in EVENTS.items()]
    return _page(
        "Figures, spans and the log",
        [METRICS_TEXT],
        *(_family(name, family) for name, family in FAMILIES.items()),
        ["## Spans", "", SPANS_TEXT, "", *_table(["span", "covers", "attributes"], spans)],
        ["A job that had to wait for a free place carries an event for each wait:"],
        _table(["event", "attributes"], waits),
        ["## Log", "", EVENTS_TEXT, "", *_table(["event", "level", "when"], events)],
    )


def _family(name: str, family: Iterable[Any]) -> list[str]:
    title, text = FAMILY_TEXTS[name]
    rows = [[f"`{metric.name}`", metric.kind, _codes(metric.labels), metric.text] for metric in family]
    return [f"## {title}", "", *([text, ""] if text else []), *_table(["name", "kind", "labels", "meaning"], rows)]


def _codes(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return markdown_table(head, rows)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
