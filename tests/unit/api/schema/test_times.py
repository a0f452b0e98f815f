import pytest

from podlife.api.schema.times import canonical_micro_time, canonical_time


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("2024-02-29T23:59:59Z", "2024-02-29T23:59:59Z"),
        ("2024-12-31T00:00:00Z", "2024-12-31T00:00:00Z"),
        ("2024-01-01T00:00:00+01:00", "2023-12-31T23:00:00Z"),
        ("2024-01-01T00:00:00.999999999Z", "2024-01-01T00:00:00Z"),
        ("2024-01-01T1:00:00-00:30", "2024-01-01T01:30:00Z"),
        ("2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00Z"),
    ],
)
def test_a_time_is_in_utc_and_whole_seconds(text: str, canonical: str) -> None:
    assert canonical_time(text) == canonical


def test_a_micro_time_has_exactly_six_digits() -> None:
    assert canonical_micro_time("2024-01-01T00:00:00.000001+01:00") == "2023-12-31T23:00:00.000001Z"
    with pytest.raises(ValueError, match=r'cannot parse "Z" as ".000000"'):
        canonical_micro_time("2024-01-01T00:00:00Z")


@pytest.mark.parametrize("text", ["2023-02-29T00:00:00Z", "2024-04-31T00:00:00Z", "0000-01-01T00:00:00Z"])
def test_a_day_that_does_not_exist_is_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match="day out of range"):
        canonical_time(text)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00"])
def test_a_time_that_leaves_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="out of range"):
        canonical_time(text)
