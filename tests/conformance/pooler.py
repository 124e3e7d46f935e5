"""PgBouncer in transaction mode before a PostgreSQL server: from `make servers` or the PATH, else skipped aloud.

It goes round its few sessions, so that what one transaction leaves in its session is not found by the next.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from tests import needs
from tests.ports import free_port

_NOBODY = 65534
_SETTINGS = """
[databases]
* = host={host} port={port} user={user}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 4
server_round_robin = 1
max_client_conn = 200
"""


@contextlib.contextmanager
def running_pooler(server_url: str) -> Iterator[str]:
    """The address of a pooler before that server."""
    server = urlsplit(server_url)
    with tempfile.TemporaryDirectory(prefix="pooler") as folder:
        home = Path(folder)
        program, environment = _program(home)
        for _ in range(3):  # another process may take the free port first
            port = free_port()
            words = {"host": server.hostname, "port": server.port, "user": server.username, "own_port": port}
            (home / "pooler.ini").write_text(_SETTINGS.format(**words))
            url = server._replace(netloc=f"{server.username}@127.0.0.1:{port}").geturl()
            process = subprocess.Popen([program, str(home / "pooler.ini")], **_how(home, environment))
            try:
                if _answers(url, process):
                    yield url
                    return
            finally:
                process.kill()
                process.wait(20)
        needs.lacks("a pgbouncer that starts")


def _program(home: Path) -> tuple[str, dict[str, str]]:
    """The program and what it needs to find its libraries, where anybody may read them."""
    found = Path(needs.program("pgbouncer"))
    unpacked = found.parents[1]
    if unpacked.parent.name != "debian":
        home.chmod(0o755)
        return str(found), {}
    libraries = home / "lib"
    libraries.mkdir()
    for library in unpacked.glob("lib/*/lib*.so*"):
        shutil.copy(library, libraries / library.name)
    shutil.copy(found, home / "pgbouncer")
    home.chmod(0o755)
    return str(home / "pgbouncer"), {"LD_LIBRARY_PATH": str(libraries)}


def _how(home: Path, environment: dict[str, str]) -> dict[str, Any]:
    quiet: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "cwd": home}
    quiet |= {"stderr": subprocess.DEVNULL, "env": {"PATH": os.environ.get("PATH", ""), **environment}}
    return quiet | ({"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.getuid() == 0 else {})


def _answers(url: str, process: subprocess.Popen[bytes]) -> bool:
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(url, connect_timeout=5).close()
            return True
        time.sleep(0.05)
    return False
