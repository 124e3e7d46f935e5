"""The bootstrap script on machines that lack something."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.leftovers import is_running
from tests.waiting import eventually

ROOT = Path(__file__).parent.parent


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the script needs of a clone."""
    for name in ("dev", "Makefile", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    shutil.copytree(ROOT / "requirements", tmp_path / "requirements")
    return tmp_path


def bare_python(folder: Path) -> list[str]:
    """A python3 that has neither pip nor venv, as Debian ships it."""
    hook = folder / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(
        "import importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, *rest: None if name in ('pip', 'ensurepip', 'venv') else real(name, *rest)\n"
    )
    return [sys.executable, str(folder / "dev")]


def test_without_pip_and_venv_the_missing_package_is_named(checkout: Path) -> None:
    words = bare_python(checkout)
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(checkout / "hook"), "HOME": str(checkout)}
    done = subprocess.run([*words, "test"], capture_output=True, text=True, env=environment, cwd=checkout, timeout=60)
    assert done.returncode == 1
    assert "python3-venv" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("tools", [(), ("curl-config",), ("cc",), ("curl-config", "cc")])
def test_where_pycurl_has_no_wheel_what_compiling_takes_is_named(checkout: Path, tools: tuple[str, ...]) -> None:
    """On musl."""
    found = checkout / "found"
    found.mkdir()
    for tool in tools:
        (found / tool).write_text("#!/bin/sh\n")
        (found / tool).chmod(0o755)
    script = (
        "import importlib.machinery, importlib.util\n"
        "loader = importlib.machinery.SourceFileLoader('dev', 'dev')\n"
        "dev = importlib.util.module_from_spec(importlib.util.spec_from_loader('dev', loader))\n"
        "loader.exec_module(dev)\n"
        "dev.sysconfig.get_config_var = lambda name: 'cpython-311-x86_64-linux-musl'\n"
        "dev.find_uv = lambda: exit('it installs')\n"
        "dev.install(dev.RUNTIME)\n"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": str(found)}, cwd=checkout, timeout=60)
    assert ("it installs" if len(tools) == 2 else "apk add curl-dev") in done.stderr
    assert "Traceback" not in done.stderr


def test_a_warm_start_needs_no_network(checkout: Path) -> None:
    """With the stamp in place nothing is fetched: a dead proxy and a dead index do not matter."""
    script = (
        "import importlib.machinery, importlib.util, sys, pathlib\n"
        "loader = importlib.machinery.SourceFileLoader('dev', 'dev')\n"
        "dev = importlib.util.module_from_spec(importlib.util.spec_from_loader('dev', loader))\n"
        "loader.exec_module(dev)\n"
        "dev.VENV.mkdir()\n"
        "(dev.VENV / '.stamp').write_text(dev.fingerprint(dev.DEVELOP))\n"
        "dev.install = lambda lock: sys.exit('it installed something')\n"
        "dev.set_up(dev.DEVELOP)\n"
        "(dev.ROOT / 'pyproject.toml').write_text('changed')\n"
        "try:\n"
        "    dev.set_up(dev.DEVELOP)\n"
        "except SystemExit as stop:\n"
        "    print(stop)\n"
    )
    environment = dict(os.environ, PIP_INDEX_URL="http://127.0.0.1:9/", UV_INDEX_URL="http://127.0.0.1:9/")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=checkout, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "it installed something"


@pytest.mark.parametrize("named", [None, "/var/tmp"])
def test_scratch_files_of_quick_tests_lie_in_memory_unless_a_place_is_named(checkout: Path, named: str | None) -> None:
    """And compiled files are kept, whatever the surroundings say."""
    script = (
        "import importlib.machinery, importlib.util, os, pathlib\n"
        "loader = importlib.machinery.SourceFileLoader('dev', 'dev')\n"
        "dev = importlib.util.module_from_spec(importlib.util.spec_from_loader('dev', loader))\n"
        "loader.exec_module(dev)\n"
        "dev.MEMORY, dev.has_room = pathlib.Path('memory').absolute(), lambda folder: True\n"
        "dev.MEMORY.mkdir()\n"
        "dev.set_up = lambda lock: None\n"
        "dev.run = lambda *words: print(os.environ['TMPDIR'], 'PYTHONDONTWRITEBYTECODE' in os.environ) or 0\n"
        "dev.main(['test-fast'])\n"
        "print(len(list(dev.MEMORY.iterdir())))\n"
    )
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("TMPDIR", None)
    environment |= {} if named is None else {"TMPDIR": named}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=checkout, timeout=60
    )
    assert done.returncode == 0, done.stderr
    place, is_kept_from_compiling, left = done.stdout.split()
    assert place.startswith(str(checkout / "memory") if named is None else named)
    assert (is_kept_from_compiling, left) == ("False", "0")


LOADED = """
import importlib.machinery, importlib.util, os, pathlib, shutil, subprocess, sys
loader = importlib.machinery.SourceFileLoader("dev", "dev")
dev = importlib.util.module_from_spec(importlib.util.spec_from_loader("dev", loader))
loader.exec_module(dev)
dev.set_up = lambda lock: None
"""


@pytest.mark.parametrize("leaves_a_file", [False, True])
def test_a_bare_run_has_an_empty_home_and_finds_nothing_that_was_fetched(checkout: Path, leaves_a_file: bool) -> None:
    folder = checkout / "bin"
    folder.mkdir()
    for name in ("nats-server", "promtool", "other-tool"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    script = LOADED + (
        "def run_tests(*words):\n"
        "    home = pathlib.Path.home()\n"
        "    found = [name for name in ('nats-server', 'promtool', 'other-tool') if shutil.which(name)]\n"
        "    print(found, list(home.iterdir()), [name in os.environ for name in ('CI', 'XDG_STATE_HOME')])\n"
        f"    if {leaves_a_file}: (home / 'surprise').touch()\n"
        "    return 0\n"
        "dev.run_tests = run_tests\n"
        "code = dev.main(['test', '--bare'])\n"
        "print(os.environ['HOME'], shutil.which('nats-server'))\n"
        "sys.exit(code)\n"
    )
    env = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(checkout), "CI": "true", "XDG_STATE_HOME": str(checkout)}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, env=env, cwd=checkout, timeout=60
    )
    bare, after = done.stdout.splitlines()
    assert bare == "['other-tool'] [] [False, False]"
    assert after == f"{checkout} {folder / 'nats-server'}"
    assert done.returncode == leaves_a_file
    assert ("surprise" in done.stderr) == leaves_a_file


def test_an_order_by_chance_is_named_so_that_it_can_be_had_again(checkout: Path) -> None:
    script = LOADED + (
        "dev.run_tests = lambda *words: print(words[-1]) or 0\n"
        "dev.main(['test', '--shuffle'])\n"
        "dev.main(['test-fast', 'tests/core', '--shuffle=9'])\n"
        "dev.main(['test', '--shuffle', '-q'])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=checkout, timeout=60)
    given = done.stdout.split()
    assert len(given) == 3
    assert given[1] == "--shuffle=9"
    assert [line.split()[-3] for line in done.stderr.splitlines()] == given
    assert all(word.removeprefix("--shuffle=").isdigit() for word in given)


@pytest.mark.parametrize("end", ["the end", "Ctrl+C", "a kill"])
def test_busy_processes_end_with_the_run(checkout: Path, end: str) -> None:
    script = LOADED + (
        "started, real = [], subprocess.Popen\n"
        "def popen(*words, **more):\n"
        "    started.append(real(*words, **more))\n"
        "    return started[-1]\n"
        "subprocess.Popen = popen\n"
        "def run_tests(*words):\n"
        "    print(*[process.pid for process in started], flush=True)\n"
        "    sys.stdin.readline()\n"
        "    return 0\n"
        "dev.run_tests = run_tests\n"
        "dev.main(['test', '--beside', '2'])\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], cwd=checkout, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        busy = [int(word) for word in process.stdout.readline().split()]
        assert len(busy) == 2
        assert all(is_running(pid) for pid in busy)
        if end == "the end":
            process.stdin.write("\n")
        else:
            os.killpg(process.pid, signal.SIGINT if end == "Ctrl+C" else signal.SIGKILL)
        _, said = process.communicate(timeout=60)
    assert ("beside 2 busy processes" in said) == (end == "the end")
    eventually(lambda: not any(is_running(pid) for pid in busy))


def test_an_unknown_word_is_answered_with_the_known_ones(checkout: Path) -> None:
    done = subprocess.run([sys.executable, "dev", "dance"], capture_output=True, text=True, cwd=checkout, timeout=60)
    assert done.returncode == 1
    assert "./dev test" in done.stdout


def test_ctrl_c_gives_the_program_the_time_it_needs(checkout: Path) -> None:
    """The terminal sends the signal to both; the script waits for the program to end in its own way."""
    program = checkout / ".venv" / "bin" / "gentle"
    program.parent.mkdir(parents=True)
    program.write_text(
        "#!/bin/sh\ntrap 'sleep 0.3; echo done > ended; exit 130' INT\necho ready\nwhile :; do sleep 0.1; done\n"
    )
    program.chmod(0o755)
    words = [sys.executable, "dev", "run", "gentle"]
    process = subprocess.Popen(words, cwd=checkout, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130
    assert (checkout / "ended").read_text() == "done\n"


def test_a_program_that_a_signal_ends_leaves_what_the_shell_would_say(checkout: Path) -> None:
    program = checkout / ".venv" / "bin" / "hit"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nkill -TERM $$\n")
    program.chmod(0o755)
    done = subprocess.run([sys.executable, "dev", "run", "hit"], cwd=checkout, timeout=60)
    assert done.returncode == 143


def test_without_apt_get_the_missing_programs_are_named_and_nothing_fails(checkout: Path) -> None:
    """A laptop without Debian's packages runs the other tests all the same."""
    environment = {"PATH": str(checkout / "nothing-here"), "HOME": str(checkout)}
    words = [sys.executable, str(checkout / "dev"), "servers"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=checkout, timeout=60)
    assert done.returncode == 0
    assert all(name in done.stderr for name in ("nats-server", "prometheus", "chromium"))
