from __future__ import annotations

import pytest

from podlife.apiserver.printers import PLAIN
from podlife.apiserver.printers.cells import age, format_selector, human_duration

from .situation import NOW, at, named

MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "<invalid>"),
        (-2, "<invalid>"),
        (-1.9, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (2 * MINUTE, "2m"),
        (2 * MINUTE + 1, "2m1s"),
        (9 * MINUTE + 59, "9m59s"),
        (10 * MINUTE + 30, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (3 * HOUR + 20 * MINUTE, "3h20m"),
        (8 * HOUR - 1, "7h59m"),
        (8 * HOUR, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY, "2d"),
        (2 * DAY + 5 * HOUR, "2d5h"),
        (8 * DAY - 1, "7d23h"),
        (8 * DAY, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR, "2y"),
        (2 * YEAR + 30 * DAY, "2y30d"),
        (8 * YEAR - 1, "7y364d"),
        (8 * YEAR + 100 * DAY, "8y"),
    ],
)
def test_duration_is_short_and_coarser_the_longer_it_is(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


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
