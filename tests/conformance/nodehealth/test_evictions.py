"""TE-05 to TE-15, TE-40, TE-52 and TE-53: what is set, kept and cancelled, as pure decisions."""

from __future__ import annotations

from podlife.nodehealth.evictions import EvictionOutcome, Evictions
from podlife.nodehealth.views import MonitoredNodeSpec
from tests.conformance.nodehealth.objects import node, pod, taint, toleration


def tainted(*keys: str) -> Evictions:
    evictions = Evictions()
    set_taints(evictions, *keys)
    return evictions


def set_taints(evictions: Evictions, *keys: str) -> None:
    seen = node("n1")
    seen.spec = MonitoredNodeSpec(taints=tuple(taint(key) for key in keys))
    evictions.set_taints(seen)


def test_not_borne_it_goes_at_once_whatever_was_set() -> None:
    """TE-05."""
    evictions = tainted("a")
    assert evictions.evaluate(pod("web", "n1", toleration("a", 100)), 0) is EvictionOutcome.SET
    assert evictions.evaluate(pod("web", "n1"), 5) is EvictionOutcome.SOONER
    assert [each.uid for each in evictions.take_due(5)] == ["uid-web"]
    assert evictions.evaluate(pod("other", "n1"), 5) is EvictionOutcome.NOW
    assert evictions.next_due == 5


def test_borne_for_ever_nothing_is_set_any_more() -> None:
    """TE-06."""
    evictions = tainted("a")
    evictions.evaluate(pod("web", "n1", toleration("a", 100)), 0)
    assert evictions.evaluate(pod("web", "n1", toleration("a")), 5) is EvictionOutcome.CANCELLED
    assert evictions.take_due(1000) == []
    assert evictions.evaluate(pod("web", "n1", toleration("a")), 5) is EvictionOutcome.UNCHANGED


def test_borne_for_a_time_it_is_set_from_now() -> None:
    """TE-07, and TE-10: from when both were first seen; what the taint says of itself does not matter."""
    evictions = tainted("a")
    assert evictions.evaluate(pod("web", "n1", toleration("a", 100)), 7) is EvictionOutcome.SET
    assert evictions.waiting == {"uid-web": 107}
    assert evictions.take_due(106.9) == []
    [due] = evictions.take_due(107)
    assert (due.key, due.node, due.due_at) == ("default/web", "n1", 107)


def test_what_is_set_stays_whether_longer_or_shorter() -> None:
    """TE-08 and TE-09: also with another taint that is borne for less."""
    evictions = tainted("a")
    evictions.evaluate(pod("web", "n1", toleration("a", 100)), 0)
    for seconds in (1000, 1):
        assert evictions.evaluate(pod("web", "n1", toleration("a", seconds)), 5) is EvictionOutcome.UNCHANGED
    set_taints(evictions, "a", "b")
    both = pod("web", "n1", toleration("a", 100), toleration("b", 1))
    assert evictions.evaluate(both, 10) is EvictionOutcome.UNCHANGED
    assert evictions.waiting == {"uid-web": 100}


def test_a_node_without_taints_means_nothing_for_its_pods() -> None:
    """TE-11: that what was set for them is cancelled is in the rows."""
    evictions = tainted("a")
    evictions.evaluate(pod("web", "n1", toleration("a", 100)), 0)
    set_taints(evictions)
    assert evictions.evaluate(pod("new", "n1"), 1) is EvictionOutcome.UNCHANGED
    assert evictions.cancel("uid-web")
    assert not evictions.cancel("uid-web")
    assert evictions.next_due == float("inf")


def test_a_node_that_is_gone_is_forgotten_and_what_was_set_stays() -> None:
    """TE-12."""
    evictions = tainted("a")
    evictions.evaluate(pod("web", "n1", toleration("a", 100)), 0)
    evictions.forget_node("n1")
    assert evictions.evaluate(pod("new", "n1"), 1) is EvictionOutcome.UNCHANGED
    assert [each.key for each in evictions.take_due(100)] == ["default/web"]


def test_of_one_whose_time_has_come_nobody_is_told_when_it_is_cancelled() -> None:
    """TE-18 and TE-53: and it does not go, if it is not gone already; upstream's goes on, and a second may begin."""
    evictions = tainted("a")
    evictions.evaluate(pod("web", "n1"), 0)
    [due] = evictions.take_due(0)
    assert evictions.evaluate(pod("web", "n1"), 1) is EvictionOutcome.NOW
    assert evictions.take_due(1) == [], "one at a time"
    assert evictions.due("uid-web") is due
    assert not evictions.cancel("uid-web")
    assert evictions.due("uid-web") is None


def test_a_pod_made_anew_inherits_nothing() -> None:
    """TE-52, otherwise than upstream: what is set is set for the pod, not for its name."""
    evictions = tainted("a")
    evictions.evaluate(pod("web", "n1", toleration("a", 100)), 0)
    again = pod("web", "n1", toleration("a", 100), uid="another")
    assert evictions.evaluate(again, 50) is EvictionOutcome.SET
    assert evictions.waiting == {"uid-web": 100, "another": 150}


def test_one_taint_for_ever_and_one_for_a_time() -> None:
    """TE-40: it is set while both are there, and only then."""
    evictions = tainted()
    bears = pod("web", "n1", toleration("a"), toleration("b", 60))
    assert evictions.evaluate(bears, 0) is EvictionOutcome.UNCHANGED
    set_taints(evictions, "a")
    assert evictions.evaluate(bears, 1) is EvictionOutcome.UNCHANGED
    set_taints(evictions, "a", "b")
    assert evictions.evaluate(bears, 2) is EvictionOutcome.SET
    set_taints(evictions, "a")
    assert evictions.evaluate(bears, 3) is EvictionOutcome.CANCELLED
    assert (evictions.waiting, evictions.take_due(1000)) == ({}, [])


def test_one_that_is_due_twice_comes_once() -> None:
    """TE-50: five at once, and five that are added twice for later."""
    evictions = tainted("a")
    for _ in range(2):
        for number in range(5):
            evictions.evaluate(pod(f"now{number}", "n1"), 0)
            evictions.evaluate(pod(f"later{number}", "n1", toleration("a", 10)), 0)
    assert [each.name for each in evictions.take_due(0)] == [f"now{number}" for number in range(5)]
    assert [each.name for each in evictions.take_due(10)] == [f"later{number}" for number in range(5)]
    assert evictions.take_due(100) == []
