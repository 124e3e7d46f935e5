"""The works of the sandbox as the bulk files that providers publish, and the truth about them.

    openalex/works/updated_date=<day>/part_0000.gz    pmc/metadata.jsonl.gz, pmc-inventory/inventory.csv.gz
    crossref/part_0000.gz                             arxiv/metadata.jsonl.gz
    ids.txt: the works as people write them           truth.jsonl: what each work is, and who leads to its file

Promises: a file holds the records that the service of the same world answers with.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from DocsToKG.Sandbox.services import crossref, openalex
from DocsToKG.Sandbox.services.control import spelling, truth_of
from DocsToKG.Sandbox.services.pmc import metadata_of
from DocsToKG.Sandbox.works import Work
from DocsToKG.Sandbox.world import World

DAY = "2026-06-01"
_OPENALEX = f"openalex/works/updated_date={DAY}"
_EACH = 100_000  # works in a part


def write_snapshot(world: World, folder: Path, *, watch: Callable[[int], None] = lambda count: None) -> dict[str, int]:
    """Write the files; returns how many records each source has. With `watch` told how many works are written."""
    works = map(world.work, range(world.count))
    counts = dict.fromkeys(("openalex", "crossref", "pmc", "arxiv"), 0)
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        ids = stack.enter_context((folder / "ids.txt").open("w", encoding="utf-8"))
        truth = stack.enter_context((folder / "truth.jsonl").open("w", encoding="utf-8"))
        pmc = stack.enter_context(_packed(folder / "pmc" / "metadata.jsonl.gz"))
        inventory = stack.enter_context(_packed(folder / "pmc-inventory" / "inventory.csv.gz"))
        arxiv = stack.enter_context(_packed(folder / "arxiv" / "metadata.jsonl.gz"))
        for number, some in enumerate(_batches(works)):
            counts["openalex"] += _write_part(
                folder / f"openalex/works/updated_date={DAY}", number, map(_openalex, some)
            )
            registered = (_crossref(work) for work in some if work.in_crossref)
            counts["crossref"] += _write_part(folder / "crossref", number, registered)
            for work in some:
                ids.write(spelling(world, work) + "\n")
                truth.write(json.dumps(truth_of(world, work)) + "\n")
                if work.copy("pmc") is not None:
                    counts["pmc"] += 1
                    pmc.write(json.dumps(metadata_of(world, work)) + "\n")
                    inventory.write(_inventory_row(work))
                if work.copy("arxiv") is not None:
                    counts["arxiv"] += 1
                    arxiv.write(json.dumps(_arxiv(work)) + "\n")
            watch(some[-1].index + 1)
    return counts


def _openalex(work: Work) -> dict[str, Any]:
    return openalex.record(work) | {"updated_date": DAY}


def _crossref(work: Work) -> dict[str, Any]:
    return crossref.record(work) | {"indexed": {"date-time": f"{DAY}T00:00:00Z"}}


def _arxiv(work: Work) -> dict[str, Any]:
    versions = [f"v{number}" for number in range(1, work.arxiv_versions + 1)]
    return {
        "id": work.arxiv_id,
        "submitter": " ".join(work.authors[0]),
        "authors": ", ".join(f"{given} {family}" for given, family in work.authors),
        "title": work.title,
        "doi": work.doi.lower() if work.in_crossref else None,
        "journal-ref": None,
        "license": "http://arxiv.org/licenses/nonexclusive-distrib/1.0/",
        "categories": "math.CO",
        "versions": [{"version": version, "created": f"{work.date} 12:00:00 GMT"} for version in versions],
        "update_date": work.date,
    }


def _inventory_row(work: Work) -> str:
    row = io.StringIO()
    key = f"metadata/{work.pmcid}.1.json"
    csv.writer(row, quoting=csv.QUOTE_ALL).writerow(
        ["pmc-oa-opendata", key, f"{DAY}T00:00:00.000Z", f"{work.index:032x}"]
    )
    return row.getvalue()


def _write_part(folder: Path, number: int, records: Iterable[dict[str, Any]]) -> int:
    count = 0
    with _packed(folder / f"part_{number:04}.gz") as out:
        for record in records:
            out.write(json.dumps(record) + "\n")
            count += 1
    return count


def _packed(path: Path) -> io.TextIOWrapper:
    path.parent.mkdir(parents=True, exist_ok=True)
    return io.TextIOWrapper(gzip.GzipFile(path, "wb", mtime=0), encoding="utf-8")


def _batches(works: Iterable[Work]) -> Iterator[list[Work]]:
    rest = iter(works)
    while some := list(islice(rest, _EACH)):
        yield some
