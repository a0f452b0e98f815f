"""However a kill comes, and however often: a grace is at least a second and never grows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podlife.kubelet.podworkers.transitions import effective_grace

seconds = st.none() | st.integers(-5, 100)


@given(st.lists(st.tuples(seconds, seconds, seconds), min_size=1))
def test_a_grace_that_was_given_once_only_becomes_shorter(
    kills: list[tuple[int | None, int | None, int | None]],
) -> None:
    stored = 0
    for deletion, override, spec in kills:
        grace = effective_grace(stored, deletion=deletion, override=override, spec=spec)
        assert grace >= 1
        assert stored == 0 or grace <= stored
        stored = grace


@given(st.integers(1, 100), seconds)
def test_what_the_pod_asks_for_counts_only_when_nobody_has_said_anything(
    stored: int, spec: int | None
) -> None:
    assert effective_grace(stored, spec=spec) == stored
