"""Odd files that are the paper that was asked for. See the README beside this file."""

from __future__ import annotations

from tests.adversary.samples import SampleSet

SET = SampleSet()
right = SET.right
