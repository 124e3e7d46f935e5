"""The programs of the product without their start-up: each call is a fork of a process that has read the modules.

Reading modules takes most of the second that a command needs, and the suite has many hundred commands. Here a command
is still a process of its own, with its own folder, environment, input and output, and runs the very function that the
installed program calls; only what Python itself does before that is left out. That the installed programs start, and
how soon, is proved where they are started as they are (test_promises.py, test_cli_pull.py).

`python -c ...` and `python -m ...` are programs too, for tests that need a process but not its start.

One file for three sides: the process that is forked (`serve`), whoever asks from a test (`WarmPrograms`), and the
program that a shell finds by its name (`main`), which must start at once and so imports next to nothing.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Any

PROGRAMS = {
    "content": ("DocsToKG.ContentDownload.cli.main", "content"),
    "contentdownload": ("DocsToKG.ContentDownload.cli.main", "contentdownload"),
    "docstokg-orchestrator": ("DocsToKG.Orchestrator.main", "main"),
}
_STANDARD = (0, 1, 2)


# whoever asks


class Call:
    """A command that runs: its process, and its exit code in the end."""

    def __init__(
        self,
        place: str,
        program: str,
        words: Sequence[str | Path],
        env: Mapping[str, str],
        folder: str,
        files: Sequence[int],
    ) -> None:
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(place)
        words = [os.fspath(word) for word in words]
        order = json.dumps({"program": program, "words": words, "env": dict(env), "folder": folder}).encode()
        socket.send_fds(self._line, [len(order).to_bytes(4, "big")], list(files))
        self._line.sendall(order)
        self.pid = self._number()

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, negative for a signal. Raises TimeoutError."""
        self._line.settimeout(timeout)
        return self._number()

    def close(self) -> None:
        self._line.close()

    def _number(self) -> int:
        data = b""
        while len(data) < 4:
            more = self._line.recv(4 - len(data))
            if not more:
                raise RuntimeError("the process that commands are forked from is gone")
            data += more
        return int.from_bytes(data, "big", signed=True)


class WarmPrograms:
    """Starts the process to be forked when it is first asked for something, and ends it with `close`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def place(self) -> str:
        import subprocess

        place = str(self._folder / "warm")
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__, place], stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
            assert self._process.stdout is not None
            assert self._process.stdout.readline() == b"ready\n"
            self._process.stdout.close()
        return place

    def run(
        self, program: str, words: Sequence[str | Path], *, env: Mapping[str, str], cwd: Path, stdin: str | None = None,
        timeout: float = 250,
    ) -> subprocess.CompletedProcess[str]:  # fmt: skip
        """As subprocess.run does it, with text in and out."""
        import subprocess
        import tempfile

        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            given.write((stdin or "").encode())
            given.seek(0)
            files = [given.fileno(), out.fileno(), err.fileno()]
            call = Call(self.place, program, words, env, str(cwd), files)
            try:
                code = call.wait(timeout)
            except TimeoutError:
                os.kill(call.pid, signal.SIGKILL)
                raise subprocess.TimeoutExpired([program, *words], timeout) from None
            finally:
                call.close()
            texts = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode() for file in (out, err)]
            return subprocess.CompletedProcess([program, *words], code, *texts)

    def words(self, program: str) -> list[str]:
        """The first words of a command line that is to be started as a process of its own, by `subprocess.Popen`."""
        return [sys.executable, "-IS", __file__, self.place, program]

    def on_the_path(self) -> Path:
        """A folder with the programs by their names, for a shell's PATH."""
        import shlex

        folder = self._folder / "bin"
        folder.mkdir(exist_ok=True)
        for program in PROGRAMS:
            file = folder / program
            file.write_text(f'#!/bin/sh\nexec {shlex.join(self.words(program))} "$@"\n')
            file.chmod(0o755)
        return folder

    def close(self) -> None:
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait(20)


# the process that is forked


def serve(place: str) -> None:
    """Fork for every call, until standard input ends."""
    import select

    _read_modules()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who keep the calls
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(place)
        listener.listen(64)
        os.write(1, b"ready\n")
        while True:
            ready, _, _ = select.select([listener, 0], [], [])
            if 0 in ready:
                return
            line, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _keep(line)
                return
            line.close()


def _read_modules() -> None:
    import gc
    import importlib
    import pkgutil
    import warnings

    import DocsToKG

    warnings.simplefilter("ignore")
    for found in pkgutil.walk_packages(DocsToKG.__path__, "DocsToKG.", onerror=lambda name: None):
        if not found.name.endswith((".__main__", ".member")):
            try:
                importlib.import_module(found.name)
            except ImportError:
                continue  # an extra that is not installed; who needs it is told when it is needed
    warnings.resetwarnings()
    _build_commands()
    gc.collect()
    gc.freeze()
    import threading

    assert threading.active_count() == 1, "a fork would lose threads"


def _build_commands() -> None:
    """The trees of commands, which a program otherwise builds anew when it starts."""
    import functools

    import typer.main

    from DocsToKG.ContentDownload.cli.app import app
    from DocsToKG.Orchestrator.cli.app import app as ledger_app

    typer.main.get_command = functools.cache(typer.main.get_command)
    for built in (app, ledger_app):
        typer.main.get_command(built)


def _keep(line: socket.socket) -> None:
    """Start the command, tell its process, wait for its end and tell its code. Whoever asked and is killed takes the
    command along."""
    import select

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    length, files, _, _ = socket.recv_fds(line, 4, len(_STANDARD))
    data = b""
    while len(data) < int.from_bytes(length, "big"):
        data += line.recv(65536)
    pid = os.fork()
    if pid == 0:
        line.close()
        _become(json.loads(data), files)
    for file in files:
        os.close(file)
    ended = os.pidfd_open(pid)
    try:
        line.sendall(pid.to_bytes(4, "big", signed=True))
        if ended not in select.select([ended, line], [], [])[0]:
            os.kill(pid, signal.SIGKILL)
    except OSError:
        os.kill(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        line.sendall(code.to_bytes(4, "big", signed=True))
    finally:
        os._exit(0)


def _become(order: dict[str, Any], files: Sequence[int]) -> None:
    """Run the command in this process, and end it."""
    import atexit
    import contextlib
    import importlib
    import threading

    for number, file in zip(_STANDARD, files, strict=True):
        os.dup2(file, number)
        os.close(file)
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["env"])
    sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", 1 if os.isatty(1) else -1, encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]
    sys.argv = [order["program"], *order["words"]]
    try:
        if order["program"] == "python":
            _run_python(*order["words"])
        else:
            module, name = PROGRAMS[order["program"]]
            getattr(importlib.import_module(module), name)()
        code = 0
    except SystemExit as end:
        code = _exit_code(end.code)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    # What the interpreter does at its end, but for taking every module apart.
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _run_python(how: str, what: str, *words: str) -> None:
    """As the interpreter runs a text or a module."""
    import runpy
    import warnings

    sys.path[0] = ""
    if how == "-m":
        sys.argv = [what, *words]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # it has been read already
            runpy.run_module(what, run_name="__main__", alter_sys=True)
    else:
        assert how == "-c"
        sys.argv = ["-c", *words]
        main = type(sys)("__main__")
        sys.modules["__main__"] = main
        exec(compile(what, "<string>", "exec"), main.__dict__)


def _exit_code(given: object) -> int:
    if given is None or isinstance(given, int):
        return (given or 0) & 0xFF
    print(given, file=sys.stderr)
    return 1


# the program that a shell finds


def main(place: str, program: str, words: Sequence[str]) -> int:
    call = Call(place, program, words, os.environ, os.getcwd(), _STANDARD)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, frame: os.kill(call.pid, number))
    code = call.wait()
    if code < 0:  # killed: so are we
        if -code != signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    if len(sys.argv) == 2:
        serve(sys.argv[1])
    else:
        sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
