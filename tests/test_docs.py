"""The documentation is true: its commands parse, its links lead somewhere, its reference pages are fresh."""

from __future__ import annotations

import ast
import importlib
import json
import os
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import dropwhile, pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.docs.reading import PAGES, ROOT, name_of, shown_lines
from typer.main import get_command

from DocsToKG.ContentDownload.cli.app import app
from DocsToKG.Orchestrator.cli.app import app as ledger_app

REFERENCE = ROOT / "docs" / "reference"
SOURCES = ROOT / "src" / "DocsToKG"
PROGRAMS = {
    name: get_command(program)
    for name, program in (("content", app), ("contentdownload", app), ("docstokg-orchestrator", ledger_app))
}
_STARTS = ("./dev run ", *(f"{program} " for program in PROGRAMS))
# Two names of one program.
TWINS = {"content": "contentdownload", "contentdownload": "content"}
TWO_PROGRAMS = ROOT / "docs" / "howto" / "two-programs.md"
# Text between the lines names a command, or shows its form: `content catalog show ID [OPTIONS]`.
_LEFT_OUT = {"MissingParameter", "NoArgsIsHelpError", "Exit"}
_OPTIONAL = re.compile(r" \[[^\]]*\](\.\.\.)?")
_NUMBER = re.compile(r"\b[A-Z]+_ID\b")
_OF_THE_CHECKOUT = re.compile(r"(?:^|[|&;] *)(make|\./dev) ([a-z][\w-]*)")
_INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_SETTING = re.compile(r"[A-Z][A-Z0-9_]*=.*")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def commands_in(line: str) -> Iterator[list[str]]:
    """The calls of our programs in a line of shell, as words; pipes, redirections and comments are cut off."""
    words = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
    words.whitespace_split = True
    call: list[str] = []
    for word in [*words, ";"]:
        if word and set(word) <= set("|&;<>"):
            yield from ours(call)
            call = []
        else:
            call.append(word)


def ours(call: list[str]) -> Iterator[list[str]]:
    call = list(dropwhile(_SETTING.fullmatch, call))
    if call[:2] == ["./dev", "run"]:
        call = call[2:]
    if call and call[0] in PROGRAMS:
        yield call


def shown_commands() -> Iterator[Any]:
    """Each with whether it is shown to be run: text between the lines may leave out what a call needs."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [(line, True) for line in shown_lines(page)]
        lines += [(filled(code), False) for code in _INLINE.findall(text) if code.startswith(_STARTS)]
        for line, whole in lines:
            for call in commands_in(line):
                yield pytest.param(call, whole, id=f"{name_of(page)}: {' '.join(call)}"[:120])


def filled(form: str) -> str:
    """The form of a call as a call: without what may be left out, and with a number where one is meant."""
    return _NUMBER.sub("17", _OPTIONAL.sub("", form))


def parse(call: list[str]) -> str:
    """Read the words as the program would, and say which command they reach; runs nothing. A settings file is always
    there."""
    command: Any = PROGRAMS[call[0]]
    given = [str(ROOT / "README.md") if before in ("-c", "--config") else word for before, word in pairwise(call)]
    context = command.make_context(call[0], given)
    while hasattr(command, "commands"):
        words = [*getattr(context, "_protected_args", ()), *context.args]
        name, command, rest = command.resolve_command(context, words)
        context = command.make_context(name, rest, parent=context)
    return str(context.command_path)


@pytest.mark.parametrize(("call", "whole"), list(shown_commands()))
def test_every_command_that_is_shown_is_understood(call: list[str], whole: bool) -> None:
    """CLI-13: under its other name too, where it has one."""
    for said in {call[0], TWINS.get(call[0], call[0])}:
        try:
            parse([said, *call[1:]])
        except Exception as error:
            if whole or type(error).__name__ not in _LEFT_OUT:
                raise


@pytest.mark.parametrize("program", TWINS)
def test_every_task_is_shown_under_both_names(program: str) -> None:
    """CLI-13: each line of that page is run by tests/docs/test_pages_run.py."""
    shown = {parse(call) for line in shown_lines(TWO_PROGRAMS) for call in commands_in(line)}
    known = {name for name, _ in commands_below(program, PROGRAMS[program])}
    assert len(known) > 40
    assert known - shown == set()


def test_one_name_knows_what_the_other_knows() -> None:
    short, long = (
        {name.partition(" ")[2] for name, _ in commands_below(program, PROGRAMS[program])} for program in TWINS
    )
    assert short == long


def test_every_word_of_the_checkout_s_script_is_one_of_its_commands() -> None:
    dev = runpy.run_path(str(ROOT / "dev"))["COMMANDS"]
    targets = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[0].split()
    known = {"./dev": set(dev), "make": set(targets)}
    shown = {
        (name_of(page), *said)
        for page in PAGES
        for code in (*shown_lines(page), *_INLINE.findall(page.read_text(encoding="utf-8")))
        for said in _OF_THE_CHECKOUT.findall(code)
    }
    assert {word for _, _, word in shown} >= {"demo", "test", "check", "bench-full", "chaos", "fuzz"}
    assert [said for said in sorted(shown) if said[2] not in known[said[1]]] == []
    assert set(targets) <= set(dev)


def commands_below(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    for word, below in getattr(command, "commands", {}).items():
        yield from commands_below(f"{name} {word}", below)
    if not hasattr(command, "commands"):
        yield name, command


def examples_in(told: str) -> Iterator[list[str]]:
    """The calls behind or below the word, where `, or` joins two ways of saying it."""
    _, _, shown = told.partition("Example")
    for line in re.split(r"\n|, or ", shown.lstrip("s:")):
        yield from commands_in(line)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_help_of_every_command_has_examples_that_are_understood(program: str) -> None:
    shown = {
        name: list(examples_in(command.help or "")) for name, command in commands_below(program, PROGRAMS[program])
    }
    assert len(shown) > 10
    assert [name for name, calls in shown.items() if not calls] == []
    for call in (call for calls in shown.values() for call in calls):
        parse(call)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_option_says_what_it_means(program: str) -> None:
    for name, command in commands_below(program, PROGRAMS[program]):
        assert [param.name for param in command.params if not param.hidden and not param.help] == [], name


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", ["content dance", "content pull x --no-such-option", "content queue list --state", "content report x"]
)
def test_a_command_that_does_not_exist_would_be_noticed(words: str) -> None:
    with pytest.raises(Exception, match=r"(?i)no such|requires|unexpected"):
        parse(words.split())


def test_commands_are_found_behind_pipes_settings_and_comments() -> None:
    line = "cat ids.txt | ./dev run content pull - --sql 'a | b' > out && KEY=1 content report  # and look"
    assert list(commands_in(line)) == [["content", "pull", "-", "--sql", "a | b"], ["content", "report"]]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    targets = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    missing = [target for target in targets if not (page.parent / target.partition("#")[0]).exists()]
    assert missing == []


@pytest.mark.slow
def test_the_generated_pages_are_fresh() -> None:
    """Drift fails here; `./dev run python docs/generate.py` writes the pages anew."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "generate.py"), "--check"], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr


def test_every_extra_that_a_page_or_a_message_names_can_be_installed() -> None:
    known = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    texts = [file.read_text(encoding="utf-8") for file in (*PAGES, *SOURCES.rglob("*.py"))]
    named = {
        name for text in texts for names in re.findall(r"docstokg\[([a-z0-9,]+)\]", text) for name in names.split(",")
    }
    assert len(named) > 5
    assert named <= set(known)


def listed(page: str) -> list[str]:
    """What the first column of the page's tables names."""
    return re.findall(r"^\| `([^`]+)`", (REFERENCE / page).read_text(encoding="utf-8"), re.MULTILINE)


def classes_in(path: Path) -> list[str]:
    return [node.name for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("package", ["ContentDownload", "Orchestrator", "transport"])
def test_every_error_class_is_listed(package: str) -> None:
    known = classes_in(SOURCES / package / "errors.py")
    assert known
    assert set(known) <= set(listed("errors.md"))


def test_errors_that_live_elsewhere_are_listed_too() -> None:
    assert {"BadIdentifier", "Cancelled", "BadUrl"} <= set(listed("errors.md"))


def test_every_command_and_setting_is_listed() -> None:
    text = (REFERENCE / "cli.md").read_text(encoding="utf-8")
    for program, root in PROGRAMS.items():
        for name, command in root.commands.items():  # type: ignore[attr-defined]
            shown = program if f"### `{program} {name}`" in text else "content"
            for path in [f"{shown} {name}", *(f"{shown} {name} {word}" for word in getattr(command, "commands", ()))]:
                assert f"### `{path}`" in text, path
    from DocsToKG.ContentDownload.config.models import ContentDownloadConfig

    sections = {key.split(".")[0].removesuffix("[]") for key in listed("config.md")}
    assert set(ContentDownloadConfig.model_fields) <= sections


def test_the_fields_of_the_manifest_are_listed_in_order() -> None:
    schema = json.loads(
        (SOURCES / "ContentDownload" / "telemetry" / "manifest.schema.json").read_text(encoding="utf-8")
    )
    assert listed("manifest.md") == list(schema["properties"])


def test_the_columns_of_the_csv_files_are_listed_in_order() -> None:
    from DocsToKG.ContentDownload.api.types import AttemptStatus, Reason
    from DocsToKG.ContentDownload.telemetry.attempts import COLUMNS
    from DocsToKG.ContentDownload.telemetry.snapshots import RESULT_COLUMNS

    assert listed("attempts-csv.md") == [*COLUMNS, *AttemptStatus, *Reason]
    assert listed("results-csv.md")[: len(RESULT_COLUMNS)] == list(RESULT_COLUMNS)


def test_what_sources_say_is_listed() -> None:
    from DocsToKG.ContentDownload.api.types import Reason, SourceOutcome

    page = (REFERENCE / "sources-asked.md").read_text(encoding="utf-8")
    assert listed("sources-asked.md")[: len(SourceOutcome)] == list(SourceOutcome)
    said = re.compile(r'"((?:no|not|missing|bad|blocked|malformed|needs|answered)_[a-z_]+)[":]')
    rooms = [SOURCES / "ContentDownload" / name for name in ("resolvers", "fallback")]
    texts = [file.read_text(encoding="utf-8") for room in rooms for file in room.glob("*.py")]
    words = {word for text in texts for word in said.findall(text)} - {Reason.NO_OPEN_COPY}
    assert len(words) > 10
    assert {word for word in words if f"`{word}`" not in page} == set()


def test_every_exit_code_is_listed() -> None:
    from DocsToKG.ContentDownload.cli.group import ExitCode

    rows = re.findall(r"^\| (\d+) \| `(\w+)`", (REFERENCE / "exit-codes.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(str(code.value), code.name) for code in ExitCode]


def test_every_figure_of_the_readme_stands_in_the_benchmarks() -> None:
    table = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Beside others")[2].partition("## ")[0]
    rows = [line.split("|")[2:4] for line in table.splitlines() if line.startswith("| ")][1:]
    figures = {figure for row in rows for cell in row for figure in re.findall(r"\b\d[\d,.]*\b", cell)}
    measured = set(re.findall(r"\b\d[\d,.]*\b", (REFERENCE / "benchmarks.md").read_text(encoding="utf-8")))
    assert len(figures) > 10
    assert figures <= measured


_MEASUREMENT = re.compile(r"python -m bench\.(\w+)((?: +[^`\s|]+)*)")


def shown_measurements() -> list[tuple[str, str]]:
    """Each with the words after it, as README and the pages of docs name them."""
    pages = [page.read_text(encoding="utf-8") for page in PAGES if page.name != "CHANGELOG.md"]
    return sorted({(found[1], found[2]) for text in pages for found in _MEASUREMENT.finditer(text)})


@pytest.mark.parametrize(("name", "words"), shown_measurements())
def test_every_measurement_that_is_shown_takes_its_words(name: str, words: str) -> None:
    importlib.import_module(f"bench.{name}").parser().parse_args(shlex.split(words))


def test_a_measurement_with_a_wrong_word_would_be_noticed() -> None:
    assert ("web", " --works 10000") in shown_measurements()
    parser = importlib.import_module("bench.web").parser()
    with pytest.raises(SystemExit):
        parser.parse_args(["--wroks", "10000"])


def test_a_measurement_alone_compares_with_what_a_whole_run_has_fetched() -> None:
    from bench.programs import PEERS

    assert Path(os.environ.get("DOCSTOKG_PEERS") or ROOT / ".cache" / "peers") / "bin" / "python" == PEERS
    for name in ("ledger", "postgres", "download", "__main__"):
        assert importlib.import_module(f"bench.{name}").parser().parse_args([]).peers == PEERS
