"""Programs of the system that measurements need: on the PATH, or unpacked into .tools by `./dev bench`.

Knows where unpacked programs find their libraries. Does not fetch anything.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

UNPACKED = Path(os.environ.get("DOCSTOKG_TOOLS") or Path(__file__).resolve().parents[1] / ".tools") / "debian" / "usr"


def find(name: str) -> str | None:
    unpacked = os.pathsep.join(str(UNPACKED / folder) for folder in ("bin", "sbin"))
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), unpacked]))


def environment(program: str) -> dict[str, str]:
    """What it is started with: one that was unpacked here has libraries beside it that the system may lack."""
    env = dict(os.environ)
    if Path(program).is_relative_to(UNPACKED):
        folders = [UNPACKED / "lib", *(UNPACKED / "lib").glob("*-linux-*")]
        env["LD_LIBRARY_PATH"] = os.pathsep.join(map(str, folders))
    return env
