"""Rolling updates played through with ReplicaSets that lag behind: what must hold at every moment, and that it ends."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podlife.workloads.deployment.decision import next_step
from podlife.workloads.deployment.rollout import rollout_of
from podlife.workloads.deployment.views import max_surge, max_unavailable
from podlife.workloads.replicaset.views import ReplicaSet
from tests.unit.workloads.deployment.objects import deployment, replica_set


@dataclass
class Group:
    """A ReplicaSet as it is, and as it was last counted."""

    name: str
    image: str
    wanted: int
    marks: tuple[int, int]
    available: int = 0
    waiting: int = 0
    counted: int = 0
    counted_available: int = 0

    def reconcile(self) -> None:
        """Missing pods are made; of those too many, the ones that are not available go first."""
        surplus = self.available + self.waiting - self.wanted
        self.waiting += max(0, -surplus)
        gone = min(self.waiting, max(0, surplus))
        self.waiting -= gone
        self.available -= max(0, surplus) - gone

    def count(self) -> None:
        self.counted, self.counted_available = self.available + self.waiting, self.available

    def become_ready(self) -> None:
        if self.waiting:
            self.waiting -= 1
            self.available += 1

    def become_all_ready(self) -> None:
        self.available, self.waiting = self.available + self.waiting, 0

    def seen(self, age_seconds: int) -> ReplicaSet:
        return replica_set(
            self.name,
            self.wanted,
            available=self.counted_available,
            image=self.image,
            marks=self.marks,
            age_seconds=age_seconds,
            status={"replicas": self.counted},
        )


class Simulation:
    def __init__(self, replicas: int, surge: int | str, unavailable: int | str, strategy: str) -> None:
        self.web = deployment(replicas, surge=surge, unavailable=unavailable, strategy=strategy)
        self.marks = (replicas, replicas + max_surge(self.web))
        self.groups = [Group("old", "i:0", replicas, self.marks, available=replicas)]
        self.groups[0].count()

    def decide(self) -> bool:
        """Whether there was anything to do."""
        known = [each.seen(100 - index) for index, each in enumerate(self.groups)]
        has_old_pods = any(each.available + each.waiting for each in self.groups if each.image != "i:1")
        rollout = rollout_of(self.web, known, has_old_pods=has_old_pods)
        step = next_step(rollout)
        by_name = {each.name: each for each in self.groups}
        for scale in step.scale:
            by_name[scale.replica_set.metadata.name].wanted = scale.replicas
        if step.create is not None:
            self.groups.append(Group("new", "i:1", step.create, self.marks))
        return bool(step.scale) or step.create is not None

    def check_bounds(self) -> None:
        replicas = self.web.spec.replicas
        available = sum(each.available for each in self.groups)
        assert available >= replicas - max_unavailable(self.web), "too many are missing"
        wanted = sum(each.wanted for each in self.groups)
        assert wanted <= replicas + max_surge(self.web), "there are too many"

    def play(self, moves: list[tuple[str, int]], *, bounded: bool) -> None:
        for move, index in moves:
            group = self.groups[index % len(self.groups)]
            if move == "decide":
                self.decide()
            else:
                getattr(group, move)()
            if bounded:
                self.check_bounds()

    def finish(self, *, bounded: bool) -> None:
        moves = [(move, index) for move in ("reconcile", "become_ready", "count") for index in (0, 1)]
        for _ in range(20 * self.web.spec.replicas + 20):
            was_decided = self.decide()
            before = repr(self.groups)
            self.play(moves, bounded=bounded)
            if not was_decided and repr(self.groups) == before:
                return
        pytest.fail("it never ends")


MOVES = st.lists(
    st.tuples(
        st.sampled_from(["decide", "decide", "reconcile", "count", "become_ready", "become_all_ready"]),
        st.integers(0, 1),
    ),
    max_size=60,
)
LIMITS = st.one_of(st.integers(0, 4), st.sampled_from(["0%", "10%", "25%", "50%", "100%"]))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 12), LIMITS, LIMITS, MOVES)
def test_rolling_update_keeps_its_bounds_at_every_moment_and_ends(
    replicas: int, surge: int | str, unavailable: int | str, moves: list[tuple[str, int]]
) -> None:
    played = Simulation(replicas, surge, unavailable, "RollingUpdate")
    played.play(moves, bounded=True)
    played.finish(bounded=True)
    sizes = {each.image: (each.wanted, each.available) for each in played.groups}
    assert sizes == {"i:0": (0, 0), "i:1": (replicas, replicas)}


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 6), MOVES)
def test_recreate_never_has_pods_of_both_templates_and_ends(
    replicas: int, moves: list[tuple[str, int]]
) -> None:
    played = Simulation(replicas, 0, 0, "Recreate")
    for move in moves:
        played.play([move], bounded=False)
        with_pods = [each.image for each in played.groups if each.available + each.waiting]
        assert len(with_pods) <= 1, with_pods
    played.finish(bounded=False)
    assert {each.image: each.available for each in played.groups} == {"i:0": 0, "i:1": replicas}
