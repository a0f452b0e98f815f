from __future__ import annotations

from typing import Any

import pytest

from podlife.podcontrol import InvalidInputError
from podlife.workloads.deployment.annotations import ROLLBACK_TO
from podlife.workloads.deployment.decision import next_step
from podlife.workloads.deployment.rollout import RolloutStep, rollout_of
from tests.unit.workloads.deployment.objects import deployment, replica_set, rollout, sizes

DONE = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "observedGeneration": 1}


def test_new_one_is_known_by_its_template_and_of_several_the_oldest() -> None:
    known = [
        replica_set("younger", 1, age_seconds=5),
        replica_set("older", 1, age_seconds=10),
        replica_set("other", 1, age_seconds=20, image="i:2"),
    ]
    found = rollout_of(deployment(3), known)
    assert found.new is not None
    assert found.new.metadata.name == "older"
    assert [each.metadata.name for each in found.old] == ["other", "younger"]


def test_deployment_that_is_going_is_only_counted() -> None:
    going = deployment(3, metadata={"deletionTimestamp": "2030-01-01T00:00:00Z"})
    assert next_step(rollout(going, None, replica_set("old", 5))) == RolloutStep(tells_progress=False)


def test_paused_deployment_is_scaled_and_cleaned_up_but_not_rolled_out() -> None:
    web = deployment(3, paused=True, revisionHistoryLimit=0)
    step = next_step(rollout(web, None, replica_set("idle", 0), replica_set("old", 5)))
    assert (step.create, sizes(step), step.tells_progress) == (None, {"old": 3}, False)
    assert [each.metadata.name for each in step.remove] == ["idle"]
    asked = {"annotations": {ROLLBACK_TO: "1"}}
    held = deployment(3, paused=True, revisionHistoryLimit=0, metadata=asked)
    assert next_step(rollout(held, None, replica_set("idle", 0), replica_set("old", 3))).remove == ()


def test_deployment_that_is_scaled_is_not_rolled_out_at_the_same_time() -> None:
    step = next_step(rollout(deployment(5, surge=1), None, replica_set("old", 3, marks=(3, 4))))
    assert (step.create, sizes(step), step.tells_progress) == (None, {"old": 5}, False)


def test_recreate_with_pods_of_two_templates_gets_on_though_it_is_scaled() -> None:
    web = deployment(5, strategy="Recreate")
    known = replica_set("new", 2, marks=(3, 3)), replica_set("old", 1, marks=(3, 3))
    assert sizes(next_step(rollout(web, *known))) == {"old": 0}


@pytest.mark.parametrize(("status", "removed"), [(DONE, ["old"]), ({**DONE, "replicas": 4}, [])])
@pytest.mark.parametrize("strategy", ["RollingUpdate", "Recreate"])
def test_history_is_cleaned_up_when_the_rollout_is_known_to_be_done(
    strategy: str, status: dict[str, Any], removed: list[str]
) -> None:
    web = deployment(3, strategy=strategy, surge=1, status=status, revisionHistoryLimit=0)
    step = next_step(rollout(web, replica_set("new", 3, marks=(3, 4)), replica_set("old", 0)))
    assert [each.metadata.name for each in step.remove] == removed


def test_strategy_that_is_none_is_refused_in_one_line() -> None:
    with pytest.raises(InvalidInputError, match="unexpected deployment strategy type: Guess"):
        next_step(rollout(deployment(3, strategy="Guess"), None))
