"""Durations as text: Go's notation, a policy file's, kubectl's short form."""

from __future__ import annotations

import pytest

from podlife.api.durations import (
    format_duration,
    format_go_duration,
    format_one_unit,
    human_duration,
    parse_duration_with_days,
    parse_go_duration,
)

MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("40s", 40),
        ("-1m30s", -90),
        ("+2m", 120),
        ("0", 0),
        ("-0", 0),
        (".5s", 0.5),
        ("1d", None),
        ("40", None),
        ("", None),
    ],
)
def test_go_durations_are_parsed_as_go_does(text: str, seconds: float | None) -> None:
    assert parse_go_duration(text) == seconds


def test_a_long_text_is_refused_in_linear_time() -> None:
    # In quadratic time this takes hours.
    text = "1" * 1_000_000
    assert parse_go_duration(text) is parse_duration_with_days(text) is None


@pytest.mark.parametrize(
    ("text", "seconds"), [("7d", 604_800), ("1d12h", 129_600), ("0", 0), ("-1s", None), ("1w", None)]
)
def test_durations_with_days_are_never_negative(text: str, seconds: float | None) -> None:
    assert parse_duration_with_days(text) == seconds


@pytest.mark.parametrize(("seconds", "text"), [(1, "1s"), (90, "1m30s"), (3600, "1h0m0s"), (0.5, "0.5s")])
def test_go_durations_are_formatted_as_go_does(seconds: float, text: str) -> None:
    assert format_go_duration(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(2_592_000, "720h"), (5400, "90m"), (90, "90s"), (0.5, "0.5s")]
)
def test_one_unit_is_the_largest_exact_one(seconds: float, text: str) -> None:
    assert format_one_unit(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (-3, "0s"), (40, "40s"), (60, "1m"), (90, "1m30s"), (3661, "1h1m"), (273_600, "3d4h")],
)
def test_durations_are_rounded_to_two_units(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


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
