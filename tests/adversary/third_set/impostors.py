"""Files that came where a paper was asked for and are not it. See the README beside this file."""

from __future__ import annotations

from tests.adversary.samples import SampleSet

SET = SampleSet()
impostor = SET.impostor
