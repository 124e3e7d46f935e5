"""What the suite promises of itself: skips are told, leftovers are found, an order by a seed is the same every time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from tests import needs
from tests.leftovers import is_running, strangers

ROOT = Path(__file__).parents[1]
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs tests in a folder of their own under the rules of this suite; `surroundings` join the environment."""

    def run(text: str, *words: str, **surroundings: str) -> subprocess.CompletedProcess[str]:
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        for name, part in zip("abcdefgh", text.split("# next file\n"), strict=False):
            (tmp_path / f"test_{name}.py").write_text(part)
        env = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST_")}
        env |= {"PYTHONPATH": str(ROOT), "PYTEST_DEBUG_TEMPROOT": str(tmp_path), **surroundings}
        plain = ["-p", "tests.conftest", "-p", "no:cacheprovider", "-p", "no:schemathesis", "--rootdir", str(tmp_path)]
        command = [sys.executable, "-m", "pytest", *plain, *words]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)

    return run


# skips

LACKING = """
from tests import needs

def test_one(): needs.program("no-such-server")
def test_two(): needs.program("no-such-server")
def test_three(): needs.program("no-such-browser", "nor-this-one")
@needs.system(False, "another system")
def test_four(): pass
def test_five(): needs.lacks("a rare tool", even_in_ci=True)
def test_six(monkeypatch):
    monkeypatch.setattr(needs, "_ROOT", needs.Path("/nowhere/at/all"))
    needs.recorded("arxiv")
def test_seven(): pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_end_of_a_run_says_what_was_skipped_and_what_gets_it(run: Run, workers: str) -> None:
    done = run(LACKING, "-n", workers)
    assert done.returncode == 0, done.stdout
    assert "1 passed, 6 skipped" in done.stdout
    told = re.split(r"=+ skipped: 6 tests =+\n", done.stdout)[1].splitlines()[:4]
    assert [line.strip() for line in told] == [
        "3 need what `make servers` fetches: no-such-server 2, no-such-browser 1",
        "1 need recorded answers of real services: ../shared/recorded, which no command fetches",
        "2 need what this machine does not have: a rare tool 1, another system 1",
        "To run 3 more: `make servers`, then the same command again.",
    ]


@pytest.mark.slow
def test_where_ci_is_set_only_recorded_data_and_what_others_show_too_may_be_missing(run: Run) -> None:
    done = run(LACKING, "-n", "0", CI="true")
    assert done.returncode == 1
    assert "skipped: 2 tests" in done.stdout
    assert "3 failed, 1 passed, 2 skipped, 1 error" in done.stdout
    assert "skipped where CI is set" in done.stdout
    assert "To run" not in done.stdout


def test_who_is_not_root_is_told_how_chromium_is_added(monkeypatch: pytest.MonkeyPatch) -> None:
    reasons = ["needs chromium (`make servers` fetches it)"]
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "sudo apt-get install chromium" in list(needs.told(reasons))[-1]
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert not any("sudo" in line for line in needs.told(reasons))


def test_every_test_says_what_it_lacks_in_the_one_place() -> None:
    """Or the end of a run could not count it."""
    word = re.compile(r"pytest\.(skip|importorskip)\(|mark\.skip(if)?\b|SkipTest")
    allowed = {Path(needs.__file__), Path(__file__)}
    files = [path for path in (ROOT / "tests").rglob("*.py") if path not in allowed]
    assert len(files) > 300
    assert [str(path.relative_to(ROOT)) for path in files if word.search(path.read_text("utf-8"))] == []


def test_a_recorded_part_of_a_wrong_name_is_no_reason_to_skip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shared" / "recorded" / "arxiv").mkdir(parents=True)
    monkeypatch.setattr(needs, "_ROOT", tmp_path / "checkout")
    assert needs.recorded("arxiv").is_dir()
    with pytest.raises(AssertionError, match="shared/recorded has no arvix"):
        needs.recorded("arvix")


# leftovers

LEAVING = """
import subprocess
import tempfile
from pathlib import Path

kept = []  # or Python itself would say that a process was forgotten

def test_a_process():
    kept.append(subprocess.Popen(["sleep", "87654"], start_new_session=True))

def test_files():
    tempfile.mkdtemp(prefix="forgotten")
    (Path.home() / ".cache" / "docstokg").mkdir(parents=True)
    (Path.home() / ".cache" / "docstokg" / "may-be-there").touch()
    (Path.home() / "surprise").touch()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "ci", "code"), [("0", "", 0), ("2", "true", 1)])
def test_what_is_left_behind_is_told_and_removed_and_fails_the_run_where_ci_is_set(
    run: Run, tmp_path: Path, workers: str, ci: str, code: int
) -> None:
    done = run(LEAVING, "-n", workers, CI=ci, HOME=str(tmp_path / "own-home"), TMPDIR=str(tmp_path))
    assert "2 passed" in done.stdout
    told = done.stdout.partition("left behind by the tests, and removed now")[2]
    assert re.search(r"^process \d+: sleep 87654$", told, re.MULTILINE)
    assert "in the home: surprise" in told
    assert "temporary file: forgotten" in told
    assert "may-be-there" not in told
    assert done.returncode == code
    [pid] = re.findall(r"process (\d+):", told)
    assert not is_running(int(pid))
    assert not (tmp_path / "own-home").exists()
    assert list(tmp_path.glob("dt-*")) == []


def test_what_the_readme_says_is_kept_in_a_home_is_no_leftover(tmp_path: Path) -> None:
    for name in (".cache/uv/a", ".local/state/docstokg/limits.sqlite", ".local/state/other", "docstokg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert [str(path) for path in strangers(tmp_path)] == [".local/state/other", "docstokg"]


# order

MANY = "# next file\n".join(
    f"import pytest\n@pytest.mark.parametrize('n', range(20))\ndef test_{name}(n): pass\n" for name in "abcdef"
)


@pytest.mark.slow
def test_an_order_by_a_seed_is_the_same_every_time_and_keeps_modules_together(run: Run) -> None:
    def order(*words: str) -> list[str]:
        done = run(MANY, "-n", "0", "-v", *words)
        assert "120 passed" in done.stdout, done.stdout
        return re.findall(r"^(test_\w\.py::\S+) PASSED", done.stdout, re.MULTILINE)

    plain, first, again, other = order(), order("--shuffle=7"), order("--shuffle=7"), order("--shuffle=8")
    assert first == again
    assert len({tuple(plain), tuple(first), tuple(other)}) == 3
    assert sorted(plain) == sorted(first) == sorted(other)
    modules = [name.partition("::")[0] for name in first]
    assert sum(one != two for one, two in pairwise(modules)) == 5
    assert [name for name in first if "test_a" in name] != [name for name in plain if "test_a" in name]


@pytest.mark.slow
def test_workers_agree_on_an_order_and_the_seed_is_told(run: Run) -> None:
    """xdist itself refuses to run workers that collected different tests."""
    done = run(MANY, "-n", "2", "--dist", "worksteal", "--shuffle=31")
    assert (done.returncode, "120 passed" in done.stdout) == (0, True), done.stdout
    assert done.stdout.count("order shuffled by seed 31; --shuffle=31 repeats it") == 2
