"""The third set: samples by somebody who has not seen the rules. It is judged once; see the README beside this file."""

from __future__ import annotations

from tests.adversary.case import Case
from tests.adversary.third_set import impostors, right_files


def cases() -> list[Case]:
    return [*impostors.SET.cases(), *right_files.SET.cases()]
