"""What a test needs and a machine may lack: looked for here, and nowhere else.

A test whose need is missing is skipped, or fails where `CI` is set; only recorded data may be missing there. The end of
a run says how many tests were skipped, what they lack, and the command that fetches it (`told`).
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

_ROOT = Path(__file__).resolve().parents[1]
_NEEDS = "needs "
_FETCHED = " (`make servers` fetches it)"
_MAY_BE_MISSING = " (may be missing)"
_RECORDED = "needs recorded answers of real services (../shared/recorded)"


def program(*names: str) -> str:
    """The first of these that is on the PATH, or where `make servers` puts it."""
    tools = Path(os.environ.get("DOCSTOKG_TOOLS") or _ROOT / ".tools") / "debian" / "usr"
    path = os.pathsep.join([os.environ.get("PATH", ""), str(tools / "bin"), str(tools / "sbin")])
    for name in names:
        if found := shutil.which(name, path=path):
            return found
    raise _missing(f"{_NEEDS}{names[0]}{_FETCHED}")


def peers() -> Path:
    """The Python of the environment that has the queues ours is compared with."""
    from bench.programs import PEERS

    if not PEERS.is_file():
        raise _missing(f"{_NEEDS}the queues to compare with{_FETCHED}")
    return PEERS


def recorded(*parts: str) -> Path:
    """`shared/recorded/<parts>` in or next to the checkout. No command fetches these, so they may be missing anywhere;
    but a part that is missing where the others are is a mistake in the test."""
    for folder in (_ROOT, _ROOT.parent):
        root = folder / "shared" / "recorded"
        if root.is_dir():
            path = root.joinpath(*parts)
            assert path.exists(), f"shared/recorded has no {'/'.join(parts)}"
            return path
    raise _missing(_RECORDED)


def system(is_able: object, what: str) -> pytest.MarkDecorator:
    """A mark, for what the operating system or the machine has or has not."""
    return pytest.mark.skipif(not is_able, reason=_NEEDS + what)


def lacks(what: str, *, even_in_ci: bool = False) -> NoReturn:
    """As `system`, where it shows in the middle of a test. `even_in_ci`: other tests show the same, less strictly."""
    raise _missing(_NEEDS + what + (_MAY_BE_MISSING if even_in_ci else ""))


def user_who_may_only_read() -> list[str]:
    """What to put before a command that may write nowhere but where its user is allowed to: nothing, or for root, who
    may write anywhere, a program that gives this right away."""
    if os.geteuid() != 0:
        return []
    if shutil.which("setpriv") is None:
        lacks("setpriv, or another user than root")
    return ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"]


def may_be_missing(reason: str) -> bool:
    return reason.endswith((_RECORDED, _MAY_BE_MISSING))


def told(reasons: Iterable[str]) -> Iterator[str]:
    """The lines about all tests that were skipped, each of which gives its reason."""
    counted = Counter(reason.partition(_NEEDS)[2] or reason for reason in reasons)
    recorded_ = counted.pop(_RECORDED.removeprefix(_NEEDS), 0)
    fetched = {what.removesuffix(_FETCHED): n for what, n in counted.items() if what.endswith(_FETCHED)}
    others = {what.removesuffix(_MAY_BE_MISSING): n for what, n in counted.items() if not what.endswith(_FETCHED)}
    if fetched:
        yield f"{sum(fetched.values()):6,} need what `make servers` fetches: {_listed(fetched)}"
    if recorded_:
        yield f"{recorded_:6,} need recorded answers of real services: ../shared/recorded, which no command fetches"
    if others:
        yield f"{sum(others.values()):6,} need what this machine does not have: {_listed(others)}"
    if fetched:
        yield f"To run {sum(fetched.values()):,} more: `make servers`, then the same command again."
    if "chromium" in fetched and os.geteuid() != 0:
        yield "Only root can add chromium: `sudo apt-get install chromium`."


def _listed(counts: dict[str, int]) -> str:
    return ", ".join(f"{what} {n:,}" for what, n in sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _missing(reason: str) -> BaseException:
    return pytest.skip.Exception(reason, _use_item_location=True)
