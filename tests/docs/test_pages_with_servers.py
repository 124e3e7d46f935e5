"""The pages for several machines, with a real PostgreSQL, Valkey, NATS and S3 service in place of the invented ones."""

from __future__ import annotations

import shutil
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests import needs
from tests.conformance.conftest import PASSWORD, nats_url, running_moto, running_nats, running_valkey, valkey_url
from tests.conformance.postgres_server import NoPostgres, PostgresServer, running_postgres
from tests.docs.conftest import Reader, wrong
from tests.docs.reading import blocks, lines_of, name_of
from tests.docs.test_pages_run import HOWTO, WITH_SERVERS

SIGNAL = "DOCSTOKG_CONTENT_QUEUE__SIGNAL_URL"


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """What the pages say, and where it is here."""
    with ExitStack() as stack:
        try:
            postgres = stack.enter_context(running_postgres())
        except NoPostgres as error:
            needs.lacks(str(error))
        database = made_as_the_page_says(postgres)
        valkey = stack.enter_context(running_valkey())
        nats = stack.enter_context(running_nats())
        s3 = f"http://127.0.0.1:{stack.enter_context(running_moto()).port}"
        with urllib.request.urlopen(urllib.request.Request(f"{s3}/papers", method="PUT"), timeout=20):
            pass
        yield {
            "postgresql://docstokg:...@db.internal/docstokg?sslmode=verify-full": database,
            "postgresql://docstokg:...@pooler.internal:6432/docstokg": database,
            "postgresql://docstokg:...@db.internal:5432/docstokg": database,
            "postgresql://catalog:...@db.internal:5432/catalog": database,
            "postgresql://catalog@db.internal:5432/catalog": database,
            "rediss://docstokg:...@valkey.internal:6379/0": valkey_url(valkey),
            "tls://docstokg:...@nats.internal:4222": nats_url(nats),
            "https://s3.internal:8333": s3,
            "KEY_ID=... AWS_SECRET_ACCESS_KEY=...": f"KEY_ID=testing AWS_SECRET_ACCESS_KEY={PASSWORD}",
            "/var/lib/docstokg/node/": "node/",
            "queue run": "queue drain",  # with an end
        }


def made_as_the_page_says(server: PostgresServer) -> str:
    """The address of the database and the user that the first step makes."""
    [statements] = blocks(HOWTO / "run-on-many-machines.md", "sql")
    with psycopg.connect(server.url, autocommit=True) as owner:
        for statement in statements.strip().removesuffix(";").split(";"):
            owner.execute(statement.encode())
    return f"postgresql://docstokg@127.0.0.1:{server.port}/docstokg"


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", sorted(WITH_SERVERS), ids=name_of)
def test_every_line_of_a_page_does_what_it_says_with_real_servers(
    page: Path, reader: Reader, settings: dict[str, Any], addresses: dict[str, str]
) -> None:
    database = next(url for said, url in addresses.items() if said.startswith("postgresql"))
    with psycopg.connect(database, autocommit=True) as connection:
        for schema in ("orchestrator", "docstokg_record"):  # of the page before
            connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")
    nats = next(url for said, url in addresses.items() if said.startswith("tls"))
    reader = replace(reader, instead={**reader.papers(), **addresses}, variables={SIGNAL: nats})
    shutil.rmtree(reader.folder / "papers")
    reader.writes_settings_of(page, **{"prod.yaml": settings})
    lines = lines_of(page)
    if not any("queue import" in line for line in lines):  # a page of its own
        first = next((number for number, line in enumerate(lines) if " queue run" in line), 0)
        lines[first:first] = ["contentdownload queue import works.jsonl -c prod.yaml"] if first else []
    assert wrong(reader.types(lines), {}) == []
