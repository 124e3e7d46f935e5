"""What is wrong with a setting, in the terms of a settings file.

Knows pydantic's kinds of errors. Does not know which setting it was. Promises: no name of a class, no value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_GROUP = "should be a group of settings, written as name: value"
_WHOLE = "should be a whole number"
_NUMBER = "should be a number"
_SWITCH = "should be true or false"
_LIST = "should be a list"
_WORDS = {
    "model_type": _GROUP,
    "model_attributes_type": _GROUP,
    "dataclass_type": _GROUP,
    "dict_type": _GROUP,
    "mapping_type": _GROUP,
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_parsing_size": "is too large",
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "should be a finite number",
    "bool_type": _SWITCH,
    "bool_parsing": _SWITCH,
    "string_type": "should be text",
    "string_unicode": "should be text in UTF-8",
    "list_type": _LIST,
    "tuple_type": _LIST,
    "greater_than_equal": "should be at least {ge}",
    "greater_than": "should be more than {gt}",
    "less_than_equal": "should be at most {le}",
    "less_than": "should be less than {lt}",
    "string_too_short": "should have {min_length} or more characters",
    "string_too_long": "should have {max_length} or fewer characters",
    "too_short": "should have {min_length} or more entries",
    "too_long": "should have {max_length} or fewer entries",
    "missing": "is missing",
}


def setting_message(problem: ErrorDetails) -> str:
    """What an error of `ValidationError.errors()` says; of our own checks and lists of words, their own text."""
    words = _WORDS.get(problem["type"])
    if words is None:
        return problem["msg"].removeprefix("Value error, ").replace("Input should", "should")
    return words.format_map(_bounds(problem))


def _bounds(problem: ErrorDetails) -> dict[str, str]:
    bounds = problem.get("ctx") or {}
    return {name: f"{bound:g}" if isinstance(bound, float) else str(bound) for name, bound in bounds.items()}
