"""In which order the copies that one source names are tried. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from DocsToKG.ContentDownload.api.types import DownloadPlan
from DocsToKG.ContentDownload.api.versions import VERSIONS, version_rank


def in_turn(plans: Iterable[DownloadPlan]) -> list[DownloadPlan]:
    """Evidence before guesses; published before accepted before submitted; otherwise as the source has them.

    Copies of unknown version keep their place: the source had its reasons.
    """
    given = list(plans)
    if len(given) < 2:
        return given
    evidence, guesses = [plan for plan in given if not plan.is_guess], [plan for plan in given if plan.is_guess]
    return [*_best_version_first(evidence), *_best_version_first(guesses)]


def _best_version_first(plans: Sequence[DownloadPlan]) -> list[DownloadPlan]:
    known = sorted((plan for plan in plans if plan.version in VERSIONS), key=lambda plan: version_rank(plan.version))
    ranked = iter(known)
    return [next(ranked) if plan.version in VERSIONS else plan for plan in plans]
