"""The configuration commands and what every command has in common."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.ContentDownload.config import load_config, to_printable
from DocsToKG.ContentDownload.config.schema import json_schema
from DocsToKG.ContentDownload.errors import DiskFull, InputError

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
SECRET = "s3cr3t-Zq9"


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands read the process environment, so each test gets an empty one."""
    for name in list(os.environ):
        if name.startswith(("DTKG_", "DOCSTOKG_")) or name.endswith(("_API_KEY", "_EMAIL", "_PROXY", "_proxy")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))


def run(*args: str, program: Any = app) -> Result:
    return CliRunner().invoke(program, list(args))


def test_print_config_shows_the_nested_form_with_secrets_masked(tmp_path: Path) -> None:
    """CLI-04, CFG-22, SEC-04."""
    path = tmp_path / "c.yaml"
    path.write_text(f"workers: 3\nstorage: {{backend: postgres, connection_string: '{SECRET}'}}", encoding="utf-8")
    pretty, raw = run("print-config", "-c", str(path)), run("print-config", "--raw", "--config", str(path))
    shown = json.loads(pretty.stdout)
    assert (pretty.exit_code, raw.exit_code) == (0, 0)
    assert shown["orchestrator"]["max_workers"] == 3
    assert shown["catalog"]["connection_string"] == "***"
    assert json.loads(raw.stdout) == shown
    assert raw.stdout.count("\n") == 1
    assert SECRET not in pretty.output + raw.output


def test_print_config_can_be_told_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DTKG_HTTP__USERAGENT", "x")
    result = run("print-config")
    assert "Warning: DTKG_HTTP__USERAGENT is not a setting" in result.stderr
    assert json.loads(result.stdout) == json.loads(json.dumps(to_printable(load_config(environ={}))))


def test_validate_config_tells_good_from_bad(tmp_path: Path) -> None:
    """CLI-05, CLI-24."""
    bad = tmp_path / "bad.yaml"
    bad.write_text("http: {user_agnet: x}", encoding="utf-8")
    assert run("validate-config", str(EXAMPLES / "dev.yaml")).exit_code == 0
    result = run("validate-config", str(bad))
    assert result.exit_code == 1
    assert result.stdout == ""
    assert "http.user_agnet is not a setting; did you mean http.user_agent?" in result.stderr
    assert "Traceback" not in result.output


def test_explain_lists_tiers_states_and_limits() -> None:
    """CLI-06."""
    table, data = run("explain"), run("explain", "--json")
    explained = json.loads(data.stdout)
    states = {view["name"]: view["status"] for tier in explained["tiers"] for view in tier["sources"]}
    assert states["unpaywall"] == "missing credential"
    assert states["arxiv"] == "enabled"
    for word in ("direct_oa", "missing credential", "content config set contact", "export.arxiv.org", "1/3 seconds"):
        assert word in table.stdout


@pytest.mark.slow
def test_schema_is_printed_or_written(tmp_path: Path) -> None:
    """CLI-07."""
    target = tmp_path / "schema.json"
    assert json.loads(run("schema").stdout) == json_schema()
    result = run("schema", "-o", str(target))
    assert (result.stdout, json.loads(target.read_text(encoding="utf-8"))) == ("", json_schema())


@pytest.mark.slow
def test_the_user_sets_a_value_once_and_it_holds(tmp_path: Path) -> None:
    """SEC-03: the command that every message about a missing address names."""
    done = run("config", "set", "contact", "me@uni.edu", program=app)
    read = run("config", "get", "contact", program=app)
    assert (done.exit_code, done.stdout, read.stdout) == (0, "", "me@uni.edu\n")
    where = run("config", "path", program=app).stdout.strip()
    assert where in done.stderr
    assert where in read.stderr
    assert json.loads(run("explain", "--json").stdout)["contact"] == "me@uni.edu"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("contact", "foo", "contact: must be a mail address"),
        ("nope.x", "1", "nope is not a setting"),
        ("orchestrator.max_workers", "0", "orchestrator.max_workers: should be at least 1"),
        ("orchestrator.max_workers", "[", "orchestrator.max_workers"),
    ],
)
def test_a_value_that_cannot_be_is_wrong_usage_and_changes_nothing(key: str, value: str, said: str) -> None:
    where = Path(run("config", "path", program=app).stdout.strip())
    before = where.read_bytes() if where.exists() else None
    done = run("config", "set", key, value, program=app)
    assert (done.exit_code, said in " ".join(done.stderr.split())) == (2, True), done.stderr
    assert (where.read_bytes() if where.exists() else None) == before


def test_what_is_wrong_in_the_file_already_is_no_wrong_usage() -> None:
    where = Path(run("config", "path", program=app).stdout.strip())
    where.parent.mkdir(parents=True, exist_ok=True)
    where.write_text("nope: 1\n")
    done = run("config", "set", "contact", "me@uni.edu", program=app)
    where.unlink()
    assert (done.exit_code, "nope is not a setting" in done.stderr) == (1, True)


def test_a_secret_can_be_set_but_not_read_back() -> None:
    done = run("config", "set", "resolvers.core.api_key", SECRET)
    read = run("config", "get", "resolvers.core.api_key")
    assert (done.exit_code, read.stdout) == (0, "***\n")
    assert SECRET not in done.output + read.output


def test_of_a_section_each_setting_that_was_not_shipped_is_named(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("http: {timeout_read_s: 9}\n")
    told = run("config", "get", "http", "-c", str(tmp_path / "c.yaml"))
    assert f"http.timeout_read_s from {tmp_path / 'c.yaml'}" in told.stderr
    assert "the rest from the shipped defaults" in told.stderr


def test_asking_for_an_unknown_setting_names_the_nearest() -> None:
    result = run("config", "get", "http.useragent")
    assert result.exit_code == 1
    assert "did you mean http.user_agent?" in result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("operator", "person"),
    [
        (["print-config"], ["config", "show"]),
        (["explain"], ["config", "explain"]),
        (["schema"], ["config", "schema"]),
        (["validate-config", "nowhere.yaml"], ["config", "validate", "nowhere.yaml"]),
    ],
)
def test_both_surfaces_give_the_same_results(operator: list[str], person: list[str]) -> None:
    """CLI-12."""
    one, two = run(*operator), run(*person, program=app)
    assert (one.exit_code, one.stdout, one.stderr) == (two.exit_code, two.stdout, two.stderr)


@pytest.mark.slow
def test_both_programs_show_their_commands_and_version() -> None:
    """BOOT-15, BOOT-16."""
    for program, words in (
        (app, ["pull", "resume", "report", "catalog", "config", "demo", "sandbox"]),
        (app, ["run", "print-config", "validate-config", "explain", "schema", "queue", "pull", "report"]),
    ):
        shown = run("--help", program=program).stdout
        assert [word for word in words if not re.search(rf"^  {word}\b", shown, re.MULTILINE)] == []
        assert "Exit codes: 0 ok" in shown
        assert re.fullmatch(r"DocsToKG ContentDownload \d+\.\d+\.\d+\n", run("--version", program=program).stdout)


def test_wrong_usage_exits_2() -> None:
    """CLI-24."""
    assert run("no-such-command").exit_code == 2
    assert run("print-config", "--no-such-option").exit_code == 2
    assert run("validate-config").exit_code == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("nothing usable in ids.txt"), 2, "Error: nothing usable in ids.txt\n"),
        (DiskFull("12 MB left"), 1, "Error: 12 MB left\n"),
        (
            PermissionError(13, "Permission denied", "runs"),
            1,
            "Error: runs: Permission denied; check who may read and write there, or name another folder\n",
        ),
        (
            OSError(28, "No space left on device"),
            1,
            "Error: No space left on device; free some space, then run the same command again\n",
        ),
        (OSError("odd"), 1, "Error: odd; run again with --debug before the command to see where\n"),
        (
            ValueError(SECRET),
            1,
            "Error: unexpected ValueError. Run again with --debug before the command to see where\n",
        ),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
    ],
)
def test_errors_become_one_line_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, message: str
) -> None:
    """CLI-24, SEC-04: an unforeseen error may hold anything, so its text is kept back."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("DocsToKG.ContentDownload.config.loader.load_config_verbose", fail)
    result = run("print-config")
    assert (result.exit_code, result.stdout, result.stderr) == (code, "", message)


def test_debug_shows_where_an_error_came_from() -> None:
    result = run("--debug", "validate-config", "nowhere.yaml")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "nowhere.yaml: there is no such file" in result.stderr


def python(*args: str, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *args], cwd=cwd, capture_output=True, text=True, timeout=60, check=False, **options
    )


@pytest.mark.slow
@pytest.mark.parametrize("module", ["DocsToKG.ContentDownload.cli_v2", "DocsToKG.ContentDownload"])
def test_the_modules_run_from_any_directory(tmp_path: Path, module: str) -> None:
    """BOOT-05, BOOT-15."""
    (tmp_path / "c.yaml").write_text("workers: 5", encoding="utf-8")
    result = python("-m", module, "print-config", "-c", "c.yaml", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads(result.stdout)["orchestrator"]["max_workers"] == 5


@pytest.mark.slow
@pytest.mark.parametrize("word", ["schema", "explain"])
def test_a_reader_that_goes_away_is_no_crash(tmp_path: Path, word: str) -> None:
    """CLI-24: as in `contentdownload schema | head -1`, but with a reader that reads nothing."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        command = [sys.executable, "-m", "DocsToKG.ContentDownload.cli_v2", word]
        result = subprocess.run(command, stdout=write_end, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    finally:
        os.close(write_end)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("room", "program"),
    [("ContentDownload.cli", "content"), ("ContentDownload.cli", "contentdownload"), ("Orchestrator", "main")],
)
def test_an_interrupt_while_the_program_is_read_is_no_crash(tmp_path: Path, room: str, program: str) -> None:
    code = f"""
import sys
class Interrupts:
    def find_spec(self, name, path=None, target=None):
        if name in ("DocsToKG.ContentDownload.cli.app", "DocsToKG.Orchestrator.cli"):
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupts())
from DocsToKG.{room}.main import {program}
{program}()
"""
    result = python("-c", code, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (130, "Interrupted.\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("ContentDownload.cli.main import content", "plan 10.1234/a"),
        ("Orchestrator.main import main", "status --ledger ledger.sqlite"),
    ],
)
def test_a_library_cannot_take_an_interrupt_for_its_own_affair(tmp_path: Path, program: str, words: str) -> None:
    """pydantic makes another error of it, weak references swallow it, pikepdf aborts."""
    (tmp_path / "ledger.sqlite").touch()
    code = f"""
import signal, sys
class Swallows:
    def find_spec(self, name, path=None, target=None):
        if name in ("DocsToKG.ContentDownload.config.loader", "DocsToKG.Orchestrator.ledger.sqlite"):
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise RuntimeError("this model cannot be built") from None
sys.meta_path.insert(0, Swallows())
from DocsToKG.{program} as program
sys.argv[1:] = {words.split()}
program()
"""
    result = python("-c", code, cwd=tmp_path)
    assert (result.returncode, result.stderr) == (130, "Interrupted.\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [
        ("<&-", "pull - --out papers", 2),
        (">&-", "config explain", 1),  # what was asked for is lost
        ("2>&-", "pull hello --out papers", 3),  # names no paper; the line of progress has nowhere to go
        ("<&- >&- 2>&-", "pull hello --out papers", 3),
    ],
)
def test_a_stream_that_is_closed_is_no_crash(tmp_path: Path, closed: str, words: str, code: int) -> None:
    line = f"exec '{Path(sys.executable).with_name('content')}' {words} {closed}"
    environ = dict(os.environ, DOCSTOKG_CONTENT_CONTACT="ada@uni.example.edu")
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=environ, cwd=tmp_path, timeout=60)
    assert done.returncode == code, done.stderr
    assert "unexpected" not in done.stderr


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    """What is not imported cannot be slow."""
    heavy = {"pydantic", "yaml", "rich", "httpx2", "hishel", "lxml", "pikepdf", "sqlite3"}
    code = f"import sys, DocsToKG.ContentDownload.cli.app; print(sorted({heavy} & set(sys.modules)))"
    assert python("-c", code, cwd=tmp_path).stdout == "[]\n"


@pytest.mark.slow
def test_help_answers_at_once(tmp_path: Path) -> None:
    """Best of four, as a person meets it after the first time; in processor time, since others may be at work."""
    code = (
        "import sys; sys.argv = ['content', '--help']; from DocsToKG.ContentDownload.cli.main import content; content()"
    )
    taken = []
    for _ in range(4):
        began = _children_s()
        assert python("-c", code, cwd=tmp_path).returncode == 0
        taken.append(_children_s() - began)
    assert min(taken) < 0.4


def _children_s() -> float:
    """Processor time of the processes that this one has started and seen end."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize("name", ["dev.yaml", "prod.yaml", "full.yaml"])
def test_the_examples_load_and_satisfy_the_published_schema(name: str) -> None:
    """CLI-07."""
    assert load_config(EXAMPLES / name, environ={}).contact
    data = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    schema = json_schema()
    assert complaints(data, schema, schema) == []


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("workers", "another spelling of orchestrator.max_workers"),
        ("http.timeout", "another spelling of http.timeout_read_s;"),
        ("policies.arxiv.timeout_ms", "another spelling of policies.arxiv_pdf.timeout_s"),
        ("storage.connection_string", "of catalog.connection_string and queue.connection_string"),
        ("orchestrator.max_per_resolver.arxiv", "is not set"),
        ("http.timout_read_s", "did you mean http.timeout_read_s?"),
        ("zzz", "content config show lists them"),
    ],
)
def test_a_key_without_a_value_of_its_own_leads_to_one_that_has(key: str, said: str) -> None:
    result = run("config", "get", key, program=app)
    assert result.exit_code == 1
    assert said in result.stderr
    assert f"did you mean {key}?" not in result.stderr


def test_the_full_example_asks_all_that_is_shipped() -> None:
    """A list of tiers replaces the shipped one as a whole."""
    assert load_config(EXAMPLES / "full.yaml", environ={}).tiers == load_config(environ={}).tiers


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        "htpp: {}",
        "http: {timeout_read_s: soon}",
        "hishel: {backend: memcached}",
        "orchestrator: {max_workers: 0}",
        "tiers: [{name: a}]",
        "artifacts: {rot: x}",
        "policies: {arxiv_pdf: {timeout: 3}}",
    ],
)
def test_the_published_schema_refuses_what_loading_refuses(text: str) -> None:
    schema = json_schema()
    assert complaints(yaml.safe_load(text), schema, schema) != []


def test_the_published_schema_holds_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """SEC-04."""
    monkeypatch.setenv("CORE_API_KEY", SECRET)
    assert SECRET not in run("schema").output


_TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def complaints(value: Any, schema: Any, root: Any, at: str = "") -> list[str]:
    """What a JSON Schema validator would say, for the words our schema uses."""
    if "$ref" in schema:
        return complaints(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, at)
    if "anyOf" in schema and all(complaints(value, option, root, at) for option in schema["anyOf"]):
        return [f"{at}: fits no option"]
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(
        isinstance(value, _TYPES[kind])
        and (kind == "boolean" or value not in (True, False) or not isinstance(value, bool))
        for kind in types
    ):
        return [f"{at}: not {types}"]
    found = (
        [] if value == schema.get("const", value) and value in schema.get("enum", [value]) else [f"{at}: not allowed"]
    )
    if isinstance(value, int | float) and not isinstance(value, bool):
        low, above, high = schema.get("minimum"), schema.get("exclusiveMinimum"), schema.get("maximum")
        if (
            (low is not None and value < low)
            or (above is not None and value <= above)
            or (high is not None and value > high)
        ):
            found.append(f"{at}: out of bounds")
    if isinstance(value, list):
        found += [
            line
            for place, item in enumerate(value)
            for line in complaints(item, schema.get("items", {}), root, f"{at}[{place}]")
        ]
    if isinstance(value, dict):
        known, rest = schema.get("properties", {}), schema.get("additionalProperties", True)
        found += [f"{at}.{key}: missing" for key in schema.get("required", []) if key not in value]
        for key, item in value.items():
            if key in known or isinstance(rest, dict):
                found += complaints(item, known.get(key, rest), root, f"{at}.{key}")
            elif rest is False:
                found.append(f"{at}.{key}: unknown")
    return found
