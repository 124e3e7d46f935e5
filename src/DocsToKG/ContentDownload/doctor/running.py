"""All checks at once, each within its time.

Every check has a thread of its own; one that hangs in a dead network is left behind and told as such. Promises: the
answer is there after `each_s` and a moment, whatever a server does; whatever a check raises is told by its kind only,
since its words may hold anything; known secrets are taken out of every word.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from DocsToKG.core.checks import Check, Finding, Level, failed
from DocsToKG.core.urls import mask_text

_LONGEST = 500


@dataclass(slots=True)
class Answer:
    """What one check has told so far."""

    name: str
    findings: list[Finding] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def worst(self) -> Level:
        return max((finding.level for finding in self.findings), default=Level.OK)


def look_at_all(
    checks: Sequence[Check], *, each_s: float, quick: bool = False, hide: Callable[[str], str] = lambda text: text
) -> list[Answer]:
    """The answers in the order of the checks. `quick`: only whether that is there which no work can be done without."""
    rounds = [_Round(check, quick) for check in checks if check.needed or not quick]
    until = time.monotonic() + each_s
    return [_hidden(one.answer_by(until, each_s), hide) for one in rounds]


class _Round:
    """One check at work."""

    def __init__(self, check: Check, quick: bool) -> None:
        self._check = check
        self._quick = quick
        self._lock = threading.Lock()
        self._findings: list[Finding] = []
        self._began = time.monotonic()
        self._took_s: float | None = None
        self._thread = threading.Thread(target=self._work, name=f"doctor {check.name}"[:40], daemon=True)
        self._thread.start()

    def answer_by(self, until: float, each_s: float) -> Answer:
        self._thread.join(max(0.0, until - time.monotonic()))
        with self._lock:
            findings, took_s = list(self._findings), self._took_s
        if took_s is None:
            advice = "see whether a firewall drops what goes there, or give it longer with --timeout"
            findings.append(failed("time", f"no answer within {each_s:g} s", advice))
        return Answer(self._check.name, findings, took_s if took_s is not None else each_s)

    def _work(self) -> None:
        try:
            for finding in self._check.run():
                self._tell(finding)
                if self._quick:
                    break
        except Exception as error:
            self._tell(
                failed("check", f"ended by an unforeseen {type(error).__name__}", "report it, with the settings")
            )
        with self._lock:
            self._took_s = time.monotonic() - self._began

    def _tell(self, finding: Finding) -> None:
        with self._lock:
            self._findings.append(finding)


def _hidden(answer: Answer, hide: Callable[[str], str]) -> Answer:
    def plain(text: str) -> str:
        return mask_text(hide(text))[:_LONGEST]

    shown = [replace(found, seen=plain(found.seen), advice=plain(found.advice)) for found in answer.findings]
    return replace(answer, findings=shown)
