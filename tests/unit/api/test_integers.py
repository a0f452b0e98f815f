from __future__ import annotations

import pytest

from podlife.api.integers import parse_int64


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("10", 10),
        ("+7", 7),
        ("-7", -7),
        ("-0", 0),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("0" * 5000 + "1", 1),
    ],
)
def test_what_go_reads_as_an_integer(text: str, expected: int) -> None:
    assert parse_int64(text) == expected


@pytest.mark.parametrize(
    "text", ["", "1_0", " 10", "10 ", "10\n", "1.0", "0x10", "-+5", "--5", "-", "٣", "²", "１"]
)
def test_what_only_python_reads_is_invalid(text: str) -> None:
    with pytest.raises(ValueError, match=r"(?s)^strconv.ParseInt: parsing .*: invalid syntax$"):
        parse_int64(text)


@pytest.mark.parametrize(
    "text", ["9223372036854775808", "-9223372036854775809", "9" * 5000, "-" + "9" * 5000]
)
def test_more_than_64_bits_are_out_of_range(text: str) -> None:
    with pytest.raises(ValueError, match=r"value out of range$"):
        parse_int64(text)
