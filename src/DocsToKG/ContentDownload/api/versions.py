"""Which version of a paper is wanted first. The one place that knows the order."""

from __future__ import annotations

VERSIONS = ("publishedVersion", "acceptedVersion", "submittedVersion")


def version_rank(version: str | None) -> int:
    """0 is best; a version that is unknown, or that nobody knows, comes after all others."""
    return VERSIONS.index(version) if version in VERSIONS else len(VERSIONS)
