"""What a fault run has counted, one line of JSON each, for whoever gathers them (`python -m tests.chaos`)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

WHERE = "CHAOS_SCORES"


def note(
    suite: str, *, jobs: int, faults: Mapping[str, int], recovery_s: Sequence[float] = (), **counts: int
) -> dict[str, object]:
    """`counts` are lost, doubled, stuck, impolite and wrong; what is not named was judged by an assertion, and is 0."""
    judged = dict.fromkeys(("lost", "doubled", "stuck", "impolite", "wrong"), 0) | counts
    line = {"suite": suite, "jobs": jobs, "faults": dict(faults), "recovery_s": list(recovery_s), **judged}
    if os.environ.get(WHERE):
        with Path(os.environ[WHERE]).open("a") as file:
            file.write(json.dumps(line) + "\n")
    return line
