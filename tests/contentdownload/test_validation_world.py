"""The sandbox's papers, in all its renderings, and the wrong files it serves: none refused, none proved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.pdf.worker_pool import PoolLimits, TextEngine
from DocsToKG.Sandbox.works import Work
from DocsToKG.Sandbox.world import World

pytestmark = pytest.mark.slow  # reads some hundred papers
WORKS = 120
STEP = 4


@pytest.fixture(scope="module")
def engine() -> Iterator[TextEngine]:
    with TextEngine(PoolLimits(workers=2)) as engine:
        yield engine


def everything(work: Work) -> KnownWork:
    authors = [f"{family}, {given}" for given, family in work.authors]
    return KnownWork.of(dois=[work.doi], title=work.title, authors=authors, year=work.year, journal=work.journal)


def doi_and_title(work: Work) -> KnownWork:
    return KnownWork.of(dois=[work.doi], title=work.title)


def doi_alone(work: Work) -> KnownWork:
    return KnownWork.of(dois=[work.doi])


@pytest.mark.parametrize("know", [everything, doi_and_title, doi_alone])
def test_no_paper_is_refused_and_no_wrong_file_proved(engine, know):
    world = World(seed=11, count=WORKS)
    seen: Counter[tuple[str, str]] = Counter()
    for number in range(0, WORKS, STEP):
        work = world.work(number)
        files = [("wrong", world.wrong_file_for(work))]
        files += [("right", file) for file in {world.file_of(work, copy) for copy in work.copies}]
        for kind, file in files:
            seen[kind, str(engine.examine(file, know(work)).result(60).verdict.proof)] += 1
    assert seen["right", "refused"] == 0
    assert sum(seen["wrong", proof] for proof in ("proved", "proved-variant", "probable")) == 0
    right = {proof: count for (kind, proof), count in seen.items() if kind == "right"}
    enough = 0.9 if know is everything else 0.7
    assert sum(right.values()) - right.get("unproved", 0) >= enough * sum(right.values())
