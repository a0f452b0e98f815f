"""The tables of `podlife status`."""

from __future__ import annotations

from podlife.cli.commands.status_output import table_of


def test_a_table_is_as_wide_as_it_must_be() -> None:
    assert table_of([("A", "B"), ("long", "x")]) == "A      B\nlong   x"
