"""Times as they stand in objects: whoever may annotate a pod may write anything there."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podlife.api.codec import parse_time


def test_a_time_is_read_in_utc() -> None:
    assert parse_time("2030-01-01T02:00:00+02:00") == datetime(2030, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "for ever",
        "2030-01-01",
        "2030-01-01T00:00:00",
        "2030-02-30T00:00:00Z",
        "2030-01-01T00:00:00+24:00",
        # These are times, and none in UTC.
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-14:00",
    ],
)
def test_what_is_no_time_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_time(text)
