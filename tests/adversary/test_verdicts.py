"""The adversary's files judged: no impostor is proved, no right file is refused, most right files are proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from tests.adversary import impostors, right_files
from tests.adversary.case import Case

from DocsToKG.ContentDownload.validation.examination import examine
from DocsToKG.ContentDownload.validation.known_work import KnownWork
from DocsToKG.ContentDownload.validation.worker_pool import PoolLimits, TextEngine

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # six hundred files


@pytest.fixture(scope="module")
def engine() -> Iterator[TextEngine]:
    with TextEngine(PoolLimits(workers=2)) as engine:
        yield engine


def known(case: Case) -> KnownWork:
    work = case.work
    return KnownWork.of(
        dois=[work.doi],
        arxiv_id=work.arxiv_id,
        title=work.title,
        authors=work.names,
        year=work.year,
        first_page=str(work.first_page),
        last_page=str(work.last_page),
        journal=work.journal,
    )


def judged(engine: TextEngine, cases: list[Case]) -> Counter[tuple[str, str]]:
    """How often each case came to each verdict."""
    begun = [
        (case.name, examine(engine, case.file(rendering), known(case)))
        for case in cases
        for rendering in case.renderings
    ]
    return Counter((name, str(found.result(60).verdict.proof)) for name, found in begun)


def test_no_impostor_is_proved(engine):
    seen = judged(engine, list(impostors.cases()))
    assert {name for name, proof in seen if proof not in ("unproved", "refused")} == set()


def test_no_right_file_is_refused_and_most_are_proved(engine):
    cases = list(right_files.cases())
    seen = judged(engine, cases)
    assert {name for name, proof in seen if proof == "refused"} == set()
    with_text = {case.name for case in cases if case.text}
    counted = {key: count for key, count in seen.items() if key[0] in with_text}
    proved = sum(count for (_, proof), count in counted.items() if proof != "unproved")
    assert proved >= 0.8 * sum(counted.values())
