"""nginx on loopback, serving files: the fastest origin there is, so that it is not the origin that is measured.

Every host is an address of its own (127.0.1.1, 127.0.1.2, ...; all of 127/8 is loopback on Linux) for programs that
cannot be told where a name leads, and all of them answer on 127.0.0.1 too. Its log has the time of every request.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from bench.programs import environment, find

_SETTINGS = """
{user}worker_processes 1;
daemon off;
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{ worker_connections 4096; }}
http {{
  log_format times "$msec";
  access_log {home}/access.log times;
  default_type application/pdf;
  types {{ text/plain txt; }}
  sendfile on; tcp_nopush on; tcp_nodelay on;
  keepalive_requests 1000000;
  open_file_cache max=20000;
  client_body_temp_path {home}/body; proxy_temp_path {home}/proxy; fastcgi_temp_path {home}/fastcgi;
  uwsgi_temp_path {home}/uwsgi; scgi_temp_path {home}/scgi;
  server {{
    {listen}
    root {root};
  }}
}}
"""

# Whoever is killed cannot end its nginx; the kernel does it, where there is a program to ask for that.
_WITH_US = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []


def host_address(host: int) -> str:
    return f"127.0.1.{host + 1}"


class Nginx:
    """`with Nginx(home, root=folder, hosts=40) as nginx:` serves the folder on `nginx.port`."""

    def __init__(self, home: Path, *, root: Path, hosts: int) -> None:
        self._home = home
        self._root = root
        self._hosts = hosts
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __enter__(self) -> Nginx:
        program = find("nginx")
        if program is None:
            raise RuntimeError("there is no nginx: ./dev bench fetches it, or put it on the PATH")
        self._home.mkdir(parents=True, exist_ok=True)
        for _ in range(3):  # another process may take the free port first
            self.port = _free_port()
            self._configure()
            command = [*_WITH_US, program, "-p", str(self._home), "-c", str(self._home / "nginx.conf")]
            with open(self._home / "output", "wb") as output:
                self._process = subprocess.Popen(command, env=environment(program), stdout=output, stderr=output)
            if self._answers():
                return self
            self._end()
        raise RuntimeError(f"nginx does not start: {(self._home / 'output').read_text()[-500:]}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def requests(self, after: int = 0) -> int:
        """How many requests the log has, after so many."""
        return sum(1 for _ in self._times(after))

    def first_at(self, after: int) -> float:
        """When the first request was answered, after so many, as seconds of the epoch."""
        return float(next(self._times(after)))

    def _times(self, after: int) -> Iterator[str]:
        with open(self._home / "access.log") as lines:
            for number, line in enumerate(lines):
                if number >= after:
                    yield line

    def _configure(self) -> None:
        addresses = ["127.0.0.1", *map(host_address, range(self._hosts))]
        listen = " ".join(f"listen {address}:{self.port} backlog=1024;" for address in addresses)
        user = "user root;\n" if os.geteuid() == 0 else ""  # else its worker may not read our files
        text = _SETTINGS.format(home=self._home, root=self._root, listen=listen, user=user)
        (self._home / "nginx.conf").write_text(text)

    def _answers(self) -> bool:
        until = time.monotonic() + 20
        while time.monotonic() < until and self._process and self._process.poll() is None:
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return True
            time.sleep(0.02)
        return False

    def _end(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(20)
            self._process = None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
