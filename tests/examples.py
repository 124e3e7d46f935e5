"""How many examples a property is tried with: what a test names, or that part of it which the profile allows."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

_USUAL = 100  # examples, where neither a test nor a profile says how many


def examples(count: int, **more: Any) -> settings:
    """`count` in a whole run; fewer in proportion where the profile has fewer than usual."""
    return settings(max_examples=max(1, count * settings().max_examples // _USUAL), deadline=None, **more)
