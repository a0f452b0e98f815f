"""What is done next, in which order, and what is waited for."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.workloads.statefulset.plan import (
    BURST,
    CreatePod,
    DeletePod,
    RepairClaims,
    RepairPod,
    StatefulSetPlan,
    make_plan,
)
from tests.unit.workloads.statefulset.objects import (
    DATA,
    NEW,
    OLD,
    SET_UID,
    claim,
    pod,
    reference,
    state,
    stateful_set,
)

PARALLEL: dict[str, Any] = {"podManagementPolicy": "Parallel"}
ON_DELETE: dict[str, Any] = {"updateStrategy": {"type": "OnDelete"}}


def partitioned(partition: int) -> dict[str, Any]:
    return {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}}}


def shown(plan: StatefulSetPlan) -> list[str]:
    """Each step in a word and the name of its pod."""
    words = []
    for stage in plan.stages:
        for step in stage:
            match step:
                case CreatePod(name):
                    words.append(f"create {name}")
                case DeletePod(gone):
                    words.append(f"delete {gone.metadata.name}")
                case RepairPod(name):
                    words.append(f"mend {name}")
                case RepairClaims(name):
                    words.append(f"claims of {name}")
    return words


# Scaling


def test_an_ordered_set_makes_one_pod_and_waits_for_it() -> None:
    of = stateful_set(3)
    assert shown(make_plan(state(of))) == ["create web-0"]
    assert shown(make_plan(state(of, pod(of, 0)))) == ["create web-1"]
    assert shown(make_plan(state(of, pod(of, 0), pod(of, 2)))) == ["create web-1"]


@pytest.mark.parametrize(
    "held",
    [
        {"phase": "Pending"},
        {"phase": "Unknown"},
        {"ready": False},
        {"going": True},
        {"going": True, "phase": "Failed"},
    ],
    ids=str,
)
def test_nothing_is_done_about_the_next_while_one_is_not_there_whole(held: dict[str, Any]) -> None:
    of = stateful_set(3)
    assert shown(make_plan(state(of, pod(of, 0, **held)))) == []


def test_the_next_waits_until_one_has_been_ready_for_long_enough() -> None:
    of = stateful_set(2, minReadySeconds=10)
    assert shown(make_plan(state(of, pod(of, 0, ready_for_seconds=9)))) == []
    assert shown(make_plan(state(of, pod(of, 0, ready_for_seconds=10)))) == ["create web-1"]


def test_a_parallel_set_makes_all_that_are_missing_at_once() -> None:
    of = stateful_set(4, **PARALLEL)
    known = (pod(of, 1, phase="Pending"), pod(of, 3, going=True))
    assert shown(make_plan(state(of, *known))) == ["create web-0", "create web-2"]


@pytest.mark.parametrize(("policy", "steps"), [({}, 1), (PARALLEL, BURST)], ids=["ordered", "parallel"])
def test_a_set_of_two_billion_is_made_bit_by_bit(policy: dict[str, Any], steps: int) -> None:
    of = stateful_set(2_000_000_000, **policy)
    assert len(shown(make_plan(state(of)))) == steps


def test_ordinals_begin_where_the_set_says() -> None:
    of = stateful_set(2, ordinals={"start": 5}, **PARALLEL)
    assert shown(make_plan(state(of))) == ["create web-5", "create web-6"]
    plan = make_plan(state(of, pod(of, 0), pod(of, 5), pod(of, 6), pod(of, 7)))
    assert shown(plan) == ["delete web-7", "delete web-0"]


def test_an_ordered_set_deletes_the_last_and_waits_until_it_is_gone() -> None:
    of = stateful_set(1)
    assert shown(make_plan(state(of, *(pod(of, each) for each in range(4))))) == ["delete web-3"]
    assert shown(make_plan(state(of, pod(of, 0), pod(of, 1), pod(of, 2, going=True)))) == []


def test_a_parallel_set_deletes_all_that_are_too_many_at_once() -> None:
    of = stateful_set(1, **PARALLEL)
    plan = make_plan(state(of, pod(of, 0), pod(of, 1), pod(of, 2, going=True), pod(of, 3, ready=False)))
    assert shown(plan) == ["delete web-3", "delete web-1"]


@pytest.mark.parametrize(
    ("unready", "steps"),
    [
        ((), ["delete web-3"]),
        # The only one that is unwell may go.
        ((3,), ["delete web-3"]),
        ((2,), ["delete web-3"]),
        # One before it is unwell, too.
        ((2, 3), []),
        # None goes while one that stays is not well.
        ((0,), []),
    ],
    ids=str,
)
def test_a_pod_that_is_unwell_waits_for_those_before_it_to_be_well(
    unready: tuple[int, ...], steps: list[str]
) -> None:
    of = stateful_set(1)
    pods = [pod(of, each, ready=each not in unready) for each in range(4)]
    assert shown(make_plan(state(of, *pods))) == steps


def test_pods_that_are_too_many_and_at_their_end_are_not_waited_for() -> None:
    of = stateful_set(1)
    pods = [pod(of, 0), pod(of, 1, phase="Failed"), pod(of, 2, phase="Succeeded")]
    assert shown(make_plan(state(of, *pods))) == ["delete web-2"]
    assert shown(make_plan(state(of, *pods[:2]))) == ["delete web-1"]


# Pods that ended, and pods that lack something


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_pod_that_ended_is_deleted_and_its_successor_comes_when_it_is_gone(phase: str) -> None:
    of = stateful_set(3)
    assert shown(make_plan(state(of, pod(of, 0, phase=phase), pod(of, 1)))) == ["delete web-0"]
    parallel = stateful_set(2, **PARALLEL)
    ended = [pod(parallel, each, phase=phase) for each in range(2)]
    assert shown(make_plan(state(parallel, *ended))) == ["delete web-0", "delete web-1"]


def test_a_pod_that_does_not_say_who_it_is_is_told() -> None:
    of = stateful_set(1, **ON_DELETE)
    (step,) = make_plan(state(of, pod(of, 0, labels={"app": "web"}))).stages[0]
    assert isinstance(step, RepairPod)
    assert step.patch == {
        "metadata": {
            "uid": "uid-of-web-0",
            "labels": {"statefulset.kubernetes.io/pod-name": "web-0", "apps.kubernetes.io/pod-index": "0"},
        }
    }


def test_volumes_that_are_missing_are_asked_for_and_their_claims_made() -> None:
    of = stateful_set(1, volumeClaimTemplates=[DATA], **ON_DELETE)
    (step,) = make_plan(state(of, pod(of, 0, volumes=[]))).stages[0]
    assert isinstance(step, RepairPod)
    assert step.patch is not None
    assert step.patch["spec"]["volumes"][0]["persistentVolumeClaim"] == {"claimName": "data-web-0"}
    assert [each["metadata"]["name"] for each in step.claims.create] == ["data-web-0"]


# Claims


def test_a_pod_is_made_with_its_claims() -> None:
    of = stateful_set(1, volumeClaimTemplates=[DATA])
    (step,) = make_plan(state(of)).stages[0]
    assert isinstance(step, CreatePod)
    assert [each["metadata"]["name"] for each in step.claims.create] == ["data-web-0"]


def test_the_missing_claim_of_a_pod_that_waits_is_made_and_of_one_that_runs_is_not() -> None:
    of = stateful_set(1, volumeClaimTemplates=[DATA])
    assert shown(make_plan(state(of, pod(of, 0, phase="Pending")))) == ["claims of web-0"]
    assert shown(make_plan(state(of, pod(of, 0)))) == []


def test_no_pod_is_made_while_its_claim_goes_with_an_earlier_one() -> None:
    retention = {"whenScaled": "Delete", "whenDeleted": "Retain"}
    of = stateful_set(1, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=retention)
    stale = claim("data-web-0", reference("Pod", "web-0", "uid-of-the-one-before"))
    assert shown(make_plan(state(of, claims=(stale,)))) == []


def test_claims_of_pods_that_are_too_many_are_given_to_them_before_they_go() -> None:
    retention = {"whenScaled": "Delete", "whenDeleted": "Delete"}
    of = stateful_set(1, volumeClaimTemplates=[DATA], persistentVolumeClaimRetentionPolicy=retention)
    owned = tuple(claim(f"data-web-{each}", reference("StatefulSet", "web", SET_UID)) for each in range(3))
    plan = make_plan(state(of, *(pod(of, each) for each in range(3)), claims=owned))
    assert shown(plan) == ["claims of web-2", "claims of web-1", "delete web-2"]


# Updates


def test_the_last_pod_of_another_revision_is_updated_first() -> None:
    of = stateful_set(3)
    plan = make_plan(
        state(of, *(pod(of, each, revision=OLD.name) for each in range(3)), current=OLD, update=NEW)
    )
    assert shown(plan) == ["delete web-2"]
    assert plan.updated is not None
    assert plan.updated.metadata.name == "web-2"


def test_scaling_comes_before_updating() -> None:
    of = stateful_set(2)
    plan = make_plan(
        state(of, *(pod(of, each, revision=OLD.name) for each in range(3)), current=OLD, update=NEW)
    )
    assert shown(plan) == ["delete web-2"]
    assert plan.updated is None


@pytest.mark.parametrize("policy", [{}, PARALLEL], ids=["ordered", "parallel"])
@pytest.mark.parametrize("updated", [{"ready": False}, {"going": True}, {"phase": "Pending"}], ids=str)
def test_an_update_waits_for_the_pod_it_has_made(policy: dict[str, Any], updated: dict[str, Any]) -> None:
    """One by one, whatever the policy: only a feature gate that is closed in 1.36 would allow more."""
    of = stateful_set(3, **policy)
    known = [pod(of, each, revision=OLD.name) for each in range(2)] + [pod(of, 2, **updated)]
    assert shown(make_plan(state(of, *known, current=OLD))) == []


def test_a_parallel_update_waits_for_the_pod_that_is_just_being_made() -> None:
    of = stateful_set(2, **PARALLEL)
    assert shown(make_plan(state(of, pod(of, 0, revision=OLD.name), current=OLD))) == ["create web-1"]


@pytest.mark.parametrize(
    ("partition", "steps"), [(0, ["delete web-2"]), (2, ["delete web-2"]), (3, []), (9, [])]
)
def test_pods_before_the_partition_stay_what_they_are(partition: int, steps: list[str]) -> None:
    of = stateful_set(3, **partitioned(partition))
    known = [pod(of, each, revision=OLD.name) for each in range(3)]
    assert shown(make_plan(state(of, *known, current=OLD))) == steps


def test_the_partition_counts_from_the_start() -> None:
    of = stateful_set(3, ordinals={"start": 10}, **partitioned(2))
    known = [pod(of, each, revision=OLD.name) for each in (10, 11)] + [pod(of, 12)]
    assert shown(make_plan(state(of, *known, current=OLD))) == []


@pytest.mark.parametrize(
    ("ordinal", "spec", "status", "image"),
    [
        (0, partitioned(1), {}, "old"),
        (1, partitioned(1), {}, "new"),
        (0, ON_DELETE, {"currentReplicas": 3}, "new"),
        # No server leaves the partition out; should one, the pods that were not updated yet stay so.
        (1, {"updateStrategy": {"type": "RollingUpdate"}}, {"currentReplicas": 2}, "old"),
        (2, {"updateStrategy": {"type": "RollingUpdate"}}, {"currentReplicas": 2}, "new"),
    ],
)
def test_a_pod_that_is_made_anew_is_of_the_revision_of_its_ordinal(
    ordinal: int, spec: dict[str, Any], status: dict[str, Any], image: str
) -> None:
    of = stateful_set(3, status=status, **spec)
    known = [pod(of, each, revision=OLD.name) for each in range(ordinal)]
    (step,) = make_plan(state(of, *known, current=OLD)).stages[0]
    assert isinstance(step, CreatePod)
    assert step.name == f"web-{ordinal}"
    assert step.pod["spec"]["containers"][0]["image"] == image
    assert step.pod["metadata"]["labels"]["controller-revision-hash"] == f"web-{image}"


def test_nobody_updates_the_pods_of_a_set_that_updates_on_delete() -> None:
    of = stateful_set(2, **ON_DELETE)
    known = [pod(of, each, revision=OLD.name) for each in range(2)]
    assert shown(make_plan(state(of, *known, current=OLD))) == []


def test_a_set_that_is_as_it_should_be_is_left_alone() -> None:
    of = stateful_set(2, volumeClaimTemplates=[DATA])
    known = [pod(of, each) for each in range(2)]
    claims = tuple(claim(f"data-web-{each}") for each in range(2))
    assert shown(make_plan(state(of, *known, claims=claims))) == []


def test_pod_at_its_end_and_of_another_revision_is_deleted_once() -> None:
    of = stateful_set(2, podManagementPolicy="Parallel", updateStrategy={"type": "RollingUpdate"})
    over = pod(of, 1, phase="Failed", revision=OLD.name)
    plan = make_plan(state(of, pod(of, 0, revision=OLD.name), over, current=OLD))
    assert [each.metadata.name for each in plan.deletions()] == ["web-1"]
