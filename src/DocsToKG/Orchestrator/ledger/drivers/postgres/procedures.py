"""The call of a worker's work in the database with the least messages and processor time: begin and call, then commit.

The driver's own way takes a message for each statement, or gathers them, and either takes more of the processor than
the rest of the program does for a job. Here the values are written into one text by the driver's quoting, the text goes
straight to libpq, and the plan is kept by a statement prepared in the session; behind a pooler, where sessions change,
the function is called by its name. Knows the parameters of `work_v4`, and nothing of what they mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
from psycopg import pq
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result

from DocsToKG.Orchestrator.ledger.drivers.postgres.database import Connection

BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
_PREPARED = "docstokg_work"
_PARAMETERS = {
    "idle_timeout": "text", "mark": "bigint", "onward": "bigint", "own": "bigint", "ends": "json", "workers": "text[]",
    "limits": "integer[]", "tokens": "text[]", "ttl": "bigint", "begun": "boolean", "job_type": "text",
    "swept": "bigint", "after_rank": "integer", "after_id": "bigint", "after_host": "text", "spare": "boolean",
    "tenant": "text", "rules": "bigint",
}  # fmt: skip


class Call:
    """The call on one connection, prepared where the session is ours. For one thread at a time."""

    def __init__(self, connection: Connection, statement: str) -> None:
        """`statement` ends in the name of the function."""
        self._connection = connection
        self._libpq = connection.pgconn
        self._quote = pq.Escaping(self._libpq).escape_literal
        self._begin = f"{BEGIN}; {statement}"
        if connection.prepare_threshold is not None:
            numbers = ", ".join(f"${number}" for number in range(1, len(_PARAMETERS) + 1))
            types = ", ".join(_PARAMETERS.values())
            connection.execute(f"PREPARE {_PREPARED} ({types}) AS {statement}({numbers})", prepare=False)
            self._begin = f"{BEGIN}; EXECUTE {_PREPARED}"

    def begin(self, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Begin a transaction, and the rows of the call in it: one round trip."""
        said = ", ".join([self._literal(values[name]) for name in _PARAMETERS])
        result = self._libpq.exec_(f"{self._begin}({said})".encode())
        if result.status != pq.ExecStatus.TUPLES_OK:
            raise self._told(result)
        reader = Transformer(self._connection)
        reader.set_pgresult(result)
        return reader.load_rows(0, result.ntuples, tuple)

    def commit(self) -> None:
        result = self._libpq.exec_(b"COMMIT")
        if result.status != pq.ExecStatus.COMMAND_OK:
            raise self._told(result)

    def _told(self, result: pq.abc.PGresult) -> psycopg.Error:
        """The error of a result. One without a number is no word of the server: the connection is lost."""
        encoding = self._connection.info.encoding
        if result.error_field(pq.DiagnosticField.SQLSTATE) is None:
            return psycopg.OperationalError(result.get_error_message(encoding))
        return error_from_result(result, encoding=encoding)

    def _literal(self, value: Any) -> str:
        kind = type(value)
        if kind is int or kind is bool:
            return str(value)  # True and False are words of both languages
        if value is None:
            return "NULL"
        if kind is list:
            return f"ARRAY[{', '.join(map(self._literal, value))}]"
        return bytes(self._quote(value.encode())).decode()
