"""Numbers that every process of the machine sees at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.net.signals import Signals

KEYS = ("host:a.org", "resolver:unpaywall")
_ANOTHER = """
import sys
from pathlib import Path
from DocsToKG.ContentDownload.net.signals import Signals
Signals(Path(sys.argv[1])).raise_for("host:a.org")
"""


def test_another_process_is_seen_without_a_look_at_the_file(tmp_path: Path) -> None:
    signals = Signals(tmp_path / "s")
    before = signals.read(KEYS)
    subprocess.run([sys.executable, "-c", _ANOTHER, str(tmp_path / "s")], check=True, timeout=60)
    assert signals.read(KEYS) != before
    assert signals.read(KEYS)[1] == before[1]
    signals.close()


def test_numbers_outlive_those_who_raised_them(tmp_path: Path) -> None:
    first = Signals(tmp_path / "s")
    first.raise_for("host:a.org")
    seen = first.read(KEYS)
    first.close()
    second = Signals(tmp_path / "s")
    assert second.read(KEYS) == seen
    second.close()


def test_a_file_that_was_replaced_is_noticed(tmp_path: Path) -> None:
    signals = Signals(tmp_path / "s")
    assert signals.is_the_file()
    (tmp_path / "s").rename(tmp_path / "old")
    assert not signals.is_the_file()
    other = Signals(tmp_path / "s")
    assert not signals.is_the_file()
    for each in (signals, other):
        each.close()


def test_a_file_cut_short_is_made_whole(tmp_path: Path) -> None:
    Signals(tmp_path / "whole").close()
    (tmp_path / "s").write_bytes(b"abc")
    signals = Signals(tmp_path / "s")
    signals.raise_for("host:a.org")
    signals.close()
    assert (tmp_path / "s").stat().st_size == (tmp_path / "whole").stat().st_size


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"somebody's")
    (tmp_path / "s").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic"):
        Signals(tmp_path / "s")
    assert (tmp_path / "elsewhere").read_bytes() == b"somebody's"


def test_the_disk_has_room_for_every_number_before_the_first_is_raised(tmp_path: Path) -> None:
    """Where it had none, raising a number on a full disk would end the process."""
    Signals(tmp_path / "s").close()
    told = (tmp_path / "s").stat()
    assert told.st_blocks * 512 >= told.st_size > 0
