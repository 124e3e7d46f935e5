"""The adversary's set: no impostor is taken for the paper, no odd paper is refused, and most of those are proved.

Cases are written without regard to the rules. The first rendering of a fifth runs always, the rest with the slow tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.adversary import impostors, right_files
from tests.adversary.case import Case
from tests.adversary.judge import Outcome, judged, wrong

from DocsToKG.ContentDownload.validation.pdf.worker_pool import PoolLimits, TextEngine

IMPOSTORS, RIGHT_FILES = impostors.cases(), right_files.cases()
CASES = [*IMPOSTORS, *RIGHT_FILES]
# A fifth of the cases is judged by the quick tests too.
QUICK = [case if n % 5 == 0 else pytest.param(case, marks=pytest.mark.slow) for n, case in enumerate(CASES)]
PROVED_SHARE = 0.8

Ask = Callable[..., Outcome]


@pytest.fixture(scope="module")
def ask() -> Iterator[Ask]:
    with TextEngine(PoolLimits(workers=1)) as engine:
        outcomes: dict[tuple[str, str, bool], Outcome] = {}  # one test asks for those of all cases once more

        def ask(case: Case, rendering: str, *, pages_known: bool = True) -> Outcome:
            key = case.name, rendering, pages_known
            if key not in outcomes:
                outcomes[key] = judged(engine, case, case.file(rendering), pages_known=pages_known)
            return outcomes[key]

        yield ask


@pytest.mark.parametrize("case", QUICK, ids=lambda case: case.name)
def test_a_case_is_judged_rightly(case: Case, ask: Ask) -> None:
    for pages_known in (True, False):
        outcome = ask(case, case.renderings[0], pages_known=pages_known)
        assert not wrong(case, outcome), f"{outcome.word}: {outcome.evidence}"


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_judged_rightly_in_every_rendering(case: Case, ask: Ask) -> None:
    for rendering in case.renderings[1:]:
        outcome = ask(case, rendering)
        assert not wrong(case, outcome), f"{rendering}: {outcome.word}: {outcome.evidence}"


@pytest.mark.slow
def test_most_right_files_with_text_are_proved_or_probable(ask: Ask) -> None:
    readable = [case for case in RIGHT_FILES if case.text]
    accepted = [ask(case, rendering).accepted for case in readable for rendering in case.renderings]
    assert sum(accepted) / len(accepted) >= PROVED_SHARE
