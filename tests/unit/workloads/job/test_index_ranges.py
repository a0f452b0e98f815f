"""Sets of indexes, beside Python's own sets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.workloads.job.index_ranges import IndexRanges

INDEXES = st.sets(st.integers(0, 40))


@pytest.mark.parametrize(
    ("indexes", "written"),
    [
        (set(), ""),
        ({0}, "0"),
        ({0, 1}, "0,1"),
        ({0, 1, 2}, "0-2"),
        ({1, 3, 4, 5, 7}, "1,3-5,7"),
        ({9, 10, 12}, "9,10,12"),
    ],
)
def test_two_in_a_row_are_written_one_by_one_and_three_as_a_range(indexes: set[int], written: str) -> None:
    assert str(IndexRanges.of(indexes)) == written
    assert IndexRanges.parse(written, 100) == IndexRanges.of(indexes)


@pytest.mark.parametrize(
    ("text", "count", "read"),
    [
        ("0-9", 5, "0-4"),
        ("0,3-9,12", 5, "0,3,4"),
        ("7", 5, ""),
        ("0,x,2", 5, "0,2"),
        ("0,1-x,3", 5, "0,3"),
        ("-1", 5, ""),
        ("0,1,2", 5, "0-2"),
        ("", 5, ""),
        ("9" * 400, 5, ""),
    ],
)
def test_what_is_out_of_range_or_no_range_is_left_out(text: str, count: int, read: str) -> None:
    assert str(IndexRanges.parse(text, count)) == read


@given(INDEXES, INDEXES, st.integers(0, 45))
def test_behaves_as_a_set_does(one: set[int], other: set[int], count: int) -> None:
    ranges, others = IndexRanges.of(one), IndexRanges.of(other)
    assert ranges | others == IndexRanges.of(one | other)
    assert ranges.overlap(others) == len(one & other)
    assert len(ranges) == len(one)
    assert [index in ranges for index in range(45)] == [index in one for index in range(45)]
    assert list(ranges.missing_below(count)) == [index for index in range(count) if index not in one]
    assert IndexRanges.parse(str(ranges), count) == IndexRanges.of(index for index in one if index < count)
