from __future__ import annotations

import pytest

from podlife.apiserver.printers import PLAIN
from podlife.apiserver.printers.cells import age, format_selector

from .situation import NOW, at, named


def test_age_counts_from_creation() -> None:
    assert age({"metadata": {"creationTimestamp": at(NOW - 61)}}, NOW) == "61s"


def test_age_of_what_was_never_created_is_unknown() -> None:
    assert age({"metadata": {}}, NOW) == "<unknown>"


def test_kind_without_a_printer_shows_its_name_and_when_it_was_created() -> None:
    assert PLAIN.cells({"metadata": named("thing")}, NOW) == ["thing", at(NOW - 600)]
    assert [(column.name, column.type) for column in PLAIN.columns] == [
        ("Name", "string"),
        ("Created At", "date"),
    ]


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        (None, "<none>"),
        ({}, "<none>"),
        ({"matchLabels": {"b": "2", "a": "1"}}, "a=1,b=2"),
        ({"matchExpressions": [{"key": "a", "operator": "NotIn", "values": ["y", "x"]}]}, "a notin (x,y)"),
        ({"matchExpressions": [{"key": "a", "operator": "Like", "values": ["y"]}]}, "<error>"),
    ],
)
def test_selector_is_shown_as_a_client_would_write_it(selector: dict[str, object] | None, text: str) -> None:
    assert format_selector(selector) == text
