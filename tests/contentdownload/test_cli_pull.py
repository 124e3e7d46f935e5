"""`content pull` and its neighbours as a user meets them: real processes, real exit codes."""

from __future__ import annotations

import csv
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import needs
from tests.waiting import eventually

from DocsToKG.Sandbox.profile import SandboxServer

pytestmark = pytest.mark.slow  # every test starts processes; the same paths run in-process in test_run_*.py

Command = Callable[..., subprocess.CompletedProcess[str]]
ConfigFile = Callable[..., Path]


def results(root: Path) -> list[dict[str, str]]:
    with open(root / "results.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def open_works(server: SandboxServer, count: int) -> list[str]:
    works = [work["doi"] for work in server.truth()["works"] if "unpaywall" in work["reachable_by"]]
    return works[:count]


@pytest.fixture
def config(config_file: ConfigFile, calm_sandbox: SandboxServer) -> str:
    return str(config_file(calm_sandbox))


def test_pull_says_what_was_obtained_and_where(
    content: Command, config: str, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    done = content("pull", *open_works(calm_sandbox, 3), "--out", "papers", "-c", config)
    assert done.returncode == 0, done.stderr
    assert "3 (0 were there already)" in done.stdout
    assert str(tmp_path / "papers" / "PDF") in done.stdout
    assert len(list((tmp_path / "papers" / "PDF").iterdir())) == 3
    again = content("pull", *open_works(calm_sandbox, 3), "--out", "papers", "-c", config)
    assert again.returncode == 0
    assert "3 (3 were there already)" in again.stdout


def test_a_folder_can_be_named_after_its_run(
    content: Command, config: str, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    """CAT-03: each run in a folder of its own, with the layout of every run."""
    for _ in range(2):
        done = content("pull", *open_works(calm_sandbox, 1), "--out", "runs/content/{run_id}", "-c", config)
        assert done.returncode == 0, done.stderr
    folders = sorted((tmp_path / "runs" / "content").iterdir())
    assert len(folders) == 2
    for folder in folders:
        [line] = map(json.loads, (folder / "manifest.jsonl").read_text().splitlines())
        assert line["run_id"] == folder.name == json.loads((folder / "summary.json").read_text())["run_id"]
        assert len(list((folder / "PDF").iterdir())) == 1


def test_files_of_every_format_duplicates_and_rubbish(
    content: Command, config: str, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    """CLI-02: each line has one row in order; what cannot be read is named and stops nothing."""
    one, two, three, four, five = open_works(calm_sandbox, 5)
    (tmp_path / "a.txt").write_text(f"{one}\n\n# a comment\nhttps://doi.org/{one}\nrubbish here\n")
    (tmp_path / "b.bib").write_text(f"@article{{k, title = {{A {{T}}itle}}, doi = {{{two}}}, year = 2020}}\n")
    (tmp_path / "c.csv").write_text(f"title,doi\nSome,{three}\n")
    (tmp_path / "d.ris").write_text(f"TY  - JOUR\nDO  - {four}\nER  - \n")
    (tmp_path / "e.jsonl").write_text(json.dumps({"doi": five}) + "\n")
    done = content("pull", "a.txt", "b.bib", "c.csv", "d.ris", "e.jsonl", "--out", "out", "-c", config)
    assert done.returncode == 3, done.stderr
    rows = results(tmp_path / "out")
    assert [row["outcome"] for row in rows] == ["success", "duplicate", "invalid", *["success"] * 4]
    assert rows[1]["path"] == rows[0]["path"]
    assert "rubbish here" in rows[2]["input"]
    assert rows[2]["reason"]
    assert [(row["source"], row["line"]) for row in rows[:4]] == [
        ("a.txt", "1"),
        ("a.txt", "4"),
        ("a.txt", "5"),
        ("b.bib", "1"),
    ]


def test_odd_characters_reach_the_terminal_as_they_are(content: Command, config: str, tmp_path: Path) -> None:
    """Square brackets are not markup, control codes do not pass, and long lines are cut."""
    (tmp_path / "ids.txt").write_text("foo [/x] bar\n[bold]x\n\x1b[31mred\n" + "y" * 5000 + "\n")
    done = content("pull", "ids.txt", "--out", "out", "-c", config)
    assert done.returncode == 3, done.stderr
    assert "foo [/x] bar" in done.stdout
    assert "[bold]x" in done.stdout
    assert "\x1b" not in done.stdout
    assert "names no paper 4" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 500


def test_identifiers_and_a_query_exclude_each_other(content: Command, config: str) -> None:
    assert content("pull", "10.1/x", "--query", "y", "-c", config).returncode == 2
    assert content("pull", "-c", config).returncode == 2


def test_standard_input_and_a_limit(content: Command, config: str, calm_sandbox: SandboxServer, tmp_path: Path) -> None:
    lines = "\n".join(open_works(calm_sandbox, 5))
    done = content("pull", "-", "--max", "2", "--out", "out", "-c", config, stdin=lines)
    assert done.returncode == 0, done.stderr
    assert len(results(tmp_path / "out")) == 2


def test_works_of_a_query(content: Command, config: str, tmp_path: Path) -> None:
    done = content("pull", "--query", "is_oa:true", "--max", "4", "--out", "out", "-c", config, "--json")
    told = json.loads(done.stdout)
    assert len(told["results"]) == 4
    assert told["successful"] + told["failed"] == 4
    assert done.returncode == (0 if told["failed"] == 0 else 3)


@pytest.mark.parametrize("program", ["content", "contentdownload", "cli_v2"])
def test_every_entry_point_downloads_a_real_file(
    content: Command, config: str, calm_sandbox: SandboxServer, tmp_path: Path, program: str
) -> None:
    """TEST-13, CLI-12, BOOT-05: from any folder, same result, same exit code."""
    [doi] = open_works(calm_sandbox, 1)
    done = content("pull", doi, "--out", "out", "-c", config, program=program)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / "out")[0]["outcome"] == "success"


def test_run_single_shot_and_dry_run(
    content: Command, config: str, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    """CLI-01, CLI-03, CLI-14, TEST-13."""
    dois = open_works(calm_sandbox, 2)
    files = calm_sandbox.counters()["files"]
    planned = content("run", *dois, "--dry-run", "--json", "--out", "dry", "-c", config, program="contentdownload")
    assert planned.returncode == 0, planned.stderr
    plans = [json.loads(line) for line in planned.stdout.splitlines()]
    assert [bool(plan["candidates"]) for plan in plans] == [True, True]
    assert calm_sandbox.counters()["files"] == files
    assert not (tmp_path / "dry" / "manifest.jsonl").exists()
    done = content("run", *dois, "--single-shot", "--out", "out", "-c", config, program="contentdownload")
    assert done.returncode == 0, done.stderr
    assert [row["outcome"] for row in results(tmp_path / "out")] == ["success", "success"]


def test_report_and_catalog_of_a_run(content: Command, config: str, calm_sandbox: SandboxServer) -> None:
    """CLI-10, CLI-11."""
    dois = open_works(calm_sandbox, 3)
    content("pull", *dois, "--out", "out", "-c", config)
    report = content("report", "--run", "out", "--format", "json")
    assert report.returncode == 0, report.stderr
    assert json.loads(report.stdout)
    stats = content("catalog", "stats", "--run", "out", "--format", "json")
    assert json.loads(stats.stdout)
    shown = content("catalog", "show", f"doi:{dois[0].lower()}", "--run", "out")
    assert shown.returncode == 0, shown.stderr
    asked = content(
        "catalog", "query", "--run", "out", "--format", "json", "--sql", "SELECT count(*) AS n FROM downloads"
    )
    assert asked.returncode == 0, asked.stderr
    assert "3" in asked.stdout


def test_without_a_contact_address_the_way_out_is_named(
    content: Command, config_file: ConfigFile, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    """SEC-03."""
    path = config_file(calm_sandbox)
    settings = json.loads(path.read_text())
    del settings["contact"]
    path.write_text(json.dumps(settings))
    [doi] = open_works(calm_sandbox, 1)
    refused = content("pull", doi, "--out", "out", "-c", str(path))
    assert refused.returncode == 1
    assert "content config set contact" in refused.stderr
    told = content("config", "set", "contact", "me@university.edu")
    assert told.returncode == 0, told.stderr
    assert content("pull", doi, "--out", "out", "-c", str(path)).returncode == 0


def test_wrong_usage_is_told_apart_from_failure(content: Command, config: str, tmp_path: Path) -> None:
    """CLI-24."""
    assert content("pull", "-c", config).returncode == 2
    missing = content("pull", "no-such-file.txt", "-c", config)
    assert missing.returncode == 2
    assert "no-such-file.txt" in missing.stderr
    assert content("pull", "10.1/x", "--max-bytes", "lots", "-c", config).returncode == 2
    assert content("resume", "--run", str(tmp_path), "-h").returncode == 0
    unset = content("pull", "10.1/x", "--out", "", "-c", config)
    assert unset.returncode == 2
    assert "it is empty" in unset.stderr
    (tmp_path / "ids.txt").write_text("10.1371/journal.pone.0000308\n" * 30)
    for command in ("resume", "report"):
        within = content(command, "--run", str(tmp_path / "ids.txt"))
        assert within.returncode == 1
        assert "folder" in within.stderr
        assert "move it away" not in within.stderr
    nowhere = content("resume", "--run", "nowhere")
    assert nowhere.returncode == 1
    assert "content pull" in nowhere.stderr


def test_too_little_disk_stops_before_any_request(
    content: Command, config_file: ConfigFile, calm_sandbox: SandboxServer
) -> None:
    """STO-10."""
    path = config_file(calm_sandbox)
    settings = json.loads(path.read_text())
    settings["storage"] = {"min_free_bytes": 10**18}
    path.write_text(json.dumps(settings))
    before = calm_sandbox.counters()["requests"]
    done = content("pull", *open_works(calm_sandbox, 1), "--out", "out", "-c", str(path))
    assert done.returncode == 1
    assert "free" in done.stderr
    assert calm_sandbox.counters()["requests"] == before


def test_a_byte_limit_ends_the_run_and_the_next_goes_on(
    content: Command, config: str, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    dois = open_works(calm_sandbox, 60)  # more than end before the limit is noticed
    first = content("pull", *dois, "--max-bytes", "100kB", "--workers", "1", "--out", "out", "-c", config)
    assert first.returncode == 3
    assert "content resume" in first.stderr
    assert any(row["outcome"] == "pending" for row in results(tmp_path / "out"))
    assert content("resume", "--run", "out").returncode == 0
    assert all(row["outcome"] == "success" for row in results(tmp_path / "out"))


def test_a_byte_limit_that_cuts_nothing_off_asks_for_no_more(
    content: Command, config: str, calm_sandbox: SandboxServer
) -> None:
    only = content("pull", *open_works(calm_sandbox, 1), "--max-bytes", "1B", "--out", "out", "-c", config)
    assert only.returncode == 0
    assert "All papers had ended by then." in only.stderr
    assert "content resume" not in only.stderr


@needs.system(sys.platform != "darwin", "names of files that are not UTF-8")
def test_a_folder_whose_name_is_not_utf8_is_refused_in_one_line(content: Command, config: str, tmp_path: Path) -> None:
    done = content("pull", "10.1/x", "--out", os.fsdecode(b"out\xe9"), "-c", config)
    assert done.returncode == 2
    assert "out\\xe9 is not UTF-8" in " ".join(done.stderr.split())
    assert not [name for name in os.listdir(os.fsencode(tmp_path)) if name.startswith(b"out")]


def test_a_pull_may_run_with_its_output_closed_unless_it_was_asked_for_json(
    clean_environment: dict[str, str], config: str, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "DocsToKG.ContentDownload", "pull", *open_works(calm_sandbox, 1), "-c", config]
    for more, code in ([], 0), (["--json"], 1):
        script = ["sh", "-c", 'exec "$0" "$@" >&-', *words, *more]
        done = subprocess.run(
            script, stderr=subprocess.PIPE, text=True, env=clean_environment, cwd=tmp_path, timeout=100
        )
        assert (done.returncode, "standard output is closed" in done.stderr) == (code, code == 1), done.stderr
    assert len(results(tmp_path / "papers")) == 1


def test_resume_says_whose_settings_it_uses(content: Command, config: str) -> None:
    done = content("resume", "--run", "papers", "-c", config)
    assert done.returncode == 2
    assert "with its own settings" in " ".join(done.stderr.split())


def test_where_nothing_was_obtained_no_folder_of_files_is_named(content: Command, config: str) -> None:
    none = content("pull", "hello", "--out", "out", "-c", config)
    assert none.returncode == 3
    assert "Files:" not in none.stdout
    assert "results.csv" in none.stdout


def test_without_the_network_it_is_said_what_to_do(content: Command, tmp_path: Path) -> None:
    """A closed port stands for a line that is cut."""
    deaf = {
        "contact": "me@uni.edu",
        "http": {"connect_to": {"*": "plain://127.0.0.1:1"}, "names": {"*": "93.184.216.34"}},
        "robots": {"enabled": False},
        "tiers": [{"name": "direct_oa", "sources": ["unpaywall"]}],
        "policies": {"unpaywall": {"max_retries": 0}},
    }
    (tmp_path / "deaf.json").write_text(json.dumps(deaf))
    look = content("plan", "10.1371/journal.pone.0000308", "-c", "deaf.json")
    assert look.returncode == 3
    assert "content doctor" in look.stderr
    tried = content("pull", "10.1371/journal.pone.0000308", "--patience", "0", "--out", "out", "-c", "deaf.json")
    assert tried.returncode == 3
    assert "Not finished: line 1: 10.1371/journal.pone.0000308 - may be had from" in tried.stdout
    assert "content doctor" in tried.stdout


def test_a_look_needs_no_home_that_can_be_written(
    content: Command, clean_environment: dict[str, str], config: str, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    clean_environment["XDG_CACHE_HOME"] = str(tmp_path / "file")
    settings = json.loads(Path(config).read_text())
    settings.pop("hishel", None)  # a place of its own for the cache is a place that must be there
    (tmp_path / "look.json").write_text(json.dumps(settings))
    look = content("plan", *open_works(calm_sandbox, 1), "-c", "look.json")
    assert (look.returncode, "Error" in look.stderr) == (0, False), look.stderr


def test_a_damaged_file_is_found_and_fetched_again(
    content: Command, config: str, calm_sandbox: SandboxServer, tmp_path: Path
) -> None:
    """CLI-09, FAIL-07."""
    dois = open_works(calm_sandbox, 2)
    content("pull", *dois, "--out", "out", "-c", config)
    path = tmp_path / "out" / results(tmp_path / "out")[0]["path"]
    good = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(good[:-1] + b"?")
    repaired = content("resume", "--run", "out", "--verify")
    assert repaired.returncode == 0, repaired.stderr
    assert (tmp_path / "out" / results(tmp_path / "out")[0]["path"]).read_bytes() == good


def test_chosen_works_are_repeated(content: Command, config: str, calm_sandbox: SandboxServer) -> None:
    """CLI-09."""
    dois = open_works(calm_sandbox, 2)
    content("pull", *dois, "--out", "out", "-c", config)
    before = calm_sandbox.counters()["files"]
    done = content("resume", "--run", "out", "--force", "--filter", "status=ok")
    assert done.returncode == 0, done.stderr
    assert "2 (0 were there already)" in done.stdout
    assert "Works to repeat: 2" in done.stderr
    done = content("resume", "--run", "out", "--force", "--filter", "state=obtained", "--filter", f"text={dois[0]}")
    assert (done.returncode, "Works to repeat: 1" in done.stderr) == (0, True), done.stderr
    wrong = content("resume", "--run", "out", "--force", "--filter", "colour=red")
    assert (wrong.returncode, "the keys are status, source" in wrong.stderr) == (2, True)
    assert content("resume", "--run", "out", "--force").returncode == 2
    assert calm_sandbox.counters()["files"] >= before


@pytest.mark.parametrize("cas", [True, False])
def test_files_and_record_may_lie_apart(
    content: Command, config_file: ConfigFile, calm_sandbox: SandboxServer, tmp_path: Path, cas: bool
) -> None:
    """CFG-19, STO-01: the shipped layout keeps files and record in two folders; everything finds both."""
    path = config_file(calm_sandbox)
    settings = json.loads(path.read_text())
    settings["telemetry"] = {"manifest_path": "runs/content/manifest.jsonl"}
    settings["storage"] = {"root_dir": "data/docs", "min_free_bytes": 0, "cas_enabled": cas}
    settings["queue"] = {"path": "state/queue.sqlite"}
    settings["catalog"] = {"path": "data/catalog.db"}
    path.write_text(json.dumps(settings))
    dois = open_works(calm_sandbox, 3)
    single = content("run", dois[0], "--single-shot", "-c", str(path), program="contentdownload")
    assert single.returncode == 0, single.stderr
    done = content("run", *dois, "-c", str(path), program="contentdownload")
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "data" / "docs" / "PDF") in done.stdout
    record = tmp_path / "runs" / "content"
    files = [Path(row["path"]) for row in results(record)]
    assert all(file.is_file() for file in files)
    if cas:
        files[0].unlink()
    before = calm_sandbox.counters()["requests"]
    resumed = content("resume", "--run", str(record), "--verify")
    assert resumed.returncode == 0, resumed.stderr
    assert files[0].is_file()
    if not cas:
        assert calm_sandbox.counters()["requests"] == before
    assert content("catalog", "stats", "--run", str(record)).returncode == 0
    assert content("report", "--run", str(record), "--no-gates").returncode == 0


# interrupted, killed, doubled


def start(words: list[str], environment: dict[str, str], cwd: Path) -> subprocess.Popen[str]:
    program = str(Path(os.sys.executable).parent / "content")
    return subprocess.Popen(
        [program, *words],
        env=environment,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def files_in(root: Path) -> int:
    return len(list((root / "PDF").iterdir())) if (root / "PDF").is_dir() else 0


def wait_for_files(root: Path, count: int, found: Callable[[Path], int] = files_in) -> None:
    eventually(lambda: found(root) >= count, f"{count} files in {root}", within_s=100)


@pytest.fixture
def slow_config(config_file: ConfigFile, sandbox: SandboxServer) -> str:
    """Few at a time, so that there is something to interrupt."""
    return str(config_file(sandbox, orchestrator={"max_workers": 2}, limits={"rate_factor": 2.0}))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_gently_and_loses_nothing(
    slow_config: str,
    sandbox: SandboxServer,
    clean_environment: dict[str, str],
    tmp_path: Path,
    content: Command,
    how: int,
) -> None:
    """CLI-21, ORC-12."""
    (tmp_path / "ids.txt").write_text("\n".join(sandbox.identifiers(60)))
    process = start(["pull", "ids.txt", "--out", "out", "-c", slow_config], clean_environment, tmp_path)
    wait_for_files(tmp_path / "out", 5)
    process.send_signal(how)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 130
    assert "content resume --run" in err
    assert list((tmp_path / "out" / ".tmp").iterdir()) == []
    stored = len(list((tmp_path / "out" / "PDF").iterdir()))
    told = [row for row in results(tmp_path / "out") if row["outcome"] == "success"]
    assert len(told) == stored
    assert f"{stored} (0 were there already)" in out


def test_two_pulls_in_one_folder_are_told_apart(
    slow_config: str, sandbox: SandboxServer, clean_environment: dict[str, str], tmp_path: Path, content: Command
) -> None:
    (tmp_path / "ids.txt").write_text("\n".join(sandbox.identifiers(60)))
    first = start(["pull", "ids.txt", "--out", "out", "-c", slow_config], clean_environment, tmp_path)
    try:
        wait_for_files(tmp_path / "out", 1)
        first.send_signal(signal.SIGSTOP)  # however long the others take, it has not ended
        second = content("pull", "ids.txt", "--out", "out", "-c", slow_config)
        assert second.returncode == 1
        assert "in use by process" in second.stderr
        assert "--out" in second.stderr
        third = content("resume", "--run", "out")
        assert third.returncode == 1
        assert "in use by process" in third.stderr
        assert "--out" not in third.stderr, "resume has no such option"
    finally:
        first.send_signal(signal.SIGINT)
        first.send_signal(signal.SIGCONT)
        first.communicate(timeout=200)


def test_killed_at_any_moment_the_same_command_completes(
    config_file: ConfigFile, clean_environment: dict[str, str], tmp_path: Path, content: Command
) -> None:
    """FAIL-01, QUE-20, CAT-21: killed six times, then left alone: it goes on at once and repeats nothing."""
    with SandboxServer(works=120, seed=11) as server:
        config = str(config_file(server, orchestrator={"max_workers": 4}))
        (tmp_path / "ids.txt").write_text("\n".join(server.identifiers(120)))
        words = ["pull", "ids.txt", "--out", "out", "-c", config]
        root, acknowledged = tmp_path / "out", {}
        for kill in range(6):
            more, before = 3 + 2 * kill, files_in(root)
            process = start(words, clean_environment, tmp_path)
            # As soon as files are there, which is before the ledger knows of them, and as soon as it knows, in turns.
            if kill % 2:
                wait_for_files(root, len(acknowledged) + more, lambda root: len(done_jobs(root)))
            else:
                wait_for_files(root, before + more)
            process.kill()
            process.communicate()
            acknowledged = done_jobs(root)
        sent_before = server.counters()["files_by_work"]
        began = time.monotonic()
        final = content(*words)
        assert final.returncode in (0, 3), final.stderr
        assert time.monotonic() - began < 500  # a lease is longer
        counts = server.counters()["files_by_work"]
        stored = [work["doi"] for work in server.truth()["works"] if known_as(work) & acknowledged.keys()]
        assert len(stored) >= len(acknowledged) > 10
        assert [doi for doi in stored if counts.get(doi, 0) > sent_before.get(doi, 0)] == []
        check_complete(server, root)
        assert list((root / ".tmp").iterdir()) == []


def done_jobs(root: Path) -> dict[str, str]:
    """By the server's name of the work: jobs that the ledger knows as done."""
    import sqlite3

    with sqlite3.connect(root / "state" / "ledger.sqlite") as db:
        rows = db.execute("SELECT artifact_id, state FROM jobs WHERE state = 'done'").fetchall()
    db.close()
    return {work: state for work, state in rows if not work.startswith("url:")}


def known_as(work: dict[str, str]) -> set[str]:
    """The ids under which the product may know one of the server's works."""
    preprints = {f"arxiv:{work['arxiv_id']}{version}" for version in ("", "v1", "v2", "v3")}
    others = {f"pmcid:{work['pmcid']}", f"pmid:{work['pmid']}", f"openalex:{work['openalex_id']}"}
    return {f"doi:{work['doi'].lower()}", *preprints, *others}


def check_complete(server: SandboxServer, root: Path) -> None:
    import hashlib

    truth = server.truth()["works"]
    for row in results(root):
        work = truth[int(row["line"]) - 1]
        if row["outcome"] == "success":
            assert hashlib.sha256((root / row["path"]).read_bytes()).hexdigest() in work["sha256"]
        else:
            assert not {"unpaywall", "arxiv", "doi"} & set(work["reachable_by"]), row["reason"]


def test_without_the_network_it_says_so_however_many_papers_there_are(
    content: Command, config_file: ConfigFile, calm_sandbox: SandboxServer
) -> None:
    """Hosts that are left alone after the first papers are out of reach no less than those that were asked."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        path = config_file(calm_sandbox, http={"connect_to": {"*": f"plain://127.0.0.1:{nobody.getsockname()[1]}"}})
        done = content("pull", *open_works(calm_sandbox, 9), "--out", "papers", "-c", str(path), "--patience", "1")
        assert done.returncode == 3
        assert "No host could be reached; content doctor finds" in done.stdout
        resumed = content("resume", "--run", "papers")
    assert resumed.returncode == 1
    assert "and nothing answers there" in resumed.stderr


def test_a_demo_that_is_interrupted_says_how_it_goes_on(
    content: Command, clean_environment: dict[str, str], tmp_path: Path
) -> None:
    process = start(["demo", "--papers", "120", "--out", "some corpus"], clean_environment, tmp_path)
    pdfs = tmp_path / "some corpus" / "PDF"
    eventually(lambda: pdfs.is_dir() and any(pdfs.iterdir()))
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    way_on = "content demo --papers 120 --seed 7 --out 'some corpus'"
    assert f"continue with: {way_on}" in told
    resumed = content("resume", "--run", "some corpus")
    assert (resumed.returncode, "the same `content demo` command" in resumed.stderr) == (1, True)
    assert content(*shlex.split(way_on)[1:]).returncode == 0
