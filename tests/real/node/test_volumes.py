"""A pod's volumes with the rights that a kubelet has, no more: kube-apiserver gives a node what its pods refer to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from podlife.api.codec import Object
from podlife.client import (
    CONFIG_MAPS,
    NAMESPACES,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Client,
    DeleteOptions,
    Ref,
)
from podlife.clock import SystemClock
from podlife.kubelet.interfaces import VolumeError
from podlife.kubelet.object_cache import ApiObjectCache
from podlife.kubelet.volumemanager import VolumeManager
from podlife.kubelet.volumemanager import mount as kernel
from tests.component.kubelet_volumemanager.node import bind
from tests.kit.real_parts import Server
from tests.real.node.test_registration import connect

NODE = "node-a"
NAMESPACE = "volumes"
REVIEWS = Ref("authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False)


@pytest.fixture
async def admin(kube: Server) -> AsyncIterator[Client]:
    async with connect(kube) as client:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        yield client
        pod = await client.get(PODS, "web", NAMESPACE)
        await client.delete(PODS, "web", NAMESPACE, options=DeleteOptions(0, uid=pod["metadata"]["uid"]))
        await client.delete(NAMESPACES, NAMESPACE)
        await client.delete(PERSISTENT_VOLUMES, "pv")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "agent"


async def make_pod(admin: Client, host: Path) -> Object:
    await admin.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, NAMESPACE)
    await admin.create(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {"a": "1"}}, NAMESPACE)
    await admin.create(SECRETS, {"metadata": {"name": "key"}, "stringData": {"s": "2"}}, NAMESPACE)
    sources: list[Object] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
        {"configMap": {"name": "settings"}},
        {"secret": {"name": "key"}},
        {"downwardAPI": {"items": [{"path": "uid", "fieldRef": {"fieldPath": "metadata.uid"}}]}},
    ]
    volumes = [
        {"name": "all", "projected": {"sources": sources}},
        {"name": "disk", "persistentVolumeClaim": {"claimName": "mine"}},
    ]
    mounts = [{"name": each["name"], "mountPath": f"/{each['name']}"} for each in volumes]
    spec = {
        "nodeName": NODE,
        "serviceAccountName": "robot",
        "automountServiceAccountToken": False,
        "containers": [{"name": "main", "image": "none", "volumeMounts": mounts}],
        "volumes": volumes,
    }
    await bind(admin, {"hostPath": {"path": str(host)}}, namespace=NAMESPACE)
    pod: Object = await admin.create(PODS, {"metadata": {"name": "web"}, "spec": spec}, NAMESPACE)
    return pod


async def mount(volumes: VolumeManager, pod: Object) -> None:
    """The server learns a moment late what a node's pods refer to: a kubelet tries again, and so does this."""
    async with asyncio.timeout(120):
        while True:
            try:
                await volumes.mount(pod)
                return
            except VolumeError as error:
                if "no relationship found between node" not in str(error):
                    raise
                await asyncio.sleep(0.1)


async def test_a_node_shows_its_pod_everything_and_a_token_that_says_who_it_is(
    kube: Server, admin: Client, root: Path, tmp_path: Path
) -> None:
    pod = await make_pod(admin, tmp_path)
    async with connect(kube, NODE) as own:
        references = ApiObjectCache(own, SystemClock())
        references.register(pod)
        volumes = VolumeManager(own, references, SystemClock(), root)
        await mount(volumes, pod)
        shown, disk = volumes.mounts(pod, pod["spec"]["containers"][0])
        folder = Path(shown.host_path)
        files = {name: (folder / name).read_text() for name in ("a", "s", "uid")}
        assert files == {"a": "1", "s": "2", "uid": pod["metadata"]["uid"]}
        assert disk.host_path == str(tmp_path)
        async with connect(kube, token=(folder / "token").read_text()) as container:
            review = await container.create(REVIEWS, {"kind": "SelfSubjectReview"})
        info = review["status"]["userInfo"]
        assert info["username"] == f"system:serviceaccount:{NAMESPACE}:robot"
        assert info["extra"]["authentication.kubernetes.io/pod-uid"] == [pod["metadata"]["uid"]]
        found = await references.service_environment(pod)
        service = await admin.get(Ref("", "v1", "services"), "kubernetes", "default")
        assert found["KUBERNETES_SERVICE_HOST"] == service["spec"]["clusterIP"]
        await volumes.unmount(pod["metadata"]["uid"])
    assert kernel.mount_points(root) == []
    assert list((root / "pods").iterdir()) == []
