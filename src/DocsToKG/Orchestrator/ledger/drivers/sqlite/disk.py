"""On what kind of disk is a path? WAL needs shared memory, which network disks do not give between machines."""

from __future__ import annotations

import re
from pathlib import Path

_NETWORK = re.compile(r"nfs\d?|cifs|smb\w*|afs|ceph|glusterfs|lustre|gpfs|beegfs|fuse\.(sshfs|s3fs|glusterfs|ceph\w*)")


def network_disk(path: Path, *, mounts: Path = Path("/proc/self/mounts")) -> str | None:
    """The kind of network disk that holds `path`, or None when it is local or the system does not say."""
    kind = kind_of_disk(path, mounts=mounts)
    return kind if _NETWORK.fullmatch(kind) else None


def kind_of_disk(path: Path, *, mounts: Path = Path("/proc/self/mounts")) -> str:
    """The kind of disk that holds `path`, as the system calls it; empty when it does not say."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    whole = path.absolute().resolve()
    depth, kind = 0, ""
    for fields in (line.split(" ") for line in lines):
        if len(fields) < 3 or not whole.is_relative_to(point := Path(_unescaped(fields[1]))):
            continue
        # The deepest mount point holds the file; of two at one place, the later one hides the earlier.
        if len(point.parts) >= depth:
            depth, kind = len(point.parts), fields[2]
    return kind


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
