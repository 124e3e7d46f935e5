"""Is the file the paper? The adversary's set judged as a run would judge it: what is accepted, refused or left open.

Counts verdicts over the impostors and the odd but right files of `tests/adversary`, by rendering, and takes the time of
each file in one worker process of the text engine, from bytes to verdict.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from tests.adversary import impostors, right_files
from tests.adversary.case import Case
from tests.adversary.judge import Outcome, judged, wrong
from tests.adversary.pages import article
from tests.adversary.works import SALT

from bench.facts import aim, report, show
from DocsToKG.ContentDownload.validation.worker_pool import PoolLimits, TextEngine

_PAGES = (2, 20)
_TIMED = ("latex", "word", "plain")


class Judged(NamedTuple):
    case: Case
    rendering: str
    outcome: Outcome
    took_ms: float


def judge_all(cases: Sequence[Case], rounds: int) -> Iterator[Judged]:
    """Each file once for its verdict; its time is the best of some rounds."""
    with TextEngine(PoolLimits(workers=1)) as engine:
        for case in cases:
            for rendering in case.renderings:
                data = case.file(rendering)
                took = []
                for _ in range(rounds):
                    began = time.perf_counter()
                    outcome = judged(engine, case, data)
                    took.append((time.perf_counter() - began) * 1e3)
                yield Judged(case, rendering, outcome, min(took))


def row(name: str, found: Sequence[Judged]) -> dict[str, Any]:
    false = [one for one in found if not one.case.right]
    right = [one for one in found if one.case.right]
    readable = [one for one in right if one.case.text]
    times = sorted(one.took_ms for one in found)
    return {
        "rendering": name,
        "impostors": len(false),
        "accepted": sum(one.outcome.accepted for one in false),
        "unproved": sum(not one.outcome.accepted and not one.outcome.refused for one in false),
        "right": len(right),
        "refused": sum(one.outcome.refused for one in right),
        "with_text": len(readable),
        "proved": share(sum(one.outcome.accepted for one in readable), len(readable)),
        "median_ms": round(statistics.median(times), 2),
        "p95_ms": round(times[int(len(times) * 0.95)], 2) if len(times) > 1 else None,
    }


def share(part: int, whole: int) -> float | None:
    return round(part / whole, 3) if whole else None


def table(found: Sequence[Judged]) -> list[dict[str, Any]]:
    by_rendering = defaultdict(list)
    for one in found:
        by_rendering[one.rendering].append(one)
    return [*(row(name, ones) for name, ones in sorted(by_rendering.items())), row("all", found)]


def timed(pages: int) -> list[Case]:
    """One article of so many pages, in usual renderings."""
    work = replace(SALT, last_page=SALT.first_page + pages - 1)
    return [Case(f"an article of {pages} pages", work, article(work, f"timed {pages}"), _TIMED, right=True)]


def aims(whole: Mapping[str, Any], times: Mapping[int, float]) -> list[dict[str, Any]]:
    return [
        aim("share of impostors proved or probable", share(whole["accepted"], whole["impostors"]), most=0.0),
        aim("share of right ones refused", share(whole["refused"], whole["right"]), most=0.0),
        aim("share of right ones with text proved or probable", whole["proved"], least=0.8),
        aim("ms for a file of 2 pages", times[2], most=5.0),
        aim("ms for a file of 20 pages", times[20], most=40.0),
    ]


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.identity", description=__doc__)
    words.add_argument("--rounds", type=int, default=3, help="how often each file is judged for its time")
    words.add_argument("--cases", type=int, default=None, help="only so many impostors and so many right files")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    cases = [*impostors.cases()[: given.cases], *right_files.cases()[: given.cases]]
    found = list(judge_all(cases, given.rounds))
    rows = table(found)
    times = {
        pages: round(statistics.median(one.took_ms for one in judge_all(timed(pages), given.rounds * 3)), 2)
        for pages in _PAGES
    }
    mistakes = [
        {"case": one.case.name, "rendering": one.rendering, "verdict": one.outcome.word} for one in found
        if wrong(one.case, one.outcome)
    ]  # fmt: skip
    title = "Impostors and odd but right files, judged"
    report(title, rows, out=given.out, aims=aims(rows[-1], times), mistakes=mistakes)
    if mistakes:
        show("Wrong verdicts", mistakes, out=given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
