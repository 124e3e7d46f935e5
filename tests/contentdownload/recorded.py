"""Where real answers of services lie, for the tests that read them: beside a checkout, or nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def recorded(*parts: str) -> Path:
    """`shared/recorded/<parts>` in or next to the checkout; a test that asks for what is missing is skipped aloud."""
    for folder in (_ROOT, _ROOT.parent):
        path = folder.joinpath("shared", "recorded", *parts)
        if path.exists():
            return path
    pytest.skip(f"no recorded data here: shared/recorded/{'/'.join(parts)}")
