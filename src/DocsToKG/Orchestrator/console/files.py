"""The static files of the console: a page, its styles and its scripts. They need no token and hold no data.

Knows files and headers. Promises: only files of the folder are served; no script runs that is not one of them, and none
of them can turn text into markup (CSP with trusted types); browsers revalidate every file.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

BASE_PATH = "/console/"
_KINDS = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types 'none'"
    ),
    "Cache-Control": "no-cache",
    "Cross-Origin-Opener-Policy": "same-origin",
}
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Asset:
    """A file of the console."""

    content: bytes
    kind: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """Every file by its path under the folder, read once."""
    return dict(_found(files(__package__).joinpath("static"), ""))


def _found(folder: Traversable, before: str) -> list[tuple[str, Asset]]:
    found: list[tuple[str, Asset]] = []
    for entry in folder.iterdir():
        kind = _KINDS.get(entry.name.rpartition(".")[2])
        if entry.is_dir():
            found += _found(entry, f"{before}{entry.name}/")
        elif kind is not None:
            content = entry.read_bytes()
            tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
            found.append((before + entry.name, Asset(content, kind, tag)))
    return found


@router.get("/")
@router.get("/console")
async def to_console() -> Response:
    return RedirectResponse(BASE_PATH, 307)


@router.get(BASE_PATH + "assets/{path:path}")
async def asset(request: Request, path: str) -> Response:
    found = assets().get(path)
    return Response(status_code=404) if found is None else _answer(request, found)


@router.get(BASE_PATH)
@router.get(BASE_PATH + "{view:path}")
async def page(request: Request) -> Response:
    """The same page for every view: its scripts read the address."""
    return _answer(request, assets()["index.html"])


def _answer(request: Request, found: Asset) -> Response:
    headers = {**_HEADERS, "ETag": found.tag}
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    return Response(found.content, media_type=found.kind, headers=headers)
