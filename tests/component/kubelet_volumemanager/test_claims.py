"""Persistent volumes that are folders of the node."""

from __future__ import annotations

from pathlib import Path

import pytest

from podlife.api.codec import Object
from podlife.kubelet.interfaces import VolumeError
from podlife.testing import virtual_time
from tests.component.kubelet_volumemanager.conftest import needs_root
from tests.component.kubelet_volumemanager.node import Node, bind, contents, pod

DATA = {"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}
UNABLE = (
    "Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], "
    "failed to process volumes=[data]: error processing PVC default/mine: "
)


def on(node_name: str) -> Object:
    requirement = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node_name]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}}


@virtual_time
async def test_a_claim_of_a_host_path_shows_it_and_leaves_it(node: Node, tmp_path: Path) -> None:
    host = tmp_path / "host"
    await bind(node.server.client, {"hostPath": {"path": str(host), "type": "DirectoryOrCreate"}})
    mine = pod(DATA)
    assert (await node.mount(mine))["data"] == host
    (host / "precious").write_text("1")
    await node.volumes.unmount("uid-1")
    assert contents(host) == {"precious": b"1"}


@virtual_time
async def test_a_local_volume_is_shown_on_its_own_node_alone(root: Path, tmp_path: Path) -> None:
    labels = {"kubernetes.io/hostname": "n1"}
    here = {"metadata": {"name": "n1", "labels": labels}}
    node = Node(root, node=lambda: here)
    (tmp_path / "disk").mkdir()
    await bind(node.server.client, {"local": {"path": str(tmp_path / "disk")}}, nodeAffinity=on("n1"))
    assert (await node.mount(pod(DATA)))["data"] == tmp_path / "disk"
    labels["kubernetes.io/hostname"] = "n2"
    with pytest.raises(VolumeError, match=r'^MountVolume\.NodeAffinity check failed for volume "pv"'):
        await node.mount(pod(DATA, uid="uid-2"))


@needs_root
@virtual_time
async def test_a_local_volume_is_given_to_the_group_once_and_a_host_path_never(
    node: Node, tmp_path: Path
) -> None:
    (tmp_path / "disk").mkdir()
    await bind(node.server.client, {"local": {"path": str(tmp_path / "disk")}}, nodeAffinity=on("n1"))
    (tmp_path / "host").mkdir()
    host = {"name": "host", "hostPath": {"path": str(tmp_path / "host")}}
    mine = pod(DATA, host, securityContext={"fsGroup": 2345})
    await node.mount(mine)
    assert (tmp_path / "disk").stat().st_gid == 2345
    assert (tmp_path / "host").stat().st_gid == 0
    (tmp_path / "disk/own").write_text("")
    group = (tmp_path / "disk/own").stat().st_gid
    await node.mount(mine)
    assert (tmp_path / "disk/own").stat().st_gid == group


@virtual_time
async def test_a_claim_that_is_read_only_is_shown_read_only(node: Node, tmp_path: Path) -> None:
    await bind(node.server.client, {"hostPath": {"path": str(tmp_path)}})
    mine = pod({"name": "data", "persistentVolumeClaim": {"claimName": "mine", "readOnly": True}})
    await node.mount(mine)
    (shown,) = node.volumes.mounts(mine, mine["spec"]["containers"][0])
    assert shown.readonly


@virtual_time
async def test_a_claim_of_the_pods_own_must_be_owned_by_it(node: Node, tmp_path: Path) -> None:
    await bind(node.server.client, {"hostPath": {"path": str(tmp_path)}}, name="web-data", owner="uid-1")
    volume = {"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}
    assert (await node.mount(pod(volume)))["data"] == tmp_path
    with pytest.raises(VolumeError, match=r"was not created for pod default/web \(pod is not owner\)$"):
        await node.mount(pod(volume, uid="uid-2"))


@virtual_time
async def test_a_claim_that_is_not_there_or_not_bound_says_so(node: Node) -> None:
    with pytest.raises(VolumeError) as failure:
        await node.mount(pod(DATA))
    missing = 'failed to fetch PVC from API server: persistentvolumeclaims "mine" not found'
    assert str(failure.value) == UNABLE + missing
    await bind(node.server.client, {"hostPath": {"path": "/"}}, phase="Pending")
    with pytest.raises(VolumeError) as failure:
        await node.mount(pod(DATA))
    assert str(failure.value) == UNABLE + "PVC is not bound"


@virtual_time
async def test_a_volume_that_belongs_to_another_claim_is_refused(node: Node) -> None:
    other = {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "mine", "uid": "other"}
    await bind(node.server.client, {"hostPath": {"path": "/"}}, claimRef=other)
    with pytest.raises(VolumeError, match=r"its pv\.Spec\.ClaimRef\.UID other does not point to claim\.UID"):
        await node.mount(pod(DATA))


@virtual_time
@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"nfs": {"server": "s", "path": "/"}}, "this node supports hostPath and local, not nfs"),
        ({"csi": {"driver": "d", "volumeHandle": "h"}}, "this node supports hostPath and local, not csi"),
        (
            {"local": {"path": "/dev/none"}, "volumeMode": "Block", "nodeAffinity": on("n1")},
            'volume "pv" is a block device: this node does not support those',
        ),
        (
            {"local": {"path": "/none"}, "nodeAffinity": on("n1")},
            'MountVolume.SetUp failed for volume "data" : local volume path /none is not a directory of this node',
        ),
    ],
)
async def test_what_needs_a_driver_is_refused_by_its_name(node: Node, source: Object, message: str) -> None:
    await bind(node.server.client, source)
    with pytest.raises(VolumeError) as failure:
        await node.mount(pod(DATA))
    assert str(failure.value).endswith(message)
