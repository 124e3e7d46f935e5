"""The measure of the house counts what it says."""

from __future__ import annotations

import ast

import pytest
from bench import house

TEXT = '''"""What it is.

More of that."""

# a comment
LONG = """two
lines"""


class Thing:
    """A thing."""

    def __init__(self, one: int, *, two: int) -> None:
        self.sum = one + two  # and a comment
'''


def test_blanks_comments_and_docstrings_are_no_code_lines() -> None:
    assert house.code_lines(TEXT, ast.parse(TEXT)) == {6, 7, 10, 13, 14}


def test_the_budgets_of_the_packages_are_the_whole() -> None:
    assert sum(house.BUDGET.values()) == house.WHOLE["code lines"]


@pytest.mark.slow
def test_every_package_is_counted_once() -> None:
    found = house.measure()
    assert sum(row["lines"] for row in found["packages"].values()) == found["code lines"]
    assert [name for name, row in found["packages"].items() if row["lines"] and not row["budget"]] == []
    assert 50 < found["opened by ContentDownload.runner.run"] < found["files"]
