"""A second set: 40 kinds of impostor and 40 odd but right files, for the one who publishes how the judge does.

Written by somebody who has not seen the rules that judge it, nor their tests, decisions, thresholds or verdicts, but
only what publishers, repositories, libraries and authors put into PDF files. It is judged once, after the rules are
frozen, and its figures are published as they come out; whoever tunes rules on it has to have another one written.

    python -m bench.identity --set tests.adversary.second_set

No name, title or DOI is that of a real paper.
"""

from __future__ import annotations

from tests.adversary.case import Case
from tests.adversary.second_set import impostors, right_files


def cases() -> list[Case]:
    return [*impostors.SET.cases(), *right_files.SET.cases()]
