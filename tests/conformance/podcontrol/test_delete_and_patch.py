"""Pods deleted and patched for an owner."""

from __future__ import annotations

import pytest

from podlife.client import PODS
from podlife.errors import ApiError, ConflictError, ForbiddenError, NotFoundError
from podlife.podcontrol import (
    ControllerRef,
    InvalidInputError,
    InvalidOwnerError,
    PodDeleteError,
    PodReplacedError,
)
from podlife.testing import FakePodControl
from tests.conformance.podcontrol.world import REF, TEMPLATE, World, replica_set
from tests.kit.embedded import refusal


async def test_pod_is_deleted_with_its_own_grace_and_by_its_uid(world: World) -> None:
    """PC-30 (but the UID, which is ours), PC-33, PC-35."""
    pod = await world.create_pod()
    uid = pod["metadata"]["uid"]
    await world.control.delete_pod("default", "p", replica_set(), uid=uid)
    method, path, body = world.sent[0]
    assert (method, path) == ("DELETE", "/api/v1/namespaces/default/pods/p")
    assert body == {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}}
    assert await world.pods() == []
    assert world.events == [("Normal", "SuccessfulDelete", "Deleted pod: p")]
    assert world.written == []


async def test_delete_by_name_alone_has_to_be_asked_for(world: World) -> None:
    """PC-30."""
    await world.create_pod()
    with pytest.raises(InvalidInputError, match="no UID of the pod default/p provided"):
        await world.control.delete_pod("default", "p", replica_set(), uid="")
    assert world.sent == []
    await world.control.delete_pod("default", "p", replica_set(), uid=None)
    assert world.sent[0][2] == {"kind": "DeleteOptions", "apiVersion": "v1"}
    assert await world.pods() == []


async def test_pod_that_is_gone_is_not_found_and_no_event(world: World) -> None:
    """PC-31."""
    with pytest.raises(NotFoundError) as caught:
        await world.control.delete_pod("default", "p", replica_set(), uid="1")
    assert caught.value.code == 404
    assert world.events == []


async def test_pod_that_was_replaced_lives_and_no_event(world: World) -> None:
    """PC-30, PC-31: to the caller the pod that was meant is gone, whoever has its name now."""
    pod = await world.create_pod()
    with pytest.raises(PodReplacedError, match="pod default/p with UID old is gone") as caught:
        await world.control.delete_pod("default", "p", replica_set(), uid="old")
    assert isinstance(caught.value, NotFoundError)
    assert caught.value.code == 409
    assert [each["metadata"]["uid"] for each in await world.pods()] == [pod["metadata"]["uid"]]
    assert world.events == []


@pytest.mark.parametrize(
    ("code", "reason", "type_"), [(403, "Forbidden", ForbiddenError), (500, "", ApiError)]
)
async def test_delete_that_failed_is_told_and_raised_with_its_cause(
    world: World, code: int, reason: str, type_: type[ApiError]
) -> None:
    """PC-32 (but the type of the cause, which is kept)."""
    world.answers["DELETE"] = refusal(code, reason)
    with pytest.raises(PodDeleteError) as caught:
        await world.control.delete_pod("default", "p", replica_set(), uid="1")
    assert str(caught.value) == f"unable to delete pods: no: {code}"
    assert isinstance(caught.value.cause, type_)
    assert world.events == [("Warning", "FailedDelete", f"Error deleting: no: {code}")]


async def test_conflict_of_a_delete_without_a_uid_is_a_failure(world: World) -> None:
    """PC-32."""
    world.answers["DELETE"] = refusal(409, "Conflict")
    with pytest.raises(PodDeleteError) as caught:
        await world.control.delete_pod("default", "p", replica_set(), uid=None)
    assert isinstance(caught.value.cause, ConflictError)
    assert len(world.events) == 1


async def test_delete_for_a_parent_without_metadata_is_refused(world: World) -> None:
    """PC-34."""
    with pytest.raises(InvalidOwnerError, match=r"^object does not have ObjectMeta, "):
        await world.control.delete_pod("default", "p", {}, uid="1")
    assert world.sent == []


async def test_patch_is_a_strategic_merge_of_the_pod_itself(world: World) -> None:
    """PC-40, PC-42."""
    other = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "2"}
    await world.create_pod(ownerReferences=[other, REF.to_object()])
    patch = {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "2"}]}}
    patched = await world.control.patch_pod("default", "p", patch)
    assert world.sent == [("PATCH", "/api/v1/namespaces/default/pods/p", patch)]
    assert patched["metadata"]["ownerReferences"] == [REF.to_object()]
    assert (await world.pods())[0]["metadata"]["ownerReferences"] == [REF.to_object()]
    assert world.written == [("p", REF)]
    assert world.events == []


async def test_patched_pod_without_a_controller_is_told_without_one(world: World) -> None:
    """PC-42."""
    await world.create_pod()
    await world.control.patch_pod("default", "p", {"metadata": {"labels": {"new": "1"}}})
    assert world.written == [("p", None)]


async def test_patch_of_a_pod_that_is_not_there_is_not_found(world: World) -> None:
    """PC-40, PC-41."""
    with pytest.raises(NotFoundError):
        await world.control.patch_pod("default", "p", {"metadata": {"labels": {"new": "1"}}})
    assert (world.written, world.events) == ([], [])


async def test_patch_of_a_pod_that_was_replaced_changes_nothing(world: World) -> None:
    """PC-41."""
    await world.create_pod()
    with pytest.raises(
        PodReplacedError, match="pod default/p with UID old is gone, another one has its name"
    ):
        await world.control.patch_pod("default", "p", {"metadata": {"uid": "old", "labels": {"new": "1"}}})
    assert (await world.pods())[0]["metadata"]["labels"] == {"app": "web"}
    assert world.written == []


async def test_patch_of_an_old_version_is_a_conflict(world: World) -> None:
    """PC-40: 409 is an answer of its own."""
    pod = await world.create_pod()
    await world.client.patch(PODS, "p", {"metadata": {"labels": {"new": "1"}}}, "default")
    patch = {"metadata": {"resourceVersion": pod["metadata"]["resourceVersion"], "labels": {"new": "2"}}}
    with pytest.raises(ConflictError):
        await world.control.patch_pod("default", "p", patch)
    assert world.events == []


async def ask_for_everything(control: FakePodControl, ref: ControllerRef) -> list[Exception]:
    errors: list[Exception] = []
    for call in (
        control.create_pods("default", TEMPLATE, replica_set(), ref),
        control.delete_pod("default", "p", replica_set(), uid="1"),
        control.patch_pod("default", "p", {"metadata": {}}),
    ):
        try:
            await call
        except ApiError as error:
            errors.append(error)
    return errors


async def test_recording_notes_requests_that_fail_too() -> None:
    """PC-45."""
    control = FakePodControl()
    control.error = ForbiddenError("no")
    assert await ask_for_everything(control, REF) == [control.error] * 3
    assert [each["spec"] for each in control.templates] == [TEMPLATE["spec"]]
    assert (control.controller_refs, control.deleted, control.patches) == ([REF], ["p"], [{"metadata": {}}])
    control.clear()
    control.error = None
    assert await ask_for_everything(control, REF) == []
    assert (len(control.templates), control.create_calls) == (1, 1)


async def test_recording_creates_up_to_its_limit() -> None:
    """PC-46."""
    control = FakePodControl(create_limit=2)
    for _ in range(2):
        await control.create_pods("default", TEMPLATE, replica_set(), REF)
    for call in (3, 4):
        message = rf"^not creating pod, limit 2 already reached \(create call {call}\)$"
        with pytest.raises(Exception, match=message):
            await control.create_pods("default", TEMPLATE, replica_set(), REF)
    assert (len(control.templates), len(control.controller_refs)) == (2, 2)


async def test_recording_notes_the_prefix_in_its_copy_of_the_template() -> None:
    """PC-47 (but the caller's template, which is left alone)."""
    control = FakePodControl()
    await control.create_pods_with_generate_name("default", TEMPLATE, replica_set(), REF, "hello-")
    assert control.templates[0]["metadata"]["generateName"] == "hello-"
    assert "generateName" not in TEMPLATE["metadata"]
