"""Evictions against a plain model, and zones against what must hold, with whatever hypothesis thinks of."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from podlife.nodehealth.evictions import EvictionOutcome, Evictions
from podlife.nodehealth.rate_limited_timed_queue import RateLimitedTimedQueue
from podlife.nodehealth.settings import NodeHealthSettings
from podlife.nodehealth.taints import seconds_to_bear
from podlife.nodehealth.views import MonitoredNodeSpec, MonitoredPod, NodeTaint, Toleration
from podlife.nodehealth.zones import Disruption, ZoneCount, ZoneState, judge
from tests.conformance.nodehealth.objects import node, pod, taint, toleration

KEYS = st.sampled_from("ab")
TOLERATIONS = st.lists(
    st.builds(toleration, st.sampled_from(["a", "b", ""]), st.sampled_from([None, -1, 0, 1, 5, 50])),
    max_size=3,
)
UIDS = st.sampled_from(["p1", "p2", "p3"])


@dataclass
class Model:
    """Each pod by itself, in the words of the rules."""

    taints: tuple[NodeTaint, ...] = ()
    pods: dict[str, tuple[Toleration, ...]] = field(default_factory=dict)
    set_for: dict[str, float] = field(default_factory=dict)
    going: set[str] = field(default_factory=set)
    # Evicted, and not gone yet: a taint that is written anew does not evict them twice.
    evicted: set[str] = field(default_factory=set)

    def look(self, uid: str, now: float) -> None:
        seconds = seconds_to_bear(self.taints, self.pods[uid])
        if not self.taints:
            self.forget(uid)
        elif seconds is None:
            self.set_for.pop(uid, None)
            if uid not in self.going:
                self.set_for[uid] = now
        elif seconds == math.inf:
            self.forget(uid)
        elif uid not in self.set_for and uid not in self.going | self.evicted:
            self.set_for[uid] = now + seconds

    def forget(self, uid: str) -> None:
        self.set_for.pop(uid, None)
        self.going.discard(uid)
        self.evicted.discard(uid)


class EvictionsMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.evictions, self.model, self.now = Evictions(), Model(), 0.0

    def _pod(self, uid: str) -> MonitoredPod:
        return pod(uid, "n1", *self.model.pods[uid], uid=uid)

    @rule(uid=UIDS, tolerations=TOLERATIONS)
    def pod_comes_or_changes(self, uid: str, tolerations: list[Toleration]) -> None:
        self.model.pods[uid] = tuple(tolerations)
        if self.model.taints:
            self.evictions.evaluate(self._pod(uid), self.now)
            self.model.look(uid, self.now)

    @rule(uid=UIDS)
    def pod_goes(self, uid: str) -> None:
        if self.model.pods.pop(uid, None) is not None:
            self.evictions.cancel(uid)
            self.model.forget(uid)

    @rule(keys=st.sets(KEYS))
    def taints_change(self, keys: set[str]) -> None:
        self.model.taints = tuple(taint(key) for key in sorted(keys))
        seen = node("n1")
        seen.spec = MonitoredNodeSpec(taints=self.model.taints)
        is_tainted = self.evictions.set_taints(seen)
        for uid in self.model.pods:
            if is_tainted:
                self.evictions.evaluate(self._pod(uid), self.now)
            else:
                self.evictions.cancel(uid)
            self.model.look(uid, self.now)

    @rule(seconds=st.sampled_from([0.0, 1.0, 10.0, 100.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        due = {uid for uid, at in self.model.set_for.items() if at <= self.now}
        assert {each.uid for each in self.evictions.take_due(self.now)} == due
        for uid in due:
            del self.model.set_for[uid]
        self.model.going |= due

    @rule(uid=UIDS)
    def eviction_is_done(self, uid: str) -> None:
        self.evictions.finish(uid)
        self.model.evicted |= self.model.going & {uid}
        self.model.going.discard(uid)

    @invariant()
    def what_is_set_is_what_the_rules_say(self) -> None:
        assert self.evictions.waiting == self.model.set_for
        assert {uid for uid in ("p1", "p2", "p3") if self.evictions.due(uid)} == self.model.going
        assert self.evictions.next_due == min(self.model.set_for.values(), default=math.inf)


EvictionsMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
TestEvictions = EvictionsMachine.TestCase


def test_a_pod_that_was_evicted_does_not_go_again_for_a_taint_that_is_written_anew() -> None:
    """Upstream writes a taint again, with another time, when its cache is behind; nobody is told twice."""
    evictions, going = Evictions(), pod("p1", "n1", toleration("a", 5), uid="p1")
    tainted = node("n1")
    for time_added in ("2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z"):
        tainted.spec = MonitoredNodeSpec(taints=(NodeTaint("a", effect="NoExecute", time_added=time_added),))
        evictions.set_taints(tainted)
        evictions.evaluate(going, 0.0)
        for eviction in evictions.take_due(5.0):
            assert time_added == "2026-01-01T00:00:00Z"
            evictions.finish(eviction.uid)
    assert evictions.waiting == {}
    # When the taint was away it is another one.
    evictions.cancel("p1")
    assert evictions.evaluate(going, 10.0) is EvictionOutcome.SET


COUNTS = st.dictionaries(
    st.sampled_from(["", "a", "b", "c"]),
    st.tuples(st.integers(0, 60), st.integers(0, 60)).filter(any).map(lambda each: ZoneCount(*each)),
    max_size=4,
)


@given(st.lists(COUNTS, max_size=6))
@settings(max_examples=100, deadline=None)
def test_the_rates_in_force_fit_the_states(passes: list[dict[str, ZoneCount]]) -> None:
    """NL-70 to NL-76, whatever comes after whatever."""
    chosen, rates, disruption = NodeHealthSettings(), dict[str, float](), Disruption()
    for counts in passes:
        verdict = judge(disruption, counts, chosen)
        assert verdict.stops <= (not disruption.is_stopped)
        assert verdict.resumes <= disruption.is_stopped
        disruption = verdict.disruption
        rates = {**rates, **verdict.rates}
        rates = {zone: rate for zone, rate in rates.items() if zone in counts}
        assert rates.keys() == counts.keys()
        if counts:
            assert disruption.is_stopped == all(not count.ready for count in counts.values())
        for zone in counts:
            # A zone that stays partly down keeps the rate of when it became so, however large it has become (NL-76).
            allowed = {ZoneState.PARTIAL: {0.0, 0.01}}.get(disruption.states[zone], {0.1})
            assert rates[zone] in ({0.0} if disruption.is_stopped else allowed)


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "take", "remove", "retry"]), st.sampled_from("abc")), max_size=60
    )
)
@settings(max_examples=100, deadline=None)
def test_the_queue_gives_no_more_turns_than_its_rate(steps: list[tuple[str, str]]) -> None:
    """NL-02 and RQ-01: and nobody two turns without having been added or tried again."""
    queue, now, taken, due = RateLimitedTimedQueue(0.1), 0.0, 0, dict[str, bool]()
    for what, name in steps:
        now += 1.0
        match what:
            case "add":
                assert queue.add(name, now) == (name not in due)
                due.setdefault(name, True)
            case "remove":
                assert queue.remove(name) == (due.pop(name, None) is not None)
            case "retry":
                queue.retry(name, now)
                if name in due:
                    due[name] = True
            case _:
                got = queue.take(now)
                if got is not None:
                    assert due[got]
                    due[got] = False
                    taken += 1
        assert len(queue) == sum(due.values())
        assert taken <= 1 + now * 0.1
