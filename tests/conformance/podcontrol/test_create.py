"""Pods made of a template: what is refused, what is sent, what the owner is told."""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from podlife.api.codec import Object
from podlife.client import NAMESPACES, PODS
from podlife.errors import AlreadyExistsError, ForbiddenError, PodlifeError
from podlife.podcontrol import (
    ControllerRef,
    InvalidControllerRefError,
    InvalidOwnerError,
    InvalidTemplateError,
    NamespaceTerminatingError,
    pod_from_template,
)
from podlife.podcontrol.owner import validate_controller_ref
from tests.conformance.podcontrol.world import REF, TEMPLATE, World, replica_set
from tests.kit import objects
from tests.kit.embedded import refusal


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        pytest.param(None, "controllerRef is nil", id="PC-01"),
        pytest.param(replace(REF, api_version=""), "controllerRef has empty APIVersion", id="PC-02"),
        pytest.param(replace(REF, kind=""), "controllerRef has empty Kind", id="PC-03"),
        pytest.param(
            replace(REF, controller=None), "controllerRef.Controller is not set to true", id="PC-04"
        ),
        pytest.param(
            replace(REF, controller=False), "controllerRef.Controller is not set to true", id="PC-04 false"
        ),
        pytest.param(
            replace(REF, block_owner_deletion=None), "controllerRef.BlockOwnerDeletion is not set", id="PC-05"
        ),
        pytest.param(
            replace(REF, api_version="", kind="", controller=False),
            "controllerRef has empty APIVersion",
            id="PC-02 before PC-03 and PC-04",
        ),
    ],
)
async def test_reference_that_is_no_controllers_is_refused_before_anything_is_sent(
    world: World, ref: ControllerRef | None, message: str
) -> None:
    control = world.control
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: control.create_pods("default", TEMPLATE, replica_set(), ref),
        lambda: control.create_pods_with_controller_ref("default", TEMPLATE, replica_set(), ref),
        lambda: control.create_pods_with_generate_name("default", TEMPLATE, replica_set(), ref, "x-"),
        lambda: control.create_pods_on_node("node-1", "default", TEMPLATE, replica_set(), ref),
    ]
    for call in calls:
        with pytest.raises(InvalidControllerRefError) as caught:
            await call()
        assert str(caught.value) == message
    assert (world.sent, world.events) == ([], [])


def test_name_and_uid_of_a_reference_are_not_checked() -> None:
    """PC-06."""
    nameless = replace(REF, name="", uid="")
    assert validate_controller_ref(nameless) == nameless


def test_pod_shares_nothing_with_its_template() -> None:
    """PC-10, PC-11."""
    template = copy.deepcopy(TEMPLATE)
    pod = pod_from_template(template, replica_set(), REF)
    for field in ("labels", "annotations", "finalizers"):
        assert pod["metadata"][field] == TEMPLATE["metadata"][field]
    assert pod["spec"] == TEMPLATE["spec"]
    pod["metadata"]["labels"]["new"] = pod["metadata"]["annotations"]["new"] = "1"
    pod["metadata"]["finalizers"].append("new")
    pod["spec"]["containers"][0]["image"] = "other"
    pod["spec"]["containers"].append({})
    assert template == TEMPLATE


def test_what_a_template_does_not_have_is_empty_and_not_absent() -> None:
    """PC-10."""
    metadata = pod_from_template({"spec": {}}, replica_set())["metadata"]
    assert (metadata["labels"], metadata["annotations"], metadata["finalizers"]) == ({}, {}, [])


def test_spec_is_kept_whole_with_fields_that_nobody_knows() -> None:
    """PC-11."""
    spec = {"containers": [{"name": "c", "fromTheFuture": {"a": [1, None, {"b": False}]}}], "newField": 1.5}
    assert pod_from_template({"spec": spec}, replica_set())["spec"] == spec


def test_name_namespace_and_owners_of_a_template_are_ignored() -> None:
    """PC-12, PC-15."""
    metadata = {"name": "n", "namespace": "other", "generateName": "g-", "ownerReferences": [{"uid": "1"}]}
    made = pod_from_template({"metadata": metadata, "spec": {}}, replica_set())["metadata"]
    assert made == {"labels": {}, "annotations": {}, "finalizers": [], "generateName": "web-"}


def test_owner_given_is_the_only_one() -> None:
    """PC-15."""
    made = pod_from_template(TEMPLATE, replica_set(), REF)["metadata"]
    assert made["ownerReferences"] == [
        {**objects.owner("ReplicaSet", "web", uid="rs-uid"), "blockOwnerDeletion": True}
    ]


@pytest.mark.parametrize(
    ("name", "prefix"),
    [
        pytest.param("web", "web-", id="PC-13"),
        pytest.param("a" * 253, "a" * 253 + "-", id="PC-14 as long as a name may be"),
        pytest.param("a" * 254, "a" * 254, id="PC-14 too long"),
        pytest.param("Web", "Web", id="PC-14 no legal name"),
    ],
)
def test_parents_name_is_the_prefix(name: str, prefix: str) -> None:
    assert pod_from_template(TEMPLATE, replica_set(name))["metadata"]["generateName"] == prefix


@pytest.mark.parametrize("parent", [{}, {"metadata": None}, None])
def test_parent_without_metadata_is_refused(parent: Object) -> None:
    """PC-16."""
    with pytest.raises(InvalidOwnerError, match=r"^parentObject does not have ObjectMeta, "):
        pod_from_template(TEMPLATE, parent)


async def test_generated_name_is_the_prefix_cut_and_five_characters(world: World) -> None:
    """PC-17."""
    created = await world.control.create_pods("default", TEMPLATE, replica_set("a" * 100), REF)
    name = created["metadata"]["name"]
    assert name[:-5] == "a" * 58
    assert set(name[-5:]) <= set("bcdfghjklmnpqrstvwxz2456789")


async def test_generated_name_that_is_taken_is_drawn_again_by_the_server(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PC-17."""
    draws: list[str] = []

    def unlucky(base: str, _: object) -> str:
        draws.append(base)
        return f"{base}{'taken' if len(draws) <= taken else 'free'}"

    for module in ("create", "metadata"):
        monkeypatch.setattr(f"podlife.apiserver.registry.{module}.generate_name", unlucky)
    await world.create_pod("web-taken")
    taken = 7
    created = await world.control.create_pods("default", TEMPLATE, replica_set(), REF)
    assert (created["metadata"]["name"], len(draws)) == ("web-free", 8)
    await world.client.delete(PODS, "web-free", "default")
    draws.clear()
    taken = 8
    with pytest.raises(AlreadyExistsError):
        await world.control.create_pods("default", TEMPLATE, replica_set(), REF)


async def test_create_is_one_post_of_the_pod(world: World) -> None:
    """PC-20, PC-25, PC-26."""
    created = await world.control.create_pods("default", TEMPLATE, replica_set(), REF)
    name = created["metadata"]["name"]
    assert world.sent == [
        ("POST", "/api/v1/namespaces/default/pods", pod_from_template(TEMPLATE, replica_set(), REF))
    ]
    stored = (await world.pods())[0]
    assert stored["metadata"]["name"] == name
    assert stored["metadata"]["finalizers"] == ["example.com/f"]
    assert world.written == [(name, REF)]
    assert world.events == [("Normal", "SuccessfulCreate", f"Created pod: {name}")]
    assert world.about == [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "namespace": "default",
            "name": "web",
            "uid": "rs-uid",
            "resourceVersion": "7",
        }
    ]


@pytest.mark.parametrize(("given", "used"), [("hello-", "hello-"), ("", "web-")])
async def test_prefix_of_the_name_may_be_given(world: World, given: str, used: str) -> None:
    """PC-21."""
    await world.control.create_pods_with_generate_name("default", TEMPLATE, replica_set(), REF, given)
    metadata = world.sent[0][2]["metadata"]
    assert metadata["generateName"] == used
    assert metadata["ownerReferences"] == [REF.to_object()]


@pytest.mark.parametrize("node", ["node-1", ""])
async def test_pod_may_be_bound_to_a_node_from_the_start(world: World, node: str) -> None:
    """PC-20, PC-25: its template stays as it is."""
    created = await world.control.create_pods_on_node(node, "default", TEMPLATE, replica_set(), REF)
    stored = (await world.pods())[0]
    assert stored["spec"].get("nodeName", "") == node
    assert stored["metadata"]["ownerReferences"] == [REF.to_object()]
    assert world.events == [("Normal", "SuccessfulCreate", f"Created pod: {created['metadata']['name']}")]
    assert "nodeName" not in TEMPLATE["spec"]


async def test_older_name_of_create_does_the_same(world: World) -> None:
    """PC-20."""
    await world.control.create_pods_with_controller_ref("default", TEMPLATE, replica_set(), REF)
    assert world.sent[0][2] == pod_from_template(TEMPLATE, replica_set(), REF)


async def test_parent_that_does_not_say_its_kind_is_told_by_that_of_the_reference(world: World) -> None:
    """PC-25."""
    await world.control.create_pods("default", TEMPLATE, {"metadata": replica_set()["metadata"]}, REF)
    assert (world.about[0]["kind"], world.about[0]["apiVersion"]) == ("ReplicaSet", "apps/v1")


async def test_pod_without_labels_is_refused_before_anything_is_sent(world: World) -> None:
    """PC-22."""
    template = {"metadata": {"labels": {}}, "spec": TEMPLATE["spec"]}
    with pytest.raises(InvalidTemplateError) as caught:
        await world.control.create_pods("default", template, replica_set(), REF)
    assert str(caught.value) == "unable to create pods, no labels"
    assert (world.sent, world.events) == ([], [])


async def test_refusal_is_told_and_raised_as_it_is(world: World) -> None:
    """PC-23, PC-27."""
    world.answers["POST"] = refusal(403, "Forbidden")
    with pytest.raises(ForbiddenError, match=r"^no: 403$") as caught:
        await world.control.create_pods("default", TEMPLATE, replica_set(), REF)
    assert type(caught.value) is ForbiddenError
    assert world.events == [("Warning", "FailedCreate", "Error creating: no: 403")]
    assert world.written == []


async def test_namespace_that_is_going_gives_no_event(world: World) -> None:
    """PC-24, PC-27."""
    await world.client.create(NAMESPACES, {"metadata": {"name": "ending"}})
    # A pod with a finalizer holds the namespace in its last state.
    pod = pod_from_template(TEMPLATE, replica_set())
    await world.client.create(PODS, pod, "ending")
    await world.client.delete(NAMESPACES, "ending")
    with pytest.raises(NamespaceTerminatingError, match="is being terminated"):
        await world.control.create_pods("ending", TEMPLATE, replica_set(), REF)
    assert (world.events, world.written) == ([], [])


async def test_refusal_for_another_cause_is_told(world: World) -> None:
    """PC-23, PC-24."""
    causes = [{"reason": "FieldValueInvalid", "message": "no", "field": "spec"}]
    world.answers["POST"] = refusal(403, "Forbidden", details={"causes": causes})
    with pytest.raises(ForbiddenError) as caught:
        await world.control.create_pods("default", TEMPLATE, replica_set(), REF)
    assert not isinstance(caught.value, NamespaceTerminatingError)
    assert len(world.events) == 1


async def test_pod_for_a_parent_without_metadata_is_created_and_nobody_told(world: World) -> None:
    """PC-28."""
    pod = pod_from_template(TEMPLATE, replica_set(), REF)
    created = await world.control.create_pod("default", pod, {}, REF)
    assert [each["metadata"]["uid"] for each in await world.pods()] == [created["metadata"]["uid"]]
    assert world.events == []


async def test_failure_to_create_for_a_parent_without_metadata_is_still_raised(world: World) -> None:
    """PC-23, PC-28."""
    world.answers["POST"] = refusal(500)
    with pytest.raises(PodlifeError):
        await world.control.create_pod("default", pod_from_template(TEMPLATE, replica_set()), {})
    assert world.events == []
