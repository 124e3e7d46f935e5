"""A kill at any moment leaves no visible part of a file and loses no object."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from tests import needs

from DocsToKG.ContentDownload.storage.local import LocalStore

# For each call that changes the disk, a child on a fresh root dies by SIGKILL just before it; then another child does
# the same work again. Between two such calls a kill finds the disk as before the second. All share one interpreter.
EVERY_CALL = textwrap.dedent("""
    import fcntl, json, os, signal, sys
    from pathlib import Path
    from DocsToKG.ContentDownload.storage import local

    CHANGES = ("open", "write", "link", "replace", "mkdir", "fchmod", "unlink", "ftruncate", "close")
    enabled, links = sys.argv[2] == "cas", sys.argv[3] == "links"
    whole = b"first half, second half"

    def refuse(source, target):
        raise OSError(1, "Operation not permitted", str(source))

    def work(root):
        store = local.LocalStore(root, cas_enabled=enabled, min_free_bytes=0, fsync=False,
                                 link=local.hard_link if links else refuse, **json.loads(sys.argv[4]))
        store.prepare()
        for human in ("PDF/a.pdf", "PDF/b.pdf"):
            temp = store.temp()
            temp.write(whole[:12])
            temp.write(whole[12:])
            store.store(temp, human=human)
        store.prepare()

    def die_before(call):
        seen = 0
        def counted(function):
            def change(*args, **more):
                nonlocal seen
                seen += 1
                if seen == call:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*args, **more)
            return change
        for name in CHANGES:
            setattr(os, name, counted(getattr(os, name)))
        fcntl.flock, fcntl.ioctl = counted(fcntl.flock), counted(fcntl.ioctl)

    def child(root, call):
        pid = os.fork()
        if pid:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        try:
            if call:
                die_before(call)
            work(root)
            os._exit(0)
        finally:
            os._exit(1)

    def files(root):
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())

    for call in range(1, 1000):
        root = Path(sys.argv[1]) / str(call)
        end = child(root, call)
        for name in files(root):
            assert name.startswith(".tmp") or (root / name).read_bytes() == whole, (call, name)
        assert child(root, 0) == 0, call
        kept = [name for name in files(root) if not name.endswith(".lock")]
        assert kept[:2] == ["PDF/a.pdf", "PDF/b.pdf"] and len(kept) == 2 + enabled, (call, kept)
        assert all((root / name).read_bytes() == whole for name in kept), call
        if end == 0:
            break
        assert end == -signal.SIGKILL, (call, end)
    print(call)
""")

UNNAMED, NAMED = "{}", '{"in_memory": 0, "unnamed": false}'

# Stores a few hundred small files in a hurry, some with the same bytes as its rivals', until it is killed.
HURRY = textwrap.dedent("""
    import random, sys
    from pathlib import Path
    from DocsToKG.ContentDownload.storage.local import LocalStore

    store = LocalStore(Path(sys.argv[1]), min_free_bytes=0, fsync=False)
    store.prepare()
    print("ready", flush=True)
    chance = random.Random(int(sys.argv[2]))
    while True:
        number = chance.randrange(150)
        data = random.Random(number).randbytes(30_000)
        temp = store.temp()
        for at in range(0, len(data), 4096):
            temp.write(data[at : at + 4096])
        store.store(temp, human=f"PDF/{number}.pdf")
""")


def check_store(root: Path) -> int:
    """Every object hashes to its name, every readable name is whole, no temp file survives a sweep."""
    LocalStore(root, min_free_bytes=0).prepare()
    assert [name for name in os.listdir(root / ".tmp") if name.startswith("part-")] == []
    objects = [path for path in (root / "cas").rglob("*") if path.is_file()]
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in objects}
    assert digests == {path.parent.name + path.name for path in objects}
    for path in (root / "PDF").iterdir():
        assert hashlib.sha256(path.read_bytes()).hexdigest() in digests, path
    return len(objects)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "temps"),
    [
        (("cas", "links"), UNNAMED),
        (("cas", "copies"), UNNAMED),
        (("files", "links"), UNNAMED),
        (("files", "copies"), UNNAMED),
        (("cas", "links"), NAMED),
        (("files", "links"), NAMED),
    ],
)
def test_a_kill_before_any_change_of_the_disk_leaves_whole_files_or_none(tmp_path, warm, mode, temps):
    """FAIL-01, DL-04: and doing the work again afterwards ends with exactly the files wanted, nothing beside them."""
    done = subprocess.run(
        [*warm.words("python"), "-c", EVERY_CALL, str(tmp_path), *mode, temps],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert 10 < int(done.stdout) < 999, "every call was reached"


@pytest.mark.slow
def test_rivals_killed_at_random_moments_leave_a_sound_store(tmp_path, warm):
    """STO-03, FAIL-01: two processes race with the same bytes; both are killed, again and again."""
    chance = random.Random(7)
    for turn in range(5):
        rivals = [
            subprocess.Popen(
                [*warm.words("python"), "-c", HURRY, str(tmp_path), str(seed + 10 * turn)], stdout=subprocess.PIPE
            )
            for seed in range(2)
        ]
        for rival in rivals:
            assert rival.stdout.readline() == b"ready\n"
        for rival in rivals:
            with pytest.raises(subprocess.TimeoutExpired):
                rival.wait(chance.uniform(0.002, 0.06))
            rival.kill()
        for rival in rivals:
            rival.communicate()
        found = check_store(tmp_path)
    assert found > 5


def test_a_newcomer_spares_what_a_living_process_writes(tmp_path, warm):
    living = subprocess.Popen([*warm.words("python"), "-c", HURRY, str(tmp_path), "1"], stdout=subprocess.PIPE)
    try:
        assert living.stdout.readline() == b"ready\n"
        looks, until = 0, time.monotonic() + 90
        while looks < 200 or not (tmp_path / "PDF").exists():  # it must have stored something to be spared
            assert time.monotonic() < until
            LocalStore(tmp_path, min_free_bytes=0, fsync=False).prepare()
            looks += 1
        assert living.poll() is None, "its temp files were never taken from it"
    finally:
        living.kill()
        living.communicate()
    check_store(tmp_path)


FULL = textwrap.dedent("""
    import os, sys
    from pathlib import Path
    from DocsToKG.ContentDownload.errors import DiskFull
    from DocsToKG.ContentDownload.storage.local import LocalStore

    store = LocalStore(Path(sys.argv[1]), min_free_bytes=0)
    store.prepare()
    first = store.temp()
    first.write(os.urandom(300_000))
    kept = store.store(first, human="PDF/a.pdf")
    try:
        with store.temp() as second:
            for _ in range(64):
                second.write(os.urandom(64_000))
    except DiskFull as full:
        assert str(store.root) in str(full), full
        assert os.listdir(store.root / ".tmp") == []
        assert store.verify(kept.sha256)
        with store.temp() as third:
            third.write(b"there is room again")
            store.store(third, human="PDF/b.pdf")
        print("survived")
""")


def test_a_disk_that_fills_up_loses_nothing(tmp_path):
    """FAIL-11: a real file system of one MiB, mounted for one child alone."""
    mount = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" -c "$3" "$1"'
    command = ["unshare", "-rm", "sh", "-c", mount, "sh", str(tmp_path), sys.executable, FULL]
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "true"], capture_output=True).returncode:
        needs.lacks("the right to mount a small disk (unshare -rm)")
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.stdout == "survived\n", done.stderr[-2000:]
