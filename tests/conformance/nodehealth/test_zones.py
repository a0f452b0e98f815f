"""NL-07 and NL-70 to NL-88: zones, their states and the rates that follow."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from podlife.nodehealth.metrics import NodeMetrics
from podlife.nodehealth.settings import NodeHealthSettings
from podlife.nodehealth.zones import (
    Disruption,
    ZoneCount,
    ZoneState,
    ZoneVerdict,
    is_counted,
    judge,
    state_of,
    zone_of,
)

NORMAL, PARTIAL, FULL = ZoneState.NORMAL, ZoneState.PARTIAL, ZoneState.FULL
SETTINGS = NodeHealthSettings()
Counts = Mapping[str, tuple[int, int]]


def judged(before: Disruption, counts: Counts) -> ZoneVerdict:
    """`counts` are ready and not ready nodes."""
    return judge(before, {zone: ZoneCount(*count) for zone, count in counts.items()}, SETTINGS)


def test_a_zone_is_region_and_zone_and_the_older_labels_win() -> None:
    """NL-07."""
    new = {"topology.kubernetes.io/region": "r", "topology.kubernetes.io/zone": "z"}
    old = {"failure-domain.beta.kubernetes.io/region": "R", "failure-domain.beta.kubernetes.io/zone": "Z"}
    assert zone_of({}) == ""
    assert zone_of(new) == "r:\x00:z"
    assert zone_of({**new, **old}) == "R:\x00:Z"
    assert zone_of({"topology.kubernetes.io/zone": "z"}) == ":\x00:z"


@pytest.mark.parametrize(
    ("ready", "not_ready", "state"),
    [
        (0, 1, FULL),
        (1, 0, NORMAL),
        (1, 2, NORMAL),
        (2, 3, PARTIAL),
        (9, 11, PARTIAL),
        (46, 54, NORMAL),
        (0, 0, NORMAL),
    ],
)
def test_the_state_of_a_zone(ready: int, not_ready: int, state: ZoneState) -> None:
    """NL-70."""
    assert state_of(ZoneCount(ready, not_ready), SETTINGS) is state


def test_a_node_may_be_left_out_of_the_counting() -> None:
    """NL-71: by its label, whatever that says."""
    assert is_counted({})
    assert not is_counted({"node.kubernetes.io/exclude-disruption": "false"})


@pytest.mark.parametrize(
    ("count", "rate"), [((5, 0), 0.1), ((20, 31), 0.01), ((20, 30), 0.0), ((0, 51), 0.1), ((0, 5), 0.1)]
)
def test_the_rate_of_a_zone(count: tuple[int, int], rate: float) -> None:
    """NL-72: of a zone beside one that is well."""
    assert judged(Disruption(), {"a": count, "well": (1, 0)}).rates["a"] == rate


def test_all_zones_down_stops_everything() -> None:
    """NL-73."""
    verdict = judged(Disruption({"a": NORMAL, "b": FULL}), {"a": (0, 3), "b": (0, 1)})
    assert verdict.stops
    assert verdict.rates == {"a": 0.0, "b": 0.0}
    assert verdict.disruption == Disruption({"a": FULL, "b": FULL}, is_stopped=True)


def test_one_zone_back_sets_all_rates_again() -> None:
    """NL-74; that every node has its grace again is in the component tests."""
    stopped = Disruption({"a": FULL, "b": FULL}, is_stopped=True)
    verdict = judged(stopped, {"a": (0, 3), "b": (1, 0)})
    assert verdict.resumes
    assert verdict.rates == {"a": 0.1, "b": 0.1}
    assert not verdict.disruption.is_stopped


def test_all_down_before_and_after_changes_nothing() -> None:
    """NL-75."""
    stopped = Disruption({"a": FULL, "b": FULL}, is_stopped=True)
    assert judged(stopped, {"a": (0, 2), "b": (0, 1)}) == ZoneVerdict(stopped)


def test_only_a_zone_that_changed_gets_another_rate() -> None:
    """NL-76."""
    before = Disruption({"a": NORMAL, "b": NORMAL})
    assert judged(before, {"a": (2, 3), "b": (5, 2)}).rates == {"a": 0.0}


def test_a_zone_that_comes_or_goes_while_all_is_down_changes_nothing_for_the_others() -> None:
    """NL-73, safer than upstream: there a stop can be left half, or not be begun."""
    stopped = Disruption({"a": FULL}, is_stopped=True)
    joined = judged(stopped, {"a": (0, 2), "new": (0, 1)})
    assert (joined.rates, joined.stops, joined.disruption.is_stopped) == ({"new": 0.0}, False, True)
    back = judged(stopped, {"a": (0, 2), "new": (1, 0)})
    assert (back.resumes, back.rates) == (True, {"a": 0.1, "new": 0.1})
    left = judged(Disruption({"a": FULL, "b": NORMAL}), {"a": (0, 2)})
    assert (left.stops, left.rates) == (True, {"a": 0.0})


def test_a_zone_that_has_gone_is_shown_as_empty_and_well() -> None:
    """NL-78."""
    metrics = NodeMetrics()
    metrics.set_zones({"a": ZoneCount(1, 3), "b": ZoneCount(0, 2)})
    shown = {
        zone: (count.size, count.percent_ready, count.not_ready) for zone, count in metrics.zones.items()
    }
    assert shown == {"a": (4, 25.0, 3), "b": (2, 0.0, 2)}
    metrics.set_zones({"a": ZoneCount(1, 0)})
    gone = metrics.zones["b"]
    assert (gone.size, gone.percent_ready, gone.not_ready) == (0, 100.0, 0)


ROWS = [
    pytest.param({"": (1, 0)}, {"": (1, 0)}, {"": NORMAL}, {"": NORMAL}, id="NL-80"),
    pytest.param(
        {"a": (0, 1), "b": (0, 1)},
        {"a": (0, 1), "b": (1, 0)},
        {"a": FULL, "b": FULL},
        {"a": FULL, "b": NORMAL},
        id="NL-81",
    ),
    pytest.param({"a": (3, 2)}, {"a": (2, 3)}, {"a": NORMAL}, {"a": PARTIAL}, id="NL-83"),
    pytest.param({"a": (1, 2)}, {"a": (0, 3)}, {"a": NORMAL}, {"a": FULL}, id="NL-84"),
    pytest.param(
        {"a": (0, 2), "b": (2, 0)},
        {"a": (0, 2), "b": (2, 0)},
        {"a": FULL, "b": NORMAL},
        {"a": FULL, "b": NORMAL},
        id="NL-85",
    ),
    pytest.param(
        {"a": (0, 2), "b": (0, 2)},
        {"a": (0, 2), "b": (0, 2)},
        {"a": FULL, "b": FULL},
        {"a": FULL, "b": FULL},
        id="NL-86",
    ),
    # A Ready condition that vanishes counts as not ready; and one that is ready but left out does not help.
    pytest.param({"": (1, 0)}, {"": (0, 1)}, {"": NORMAL}, {"": FULL}, id="NL-87"),
    pytest.param({"": (0, 1)}, {"": (0, 1)}, {"": FULL}, {"": FULL}, id="NL-88"),
]


@pytest.mark.parametrize(("first", "later", "at_first", "at_last"), ROWS)
def test_rows(first: Counts, later: Counts, at_first: object, at_last: object) -> None:
    one = judged(Disruption(), first).disruption
    assert one.states == at_first
    assert judged(one, later).disruption.states == at_last
