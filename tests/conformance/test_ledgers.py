"""The cases of the embedded ledger, run on PostgreSQL: one suite says what a ledger is, whatever database holds it.

QUE-23, LEDG-02. The cases live beside the embedded ledger, where they run on SQLite; here they are loaded once more
with `SqliteLedger` standing for a ledger in a schema of its own. Left out are only those about SQLite itself.
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from tests.examples import examples
from tests.orchestrator.jobs import enqueue, lease_one  # noqa: F401 (fixtures)

from DocsToKG.core.clock import ManualClock, SystemClock
from DocsToKG.Orchestrator.ledger.postgres import PostgresLedger

pytestmark = pytest.mark.slow

CASES = Path(__file__).parent.parent / "orchestrator"
MODULES = (
    "enqueue", "leasing", "fence", "fairness", "dependencies", "history", "why", "time", "filters", "group_commit",
    "suspects",
)  # fmt: skip
ABOUT_SQLITE = {
    "test_leasing_reads_no_delayed_job",
    "test_the_hot_statements_use_their_index_and_sort_nothing",
    "test_a_lease_reads_about_as_many_entries_as_it_hands_out",
    "test_many_jobs_of_another_type_in_front_cost_a_lease_nothing",  # there, counted in pages
    "test_rows_added_behind_the_ledgers_back_are_found_out",  # the primary key refuses them
    "test_ledger_time_follows_the_clock_when_nothing_is_odd",
    "test_an_enqueue_is_written_through_to_the_disk",
    "test_a_locked_file_is_waited_for",
    "test_a_file_locked_for_too_long_is_an_error_of_its_own",
}


class Schemas:
    """A schema for each path that the cases open. Making one takes a while, so a clean one is used again."""

    def __init__(self) -> None:
        self.url = ""  # where ledgers go, which may be a pooler
        self.server_url = ""
        self._used: dict[str, str] = {}
        self._clean: list[str] = []
        self._changed: set[str] = set()

    def open(self, path: Path, *, clock: Any = None, **words: Any) -> PostgresLedger:
        words = {word: value for word, value in words.items() if word not in ("wal", "busy_timeout_s")}
        own_time = clock is not None and not isinstance(clock, SystemClock)
        words = {"poll_s": 0.025, **words}
        return PostgresLedger(self.url, schema_name=self.name(path), clock=clock, database_time=not own_time, **words)

    def name(self, path: Path) -> str:
        if str(path) not in self._used:
            self._used[str(path)] = self._clean.pop() if self._clean else f"t_{uuid4().hex[:20]}"
        return self._used[str(path)]

    def run(self, path: Path, statement: str, *values: Any) -> list[Any]:
        if statement.split()[0] in ("DROP", "CREATE", "ALTER"):
            self._changed.add(self.name(path))
        with psycopg.connect(self.server_url, autocommit=True) as connection:
            connection.execute(f"SET search_path = {self.name(path)}")
            cursor = connection.execute(statement.replace("?", "%s"), values or None)
            return cursor.fetchall() if cursor.description is not None else []

    def tidy(self) -> None:
        with psycopg.connect(self.server_url, autocommit=True) as connection:
            for name in self._used.values():
                if name in self._changed:
                    connection.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE")
                elif connection.execute("SELECT to_regclass(%s)", (f"{name}.jobs",)).fetchone() != (None,):
                    self._wipe(connection, name)
                    self._clean.append(name)
        self._used.clear()

    def drop(self) -> None:
        with psycopg.connect(self.server_url, autocommit=True) as connection:
            for name in self._clean:
                connection.execute(f"DROP SCHEMA {name} CASCADE")
        self._clean.clear()

    def _wipe(self, connection: Any, name: str) -> None:
        connection.execute(f"SET session_replication_role = replica; SET search_path = {name}")
        tables = "jobs, job_dependencies, dependency_changes, job_history, history_heads, history_anchors, settings"
        connection.execute(f"TRUNCATE {tables}, job_counts, count_changes RESTART IDENTITY")
        connection.execute("ALTER SEQUENCE history_shards RESTART; UPDATE ledger_time SET high_water_ms = 0")
        connection.execute(
            "TRUNCATE tenants, quotas, quota_policies, quota_grants, lanes, throttles, sources, breakers"
        )
        connection.execute("TRUNCATE breaker_transitions, incidents, leaders, workers, backfills, idempotency_keys")


SCHEMAS = Schemas()


@pytest.fixture(scope="module", autouse=True)
def server(postgres_url: str) -> Iterator[None]:
    SCHEMAS.url = SCHEMAS.server_url = postgres_url
    yield
    SCHEMAS.drop()


@pytest.fixture(autouse=True)
def schemas(server: None) -> Iterator[Schemas]:
    yield SCHEMAS
    SCHEMAS.tidy()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger"


@pytest.fixture
def ledger(path: Path, clock: ManualClock) -> Iterator[PostgresLedger]:
    with SCHEMAS.open(path, clock=clock) as opened:
        yield opened


@pytest.fixture
def sql(ledger: PostgresLedger, path: Path) -> Callable[..., list[Any]]:
    """Plain SQL behind the ledger's back. What SQLite says in its own words is said in those of PostgreSQL."""

    def run(statement: str, *values: Any) -> list[Any]:
        if statement == "DROP TRIGGER job_history_loses_no_row":
            return []  # one trigger refuses both
        statement = re.sub(r"^DROP TRIGGER (\w+)$", r"DROP TRIGGER \1 ON job_history", statement)
        statement = re.sub(
            r"WHEN (.+) BEGIN SELECT RAISE\(ABORT, ('\w+')\); END$",
            r"FOR EACH ROW WHEN (\1) EXECUTE FUNCTION refuse_change(\2)",
            statement,
        )
        statement = statement.replace("zeroblob(32)", "decode(repeat('00', 32), 'hex')")
        return SCHEMAS.run(path, statement, *values)

    return run


class Held:
    """Holds the rows that changes need, as SQLite's write lock does, so that changes pile up behind it."""

    def __init__(self, url: str, schema: str) -> None:
        self.connection = psycopg.connect(url, autocommit=True)
        self.schema = schema

    def execute(self, word: str) -> None:
        if word == "COMMIT":
            self.connection.execute("COMMIT")
            return
        self.connection.execute("BEGIN")
        self.connection.execute(f"LOCK TABLE {self.schema}.jobs IN SHARE MODE")


@pytest.fixture
def held(ledger: PostgresLedger, path: Path, postgres_url: str) -> Iterator[Held]:
    holder = Held(postgres_url, SCHEMAS.name(path))
    holder.execute("BEGIN")
    yield holder
    holder.connection.close()


def _load(stem: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"ledger_cases_{stem}", CASES / f"test_ledger_{stem}.py")
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    words: dict[str, Any] = {
        "SqliteLedger": SCHEMAS.open,
        "sqlite3": SimpleNamespace(IntegrityError=psycopg.Error, OperationalError=psycopg.Error),
    }
    for word, value in words.items():
        if hasattr(module, word):
            setattr(module, word, value)
    return module


def _looks_into_the_file(case: Any) -> bool:
    """Whether a case asks SQLite itself, for example for its plan."""
    return any(word in inspect.getsource(case) for word in ("sqlite3.connect", "schema.queries", "PRAGMA"))


def _adopt(stem: str) -> ModuleType:
    module = _load(stem)
    for name, thing in vars(module).items():
        if name.startswith("test_") and name not in ABOUT_SQLITE and not _looks_into_the_file(thing):
            globals()[f"test_{stem}_{name.removeprefix('test_')}"] = thing
    return module


for _stem in MODULES:
    _adopt(_stem)

mixed = _load("filters").mixed

_walk = _load("model")


class PostgresWalk(_walk.LedgerWalk):  # type: ignore[misc,name-defined]
    """The random walk beside the model, with all its rules."""


PostgresWalk.TestCase.settings = examples(12, stateful_step_count=40)
TestPostgresWalk = PostgresWalk.TestCase

_simulation = _load("simulation")


@pytest.mark.parametrize("seed", range(12))
def test_every_job_ends_once_whatever_happens_to_the_workers(tmp_path: Path, seed: int) -> None:
    """QUE-08, QUE-09, QUE-20: the fleet that stalls, dies and wakes too late, on a clock that jumps."""
    fleet = _simulation.Fleet(tmp_path / "fleet", seed)
    try:
        job_ids = fleet.enqueue()
        fleet.run()
        _simulation.check(fleet, job_ids)
        assert SCHEMAS.run(tmp_path / "fleet", "SELECT count(*) FROM dependency_changes") == [(0,)]
    finally:
        fleet.ledger.close()
