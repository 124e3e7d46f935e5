"""Files are read in worker processes: what a file does to one of them is a reason, and the others go on."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from DocsToKG.ContentDownload.api.types import DownloadPlan, WorkArtifact
from DocsToKG.ContentDownload.validation.candidate import ReceivedFile, prove
from DocsToKG.ContentDownload.validation.forms import PDF
from DocsToKG.ContentDownload.validation.identity.known_work import KnownWork
from DocsToKG.ContentDownload.validation.identity.verdict import Proof
from DocsToKG.ContentDownload.validation.pdf.document import DocumentText, ReadOptions, TextFailure
from DocsToKG.ContentDownload.validation.pdf.worker_pool import PoolLimits, TextEngine
from DocsToKG.Sandbox.pdf import Paper, make_pdf
from DocsToKG.Sandbox.pdf.renderings import RENDERINGS

COMMAND = (sys.executable, str(Path(__file__).with_name("failing_text_worker.py")))
ON_BARLEY = Paper("On barley", ("A. Author",), 2020, "10.1234/b.1")
PAPER = make_pdf(ON_BARLEY, size_bytes=3_000, key="k")
WAIT_S = 60


@pytest.fixture(scope="module")
def engine() -> Iterator[TextEngine]:
    with TextEngine(PoolLimits(workers=2, timeout_s=4), command=COMMAND) as engine:
        yield engine


def read(engine: TextEngine, data: bytes | Path, options: ReadOptions | None = None) -> DocumentText | TextFailure:
    return engine.read(data, options).result(WAIT_S)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"abort", "text-engine-crashed"),
        (b"segfault", "text-engine-crashed"),
        (b"exit", "text-engine-crashed"),
        (b"memory", "text-engine-memory"),
        (b"babble", "text-engine-output"),
        (b"nonsense", "text-engine-output"),
        (b"", "text-unreadable"),
        (b"%PDF-1.4 and nothing else", "text-unreadable"),
    ],
)
def test_a_file_that_harms_its_worker_is_a_reason(engine, said, reason):
    failure = read(engine, said)
    assert isinstance(failure, TextFailure)
    assert failure.reason == reason
    assert isinstance(read(engine, PAPER), DocumentText)


def test_a_file_that_hangs_is_given_up_and_others_are_read_meanwhile():
    with TextEngine(PoolLimits(workers=2, timeout_s=3), command=COMMAND) as engine:
        read(engine, PAPER)
        hanging = engine.read(b"hang")
        assert isinstance(read(engine, PAPER), DocumentText)
        assert not hanging.done()
        failure = hanging.result(WAIT_S)
        assert isinstance(failure, TextFailure)
        assert failure.reason == "text-engine-timeout"


def test_the_signal_of_a_crash_is_told(engine):
    failure = read(engine, b"segfault")
    assert isinstance(failure, TextFailure)
    assert "SIGSEGV" in failure.detail


def test_a_worker_that_died_of_an_earlier_file_costs_the_next_one_nothing():
    with TextEngine(PoolLimits(workers=1), command=COMMAND) as engine:
        told = read(engine, b"pid")
        assert isinstance(told, TextFailure)
        os.kill(int(told.detail), signal.SIGKILL)
        assert isinstance(read(engine, PAPER), DocumentText)


def test_a_worker_is_replaced_after_its_files():
    with TextEngine(PoolLimits(workers=1, files_per_worker=2), command=COMMAND) as engine:
        pids = [read(engine, b"pid") for _ in range(4)]
    assert len({told.detail for told in pids if isinstance(told, TextFailure)}) == 2


def test_nothing_starts_before_the_first_file_and_nothing_outlives_the_engine(tmp_path):
    started = tmp_path / "started"
    engine = TextEngine(PoolLimits(workers=1), command=("sh", "-c", f'touch "{started}"; exec "$@"', "sh", *COMMAND))
    assert not started.exists()
    told = read(engine, b"pid")
    assert started.exists()
    engine.close()
    assert isinstance(told, TextFailure)
    with pytest.raises(ProcessLookupError):
        os.kill(int(told.detail), 0)


def test_files_that_wait_when_the_engine_closes_are_answered():
    engine = TextEngine(PoolLimits(workers=1, timeout_s=30), command=COMMAND)
    read(engine, PAPER)
    waiting = [engine.read(b"hang"), engine.read(PAPER), engine.read(PAPER)]
    engine.close(kill=True)
    waiting.append(engine.read(PAPER))
    answers = [future.result(WAIT_S) for future in waiting]
    assert {answer.reason for answer in answers if isinstance(answer, TextFailure)} == {"text-engine-closed"}
    assert len(answers) == 4


def test_a_coroutine_waits_for_a_file_while_the_loop_goes_on(engine):
    async def reading() -> list[DocumentText | TextFailure]:
        return await asyncio.gather(*(asyncio.wrap_future(engine.read(PAPER)) for _ in range(5)))

    assert all(isinstance(read, DocumentText) for read in asyncio.run(reading()))


def test_a_path_is_read_and_a_missing_one_is_a_reason(engine, tmp_path):
    path = tmp_path / "paper.pdf"
    path.write_bytes(PAPER)
    assert isinstance(read(engine, path), DocumentText)
    missing = read(engine, tmp_path / "none.pdf")
    assert isinstance(missing, TextFailure)
    assert missing.reason == "text-unreadable"


def test_a_worker_sees_no_secrets_of_the_environment(monkeypatch):
    monkeypatch.setenv("DOCSTOKG_CONTENT_RESOLVERS__CORE__API_KEY", "secret")
    with TextEngine(PoolLimits(workers=1), command=COMMAND) as engine:
        told = read(engine, b"environment")
    assert isinstance(told, TextFailure)
    assert "PATH" in told.detail
    assert "DOCSTOKG" not in told.detail


@pytest.mark.parametrize(("harm", "reason"), [(b"segfault", "text-engine-crashed"), (b"hang", "text-engine-timeout")])
def test_a_paper_that_harms_its_worker_is_unproved_and_says_why(harm, reason):
    paper = PAPER.replace(b"\n", b"\n%" + harm + b"\n", 1)
    work = WorkArtifact("doi:10.1234/b.1", doi="10.1234/b.1", title="On barley in alpine meadows")
    plan = DownloadPlan("https://example.org/a.pdf", "unpaywall")
    came = ReceivedFile(file=paper, md5="", sha256="", url=plan.url, headers={})
    with TextEngine(PoolLimits(workers=1, timeout_s=2), command=COMMAND) as engine:
        assert isinstance(read(engine, PAPER), DocumentText)  # the first file of a worker may take half a minute more
        facts = prove(PDF, plan, work, came, min_pdf_bytes=0, engine=engine)
    assert facts.record()["proof"] == "unproved"
    assert facts.record()["read"]["failure"] == reason


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_thousand_spoiled_files_do_not_end_the_run():
    """The run goes on, each file has a verdict or a reason, and whole files among them are judged."""
    chance = random.Random(7)
    papers = [make_pdf(ON_BARLEY, rendering=name, size_bytes=3_000, key=name) for name in RENDERINGS]
    known = KnownWork.of(dois=[ON_BARLEY.doi], title=ON_BARLEY.title, authors=ON_BARLEY.authors)
    with TextEngine(PoolLimits(workers=2, timeout_s=10)) as engine:
        futures = []
        for number in range(1_000):
            spoiled = bytearray(papers[number % len(papers)])
            for _ in range(chance.randint(1, 12)):
                spoiled[chance.randrange(len(spoiled))] = chance.randrange(256)
            if number % 5 == 0:
                del spoiled[chance.randrange(len(spoiled)) :]
            futures.append(engine.examine(bytes(spoiled), known))
        found = [future.result(WAIT_S) for future in futures]
        assert isinstance(read(engine, PAPER), DocumentText)
    reasons = {one.failure for one in found if one.failure is not None}
    assert reasons <= {"text-unreadable", "text-encrypted", "text-engine-timeout", "text-engine-crashed"}
    assert all(one.verdict.proof is Proof.UNPROVED for one in found if one.failure is not None)
    assert sum(one.failure is None for one in found) > 500
