"""Standard streams that were closed before the program began."""

from __future__ import annotations

import subprocess
import sys

_CHILD = "import sys; sys.exit(0 if sys.stderr is not None else 7)"
_PROGRAM = f"""
import subprocess, sys
from DocsToKG.core.streams import open_what_is_closed
open_what_is_closed()
assert sys.stderr.fileno() == 2
sys.exit(subprocess.run([sys.executable, "-c", {_CHILD!r}]).returncode)
"""


def test_processes_of_ours_have_the_streams_that_were_closed() -> None:
    """Else the first file that one opens gets the number of a stream, and whatever is said there."""
    script = 'exec "$0" -c "$1" 2>&-'
    assert subprocess.run(["sh", "-c", script, sys.executable, _PROGRAM], timeout=60).returncode == 0
