"""Start a sandbox, configure a client for it, read its counters, stop it.

In the client's configuration every name is answered by a public address, so that the guard judges it as it would
outside, and then every connection goes to the loopback port. Only names that stand for private places have private
addresses.
"""

from __future__ import annotations

import http.client
import json
from types import TracebackType
from typing import Any

from DocsToKG.Sandbox.faults import Faults, settings_of
from DocsToKG.Sandbox.files import Files
from DocsToKG.Sandbox.limits import Limits
from DocsToKG.Sandbox.publishers import PRIVATE_NAME
from DocsToKG.Sandbox.router import Router
from DocsToKG.Sandbox.running import InProcess, InThread
from DocsToKG.Sandbox.services.control import CONTROL_HOST
from DocsToKG.Sandbox.world import World

PUBLIC_ADDRESS = "93.184.216.34"
CONTACT = "demo@sandbox.invalid"
_ASK_S = 300.0


def sandbox_profile(port: int, rate_factor: float = 20.0) -> dict[str, Any]:
    """A plain dict, ready for YAML or JSON. The names of every world are covered by the star."""
    return {
        "contact": CONTACT,
        "http": {
            "connect_to": {"*": f"plain://127.0.0.1:{port}"},
            "names": {"*": [PUBLIC_ADDRESS], PRIVATE_NAME: ["10.0.0.5"], "localhost": ["127.0.0.1"]},
            # Where one may ask twenty times as often, ten seconds of silence in the only slot would be minutes.
            "timeout_stall_s": 2,
        },
        "limits": {"rate_factor": float(rate_factor)},
        # This web recovers from its faults within seconds, so nobody has to wait minutes for another try.
        "orchestrator": {"retry_backoff_seconds": 1, "jitter_seconds": 1},
        "robots": {"unreachable_seconds": 2},
        "breakers": {"open_seconds": 2},
    }


class SandboxServer:
    """`with SandboxServer(works=200) as sandbox:` serves on `sandbox.port` until the block ends.

    By default in a process of its own, as the demo and benchmarks want it; `thread=True` is for tests.
    """

    def __init__(
        self,
        *,
        works: int = 500,
        seed: int = 7,
        faults: Faults | None = None,
        files: Files | None = None,
        size_bytes: int = 60_000,
        rate_factor: float = 20.0,
        port: int = 0,
        slow_s: float = 2.0,
        stall_s: float = 30.0,
        thread: bool = False,
    ) -> None:
        self.world = World(seed=seed, count=works, size_bytes=size_bytes, faults=faults, files=files)
        self.rate_factor = rate_factor
        self.port = port
        self._slow_s = slow_s
        self._stall_s = stall_s
        self._runner = InThread(router=self._board, port=port) if thread else InProcess(arguments=self._arguments)

    def __enter__(self) -> SandboxServer:
        self.port = self._runner.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.stop()

    @property
    def pid(self) -> int | None:
        """The server's process, or None when it runs in a thread."""
        return self._runner.pid

    def truth(self) -> dict[str, Any]:
        """`works` is a list with one entry per work."""
        return dict(json.loads(self.ask("/truth.json")))

    def counters(self) -> dict[str, Any]:
        return dict(json.loads(self.ask("/counters.json")))

    def violations(self) -> list[dict[str, Any]]:
        """Each impolite request, the first thousand of them."""
        return list(json.loads(self.ask("/violations.json"))["violations"])

    def identifiers(self, n: int = 200, *, mix: bool = True) -> list[str]:
        """Identifiers of the first works, in mixed spellings or as bare DOIs."""
        return self.ask(f"/ids.txt?n={n}&mix={int(mix)}").decode().splitlines()

    def reset(self) -> None:
        """Forget counts, violations and tries."""
        self.ask("/reset", method="POST")

    def profile(self) -> dict[str, Any]:
        """The client configuration for this server."""
        return sandbox_profile(self.port, self.rate_factor)

    def ask(self, target: str, *, method: str = "GET") -> bytes:
        """The body of a control page."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_ASK_S)
        try:
            connection.request(method, target, headers={"Host": CONTROL_HOST})
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        if response.status != 200:
            raise RuntimeError(f"the sandbox answered {response.status} to {target}")
        return body

    def _board(self) -> Router:
        limits = Limits(rate_factor=self.rate_factor)
        return Router(world=self.world, limits=limits, slow_s=self._slow_s, stall_s=self._stall_s)

    def _arguments(self) -> list[str]:
        """The words that start the same sandbox with `python -m DocsToKG.Sandbox`."""
        numbers = {
            "works": self.world.count,
            "seed": self.world.seed,
            "size": self.world.size_bytes,
            "rate-factor": self.rate_factor,
            "port": self.port,
            "slow": self._slow_s,
            "stall": self._stall_s,
        }
        words = [f"--{name}={value}" for name, value in numbers.items()]
        faults = [f"--fault={setting}" for setting in settings_of(self.world.faults)]
        files = [f"--rendering={setting}" for setting in self.world.files.settings()]
        return [*words, *faults, "--plain", *files]
