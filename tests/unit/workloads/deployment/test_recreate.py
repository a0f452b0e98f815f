from __future__ import annotations

from podlife.workloads.deployment.decision import recreate
from podlife.workloads.deployment.rollout import RolloutStep
from tests.unit.workloads.deployment.objects import deployment, replica_set, rollout, sizes

WEB = deployment(3, strategy="Recreate")


def test_old_ones_are_scaled_to_nothing_first() -> None:
    step = recreate(rollout(WEB, None, replica_set("a", 2), replica_set("b", 0), replica_set("c", 1)))
    assert sizes(step) == {"a": 0, "c": 0}


def test_nothing_happens_while_an_old_pod_is_there_or_counted() -> None:
    assert recreate(rollout(WEB, None, replica_set("a", 0), has_old_pods=True)) == RolloutStep()
    assert recreate(rollout(WEB, None, replica_set("a", 0, status={"replicas": 1}))) == RolloutStep()


def test_new_one_is_created_whole_when_the_old_pods_are_gone() -> None:
    assert recreate(rollout(WEB, None, replica_set("a", 0))) == RolloutStep(create=3)


def test_new_one_that_was_there_before_is_scaled_up() -> None:
    assert sizes(recreate(rollout(WEB, replica_set("new", 0), replica_set("a", 0)))) == {"new": 3}
    assert recreate(rollout(WEB, replica_set("new", 3), replica_set("a", 0))) is None
