"""The owner collector on kube-apiserver with resources that come while it runs, and go again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from podlife.client import CONFIG_MAPS, NAMESPACES, Client, DeleteOptions, Flags, Ref, load
from podlife.controller import ControlPlane
from podlife.ownergc import OwnerGarbageCollector
from tests.kit.real_parts import Server
from tests.kit.wait import until
from tests.workloads.runs import at_work

Object = dict[str, Any]

NAMESPACE = "owners-of-widgets"
CRDS = Ref("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
WIDGETS = Ref("owners.example", "v1", "widgets", kind="Widget")
SCHEMA = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
CRD = {
    "metadata": {"name": "widgets.owners.example"},
    "spec": {
        "group": "owners.example",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": SCHEMA},
            {"name": "v1beta1", "served": True, "storage": False, "schema": SCHEMA},
        ],
    },
}


@pytest.fixture
async def client(kube: Server) -> AsyncIterator[Client]:
    async with Client.connect(load(Flags(kubeconfig=str(kube.kubeconfig)), {})) as made:
        await made.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        yield made
        await made.delete(NAMESPACES, NAMESPACE)


def to(owner: Object, ref: Ref, **other: Any) -> Object:
    metadata = owner["metadata"]
    about = {"name": metadata["name"], "uid": metadata["uid"]}
    return {"apiVersion": ref.api_version, "kind": ref.kind, **about, **other}


async def make(client: Client, ref: Ref, name: str, *owners: Object) -> Object:
    kind = {"apiVersion": ref.api_version, "kind": ref.kind}
    return await client.create(
        ref, {**kind, "metadata": {"name": name, "ownerReferences": list(owners)}}, NAMESPACE
    )


async def names(client: Client, ref: Ref) -> dict[str, Object]:
    found = (await client.list(ref, NAMESPACE)).items
    return {obj["metadata"]["name"]: obj["metadata"] for obj in found} if found else {}


async def test_custom_resources_are_owners_and_dependents_from_when_they_come_until_they_go(
    client: Client,
) -> None:
    plane = ControlPlane(client)
    collector = OwnerGarbageCollector(plane, discovery_seconds=0.5)
    plane.add(collector)
    async with at_work(plane.run):
        await until(_is_following(collector))
        await client.create(CRDS, CRD)
        try:
            await until(_is_following(collector, WIDGETS))
            await _check_cascades(client, collector)
        finally:
            await client.delete(CRDS, "widgets.owners.example")
        # The server deletes the widgets before it stops serving them, and what they owned goes with them.
        await until(_has_left(collector, WIDGETS))

        async def is_gone() -> bool:
            return "owned" not in await names(client, CONFIG_MAPS) and not collector.complaint

        await until(is_gone)


async def _check_cascades(client: Client, collector: OwnerGarbageCollector) -> None:
    goes, stays = [await make(client, WIDGETS, name) for name in ("goes", "stays")]
    other_version = to(stays, WIDGETS, apiVersion="owners.example/v1beta1")
    await make(client, CONFIG_MAPS, "garbage", to(goes, WIDGETS))
    await make(client, CONFIG_MAPS, "owned", to(stays, WIDGETS))
    await make(client, CONFIG_MAPS, "by-another-version", other_version)
    # Widgets know no strategic patch.
    lets_go = await make(client, CONFIG_MAPS, "lets-go")
    await make(client, WIDGETS, "orphaned", to(lets_go, CONFIG_MAPS), to(stays, WIDGETS))
    await make(client, WIDGETS, "shared", to(goes, WIDGETS), to(stays, WIDGETS, controller=True))
    waits = await make(client, CONFIG_MAPS, "waits")
    await make(client, WIDGETS, "waited-for", to(waits, CONFIG_MAPS, blockOwnerDeletion=True))
    await asyncio.sleep(1)
    await client.delete(WIDGETS, "goes", NAMESPACE, options=DeleteOptions(propagation_policy="Background"))
    await client.delete(CONFIG_MAPS, "lets-go", NAMESPACE, options=DeleteOptions(propagation_policy="Orphan"))
    await client.delete(
        CONFIG_MAPS, "waits", NAMESPACE, options=DeleteOptions(propagation_policy="Foreground")
    )

    async def is_done() -> bool:
        maps, widgets = await names(client, CONFIG_MAPS), await names(client, WIDGETS)
        alone = [to(stays, WIDGETS, controller=True)]
        return (
            not {"garbage", "lets-go", "waits"} & maps.keys()
            and widgets.keys() == {"stays", "orphaned", "shared"}
            and widgets["orphaned"]["ownerReferences"] == [to(stays, WIDGETS)]
            and widgets["shared"]["ownerReferences"] == alone
        )

    await until(is_done)
    await asyncio.sleep(1)
    assert {"owned", "by-another-version"} <= (await names(client, CONFIG_MAPS)).keys()


def _is_following(collector: OwnerGarbageCollector, *refs: Ref) -> Callable[[], Any]:
    async def holds() -> bool:
        followed = {(ref.group, ref.plural) for ref in collector.monitors.followed}
        return not collector.complaint and {(ref.group, ref.plural) for ref in refs} <= followed

    return holds


def _has_left(collector: OwnerGarbageCollector, ref: Ref) -> Callable[[], Any]:
    async def holds() -> bool:
        return ref not in collector.monitors.followed

    return holds
