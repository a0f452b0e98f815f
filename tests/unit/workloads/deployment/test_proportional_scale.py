from __future__ import annotations

import pytest

from podlife.workloads.deployment.annotations import DESIRED_REPLICAS, MAX_REPLICAS
from podlife.workloads.deployment.proportional_scale import is_being_scaled, scale
from podlife.workloads.deployment.rollout import Scale
from tests.unit.workloads.deployment.objects import deployment, replica_set, rollout

Sizes = list[int]


def scaled(made: tuple[Scale, ...]) -> dict[str, int]:
    return {each.replica_set.metadata.name: each.replicas for each in made}


@pytest.mark.parametrize(
    ("before", "after", "new", "old", "expected"),
    [
        # One ReplicaSet alone: it is as large as the Deployment.
        (10, 12, 10, [], {"new": 12}),
        (10, 5, 10, [], {"new": 5}),
        (10, 20, 0, [10], {"old0": 20}),
        # None has pods: the newest.
        (0, 6, 0, [0], {"new": 6}),
        # In proportion; of the same size the newest grows first, and the oldest shrinks first.
        (10, 15, 5, [5], {"new": 8, "old0": 7}),
        (10, 5, 5, [5], {"new": 3, "old0": 2}),
        (10, 20, 5, [3, 2], {"new": 10, "old0": 6, "old1": 4}),
        (10, 12, 5, [3, 2], {"new": 6, "old0": 4}),
        (10, 5, 5, [3, 2], {"new": 2, "old0": 2, "old1": 1}),
        (10, 0, 5, [3, 2], {"new": 0, "old0": 0, "old1": 0}),
    ],
)
def test_everybody_gets_or_gives_a_share(
    before: int, after: int, new: int, old: Sizes, expected: dict[str, int]
) -> None:
    marks = (before, before)
    olds = [
        replica_set(f"old{index}", size, available=0, age_seconds=10 * (len(old) - index), marks=marks)
        for index, size in enumerate(old)
    ]
    found = scale(rollout(deployment(after), replica_set("new", new, available=0, marks=marks), *olds))
    # Who keeps its size is written too, to be marked with what it was scaled for.
    changed = {name: size for name, size in scaled(found).items() if expected.get(name, -1) == size}
    assert changed == expected
    total = sum([new, *old]) + sum(each.replicas - each.replica_set.spec.replicas for each in found)
    assert total == after


def test_surge_is_shared_out_too() -> None:
    marks = (10, 13)
    made = deployment(15, surge=3, unavailable=2)
    known = replica_set("new", 5, available=0, marks=marks), replica_set("old", 8, age_seconds=9, marks=marks)
    assert scaled(scale(rollout(made, *known))) == {"old": 11, "new": 7}


def test_nothing_is_scaled_where_nothing_is() -> None:
    assert scale(rollout(deployment(3), None)) == ()


def test_new_one_that_is_all_that_is_wanted_takes_over_from_those_adopted() -> None:
    full = replica_set("new", 10, marks=(10, 10))
    assert scaled(scale(rollout(deployment(10), full, replica_set("old", 3, marks=(10, 10))))) == {"old": 0}


def test_share_without_a_mark_is_reckoned_by_what_there_is() -> None:
    made = deployment(20, status={"replicas": 10})
    known = replica_set("new", 5, available=0), replica_set("old", 5, age_seconds=9)
    assert scaled(scale(rollout(made, *known))) == {"new": 10, "old": 10}


def test_share_of_what_never_was_there_goes_to_the_largest() -> None:
    known = replica_set("new", 5, available=0), replica_set("old", 4, age_seconds=9)
    assert scaled(scale(rollout(deployment(20), *known))) == {"new": 16, "old": 4}


def test_recreate_has_no_shares() -> None:
    made = deployment(20, strategy="Recreate")
    known = replica_set("new", 5, available=0, marks=(10, 10)), replica_set("old", 5, marks=(10, 10))
    assert scale(rollout(made, *known)) == ()


def test_right_size_with_a_wrong_mark_is_marked_again() -> None:
    """Else it would look as if it were being scaled for ever, and nothing would be rolled out any more."""
    made = rollout(deployment(3), replica_set("new", 3, marks=(9, 9)))
    assert is_being_scaled(made)
    assert scaled(scale(made)) == {"new": 3}
    done = rollout(deployment(3), replica_set("new", 3, marks=(3, 3)))
    assert not is_being_scaled(done)
    assert scale(done) == ()


@pytest.mark.parametrize(
    ("annotations", "replicas", "expected"),
    [
        ({DESIRED_REPLICAS: "3"}, 3, False),
        ({DESIRED_REPLICAS: "4"}, 3, True),
        # Those without pods do not count, nor those who do not say.
        ({DESIRED_REPLICAS: "4"}, 0, False),
        ({DESIRED_REPLICAS: "x"}, 3, False),
        ({MAX_REPLICAS: "9"}, 3, False),
    ],
)
def test_deployment_is_being_scaled_when_one_that_has_pods_was_scaled_for_another_size(
    annotations: dict[str, str], replicas: int, expected: bool
) -> None:
    old = replica_set("old", replicas, annotations=annotations)
    assert is_being_scaled(rollout(deployment(3), None, old)) is expected
