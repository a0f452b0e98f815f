from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from podlife.podcontrol import InvalidInputError
from podlife.workloads.deployment.annotations import ROLLBACK_TO
from podlife.workloads.deployment.decision import new_size, next_step, recreate, removable, roll
from podlife.workloads.deployment.rollout import RolloutStep, rollout_of
from podlife.workloads.deployment.views import max_surge, max_unavailable
from podlife.workloads.views import scaled
from tests.unit.workloads.deployment.objects import NOW, deployment, replica_set, rollout, sizes

DONE = {"replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "observedGeneration": 1}
WEB = deployment(3, strategy="Recreate")


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
    assert next_step(rollout(going, None, replica_set("old", 5))) == RolloutStep(reports_progress=False)


def test_paused_deployment_is_scaled_and_cleaned_up_but_not_rolled_out() -> None:
    web = deployment(3, paused=True, revisionHistoryLimit=0)
    step = next_step(rollout(web, None, replica_set("idle", 0), replica_set("old", 5)))
    assert (step.create, sizes(step), step.reports_progress) == (None, {"old": 3}, False)
    assert [each.metadata.name for each in step.remove] == ["idle"]
    asked = {"annotations": {ROLLBACK_TO: "1"}}
    held = deployment(3, paused=True, revisionHistoryLimit=0, metadata=asked)
    assert next_step(rollout(held, None, replica_set("idle", 0), replica_set("old", 3))).remove == ()


def test_deployment_that_is_scaled_is_not_rolled_out_at_the_same_time() -> None:
    step = next_step(rollout(deployment(5, surge=1), None, replica_set("old", 3, marks=(3, 4))))
    assert (step.create, sizes(step), step.reports_progress) == (None, {"old": 5}, False)


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


@pytest.mark.parametrize(
    ("replicas", "surge", "new", "old", "expected"),
    [
        # As far as there is room.
        (10, 0, 0, 10, 0),
        (10, 2, 0, 10, 2),
        (10, 2, 5, 0, 10),
        (10, 2, 10, 2, 10),
        (10, 2, 3, 9, 3),
        (10, 2, 0, 0, 10),
        # There may be less of them than there are.
        (2, 2, 8, 0, 2),
        (0, "25%", 0, 0, 0),
    ],
)
def test_new_one_grows_into_the_room_there_is(
    replicas: int, surge: int | str, new: int, old: int, expected: int
) -> None:
    known = replica_set("new", new), replica_set("old", old)
    assert new_size(rollout(deployment(replicas, surge=surge, unavailable=1), *known)) == expected


def test_first_one_is_created_at_its_size() -> None:
    step = roll(rollout(deployment(10, surge=3), None, replica_set("old", 9)))
    assert step is not None
    assert (step.create, step.scale) == (4, ())


@pytest.mark.parametrize(
    ("unavailable", "old", "old_available", "new", "new_available", "expected"),
    [
        # Where nothing may be missing nor too many, one may be missing after all.
        (0, 10, 10, 0, 0, {"old": 9}),
        (0, 10, 10, 1, 0, {}),
        (0, 10, 10, 1, 1, {"old": 9}),
        (2, 10, 10, 0, 0, {"old": 8}),
        # Pods that nobody has use of go first: they are not missed.
        (2, 10, 8, 0, 0, {"old": 8}),
        (2, 10, 0, 0, 0, {"old": 8}),
        # New ones that do not become available cost no old ones.
        (2, 8, 8, 2, 0, {}),
        (2, 8, 8, 2, 2, {"old": 6}),
        (2, 8, 7, 5, 0, {}),
        (2, 0, 0, 10, 0, {}),
        # It was scaled down before, and still counts those it has given up.
        (2, 8, 10, 3, 3, {"old": 5}),
    ],
)
def test_old_ones_shrink_as_far_as_enough_stay_available(
    unavailable: int, old: int, old_available: int, new: int, new_available: int, expected: dict[str, int]
) -> None:
    # So large a surge that the new one has no wish to grow first.
    made = deployment(10, surge=max(0, old + new - 10), unavailable=unavailable)
    known = (
        replica_set("new", new, available=new_available),
        replica_set("old", old, available=old_available, age_seconds=5),
    )
    step = roll(rollout(made, *known))
    assert {name: size for name, size in sizes(step).items() if name == "old"} == expected


def test_unhealthy_pods_of_all_old_ones_go_before_healthy_ones_and_the_oldest_first() -> None:
    made = deployment(10, surge=3, unavailable=2)
    new = replica_set("new", 3, available=3)
    oldest = replica_set("oldest", 4, available=4, age_seconds=20)
    middle = replica_set("middle", 6, available=3, age_seconds=10)
    step = roll(rollout(made, new, oldest, middle))
    # Thirteen are wanted, eight must be available: three unhealthy ones go, and two of the ten that are healthy.
    assert sizes(step) == {"middle": 3, "oldest": 2}


def test_rollout_that_is_over_has_no_step() -> None:
    assert roll(rollout(deployment(3, surge=1), replica_set("new", 3), replica_set("old", 0))) is None


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(0, ["a", "b", "c"]), (1, ["a", "b"]), (3, []), (10, []), (None, []), (2**31 - 1, [])],
)
def test_oldest_revisions_past_the_limit_go(limit: int | None, expected: list[str]) -> None:
    # The order is that of their revisions, not of their ages: "a" is the youngest.
    old = [
        replica_set(name, 0, revision=revision, age_seconds=age)
        for name, revision, age in (("b", "2", 30), ("c", "10", 20), ("a", "1", 10))
    ]
    found = removable(rollout(deployment(revisionHistoryLimit=limit), replica_set("new", 10), *old))
    assert [each.metadata.name for each in found] == expected


def test_one_that_has_pods_or_may_get_some_counts_and_stays() -> None:
    old = [
        replica_set("wanted", 1, revision="1"),
        replica_set("counted", 0, revision="2", status={"replicas": 1}),
        replica_set("unseen", 0, revision="3", status={"observedGeneration": 0}),
        replica_set("idle", 0, revision="4"),
        replica_set("kept", 0, revision="5"),
    ]
    found = removable(rollout(deployment(revisionHistoryLimit=1), None, *old))
    assert [each.metadata.name for each in found] == ["idle"]


def test_one_that_is_going_already_does_not_count() -> None:
    going = replica_set("going", 0, revision="1")
    going = msgspec.structs.replace(
        going, metadata=msgspec.structs.replace(going.metadata, deletion_timestamp=NOW - timedelta(seconds=1))
    )
    assert removable(rollout(deployment(revisionHistoryLimit=1), None, going, replica_set("b", 0))) == ()


def test_revision_that_cannot_be_read_is_ordered_by_age() -> None:
    old = [
        replica_set("younger", 0, revision="x", age_seconds=10),
        replica_set("older", 0, revision="y", age_seconds=20),
    ]
    found = removable(rollout(deployment(revisionHistoryLimit=1), None, *old))
    assert [each.metadata.name for each in found] == ["older"]


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [
        (10, 2, 3, (2, 3)),
        (10, "25%", "25%", (3, 2)),
        (1, "25%", "25%", (1, 0)),
        (2, "0%", "1%", (0, 1)),
        (1, 0, "1%", (0, 1)),
        (2, "1%", "0%", (1, 0)),
        (3, 0, "100%", (0, 3)),
        # No more may be missing than there are.
        (2, 0, 5, (0, 2)),
        (0, "25%", "25%", (0, 0)),
        (0, 2, 2, (2, 0)),
        (3, "150%", 0, (5, 0)),
        # kube-apiserver sets no bound to a surge; the replicas with it must be a number that it takes.
        (10, 2**31 - 1, 0, (2**31 - 11, 0)),
        (10, "99999999999%", 0, (2**31 - 11, 0)),
    ],
)
def test_percentages_are_of_the_replicas_and_never_both_nothing(
    replicas: int, surge: int | str, unavailable: int | str, expected: tuple[int, int]
) -> None:
    made = deployment(replicas, surge=surge, unavailable=unavailable)
    assert (max_surge(made), max_unavailable(made)) == expected


def test_a_deployment_that_recreates_has_no_bounds() -> None:
    made = deployment(4, surge=2, unavailable=2, strategy="Recreate")
    assert (max_surge(made), max_unavailable(made)) == (0, 0)


@pytest.mark.parametrize("value", ["", "25", "%", "-5%", "2.5%", "٣%", "25% ", "9" * 5000 + "%"])
def test_what_is_no_percentage_is_refused_in_one_line(value: str) -> None:
    with pytest.raises(InvalidInputError, match="neither a number nor a percentage"):
        scaled(value, 10, round_up=True)
