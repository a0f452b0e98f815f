"""What an owner adopts, keeps, releases and leaves alone: on a server, looking at what it holds afterwards."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from podlife.api.codec import Object, encode
from podlife.api.selectors import parse_label_selector
from podlife.client import NAMESPACES, PODS, REPLICA_SETS
from podlife.errors import ApiError, ConflictError, PodlifeError
from podlife.podcontrol import (
    AdoptionRefusedError,
    ClaimError,
    ClaimSettings,
    ControllerRefManager,
    InvalidOwnerError,
    OwnedPod,
    Owner,
    owner_of,
    recheck_owner,
    release_patch,
)
from podlife.podcontrol.controller_ref_manager import adoption_patch
from tests.conformance.podcontrol.world import REF, World, pod_object
from tests.kit import objects
from tests.kit.embedded import refusal

SELECTOR = parse_label_selector("app=web")
STRANGER = replace(REF, name="other", uid="other-uid").to_object()
OTHER_LABELS = {"app": "db"}


class Stage:
    """A ReplicaSet on the server, and its claims."""

    def __init__(self, world: World, owner: Owner) -> None:
        self.world = world
        self.owner = owner
        self.reference = owner.controller_ref().to_object()

    def manager(self, **options: Any) -> ControllerRefManager[OwnedPod]:
        return ControllerRefManager(self.owner, SELECTOR, self.world.control.patch_pod, **options)

    async def add(self, name: str, **metadata: Any) -> OwnedPod:
        """A pod on the server; owned=True makes it this owner's."""
        if metadata.pop("owned", False):
            metadata["ownerReferences"] = [self.reference]
        await self.world.create_pod(name, **metadata)
        return await self.read(name, metadata.get("namespace", "default"))

    async def read(self, name: str, namespace: str = "default") -> OwnedPod:
        return await self.world.client.get(PODS, name, namespace, view=OwnedPod)

    async def claim(self, *pods: OwnedPod, **options: Any) -> list[str]:
        self.world.sent.clear()
        result = await self.manager(**options).claim(pods)
        result.raise_errors()
        return [pod.metadata.name for pod in result.claimed]

    async def controllers(self) -> dict[str, list[str]]:
        """The UIDs of the owners of all pods."""
        pods = (await self.world.client.list(PODS)).items
        owners = {pod["metadata"]["name"]: pod["metadata"].get("ownerReferences", []) for pod in pods}
        return {name: [each["uid"] for each in references] for name, references in owners.items()}

    def patches(self) -> list[Object]:
        return [body for method, _, body in self.world.sent if method == "PATCH"]


@pytest.fixture
async def stage(world: World) -> Stage:
    return Stage(world, owner_of(await world.create_owner()))


async def test_orphan_that_is_selected_is_adopted_and_another_is_not(stage: Stage) -> None:
    """CR-01."""
    pods = [await stage.add("match"), await stage.add("other", labels=OTHER_LABELS)]
    assert await stage.claim(*pods) == ["match"]
    assert len(stage.patches()) == 1
    assert await stage.controllers() == {"match": [stage.owner.uid], "other": []}


async def test_owner_that_is_going_neither_adopts_nor_releases_but_keeps(stage: Stage) -> None:
    """CR-02, CR-03."""
    pods = [
        await stage.add("orphan"),
        await stage.add("mismatch", owned=True, labels=OTHER_LABELS),
        await stage.add("kept", owned=True),
    ]
    stage.owner = replace(stage.owner, is_deleting=True)
    assert await stage.claim(*pods) == ["kept"]
    assert stage.patches() == []


@pytest.mark.parametrize("name", ["other", "web"])
async def test_pod_of_another_owner_is_left_alone(stage: Stage, name: str) -> None:
    """CR-04: an owner that had the same name is another one, too."""
    pod = await stage.add("p", ownerReferences=[{**STRANGER, "name": name}])
    assert await stage.claim(pod) == []
    assert stage.patches() == []


async def test_owned_pod_that_is_no_longer_selected_is_released(stage: Stage) -> None:
    """CR-05."""
    pods = [await stage.add("kept", owned=True), await stage.add("left", owned=True, labels=OTHER_LABELS)]
    assert await stage.claim(*pods) == ["kept"]
    assert len(stage.patches()) == 1
    assert await stage.controllers() == {"kept": [stage.owner.uid], "left": []}


async def test_pod_that_is_going_is_kept_and_never_adopted(stage: Stage) -> None:
    """CR-06."""
    for name, owned in (("owned", True), ("orphan", False)):
        await stage.add(name, owned=owned, finalizers=["example.com/held"])
        await stage.world.client.delete(PODS, name, "default")
    pods = [await stage.read("owned"), await stage.read("orphan")]
    assert all(pod.metadata.deletion_timestamp for pod in pods)
    assert await stage.claim(*pods) == ["owned"]
    assert stage.patches() == []


async def test_finalizers_come_with_adoption_and_go_with_release(stage: Stage) -> None:
    """CR-07."""
    names = ("example.com/one", "example.com/two")
    pods = [
        await stage.add("kept", owned=True, finalizers=list(names)),
        await stage.add("left", owned=True, labels=OTHER_LABELS, finalizers=[*names, "example.com/mine"]),
        await stage.add("adopted"),
    ]
    assert await stage.claim(*pods, settings=ClaimSettings(finalizers=names)) == ["kept", "adopted"]
    assert len(stage.patches()) == 2
    assert (await stage.read("left")).metadata.finalizers == ("example.com/mine",)
    assert set((await stage.read("adopted")).metadata.finalizers) == set(names)


async def test_only_an_owner_without_a_namespace_adopts_in_others(stage: Stage) -> None:
    """CR-08."""
    await stage.world.client.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
    pod = await stage.add("far", namespace="elsewhere")
    assert await stage.claim(pod) == []
    stage.owner = replace(stage.owner, namespace="")
    assert await stage.claim(pod) == ["far"]
    assert await stage.controllers() == {"far": [stage.owner.uid]}


async def test_filters_are_asked_about_what_is_selected_only(stage: Stage) -> None:
    """CR-09."""
    pods = [await stage.add("yes"), await stage.add("no"), await stage.add("other", labels=OTHER_LABELS)]
    asked = []

    def wanted(pod: OwnedPod) -> bool:
        asked.append(pod.metadata.name)
        return pod.metadata.name == "yes"

    result = await stage.manager().claim(pods, wanted, lambda _: True)
    assert [pod.metadata.name for pod in result.claimed] == ["yes"]
    assert asked == ["yes", "no"]


async def test_permission_is_asked_for_once_and_only_for_an_adoption(stage: Stage) -> None:
    """CR-10, CR-14."""
    asked = 0

    async def refuse() -> None:
        nonlocal asked
        asked += 1
        raise PodlifeError("not now")

    kept = await stage.add("kept", owned=True)
    manager = stage.manager(can_adopt=refuse)
    assert (await manager.claim([kept])).claimed == [kept]
    assert asked == 0
    one, two = await stage.add("one"), await stage.add("two")
    result = await manager.claim([one, kept, two])
    assert asked == 1
    assert result.claimed == [kept]
    assert [str(error) for error in result.errors] == [
        f"can't adopt Pod default/{pod.metadata.name} ({pod.metadata.uid}): not now" for pod in (one, two)
    ]
    assert stage.patches() == []


async def why_not(stage: Stage) -> str:
    orphan = await stage.add("orphan")
    check = recheck_owner(stage.world.client, REPLICA_SETS, stage.owner)
    result = await stage.manager(can_adopt=check).claim([orphan])
    assert result.claimed == []
    assert await stage.controllers() == {"orphan": []}
    with pytest.raises(AdoptionRefusedError) as caught:
        result.raise_errors()
    return str(caught.value).partition("): ")[2]


async def test_owner_that_is_there_adopts_after_it_was_read_again(stage: Stage) -> None:
    """CR-11."""
    orphan = await stage.add("orphan")
    check = recheck_owner(stage.world.client, REPLICA_SETS, stage.owner)
    assert await stage.claim(orphan, can_adopt=check) == ["orphan"]
    assert [method for method, _, _ in stage.world.sent] == ["GET", "PATCH"]


async def test_owner_that_cannot_be_read_adopts_nothing(stage: Stage) -> None:
    """CR-11."""
    await stage.world.client.delete(REPLICA_SETS, "web", "default")
    expected = 'can\'t recheck DeletionTimestamp: replicasets.apps "web" not found'
    assert await why_not(stage) == expected


async def test_owner_that_has_just_been_deleted_adopts_nothing(stage: Stage) -> None:
    """CR-11."""
    client = stage.world.client
    await client.patch(REPLICA_SETS, "web", {"metadata": {"finalizers": ["example.com/held"]}}, "default")
    await client.delete(REPLICA_SETS, "web", "default")
    deleted = (await client.get(REPLICA_SETS, "web", "default"))["metadata"]["deletionTimestamp"]
    assert await why_not(stage) == f"default/web has just been deleted at {deleted}"


async def test_owner_that_was_created_again_under_its_name_adopts_nothing(stage: Stage) -> None:
    """CR-11."""
    await stage.world.client.delete(REPLICA_SETS, "web", "default")
    fresh = await stage.world.create_owner()
    uid = fresh["metadata"]["uid"]
    gone = f"original ReplicaSet default/web is gone: got uid {uid}, wanted {stage.owner.uid}"
    assert await why_not(stage) == f"can't recheck DeletionTimestamp: {gone}"


async def test_pods_that_are_gone_are_not_owned_and_no_error(stage: Stage) -> None:
    """CR-12."""
    pods = [await stage.add("orphan"), await stage.add("mismatch", owned=True, labels=OTHER_LABELS)]
    for name in ("orphan", "mismatch"):
        await stage.world.client.delete(PODS, name, "default")
    assert await stage.claim(*pods) == []
    assert len(stage.patches()) == 2


async def test_pods_that_were_replaced_are_neither_adopted_nor_released(stage: Stage) -> None:
    """CR-12, CR-13, CR-16."""
    pods = [await stage.add("orphan"), await stage.add("mismatch", owned=True, labels=OTHER_LABELS)]
    for name in ("orphan", "mismatch"):
        await stage.world.client.delete(PODS, name, "default")
    await stage.add("orphan")
    await stage.add("mismatch", ownerReferences=[STRANGER])
    assert await stage.claim(*pods) == []
    assert await stage.controllers() == {"orphan": [], "mismatch": ["other-uid"]}


async def test_release_of_a_pod_without_such_an_owner_is_fine(stage: Stage) -> None:
    """CR-13."""
    pod = await stage.add("left", owned=True, labels=OTHER_LABELS)
    stage.world.answers["PATCH"] = refusal(422, "Invalid")
    assert await stage.claim(pod) == []


async def test_errors_are_collected_and_the_rest_is_still_claimed(stage: Stage) -> None:
    """CR-14."""
    pods = [
        await stage.add("one"),
        await stage.add("kept", owned=True),
        await stage.add("two", owned=True, labels=OTHER_LABELS),
        await stage.add("also", owned=True),
    ]
    stage.world.answers["PATCH"] = refusal(500)
    result = await stage.manager().claim(pods)
    assert [pod.metadata.name for pod in result.claimed] == ["kept", "also"]
    assert [type(error) for error in result.errors] == [ApiError, ApiError]
    with pytest.raises(ClaimError, match=r"^\[no: 500, no: 500\]$"):
        result.raise_errors()


async def test_adoption_of_what_another_has_taken_meanwhile_is_an_error(stage: Stage) -> None:
    """CR-14."""
    orphan = await stage.add("p")
    await stage.world.client.patch(PODS, "p", {"metadata": {"ownerReferences": [STRANGER]}}, "default")
    with pytest.raises(ApiError) as caught:
        await stage.claim(orphan)
    assert caught.value.code == 422
    assert await stage.controllers() == {"p": ["other-uid"]}


async def test_claimed_are_the_objects_that_were_passed_in(stage: Stage) -> None:
    """CR-15."""
    orphan = await stage.add("p")
    result = await stage.manager().claim([orphan])
    assert result.claimed[0] is orphan
    assert orphan.metadata.owner_references == ()


def test_adoption_patch_names_the_pod_and_all_of_the_owner() -> None:
    """CR-16."""
    reference = {**objects.owner("ReplicaSet", "web", uid="rs-uid"), "blockOwnerDeletion": True}
    assert adoption_patch(REF, "pod-uid") == {"metadata": {"uid": "pod-uid", "ownerReferences": [reference]}}
    assert adoption_patch(REF, "pod-uid", ["f1"])["metadata"]["finalizers"] == ["f1"]


@pytest.mark.parametrize(
    ("patch", "text"),
    [
        pytest.param(
            release_patch("ss2", ["ss1"]),
            '{"metadata":{"uid":"ss2","ownerReferences":[{"$patch":"delete","uid":"ss1"}]}}',
            id="CR-17",
        ),
        pytest.param(
            release_patch('ss"2', ['s"s1']),
            r'{"metadata":{"uid":"ss\"2","ownerReferences":[{"$patch":"delete","uid":"s\"s1"}]}}',
            id="CR-18",
        ),
        pytest.param(
            release_patch("ss2", ["ss1", "ss3"]),
            '{"metadata":{"uid":"ss2","ownerReferences":'
            '[{"$patch":"delete","uid":"ss1"},{"$patch":"delete","uid":"ss3"}]}}',
            id="CR-19",
        ),
        pytest.param(
            release_patch("ss2", ["ss1"], ["f1"]),
            '{"metadata":{"uid":"ss2","ownerReferences":[{"$patch":"delete","uid":"ss1"}],'
            '"$deleteFromPrimitiveList/finalizers":["f1"]}}',
            id="CR-20",
        ),
    ],
)
def test_release_patch(patch: Object, text: str) -> None:
    assert encode(patch).decode() == text
    assert json.loads(text) == patch


def test_owner_without_a_uid_cannot_claim() -> None:
    async def patch(namespace: str, name: str, patch: Object) -> None:
        raise AssertionError

    nobody = owner_of({**pod_object(), "kind": "ReplicaSet"})
    with pytest.raises(InvalidOwnerError, match=r"^no owner uid provided$"):
        ControllerRefManager(nobody, SELECTOR, patch)


def test_failure_of_many_claims_is_told_in_a_line_that_can_be_read() -> None:
    """Ten thousand orphans that may not be adopted are no reason for a message of megabytes at every try."""
    errors = tuple(ConflictError(f"orphan-{number} is in the way") for number in range(10_000))
    told = ClaimError(errors)
    assert len(str(told)) < 1000
    assert "orphan-0 is in the way" in str(told)
    assert "9990 more" in str(told)
    assert len(told.errors) == 10_000
