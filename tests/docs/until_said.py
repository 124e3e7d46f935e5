"""Run a command that goes on for ever, as a reader does: until it has said what it is started for, then Ctrl+C.

    python until_said.py PATTERN COMMAND...

What it said is passed on, and its exit code. A pattern `file:GLOB` waits for a file instead, `answers:PATTERN` until
what it fits is an address that answers. A command that ends by itself before, or has not said it after a minute, fails
with 99.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import selectors
import signal
import subprocess
import sys
import time
import urllib.request

_PATIENCE_S = 60.0


def main(pattern: str, command: list[str]) -> int:
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, process_group=0) as process:
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        until, said, seen = time.monotonic() + _PATIENCE_S, b"", False
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not seen and time.monotonic() < until and process.poll() is None:
                if selector.select(0.05):
                    said += process.stdout.read() or b""
                seen = _is_there(pattern, said)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        os.set_blocking(process.stdout.fileno(), True)
        said += process.stdout.read()
        code = process.wait()
    sys.stdout.write(said.decode(errors="replace"))
    return (code if code >= 0 else 128 - code) if seen else 99


def _is_there(pattern: str, said: bytes) -> bool:
    if pattern.startswith("file:"):
        return bool(glob.glob(pattern.removeprefix("file:"), recursive=True))
    found = re.search(pattern.removeprefix("answers:").encode(), said)
    return found is not None and (not pattern.startswith("answers:") or _answers(found[0].decode()))


def _answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return bool(response.read())
    except OSError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
