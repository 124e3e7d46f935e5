"""What all sections of the configuration share.

Knows the rules of a section (no unknown keys, frozen, no infinities) and the small value types the
sections share. Does not know any setting.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, SecretStr

from DocsToKG.core.bucket import Rate


class Section(BaseModel):
    """A frozen part of the configuration that refuses keys it does not know and never shows a value in an error."""

    # Built when it is first used: most commands read no setting, and every command waits for its imports.
    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, hide_input_in_errors=True, defer_build=True
    )


def _split_words(value: Any) -> Any:
    """Lists may be written as `a, b`, which is how they fit into an environment variable."""
    return tuple(word.strip() for word in value.split(",") if word.strip()) if isinstance(value, str) else value


def _rate_text(value: Any) -> Any:
    if isinstance(value, str):
        Rate.parse(value)
    return value


def _secret_text(value: Any) -> Any:
    """YAML reads a key made of digits as a number. It is still a key."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Numbers = Annotated[tuple[int, ...], BeforeValidator(_split_words)]
Words = Annotated[tuple[str, ...], BeforeValidator(_split_words)]
RateText = Annotated[str, BeforeValidator(_rate_text)]
RateTexts = Annotated[tuple[RateText, ...], BeforeValidator(_split_words)]
Secret = Annotated[SecretStr, BeforeValidator(_secret_text)]
