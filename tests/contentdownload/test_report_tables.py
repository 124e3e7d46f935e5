"""Values from outside, printed for people: nothing reaches the terminal but text."""

from __future__ import annotations

import pytest

from DocsToKG.ContentDownload.cli.tables import markdown_table, print_table, printable, size_text


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (0, "0"),
        ("plain ü", "plain ü"),
        ("a\x1b[31mred\nb\u202ec", "a [31mred b c"),
        (b"\x00\xff", "2 bytes"),
    ],
)
def test_a_value_becomes_one_printable_line(value: object, shown: str) -> None:
    assert printable(value) == shown


def test_a_size_has_as_many_digits_as_say_something() -> None:
    sizes = (0, 999, 1_234, 123_456, 4_200_000_000, 5e15)
    assert [*map(size_text, sizes)] == ["0 B", "999 B", "1.2 kB", "123 kB", "4.2 GB", "5000.0 TB"]


def test_a_table_carries_neither_markup_nor_control_codes(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("[b]name", "n"), [("[red]x[/red]\x1b[2J", 1), (None, 2)], title="ti\x07tle", loud=[1])
    shown = capsys.readouterr().out
    assert "[b]name" in shown
    assert "[red]x[/red] [2J" in shown
    assert not set("\x1b\x07") & set(shown)


def test_a_table_without_named_columns_has_no_head(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("", ""), [("works", 3)])
    bare = capsys.readouterr().out
    print_table(("what", "count"), [("works", 3)])
    assert len(capsys.readouterr().out.splitlines()) == len(bare.splitlines()) + 2


def test_a_markdown_cell_cannot_leave_its_column() -> None:
    assert markdown_table(("a", "b"), [("x|y\nz", None)]) == ["| a | b |", "| --- | --- |", "| x\\|y z |  |"]
