"""Mark failed and delete: what is sent, and what is made of the answers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from podlife.api.codec import decode_object
from podlife.client import PODS, DeleteOptions
from podlife.podgc import FeatureGates, Outcome, Reason, Settings, planner
from podlife.podgc.removal import marking_patch, remove, status_patch, with_condition
from podlife.podgc.views import Condition, Pod, PodMetadata, PodSpec, PodStatus
from tests.component.podgc.world import GONE_NODE, World, answering, in_world
from tests.conformance.podgc.situations import P, Q, collect, make

NOW = datetime(2030, 1, 1, tzinfo=UTC)
READY = {"type": "Ready", "status": "True"}
SCHEDULED = {"type": "PodScheduled", "status": "True"}


def a_pod(**status: Any) -> Pod:
    metadata = PodMetadata(name="a", namespace="default", uid="myuid", resource_version="7", generation=3)
    return Pod(metadata, PodSpec("node"), PodStatus(**status))


async def read(world: World, name: str) -> Pod:
    return await world.admin.get(PODS, name, "default", view=Pod)


async def remove_now(world: World, pod: Pod, reason: Reason = Reason.ORPHANED) -> Outcome:
    victim = planner.victim_for(Settings(), pod, reason, "because")
    return (await remove(world.client, victim, FeatureGates(), world.clock)).outcome


@pytest.mark.parametrize("phase", ["", "Pending", "Running", "Unknown", "Odd"])
@in_world
async def test_a_pod_that_has_not_ended_is_patched_to_failed_before_it_is_deleted(
    world: World, phase: str
) -> None:
    """GC-90: with the generation that was observed, in the status subresource, as a strategic merge patch."""
    await world.pod("a", phase=phase, finalizers=("example.com/hold",))
    assert await remove_now(world, await read(world, "a")) is Outcome.HELD
    patch, delete = world.faults.requests
    assert (patch.method, patch.path) == ("PATCH", "/api/v1/namespaces/default/pods/a/status")
    assert patch.headers["Content-Type"] == "application/strategic-merge-patch+json"
    assert delete.method == "DELETE"
    status = (await world.get("a"))["status"]
    assert (status["phase"], status["observedGeneration"]) == ("Failed", 1)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@in_world
async def test_a_phase_that_is_final_is_never_rewritten(world: World, phase: str) -> None:
    """GC-91."""
    await world.pod("a", phase=phase, finalizers=("example.com/hold",))
    assert await remove_now(world, await read(world, "a")) is Outcome.HELD
    assert world.patched() == []
    assert (await world.get("a"))["status"]["phase"] == phase


@in_world
async def test_a_pod_that_ended_since_it_was_decided_about_keeps_its_phase(world: World) -> None:
    """GC-91, and better: the patch names the version that was decided on."""
    await world.pod("a", phase="Running")
    decided_on = await read(world, "a")
    await world.plant("a", status={"phase": "Succeeded"})
    assert await remove_now(world, decided_on) is Outcome.CHANGED
    assert (await world.get("a"))["status"]["phase"] == "Succeeded"


@in_world
async def test_another_pod_of_the_same_name_is_not_patched(world: World) -> None:
    """GC-92: the patch carries the UID."""
    await world.pod("a", phase="Running")
    decided_on = await read(world, "a")
    await world.replace("a", phase="Running")
    assert await remove_now(world, decided_on) in (Outcome.REPLACED, Outcome.CHANGED)
    assert (await world.get("a"))["status"]["phase"] == "Running"
    assert not world.faults.sent("DELETE")


@in_world
async def test_the_servers_422_about_the_uid_is_understood(world: World) -> None:
    """GC-92: without the version, kube-apiserver says so with 422 Invalid."""
    await world.pod("a", phase="Running")
    decided_on = await read(world, "a")
    decided_on.metadata.resource_version = ""
    await world.replace("a", phase="Running")
    assert await remove_now(world, decided_on) is Outcome.REPLACED


@in_world
async def test_when_the_patch_fails_the_pod_is_not_deleted(world: World) -> None:
    """GC-93: it counts as one error, and is tried again."""
    await make(world, [P("a", "Running", GONE_NODE)])
    world.faults.put("PATCH", "/pods/a/status$", answering(403))
    collector = await collect(world, seconds=Q + 0.5)
    assert await world.left() == ["a"]
    assert not world.faults.sent("DELETE")
    assert collector.metrics.errors == {("default", Reason.ORPHANED): 1}


@in_world
async def test_when_the_pod_is_gone_before_the_patch_that_is_no_error(world: World) -> None:
    """GC-93, and better: 404 means that somebody else was faster."""
    await world.pod("a", phase="Running")
    decided_on = await read(world, "a")
    await world.admin.delete(PODS, "a", "default", options=DeleteOptions(grace_period_seconds=0))
    assert await remove_now(world, decided_on) is Outcome.GONE
    assert not world.faults.sent("DELETE")


@in_world
async def test_a_delete_has_grace_0_and_names_the_uid_it_means(world: World) -> None:
    """GC-94, and better: upstream names nobody."""
    created = await world.pod("a", phase="Failed")
    assert await remove_now(world, await read(world, "a")) is Outcome.DELETED
    [request] = world.faults.sent("DELETE")
    assert decode_object(request.body) == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": created["metadata"]["uid"]},
    }


@in_world
async def test_a_pod_made_anew_under_its_name_is_not_deleted(world: World) -> None:
    """GC-94."""
    await world.pod("a", phase="Failed")
    decided_on = await read(world, "a")
    await world.replace("a", phase="Failed")
    assert await remove_now(world, decided_on) is Outcome.REPLACED
    assert await world.left() == ["a"]


def test_the_patch_carries_only_what_is_changed() -> None:
    """GC-95: and, besides, whom it means and in which state."""
    assert marking_patch(a_pod(phase="Running"), Reason.UNSCHEDULED, FeatureGates(), NOW) == {
        "metadata": {"uid": "myuid", "resourceVersion": "7"},
        "status": {"phase": "Failed", "observedGeneration": 3},
    }


def test_a_patch_that_changes_nothing_is_not_made() -> None:
    """GC-96."""
    assert status_patch("myuid", {"conditions": [READY]}, {"conditions": [READY]}) is None
    settled = a_pod(phase="Failed", observed_generation=3)
    assert marking_patch(settled, Reason.UNSCHEDULED, FeatureGates(), NOW) is None


def test_a_changed_message_is_all_there_is() -> None:
    """GC-97."""
    old = {"phase": "Running"}
    assert status_patch("myuid", old, {**old, "message": "random message"}) == {
        "metadata": {"uid": "myuid"},
        "status": {"message": "random message"},
    }


def test_a_flipped_condition_comes_with_its_type_and_the_order_of_all() -> None:
    """GC-98."""
    new = {"conditions": [{"type": "Ready", "status": "False"}, SCHEDULED]}
    assert status_patch("myuid", {"conditions": [READY, SCHEDULED]}, new) == {
        "metadata": {"uid": "myuid"},
        "status": {
            "$setElementOrder/conditions": [{"type": "Ready"}, {"type": "PodScheduled"}],
            "conditions": [{"type": "Ready", "status": "False"}],
        },
    }


def test_a_new_list_is_all_there_is() -> None:
    """GC-99."""
    statuses = [{"name": "init", "ready": True}]
    assert status_patch("myuid", {}, {"initContainerStatuses": statuses}) == {
        "metadata": {"uid": "myuid"},
        "status": {"initContainerStatuses": statuses},
    }


def test_a_condition_of_a_new_type_is_appended() -> None:
    """GC-100."""
    assert with_condition([READY], SCHEDULED) == [READY, SCHEDULED]


@pytest.mark.parametrize(("before", "kept"), [("True", True), ("False", False)])
def test_a_known_condition_is_replaced_and_keeps_its_time_while_its_status_stays(
    before: str, kept: bool
) -> None:
    """GC-100."""
    known = {"type": "Ready", "status": before, "lastTransitionTime": "old", "message": "m"}
    new = {"type": "Ready", "status": "True", "lastTransitionTime": "new"}
    [_, result] = with_condition([SCHEDULED, known], new)
    assert result == {"type": "Ready", "status": "True", "lastTransitionTime": "old" if kept else "new"}


@in_world
async def test_a_disruption_that_was_told_before_keeps_its_time_and_its_neighbours(world: World) -> None:
    """GC-100: on the server."""
    told = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "Other",
        "lastTransitionTime": "2029-01-01T00:00:00Z",
    }
    await world.pod(
        "a", node=GONE_NODE, conditions=[READY, told, SCHEDULED], finalizers=("example.com/hold",)
    )
    assert await remove_now(world, await read(world, "a")) is Outcome.HELD
    conditions = {each["type"]: each for each in (await world.get("a"))["status"]["conditions"]}
    assert set(conditions) == {"Ready", "DisruptionTarget", "PodScheduled"}
    assert conditions["DisruptionTarget"]["reason"] == "DeletionByPodGC"
    assert conditions["DisruptionTarget"]["lastTransitionTime"] == "2029-01-01T00:00:00Z"


def test_of_the_conditions_only_the_collectors_own_is_kept_in_memory() -> None:
    own = Condition(type="DisruptionTarget", status="True")
    status = a_pod(conditions=(Condition("Ready"), own)).status
    assert (status.conditions, status.condition_types) == ((own,), ("Ready", "DisruptionTarget"))


@in_world
async def test_a_pod_at_grace_0_that_is_held_and_runs_on_is_marked_and_not_deleted_again(
    world: World,
) -> None:
    """GC-90: whoever holds it may be waiting for the phase, as the job controller does."""
    await make(world, [P("a", "Running", GONE_NODE, finalizers=("example.com/hold",))])
    await world.admin.delete(PODS, "a", "default", options=DeleteOptions(grace_period_seconds=0))

    await collect(world, seconds=5 * Q)
    assert (await world.get("a"))["status"]["phase"] == "Failed"
    assert len(world.faults.sent("PATCH", "/pods/a")) == 1
    assert not world.faults.sent("DELETE")
