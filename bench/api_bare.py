"""The floor of the API: a bare FastAPI application that makes the same statements and writes their rows as JSON.

No tokens, no scopes, no limits, no checked answers. `python -m bench.api_bare FILE` serves what the file names.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from psycopg import ClientCursor, Cursor
from psycopg_pool import ConnectionPool

from bench.postgres_floor import Floor

_POOL = 8
_SHARD = 10_000  # a chain of its own, beside those of the ledger


def build(url: str, schema: str, statements: dict[str, list[tuple[str, Any, bool]]]) -> FastAPI:
    app = FastAPI(openapi_url=None)
    pool = ConnectionPool(url, min_size=_POOL, max_size=_POOL, open=True)
    pool.wait()
    floor, lock = Floor(url, schema, shard=_SHARD), threading.Lock()

    def reading(kind: str) -> Any:
        def read() -> list[Any]:
            found: list[Any] = []
            with pool.connection() as connection, connection.transaction():
                for statement, values, literal in statements[kind]:
                    cursor = (ClientCursor if literal else Cursor)(connection)
                    cursor.execute(statement, values)
                    found.append([list(map(_plain, row)) for row in cursor.fetchall()] if cursor.description else [])
            return found

        return read

    for kind in statements:
        app.get(f"/{kind}")(reading(kind))

    @app.post("/lease")
    def lease(body: dict[str, Any]) -> list[Any]:
        with lock:
            return [list(row) for row in floor._lease(int(body["limit"]))]

    return app


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def main(words: list[str]) -> int:
    told = json.loads(Path(words[0]).read_text())
    statements = {kind: [tuple(row) for row in rows] for kind, rows in told["statements"].items()}
    app = build(told["url"], told["schema"], statements)
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run(sockets=[listener])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
