"""TE-01 to TE-04: how long a pod bears the taints of its node."""

from __future__ import annotations

import math

import pytest

from podlife.nodehealth.taints import evicting_taints, seconds_to_bear, shortest
from podlife.nodehealth.views import Toleration
from tests.conformance.nodehealth.objects import taint, toleration


def test_only_taints_that_evict_matter() -> None:
    """TE-01."""
    evicts = taint("a")
    others = [taint("a", effect=effect) for effect in ("NoSchedule", "PreferNoSchedule", "")]
    assert evicting_taints([*others, evicts]) == (evicts,)


def test_all_must_be_borne_and_of_several_tolerations_the_first_counts() -> None:
    """TE-02: also where a later one is closer to the taint."""
    wide, close = toleration("", 700), toleration("a", 10)
    assert seconds_to_bear([taint("a")], [wide, close]) == 700
    assert seconds_to_bear([taint("a")], [close, wide]) == 10
    assert seconds_to_bear([taint("a"), taint("b")], [close]) is None
    assert seconds_to_bear([taint("a"), taint("b")], [close, wide]) == 10


@pytest.mark.parametrize(
    ("seconds", "wait"),
    [
        pytest.param([], 0, id="TE-03a none"),
        pytest.param([None], math.inf, id="TE-03b without seconds"),
        pytest.param([1, 2], 1, id="TE-03c two"),
        pytest.param([1, None], 1, id="TE-03d one without"),
        pytest.param([None, 1], 1, id="TE-03e the first without"),
        pytest.param([5, 0], 0, id="TE-03 zero"),
        pytest.param([5, -7], 0, id="TE-03 less than zero"),
    ],
)
def test_the_shortest_counts(seconds: list[int | None], wait: float) -> None:
    assert shortest([toleration("a", each) for each in seconds]) == wait


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (toleration("a"), True),
        (toleration("b"), False),
        (toleration(""), True),
        (toleration("a", effect="NoExecute"), True),
        (toleration("a", effect="NoSchedule"), False),
        (toleration("a", operator="Equal", value="v"), True),
        (toleration("a", operator="Equal", value="w"), False),
        (toleration("a", operator="", value="v"), True),
        (toleration("a", operator="", value=""), False),
        (toleration("a", operator="Lt", value="w"), False),
        (toleration("a", operator="Gt", value="0"), False),
    ],
)
def test_which_toleration_fits(given: Toleration, fits: bool) -> None:
    """TE-04: no effect is all effects, no key all keys, no operator Equal; comparing is an alpha feature, off."""
    assert seconds_to_bear([taint("a", "v")], [given]) == (math.inf if fits else None)
