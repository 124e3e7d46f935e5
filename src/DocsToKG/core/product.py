"""What this program calls itself to services, in what it writes and to its users."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def product_version() -> str:
    """The installed version; `0` where the program runs from its source alone."""
    try:
        return version("docstokg")
    except PackageNotFoundError:
        return "0"
