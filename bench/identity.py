"""Is the file the paper? Files judged as a run would judge them: what is accepted, refused or left open, and the cost.

Counts verdicts over the impostors and the odd but right files of `tests/adversary`, by rendering; over the works that
an index recorded, each beside its nearest neighbour; and over damaged files. Takes the time of each file in one worker
of the text engine, from bytes to verdict, and the time on the processor of what a worker does.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.adversary import impostors, recorded, right_files
from tests.adversary.case import Case
from tests.adversary.judge import Outcome, judged, known_work, wrong
from tests.adversary.pages import article
from tests.adversary.works import SALT
from tests.contentdownload.pdf_damage import DAMAGES

from bench.facts import aim, report, show
from DocsToKG.ContentDownload.api.types import DownloadPlan, WorkArtifact
from DocsToKG.ContentDownload.errors import CandidateRejected
from DocsToKG.ContentDownload.validation.candidate import ReceivedFile, prove
from DocsToKG.ContentDownload.validation.forms import PDF
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.signs import NOWHERE
from DocsToKG.ContentDownload.validation.pdf import pdfium
from DocsToKG.ContentDownload.validation.pdf.document import ReadOptions
from DocsToKG.ContentDownload.validation.pdf.worker import Request, answer_request
from DocsToKG.ContentDownload.validation.pdf.worker_pool import PoolLimits, TextEngine
from DocsToKG.Sandbox.pdf import Paper, make_pdf
from DocsToKG.Sandbox.pdf.renderings import RENDERINGS

_PAGES = (2, 20)
_TIMED = ("latex", "word", "plain")
_MB = 1_000_000
_DECODED_MB = (1, 5, 20)
_ADDRESS = "https://example.org/a.pdf"
# Their streams are pictures, or nothing is compressed in them.
_NOT_COMPRESSED = ("scan", "ocr", "unencoded", "ascii85")


class Judged(NamedTuple):
    case: Case
    rendering: str
    outcome: Outcome
    took_ms: float


def judge_all(engine: TextEngine, cases: Sequence[Case], rounds: int) -> Iterator[Judged]:
    """Each file once for its verdict; its time is the best of some rounds."""
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
        "files": name,
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


def table(found: Sequence[Judged], kind: Callable[[Judged], str]) -> list[dict[str, Any]]:
    groups = defaultdict(list)
    for one in found:
        groups[kind(one)].append(one)
    return [*(row(name, ones) for name, ones in sorted(groups.items())), row("all", found)]


def recorded_table(engine: TextEngine, most: int | None) -> list[dict[str, Any]]:
    """Works of an index; none where its answers are not at hand."""
    try:
        cases = recorded.cases(most)
    except pytest.skip.Exception:
        return []
    return table(list(judge_all(engine, cases, 1)), lambda one: one.case.name.partition(" ")[2])


def processor_ms(data: bytes, known: KnownWork, options: ReadOptions, rounds: int) -> float:
    """What a worker spends on a file, on the processor: other programs do not show. The best of some rounds."""
    descriptor = os.memfd_create("file")
    try:
        os.write(descriptor, data)
        took = []
        for _ in range(rounds):
            began = time.thread_time()
            answer_request(Request(options, known, NOWHERE, 1 << 22), descriptor)
            took.append((time.thread_time() - began) * 1e3)
        return min(took)
    finally:
        os.close(descriptor)


def costs(engine: TextEngine, rounds: int) -> list[dict[str, Any]]:
    """An article of few and one of many pages in usual renderings: on the processor, and from bytes to verdict."""
    rows = []
    for pages in _PAGES:
        work = replace(SALT, last_page=SALT.first_page + pages - 1)
        case = Case(f"an article of {pages} pages", work, article(work, f"timed {pages}"), _TIMED, right=True)
        spent = [
            processor_ms(case.file(name), known_work(work), ReadOptions(), rounds) for name in _TIMED
        ]  # fmt: skip
        took = [one.took_ms for one in judge_all(engine, [case], rounds)]
        rows.append(
            {
                "pages": pages,
                "cpu_ms": round(statistics.median(spent), 2),
                "took_ms": round(statistics.median(took), 2),
            }
        )
    return rows


def stream_costs(rounds: int) -> list[dict[str, Any]]:
    """What decoding the streams of a file costs under each setting, beside the reading of its text."""
    rows = []
    for size in _DECODED_MB:
        data = _file_that_decodes_to(size * _MB)
        spent = {
            mode: processor_ms(data, KnownWork(), ReadOptions(text=False, streams=mode), rounds)
            for mode in ("all", "sample", "none")
        }
        rows.append(
            {"decoded_mb": size, "file_mb": round(len(data) / _MB, 2)}
            | {f"{mode}_ms": round(took, 2) for mode, took in spent.items()}
        )
    return rows


def _file_that_decodes_to(size: int) -> bytes:
    """A paper with pictures in lossless coding, as most that are large."""
    import io

    import pikepdf

    chance = random.Random(size)
    pattern = bytes(chance.getrandbits(5) for _ in range(100_000))
    with pikepdf.open(io.BytesIO(make_pdf(_PAPER, size_bytes=30_000, key="s"))) as pdf:
        for number in range(max(1, size // 250_000)):
            stream = pdf.make_stream(pattern[number:] + pattern + pattern[: 50_000 + number])
            pdf.pages[0].obj[f"/Picture{number}"] = stream
        out = io.BytesIO()
        pdf.save(out, recompress_flate=True, compress_streams=True)
        return out.getvalue()


_PAPER = Paper("On barley", ("A. Author",), 2020, "10.1234/b.1")


def damage_table(engine: TextEngine, tries: int) -> list[dict[str, Any]]:
    """Files of all renderings whose streams are compressed, each damaged some times; and whole ones of all."""
    whole = {name: make_pdf(_PAPER, rendering=name, size_bytes=60_000, key=name) for name in RENDERINGS}
    rows = []
    for name, damage in DAMAGES.items():
        chance = random.Random(name)
        spoiled = [
            damage(data, chance) for kind, data in whole.items() if kind not in _NOT_COMPRESSED for _ in range(tries)
        ]
        rows.append(_damage_row(name, [_is_told(engine, data) for data in spoiled]))
    rows.append(_damage_row("none", [_is_told(engine, data) for data in whole.values()]))
    return rows


def _damage_row(name: str, told: Sequence[bool]) -> dict[str, Any]:
    return {"damage": name, "files": len(told), "told": sum(told), "share": share(sum(told), len(told))}


def _is_told(engine: TextEngine, data: bytes) -> bool:
    came = ReceivedFile(file=data, md5="", sha256="", url=_ADDRESS, headers={})
    try:
        prove(
            PDF, DownloadPlan(_ADDRESS, "bench"), WorkArtifact(f"url:{_ADDRESS}"), came, min_pdf_bytes=0, engine=engine
        )
    except CandidateRejected:
        return True
    return False


def aims(rows: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[dict[str, Any]]:
    known, works, times, damaged = rows["known"][-1], rows["recorded"], rows["costs"], rows["damage"]
    found = [
        aim("share of impostors proved or probable", share(known["accepted"], known["impostors"]), most=0.0),
        aim("share of right ones refused", share(known["refused"], known["right"]), most=0.0),
        aim("share of right ones with text proved or probable", known["proved"], least=0.8),
        aim("processor ms for a file of 2 pages", times[0]["cpu_ms"], most=5.0),
        aim("processor ms for a file of 20 pages", times[1]["cpu_ms"], most=40.0),
        aim("share of damage told, the least of its kinds", min(one["share"] for one in damaged[:-1]), least=0.98),
        aim("whole files called damaged", float(damaged[-1]["told"]), most=0.0),
    ]
    if works:
        neighbours = share(works[-1]["accepted"], works[-1]["impostors"])
        found.append(aim("share of recorded works' neighbours accepted", neighbours, most=0.0))
        found.append(
            aim("share of recorded works' papers refused", share(works[-1]["refused"], works[-1]["right"]), most=0.0)
        )
    return found


def mistakes_of(found: Sequence[Judged]) -> list[dict[str, Any]]:
    return [
        {"case": one.case.name, "rendering": one.rendering, "verdict": one.outcome.word}
        for one in found
        if wrong(one.case, one.outcome)
    ]


_SETS = {"second": "tests.adversary.second_set", "third": "tests.adversary.third_set"}


def judge_set(name: str, out: Path | None) -> int:
    """The cases of a set that nobody has tuned the rules for, each file once; the figures are told as they come out."""
    cases: Sequence[Case] = importlib.import_module(_SETS.get(name, name)).cases()
    if not cases:
        print(f"the {name} set has no samples")
        return 1
    with TextEngine(PoolLimits(workers=1)) as engine:
        found = list(judge_all(engine, cases, 1))
    mistakes = mistakes_of(found)
    rows = table(found, lambda one: one.rendering)
    all_files = rows[-1]
    aims = [
        aim("share of impostors proved or probable", share(all_files["accepted"], all_files["impostors"]), most=0.05),
        aim("share of right ones refused", share(all_files["refused"], all_files["right"]), most=0.02),
    ]
    report(f"The {name} set, judged", rows, out=out, aims=aims, mistakes=mistakes)
    show("Wrong verdicts", mistakes, out=out)
    return 0


def parser() -> argparse.ArgumentParser:
    words = argparse.ArgumentParser(prog="bench.identity", description=__doc__)
    words.add_argument("--rounds", type=int, default=3, help="how often each file is judged for its time")
    words.add_argument("--cases", type=int, default=None, help="only so many files of each kind")
    words.add_argument("--tries", type=int, default=10, help="how often each file is damaged in each way")
    words.add_argument("--set", help="only this set: second, third, or a module with cases()")
    words.add_argument("--out", type=Path, help="file for the figures as JSON")
    return words


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser().parse_args(arguments)
    if given.set is not None:
        return judge_set(given.set, given.out)
    cases = [*impostors.cases()[: given.cases], *right_files.cases()[: given.cases]]
    pdfium.start()
    with TextEngine(PoolLimits(workers=1)) as engine:
        found = list(judge_all(engine, cases, given.rounds))
        rows = {
            "known": table(found, lambda one: one.rendering),
            "recorded": recorded_table(engine, given.cases),
            "costs": costs(engine, given.rounds * 5),
            "streams": stream_costs(given.rounds * 2),
            "damage": damage_table(engine, given.tries),
        }
    mistakes = mistakes_of(found)
    titles = {
        "recorded": "Recorded works and their neighbours, judged",
        "costs": "What judging a file costs",
        "streams": "What decoding the streams costs, ms on the processor",
        "damage": "Damaged files told",
    }
    title = "Impostors and odd but right files, judged"
    more = {name: rows[name] for name in titles}
    report(title, rows["known"], out=given.out, aims=aims(rows), mistakes=mistakes, **more)
    for name, words in titles.items():
        show(words, rows[name], out=given.out)
    if mistakes:
        show("Wrong verdicts", mistakes, out=given.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
