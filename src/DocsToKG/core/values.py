"""Values that are made in great numbers and never change.

`lean_dataclass` is `dataclass` to a type checker, which holds everybody to `frozen`. While the program runs nothing
guards the fields: a guard makes a value of a dozen fields seven times as dear, and a paper is a hundred values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as lean_dataclass
else:
    from dataclasses import dataclass

    def lean_dataclass(*, frozen: bool, slots: bool):
        """A frozen dataclass has a hash; that stays."""
        return dataclass(slots=slots, unsafe_hash=frozen)


__all__ = ["lean_dataclass"]
