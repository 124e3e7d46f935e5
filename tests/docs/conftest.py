"""A reader of the pages: a folder such as the tutorial leaves, a shell in it, and the sandbox's web around it."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.docs.reading import blocks
from tests.warm import WarmPrograms

from DocsToKG.Sandbox.faults import Faults
from DocsToKG.Sandbox.profile import SandboxServer

WORKS = 26
EXAMPLES = ("10.1371/journal.pone.0000308", "10.1371/journal.pone.0262026", "10.1234/abcd")
# What goes on for ever, and what it says when it does what it is started for.
FOREVER: Mapping[str, str] = {
    r"docstokg-orchestrator serve": r"answers:http://\S+/console/",
    r"docstokg-orchestrator events run(?! --once)": r"carrying events",
    r"content(download)? sandbox(?! snapshot)": r"Try:",
    r"queue stats --watch": r"queued|done",
    r"queue run .*--metrics-port": r"Figures of this run",
    r"queue run(?!.*--drain)": r"file:**/*.workers/*.lock",
    r"curl -N": r"(data|event|retry|id):",
}
GOOD = {0, 3}  # 3: some papers were not obtained, which the page's examples from the real web are not here
_UNTIL_SAID = Path(__file__).parent / "until_said.py"


@dataclass
class Reader:
    """Types lines into one shell, so that what is exported holds for the later ones."""

    folder: Path
    programs: Path
    instead: Mapping[str, str] = field(default_factory=dict)  # what a line says, and what holds here
    variables: Mapping[str, str] = field(default_factory=dict)

    def types(self, lines: list[str]) -> list[tuple[str, int, str]]:
        """Each line with its exit code and what it printed."""
        lines = [self.here(line) for line in lines]
        script = [f'{as_run(line)}\n_code=$?; echo; echo "::ended $_code"' for line in lines]
        done = subprocess.run(
            ["bash", "-c", "\n".join(script)], cwd=self.folder, env=self.environment(), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900,
        )  # fmt: skip
        parts = re.split(r"^::ended (\d+)\n", done.stdout, flags=re.MULTILINE)
        ended = [(line, int(parts[2 * n + 1]), parts[2 * n]) for n, line in enumerate(lines) if 2 * n + 1 < len(parts)]
        assert len(ended) == len(lines), f"{lines[len(ended)]} did not end"
        return ended

    def environment(self) -> dict[str, str]:
        left_out = ("DTKG_", "DOCSTOKG_", "XDG_CONFIG", "AWS_", "OTEL_")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(left_out)}
        return {
            **kept, "HOME": str(self.folder / "home"), "DOCSTOKG_CONTENT_CONFIG": "settings.yaml", "COLUMNS": "120",
            "PATH": f"{self.programs}:{Path(sys.executable).parent}:{kept['PATH']}", **self.variables,
        }  # fmt: skip

    def here(self, text: str) -> str:
        """The text with papers of this web in place of those of the real one, and places that exist."""
        for said, meant in {**self.papers(), **self.instead}.items():
            text = text.replace(said, meant)
        return text

    def papers(self) -> dict[str, str]:
        """The examples of the pages, and what the reader has instead."""
        results = self.folder / "papers" / "results.csv"
        if not results.exists():
            return {}
        with results.open(newline="") as rows:
            had = [row["id"] for row in csv.DictReader(rows) if row["path"] and row["id"].startswith("doi:")]
        return {example: name.removeprefix("doi:") for example, name in zip(EXAMPLES, had, strict=False)}

    def python(self, snippet: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", self.here(snippet)], cwd=self.folder, env=self.environment(), capture_output=True,
            text=True, timeout=100,
        )  # fmt: skip

    def writes_settings_of(self, page: Path, **more: Any) -> None:
        """The settings that the page shows under the name they have there, pointed at this web."""
        for block in blocks(page, "yaml"):
            named = re.match(r"# (\S+\.yaml)\n", block)
            if named is not None:
                shown = yaml.safe_load(self.here(block))
                (self.folder / named[1]).write_text(yaml.safe_dump(_merged(more.get(named[1], {}), shown)))


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    both = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], dict) and isinstance(above[key], dict):
            both[key] = _merged(below[key], above[key])
    return both


def as_run(line: str) -> str:
    """The same line for this place: with the programs on the path, and with an end."""
    line = re.sub(r"(^|\| )\./dev run ", r"\1", line)
    for command, said in FOREVER.items():
        if re.search(command, line):
            variables, words = re.fullmatch(r"((?:[A-Z_]+=\S+ )*)(.*)", line).groups()  # type: ignore[union-attr]
            return f"{variables}{sys.executable} {_UNTIL_SAID} {shlex.quote(said)} {words}"
    return line


def wrong(ended: list[tuple[str, int, str]], otherwise: Mapping[str, set[int]]) -> list[str]:
    """What did not end as it should, with its last words."""
    bad = []
    for line, code, output in ended:
        allowed = next((codes for start, codes in otherwise.items() if line.startswith(start)), GOOD)
        if any(re.search(command, line) for command in FOREVER):
            allowed = allowed | {130}
        if "content report" in line:
            allowed = allowed | {4}  # a service level was missed, as it is when half of the papers are not of this web
        if code not in allowed or "Traceback" in output:
            bad.append(f"{line}\n  ended with {code}: {output[-600:]}")
    return bad


@pytest.fixture(scope="session")
def sandbox() -> Iterator[SandboxServer]:
    with SandboxServer(works=WORKS, seed=7, faults=Faults.none(), size_bytes=20_000) as server:
        yield server


@pytest.fixture(scope="session")
def settings(sandbox: SandboxServer) -> dict[str, Any]:
    """Of a run in this web."""
    return {**sandbox.profile(), "storage": {"min_free_bytes": 0}}


@pytest.fixture(scope="session")
def programs(warm: WarmPrograms) -> Path:
    return warm.on_the_path()


@pytest.fixture(scope="session")
def corpus(
    sandbox: SandboxServer, settings: dict[str, Any], programs: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """What a reader has after the tutorial: a corpus in `papers`, lists, settings. Copied for every page."""
    folder = tmp_path_factory.mktemp("reader")
    names = sandbox.identifiers(20)
    (folder / "ids.txt").write_text("\n".join(names) + "\n")
    (folder / "dois.txt").write_text("\n".join(names[:5]) + "\n")
    works = sandbox.truth()["works"]
    bibtex = [f"@article{{k{n}, doi = {{{work['doi']}}}}}\n" for n, work in enumerate(works[:5])]
    (folder / "references.bib").write_text("".join(bibtex))
    (folder / "works.jsonl").write_text("".join(json.dumps({"doi": work["doi"]}) + "\n" for work in works))
    (folder / "settings.yaml").write_text(yaml.safe_dump(settings))
    queue = {"storage": {"root_dir": "engine", "min_free_bytes": 0}, "queue": {"path": "state/workqueue.sqlite"}}
    for name in ("corpus.yaml", "sandbox.yaml"):
        (folder / name).write_text(yaml.safe_dump({**settings, **queue}))
    lines = ["content pull ids.txt --out papers", "contentdownload queue import works.jsonl -c corpus.yaml"]
    assert wrong(Reader(folder, programs).types(lines), {}) == []
    return folder


@pytest.fixture
def reader(corpus: Path, programs: Path, tmp_path: Path) -> Reader:
    folder = tmp_path / "reader"
    shutil.copytree(corpus, folder, symlinks=True)
    shutil.copytree(folder / "papers", folder / "papers-copy", symlinks=True)
    return Reader(folder, programs)


@contextlib.contextmanager
def service_of(reader: Reader) -> Iterator[Reader]:
    """The same reader while the ledger of the folder is served, with address and token where the pages have them."""
    words = [str(reader.programs / "docstokg-orchestrator"), "serve", "--port", "0"]
    with subprocess.Popen(
        words, cwd=reader.folder, env=reader.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        try:
            address, token = process.stdout.readline().strip(), process.stdout.readline().split()[1]
            port = address.rpartition(":")[2]
            instead = {**reader.instead, "127.0.0.1:8470": f"127.0.0.1:{port}", "localhost:8470": f"localhost:{port}"}
            variables = {"DOCSTOKG_ORCHESTRATOR": address, "DOCSTOKG_TOKEN": token, "TOKEN": token}
            yield replace(reader, instead=instead, variables={**reader.variables, **variables})
        finally:
            process.terminate()
            process.wait(20)
