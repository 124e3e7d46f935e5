"""The OpenAPI 3.1 document of the API, and the well-known address that points to it.

Promises: the document is byte-identical for the same version of the program; nothing in it is fetched from elsewhere.
"""

from __future__ import annotations

import copy
import hashlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import orjson
from fastapi import APIRouter, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import Response

from DocsToKG.Orchestrator.api.auth.permissions import PERMISSIONS
from DocsToKG.Orchestrator.api.errors import ErrorEnvelope
from DocsToKG.Orchestrator.api.middleware import HOME, SHORT
from DocsToKG.Orchestrator.api.schemas import json_bytes, json_schemas
from DocsToKG.Orchestrator.views import View

SPEC = "/openapi/orchestrator.json"
_FRESH = "public, max-age=300"
_SHORT_TAGS = frozenset({"jobs", "limits", "dashboard"})
router = APIRouter(tags=["discovery"])


@dataclass(frozen=True, slots=True)
class Discovery(View):
    """Where the description is. `generatedAt` names the build that it was made from, so that equal builds agree."""

    spec: str
    version: str
    generated_at: str
    etag: str


def build_version() -> str:
    try:
        return version("docstokg")
    except PackageNotFoundError:
        return "0"


@router.get("/.well-known/openapi", operation_id="discover", summary="Say where the description is.",
            response_model=Discovery)  # fmt: skip
async def discover(request: Request) -> Response:
    found = Discovery(
        spec=SPEC, version=build_version(), generated_at=f"build {build_version()}", etag=_etag(request.app)
    )
    return _cached(request, json_bytes(found), _etag(request.app))


@router.get(SPEC, operation_id="openapi", summary="Describe every route (OpenAPI 3.1).", response_model=dict[str, Any])
async def describe(request: Request) -> Response:
    return _cached(request, document_bytes(request.app), _etag(request.app))


def _cached(request: Request, content: bytes, etag: str) -> Response:
    headers = {"Cache-Control": _FRESH, "ETag": etag}
    asked = [word.strip().removeprefix("W/") for word in request.headers.get("if-none-match", "").split(",")]
    if etag in asked or asked == ["*"]:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type="application/json")


def document_bytes(app: FastAPI) -> bytes:
    kept: bytes | None = getattr(app.state, "document", None)
    if kept is None:
        kept = app.state.document = orjson.dumps(document(app), option=orjson.OPT_SORT_KEYS)
    return kept


def _etag(app: FastAPI) -> str:
    kept: str | None = getattr(app.state, "document_etag", None)
    if kept is None:
        kept = app.state.document_etag = f'"{hashlib.sha256(document_bytes(app)).hexdigest()[:32]}"'
    return kept


def document(app: FastAPI) -> dict[str, Any]:
    """The whole description; the short spellings of the job routes are listed beside their home."""
    made = get_openapi(
        title="DocsToKG Orchestrator",
        version=build_version(),
        openapi_version="3.1.0",
        description=_INTRODUCTION,
        routes=app.routes,
    )
    made["components"]["securitySchemes"] = {"bearer": {"type": "http", "scheme": "bearer"}}
    made["components"].setdefault("schemas", {}).update(_error_schemas())
    made["components"].setdefault("headers", {}).update(_HEADERS)
    views: dict[str, type[View]] = app.state.views
    schemas, definitions = json_schemas(dict.fromkeys(views.values()))
    made["components"]["schemas"].update(definitions)
    for path, item in list(made["paths"].items()):
        for operation in item.values():
            view = views.get(operation["operationId"])
            _finish(operation, None if view is None else schemas[view])
        if path.startswith(HOME + "/") and any(_SHORT_TAGS & set(each.get("tags", ())) for each in item.values()):
            made["paths"][SHORT + path.removeprefix(HOME)] = _alias(item)
    made["x-docstokg-examples"] = EXAMPLES
    return made


def _error_schemas() -> dict[str, Any]:
    whole = ErrorEnvelope.model_json_schema(ref_template="#/components/schemas/{model}")
    inner: dict[str, Any] = whole.pop("$defs")
    return {"ErrorEnvelope": whole, **inner}


def _finish(operation: dict[str, Any], schema: dict[str, Any] | None) -> None:
    """What every guarded operation has: its scopes, its header fields, the schema and headers of its responses."""
    permission = PERMISSIONS.get(operation["operationId"])
    if permission is None:
        return
    operation["security"] = [{"bearer": sorted(permission.scopes)}]
    operation["x-docstokg-demands"] = permission.demand
    given = operation.setdefault("parameters", [])
    given.append(_header("X-Tenant", "The tenant, where the token is for several.", 128))
    if permission.demand != "nothing":
        given += [_header("X-Reason", "Why, unless the body says it.", 256)]
        given += [_header("X-Ticket", "The ticket, unless the body names it.", 128)]
    for status, response in operation["responses"].items():
        if status == "429":
            response["headers"] = {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}
        elif status.startswith("2"):
            if schema is not None:
                response["content"] = {"application/json": {"schema": schema}}
            response["headers"] = {
                name: {"$ref": f"#/components/headers/{name}"} for name in _HEADERS if name[0] == "X"
            }


def _header(name: str, words: str, most: int) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "description": words,
        "schema": {"type": "string", "maxLength": most},
    }


def _alias(item: dict[str, Any]) -> dict[str, Any]:
    copied = copy.deepcopy(item)
    for operation in copied.values():
        operation["operationId"] = f"{operation['operationId']}Short"
    return copied


_HEADERS: dict[str, Any] = {
    "X-RateLimit-Limit": {"description": "Requests at once.", "schema": {"type": "integer"}},
    "X-RateLimit-Remaining": {"description": "Requests left.", "schema": {"type": "integer"}},
    "X-RateLimit-Reset": {"description": "When all are there again (Unix seconds).", "schema": {"type": "integer"}},
    "Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}},
}
_INTRODUCTION = """\
Jobs, leases, quotas, breakers, throttles and incidents of one ledger.

Every call but health and discovery carries `Authorization: Bearer TOKEN`; a token with several tenants names one in
`X-Tenant`. Lists have `page_size` and `page_token`; an answer with `next_page_token` has a next page. A POST with an
`Idempotency-Key` acts once, and a repeat gets the first answer. Every error is `{"error": {"code", "message",
"trace_id"}}`. Moments are UTC with milliseconds and come from the ledger."""

# Executed by a test against a fresh ledger, in this order. `$name` is taken from an earlier answer.
EXAMPLES: list[dict[str, Any]] = [
    {
        "title": "idempotency: the same key twice makes one job",
        "request": {
            "method": "POST",
            "path": f"{HOME}/jobs",
            "headers": {"Idempotency-Key": "order-17"},
            "body": {"jobType": "content.download", "artifactId": "doi:10.1371/journal.pone.0000217",
                     "payload": {"doi": "10.1371/journal.pone.0000217"}},
        },
        "response": {"status": 201, "body": {"artifactId": "doi:10.1371/journal.pone.0000217", "created": True}},
    },
    {
        "title": "idempotency: the repeat gets the first answer",
        "request": {
            "method": "POST",
            "path": f"{HOME}/jobs",
            "headers": {"Idempotency-Key": "order-17"},
            "body": {"jobType": "content.download", "artifactId": "doi:10.1371/journal.pone.0000217",
                     "payload": {"doi": "10.1371/journal.pone.0000217"}},
        },
        "response": {"status": 201, "headers": {"Idempotency-Replayed": "true"}, "body": {"created": True}},
    },
    {
        "title": "idempotency: another body with the same key is refused",
        "request": {
            "method": "POST",
            "path": f"{HOME}/jobs",
            "headers": {"Idempotency-Key": "order-17"},
            "body": {"payload": {"doi": "10.1371/other"}},
        },
        "response": {"status": 409, "body": {"error": {"code": "CONFLICT"}}},
    },
    {
        "title": "bulk: several jobs at once",
        "request": {
            "method": "POST",
            "path": f"{HOME}/jobs/bulk",
            "body": {"jobs": [{"artifactId": f"arxiv:2101.0000{n}", "payload": {"n": n}} for n in range(1, 4)]},
        },
        "response": {"status": 201, "body": {}},
    },
    {
        "title": "pagination: the first page",
        "request": {"method": "GET", "path": f"{HOME}/jobs?page_size=2"},
        "response": {"status": 200, "body": {}, "keep": {"next_page_token": "next"}},
    },
    {
        "title": "pagination: the next page",
        "request": {"method": "GET", "path": f"{HOME}/jobs?page_size=2&page_token=$next"},
        "response": {"status": 200, "body": {}},
    },
    {
        "title": "errors: one envelope for all of them",
        "request": {"method": "GET", "path": f"{HOME}/jobs/999999"},
        "response": {"status": 404, "body": {"error": {"code": "NOT_FOUND"}}},
    },
    {
        "title": "errors: a decision needs a reason",
        "request": {"method": "POST", "path": f"{HOME}/jobs/1/cancel", "body": {}},
        "response": {"status": 400, "body": {"error": {"code": "REASON_REQUIRED"}}},
    },
]  # fmt: skip
