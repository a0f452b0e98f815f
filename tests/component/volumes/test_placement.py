"""Pods with claims get nodes, and claims get directories: scheduler, binder and local-path provisioner together."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.api.codec import Object
from podlife.client import (
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
    STORAGE_CLASSES,
    Client,
    DeleteOptions,
)
from podlife.controller import ControlPlane
from podlife.errors import ForbiddenError, InvalidError, NotFoundError
from podlife.linux.removal import remove_tree
from podlife.ownergc import OwnerGarbageCollector
from podlife.scheduler import Scheduler
from podlife.testing import LoopClock, virtual_time
from podlife.volumes import LocalPathProvisioner
from podlife.workloads import CONTROLLERS as WORKLOADS
from tests.kit.embedded import connect, start
from tests.unit.scheduler.objects import node_object
from tests.volumes.runs import CONTROLLERS
from tests.workloads.runs import at_work

NAMESPACE = "default"
CLAIMS, VOLUMES = PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
NOW = DeleteOptions(grace_period_seconds=0)


@asynccontextmanager
async def cluster(root: Path, *more: Any, controllers: Sequence[Any] = CONTROLLERS) -> AsyncIterator[Client]:
    handler = await start()
    client = connect(handler)
    for name in ("node-a", "node-b"):
        made = node_object(name)
        made["metadata"].setdefault("labels", {})["kubernetes.io/hostname"] = name
        await client.create(NODES, made)
        await client.patch(NODES, name, {"status": made["status"]}, subresource="status")
    plane = ControlPlane(connect(handler), clock=LoopClock())
    for make in (*controllers, Scheduler, OwnerGarbageCollector, *more):
        plane.add(make(plane))
    plane.add(LocalPathProvisioner(plane, root=root))
    async with at_work(plane.run):
        await asyncio.sleep(1)
        yield client


def claim_spec(**spec: Any) -> Object:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}} | spec


async def create_claim(client: Client, name: str = "data", **spec: Any) -> None:
    await client.create(CLAIMS, {"metadata": {"name": name}, "spec": claim_spec(**spec)}, NAMESPACE)


def pod_spec(claim: str = "", **volume: Any) -> Object:
    source = volume or {"persistentVolumeClaim": {"claimName": claim}}
    return {"containers": [{"name": "main", "image": "i"}], "volumes": [{"name": "data"} | source]}


async def create_pod(client: Client, name: str, claim: str = "", node: str = "", **volume: Any) -> None:
    spec = pod_spec(claim, **volume)
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)


async def node_of(client: Client, name: str) -> str:
    return str((await client.get(PODS, name, NAMESPACE))["spec"].get("nodeName", ""))


async def why_not(client: Client, name: str) -> str:
    conditions = (await client.get(PODS, name, NAMESPACE))["status"].get("conditions") or []
    return next((str(each["message"]) for each in conditions if each["type"] == "PodScheduled"), "")


@virtual_time
async def test_claim_of_the_default_class_gets_a_directory_on_the_node_of_its_pod(tmp_path: Path) -> None:
    async with cluster(tmp_path / "volumes") as client:
        await create_claim(client)
        await asyncio.sleep(20)
        claim = await client.get(CLAIMS, "data", NAMESPACE)
        assert (claim["spec"]["storageClassName"], claim["status"]["phase"]) == ("local-path", "Pending")
        await create_pod(client, "first", "data", node="node-b")
        await asyncio.sleep(20)
        claim = await client.get(CLAIMS, "data", NAMESPACE)
        assert claim["status"]["phase"] == "Bound"
        assert await node_of(client, "first") == "node-b"
        volume = await client.get(VOLUMES, claim["spec"]["volumeName"])
        path = Path(volume["spec"]["hostPath"]["path"])
        assert path == tmp_path / "volumes" / "node-b" / f"pvc-{claim['metadata']['uid']}"
        assert path.is_dir()
        await create_pod(client, "second", "data")
        await create_pod(client, "elsewhere", "data", node="node-a")
        await asyncio.sleep(5)
        assert await node_of(client, "second") == "node-b"
        assert "1 node(s) didn't match PersistentVolume's node affinity" in await why_not(client, "elsewhere")
        reasons = {each["reason"] for each in (await client.list(EVENTS, NAMESPACE)).items}
        assert {"WaitForFirstConsumer", "ExternalProvisioning", "ProvisioningSucceeded"} <= reasons


@virtual_time
async def test_pod_gets_its_node_when_its_claim_is_bound_and_not_before(tmp_path: Path) -> None:
    async with cluster(tmp_path / "volumes", controllers=()) as client:
        await create_claim(client, storageClassName="local-path")
        await create_pod(client, "user", "data")
        await asyncio.sleep(20)
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        patch = {"metadata": bound, "spec": {"volumeName": "v"}}
        await client.patch(CLAIMS, "data", patch, NAMESPACE)
        await asyncio.sleep(5)
        assert not await node_of(client, "user"), "its node would find a claim that is pending"
        status = {"status": {"phase": "Bound", "capacity": {"storage": "1Gi"}}}
        await client.patch(CLAIMS, "data", status, NAMESPACE, subresource="status")
        await asyncio.sleep(5)
        assert await node_of(client, "user")


def _nest(path: Path, depth: int) -> None:
    """A tree too deep to be named by a path."""
    folder = os.open(path, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)


@virtual_time
async def test_directory_is_removed_with_the_claim_once_no_pod_uses_it(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # A deep tree that is left would be in the way of later runs.
    request.addfinalizer(lambda: remove_tree(tmp_path / "volumes"))
    outside = tmp_path / "precious"
    outside.mkdir()
    async with cluster(tmp_path / "volumes") as client:
        await create_claim(client)
        await create_pod(client, "user", "data")
        await asyncio.sleep(20)
        (path,) = (tmp_path / "volumes").glob("*/*")
        (path / "link").symlink_to(outside)
        _nest(path, 1500)
        await client.delete(CLAIMS, "data", NAMESPACE)
        await asyncio.sleep(20)
        assert path.is_dir()
        await client.delete(PODS, "user", NAMESPACE, options=NOW)
        await asyncio.sleep(20)
        with pytest.raises(NotFoundError):
            await client.get(CLAIMS, "data", NAMESPACE)
        assert (await client.list(VOLUMES)).items == []
        assert not path.exists()
        assert outside.is_dir()


@pytest.mark.parametrize("exists", [False, True])
@virtual_time
async def test_volumes_can_be_entered_by_their_owner_only(tmp_path: Path, exists: bool) -> None:
    root = tmp_path / "made" / "volumes"
    if exists:
        root.mkdir(parents=True)
        root.chmod(0o755)
    async with cluster(root) as client:
        await asyncio.sleep(1)
        assert root.exists() is exists
        assert not exists or stat.S_IMODE(root.stat().st_mode) == 0o700
        await create_claim(client)
        await create_pod(client, "user", "data")
        await asyncio.sleep(20)
        (path,) = root.glob("*/*")
        # Any user of a container may write to the volume, where it is mounted.
        assert [stat.S_IMODE(each.stat().st_mode) for each in (root, path)] == [0o700, 0o777]


@pytest.mark.parametrize(
    "path", ["{tmp}/precious", "{tmp}/volumes/node-a/../../precious", "{tmp}/volumes/forged"]
)
@virtual_time
async def test_volume_with_a_forged_path_removes_nothing(tmp_path: Path, path: str) -> None:
    for name in ("precious", "volumes/forged", "volumes/node-a"):
        (tmp_path / name).mkdir(parents=True)
    async with cluster(tmp_path / "volumes") as client:
        meta = {
            "name": "forged",
            "annotations": {"pv.kubernetes.io/provisioned-by": "podlife.dev/local-path"},
        }
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            # Backsteps are refused by the server; the provisioner does not rely on it.
            "hostPath": {"path": path.replace("/..", "").format(tmp=tmp_path)},
            "persistentVolumeReclaimPolicy": "Delete",
            "claimRef": {"namespace": NAMESPACE, "name": "gone", "uid": "gone"},
        }
        await client.create(VOLUMES, {"metadata": meta, "spec": spec})
        await asyncio.sleep(20)
        assert (await client.get(VOLUMES, "forged"))["status"]["phase"] == "Released"
        reasons = {each["reason"] for each in (await client.list(EVENTS, NAMESPACE)).items}
        assert "VolumeFailedDelete" in reasons
    assert (tmp_path / "precious").is_dir()
    assert (tmp_path / "volumes" / "forged").is_dir()


@virtual_time
async def test_pod_with_an_unbound_immediate_claim_waits_and_is_placed_when_it_is_bound(
    tmp_path: Path,
) -> None:
    async with cluster(tmp_path) as client:
        await create_pod(client, "user", "data")
        await asyncio.sleep(2)
        prefix = "0/2 nodes are available: "
        assert (await why_not(client, "user")).startswith(f'{prefix}persistentvolumeclaim "data" not found.')
        await create_claim(client, storageClassName="")
        await asyncio.sleep(20)
        text = f"{prefix}pod has unbound immediate PersistentVolumeClaims."
        assert (await why_not(client, "user")).startswith(text)
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/d"}}
        await client.create(VOLUMES, {"metadata": {"name": "v"}, "spec": spec})
        await asyncio.sleep(20)
        assert await node_of(client, "user")


@virtual_time
async def test_two_pods_never_get_the_same_local_volume(tmp_path: Path) -> None:
    async with cluster(tmp_path) as client:
        meta, mode = {"name": "local"}, "WaitForFirstConsumer"
        body = {"metadata": meta, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": mode}
        await client.create(STORAGE_CLASSES, body)
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-b"]}
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "local": {"path": "/d"}}
        spec |= {"nodeAffinity": affinity, "storageClassName": "local"}
        await client.create(VOLUMES, {"metadata": {"name": "v"}, "spec": spec})
        for name in ("one", "two"):
            await create_claim(client, name, storageClassName="local")
            await create_pod(client, name, name)
        await asyncio.sleep(60)
        nodes = sorted([await node_of(client, name) for name in ("one", "two")])
        assert nodes == ["", "node-b"]
        left = "one" if not await node_of(client, "one") else "two"
        assert "2 node(s) didn't find available persistent volumes to bind" in await why_not(client, left)


@virtual_time
async def test_read_write_once_pod_claim_is_for_one_pod_at_a_time(tmp_path: Path) -> None:
    async with cluster(tmp_path) as client:
        await create_claim(client, accessModes=["ReadWriteOncePod"])
        await create_pod(client, "first", "data")
        await asyncio.sleep(20)
        await create_pod(client, "second", "data")
        await asyncio.sleep(5)
        assert "ReadWriteOncePod access mode already in-use by another pod" in await why_not(client, "second")
        await client.delete(PODS, "first", NAMESPACE, options=NOW)
        await asyncio.sleep(20)
        assert await node_of(client, "second")


@virtual_time
async def test_ephemeral_volume_lives_as_long_as_its_pod(tmp_path: Path) -> None:
    async with cluster(tmp_path) as client:
        await create_pod(client, "user", ephemeral={"volumeClaimTemplate": {"spec": claim_spec()}})
        await asyncio.sleep(20)
        assert await node_of(client, "user")
        assert (await client.get(CLAIMS, "user-data", NAMESPACE))["status"]["phase"] == "Bound"
        await client.delete(PODS, "user", NAMESPACE, options=NOW)
        await asyncio.sleep(60)
        assert (await client.list(CLAIMS, NAMESPACE)).items == []
        assert not [*tmp_path.glob("*/*")]


@virtual_time
async def test_stateful_set_keeps_its_volumes(tmp_path: Path) -> None:
    async with cluster(tmp_path, WORKLOADS["statefulset-controller"]) as client:
        template = {"metadata": {"name": "data"}, "spec": claim_spec()}
        container = {"name": "main", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
        pods = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
        spec = {
            "replicas": 2,
            "serviceName": "web",
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": {"app": "web"}},
            "template": pods,
            "volumeClaimTemplates": [template],
        }
        await client.create(STATEFUL_SETS, {"metadata": {"name": "web"}, "spec": spec}, NAMESPACE)
        await asyncio.sleep(60)
        before = {name: await node_of(client, name) for name in ("web-0", "web-1")}
        assert all(before.values())
        volumes = {each["metadata"]["name"] for each in (await client.list(VOLUMES)).items}
        await client.delete(PODS, "web-0", NAMESPACE, options=NOW)
        await asyncio.sleep(60)
        assert {name: await node_of(client, name) for name in before} == before
        assert {each["metadata"]["name"] for each in (await client.list(VOLUMES)).items} == volumes
        assert len(volumes) == 2


@virtual_time
async def test_claim_of_a_class_of_another_provisioner_gets_no_directory(tmp_path: Path) -> None:
    async with cluster(tmp_path) as client:
        body = {"metadata": {"name": "other"}, "provisioner": "example.com/fast"}
        await client.create(STORAGE_CLASSES, body | {"volumeBindingMode": "WaitForFirstConsumer"})
        forged = {"storage-provisioner": "podlife.dev/local-path", "selected-node": "node-a"}
        annotations = {f"volume.kubernetes.io/{key}": value for key, value in forged.items()}
        meta = {"name": "data", "annotations": annotations}
        spec = claim_spec(storageClassName="other")
        await client.create(CLAIMS, {"metadata": meta, "spec": spec}, NAMESPACE)
        await asyncio.sleep(20)
        assert (await client.get(CLAIMS, "data", NAMESPACE))["status"]["phase"] == "Pending"
        assert (await client.list(VOLUMES)).items == []
        assert not [*tmp_path.glob("*/*")]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"accessModes": ["ReadWriteMany"]}, "access mode ReadWriteMany is not supported"),
        ({"volumeMode": "Block"}, "block devices, data sources and selectors are not supported"),
    ],
)
@virtual_time
async def test_claim_that_no_directory_can_be_is_refused_with_its_reason(
    tmp_path: Path, spec: Object, reason: str
) -> None:
    async with cluster(tmp_path) as client:
        await create_claim(client, **spec)
        await create_pod(client, "user", "data")
        await asyncio.sleep(20)
        messages = [each["message"] for each in (await client.list(EVENTS, NAMESPACE)).items]
        assert any(reason in each for each in messages)
        assert not [*tmp_path.glob("*/*")]


@virtual_time
async def test_only_a_bound_claim_of_a_class_that_allows_it_grows(tmp_path: Path) -> None:
    async with cluster(tmp_path) as client:
        await create_claim(client)
        larger = {"spec": {"resources": {"requests": {"storage": "2Gi"}}}}
        with pytest.raises(InvalidError, match="spec is immutable after creation"):
            await client.patch(CLAIMS, "data", larger, NAMESPACE)
        await create_pod(client, "user", "data")
        await asyncio.sleep(20)
        with pytest.raises(ForbiddenError, match="storageclass that provisions the pvc must support resize"):
            await client.patch(CLAIMS, "data", larger, NAMESPACE)
        await client.patch(STORAGE_CLASSES, "local-path", {"allowVolumeExpansion": True})
        await client.patch(CLAIMS, "data", larger, NAMESPACE)
