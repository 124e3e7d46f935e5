"""A folder for one measurement, on a piece of the disk that nothing was removed from lately.

ext4 passes over every place for a file that was given up within the last minutes, one by one, whenever a new file is
made beside it. What an earlier measurement removed would then make each file of this one cost half a millisecond.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path

_GET_FLAGS, _SET_FLAGS, _TOP_FOLDER = 0x80086601, 0x40086602, 0x00020000  # linux/fs.h


@contextlib.contextmanager
def fresh_folder() -> Iterator[Path]:
    """Removed afterwards. Folders below `above` are spread over the disk, where the disk knows how to."""
    with tempfile.TemporaryDirectory(prefix="bench-") as above:
        _spread_below(above)
        inside = Path(above, secrets.token_hex(8))  # where on the disk it lies follows from its name
        inside.mkdir()
        yield inside


def _spread_below(folder: str) -> None:
    with contextlib.suppress(ImportError, OSError):
        import fcntl

        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            flags = int.from_bytes(fcntl.ioctl(fd, _GET_FLAGS, bytes(8)), "little")
            fcntl.ioctl(fd, _SET_FLAGS, (flags | _TOP_FOLDER).to_bytes(8, "little"))
        finally:
            os.close(fd)
