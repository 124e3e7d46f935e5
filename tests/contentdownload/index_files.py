"""Small files in the shapes of the sources of an index, and indexes made of them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from DocsToKG.ContentDownload.index.build import Wanted, build
from DocsToKG.ContentDownload.index.manifest import Manifest


def openalex_work(number: int, *, doi: str | None = None, pdf: str | None = None, **more: Any) -> dict[str, Any]:
    """A work of OpenAlex; open at `pdf`, else closed."""
    doi = doi or f"10.5555/work.{number}"
    place = {
        "id": f"doi:{doi}",
        "is_oa": pdf is not None,
        "landing_page_url": f"https://doi.org/{doi}",
        "pdf_url": pdf,
        "license": "cc-by" if pdf else None,
        "version": "publishedVersion",
        "source": {"type": "journal", "display_name": "A Journal"},
    }
    return {
        "id": f"https://openalex.org/W{4_000_000_000 + number}",
        "doi": f"https://doi.org/{doi}",
        "title": f"Work {number}",
        "publication_year": 2000 + number % 20,
        "type": "article",
        "is_retracted": False,
        "updated_date": "2026-06-01",
        "ids": {"doi": f"https://doi.org/{doi}", "pmid": f"https://pubmed.ncbi.nlm.nih.gov/{1000 + number}"},
        "open_access": {"is_oa": pdf is not None, "oa_status": "gold" if pdf else "closed", "oa_url": pdf},
        "best_oa_location": place if pdf else None,
        "locations": [place],
        **more,
    }


def works(count: int, *, first: int = 0) -> list[dict[str, Any]]:
    """Every third is open."""
    numbers = range(first, first + count)
    return [openalex_work(n, pdf=f"https://host{n % 7}.example.org/{n}.pdf" if n % 3 == 0 else None) for n in numbers]


def write_lines(path: Path, records: Iterable[Mapping[str, Any] | str]) -> Path:
    """JSON lines; packed where the name says so. A text is a line as it stands."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in records)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def built(root: Path, openalex: Path | str, *, files: int = 4) -> Manifest:
    return build(root, Wanted([("openalex", str(openalex))], files=files))
