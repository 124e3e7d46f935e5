"""One statement for many rows: nothing lost, nothing twice, in order, whatever their number."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from DocsToKG.Orchestrator.ledger.drivers.sqlite.many_rows import run_rows, widened


@given(st.integers(0, 300))
def test_every_row_is_written_once_and_in_order(count):
    rows = [(n, f"text {n}", bytes([n % 256])) for n in range(count)]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a, b, c)")
        returned = run_rows(connection, "INSERT INTO t (a, b, c) VALUES (?, ?, ?) RETURNING a", rows)
        assert connection.execute("SELECT a, b, c FROM t ORDER BY rowid").fetchall() == rows
    assert sorted(returned) == [(n,) for n in range(count)]


@given(st.integers(0, 300))
def test_what_rows_share_is_bound_once_and_written_with_each(count):
    rows = [(n, f"text {n}") for n in range(count)]
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (a, b, c, d)")
        run_rows(connection, "INSERT INTO t (c, d, a, b) VALUES (?1, ?2, ?, ?)", rows, ("all", None))
        assert connection.execute("SELECT * FROM t ORDER BY rowid").fetchall() == [(*r, "all", None) for r in rows]


@pytest.mark.parametrize("statement", ["SELECT 1", "VALUES (?), (?)x VALUES (?, ?)"])
def test_a_statement_without_one_list_of_values_is_refused(statement):
    with pytest.raises(ValueError, match="one list of values"):
        widened(statement, 2)
