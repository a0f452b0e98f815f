"""Quotes of what a client sent: whole where it is short, bounded in size and in work where it is not."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podlife.api.excerpt import excerpt, excerpt_json

VALUES: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_a_short_value_is_quoted_as_json(value: Any) -> None:
    assert excerpt_json(value, 100_000) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class Counted(list[Any]):
    """Counts how many of its elements are looked at."""

    seen = 0

    def __iter__(self) -> Any:
        for item in super().__iter__():
            self.seen += 1
            yield item


def test_what_lies_behind_the_cut_is_not_looked_at() -> None:
    value = Counted(["a"] * 100_000)
    assert excerpt_json(value, 10) == '["a","a","...'
    assert value.seen < 10


def test_nesting_of_any_depth_is_quoted() -> None:
    value: Any = []
    for _ in range(100_000):
        value = [value]
    assert excerpt_json(value, 1_000_000) == "[" * 64 + "..." + "]" * 64
    # Taken apart before it goes, which would overflow the stack.
    while value:
        value = value[0]


@pytest.mark.parametrize(("text", "shown"), [("", ""), ("abc", "abc"), ("abcd", "abc...")])
def test_a_text_is_cut_after_so_many_characters(text: str, shown: str) -> None:
    assert excerpt(text, 3) == shown
