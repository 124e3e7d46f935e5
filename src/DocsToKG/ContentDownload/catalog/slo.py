"""The service levels: what a run is held to, and whether it kept it.

Knows what each level needs before it can be judged at all. Does not know where the figures come from. Pure.
Promises: every level is one-sided, better than its target passes; with too little to judge by it says so and passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from DocsToKG.ContentDownload.catalog.summary import Figures

_FIRST_TIER_LOAD = 0.9  # of the files: then it is a load of the first tier


@dataclass(frozen=True, slots=True)
class Targets:
    """The service levels as numbers; a level of None is not judged."""

    yield_min: float | None = 0.85
    ttfp_p50_seconds: float | None = 3.0
    ttfp_p95_seconds: float | None = 10.0
    ratio_429_below: float | None = 0.01
    corrupt_files_max: int | None = 0
    rerun_cache_hit_min: float | None = 0.4
    catalog_write_p95_ms: float | None = 50.0
    works_per_worker_hour_min: float | None = 500.0
    works_needed: int = 10
    requests_needed: int = 100
    throughput_works_needed: int = 200

    @classmethod
    def of(cls, settings: object) -> Targets:
        """The levels as an operator has set them, under the same names."""
        return cls(**{each.name: getattr(settings, each.name) for each in fields(cls)})


@dataclass(frozen=True, slots=True)
class Gate:
    """One service level: `value` against `target`, `ok` when kept or not judged, and then `note` says why not."""

    name: str
    value: float | None
    target: str
    ok: bool
    verdict: str  # kept | missed | not judged
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        told = asdict(self)
        return {"gate": told.pop("name"), **told}


def gates(result: Figures, targets: Targets | None = None, *, workers: int | None = None) -> list[Gate]:
    """The service levels, judged. `workers` is how many jobs ran at once; the processes are counted when not told."""
    return list(_judged(result, targets or Targets(), workers or result.processes))


def judge_by(settings: object, *, workers: int) -> Callable[[Figures], list[Gate]]:
    """The judge of a run that goes by these settings, with so many jobs at once."""
    targets = Targets.of(settings)
    return lambda result: gates(result, targets, workers=workers)


def _judged(result: Figures, to: Targets, workers: int) -> Iterator[Gate]:
    works = _lack(result.attempted, to.works_needed, "works")
    yield _at_least("yield", result.yield_ratio, to.yield_min, works)
    files = _lack(result.timed_files, to.works_needed, "timed files")
    yield _at_most("ttfp_p50_s", result.ttfp_p50_s, to.ttfp_p50_seconds, files)
    yield _at_most("ttfp_p95_s", result.ttfp_p95_s, to.ttfp_p95_seconds, files)
    yield _below(
        "ratio_429", result.ratio_429, to.ratio_429_below, _lack(result.requests, to.requests_needed, "requests")
    )
    yield _at_most("corruption", result.corruption, to.corrupt_files_max, "")
    yield _at_least(
        "rerun_cache_hit", result.rerun_cache_hit_ratio, to.rerun_cache_hit_min, _no_rerun(result, to.works_needed)
    )
    yield _at_most("catalog_write_p95_ms", result.catalog_write_p95_ms, to.catalog_write_p95_ms, _few_lines(result, to))
    each = round(result.works_per_hour / workers, 1) if result.works_per_hour and workers else None
    yield _at_least("works_per_worker_hour", each, to.works_per_worker_hour_min, _no_first_tier_load(result, to))


def _no_rerun(result: Figures, needed: int) -> str:
    if result.rerun_id is None:
        return "no run obtained works again"
    return _lack(result.rerun_works, needed, "works obtained again")


def _few_lines(result: Figures, to: Targets) -> str:
    return _lack(result.attempted + result.skipped + result.left_out, to.throughput_works_needed, "works")


def _no_first_tier_load(result: Figures, to: Targets) -> str:
    share = result.first_tier_share or 0.0
    if share < _FIRST_TIER_LOAD:
        return f"{share:.0%} of the files came from the first tier, and it is judged from {_FIRST_TIER_LOAD:.0%} on"
    return _lack(result.attempted, to.throughput_works_needed, "works")


def _lack(found: int, needed: int, what: str) -> str:
    return f"{found} {what}, and it is judged from {needed} on" if found < needed else ""


def _at_least(name: str, value: float | None, target: float | None, lack: str) -> Gate:
    return _gate(name, value, target, lack, ">=", value is not None and target is not None and value >= target)


def _at_most(name: str, value: float | None, target: float | None, lack: str) -> Gate:
    return _gate(name, value, target, lack, "<=", value is not None and target is not None and value <= target)


def _below(name: str, value: float | None, target: float | None, lack: str) -> Gate:
    return _gate(name, value, target, lack, "<", value is not None and target is not None and value < target)


def _gate(name: str, value: float | None, target: float | None, lack: str, sign: str, kept: bool) -> Gate:
    if target is None:
        return Gate(name, value, "off", True, "not judged", "switched off in the settings")
    wanted = f"{sign} {target:g}"
    if lack or value is None:
        return Gate(name, value, wanted, True, "not judged", lack or "there is nothing to judge by")
    return Gate(name, value, wanted, kept, "kept" if kept else "missed")
