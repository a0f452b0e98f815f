"""Parts of volumes (subPath, subPathExpr), as containers are shown them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podlife.api.codec import Object
from podlife.kubelet.envvars import ContainerConfigError
from podlife.kubelet.volumemanager import mount as kernel
from podlife.testing import virtual_time
from tests.component.kubelet_volumemanager.conftest import needs_root
from tests.component.kubelet_volumemanager.node import SCRATCH, Node, contents, pod


def part(path: str = "", **said: Any) -> Object:
    return {"name": "scratch", "mountPath": "/part", **({"subPath": path} if path else {}), **said}


@needs_root
@virtual_time
async def test_a_part_is_mounted_where_every_node_has_it_and_goes_with_its_pod(
    node: Node, root: Path
) -> None:
    shown = (await node.mount(pod(SCRATCH, mounts=[part("logs")])))["scratch"]
    assert shown == root / "pods/uid-1/volume-subpaths/scratch/main/0"
    await node.volumes.unmount("uid-1")
    assert kernel.mount_points(root) == []
    assert list((root / "pods").iterdir()) == []


@needs_root
@virtual_time
async def test_a_part_of_the_nodes_own_files_is_not_removed_with_the_pod(
    node: Node, root: Path, tmp_path: Path
) -> None:
    host = tmp_path / "host"
    (host / "part").mkdir(parents=True)
    (host / "part/precious").write_text("1")
    volume = {"name": "scratch", "hostPath": {"path": str(host)}}
    shown = (await node.mount(pod(volume, mounts=[part("part")])))["scratch"]
    assert contents(shown) == {"precious": b"1"}
    # Another agent, which knows nothing but what it finds.
    again = Node(root)
    assert list(again.volumes.mounted()) == ["uid-1"]
    await again.volumes.unmount("uid-1")
    assert contents(host) == {"part/precious": b"1"}


@virtual_time
async def test_a_key_of_a_config_map_is_a_part_and_the_newest_when_a_container_starts(node: Node) -> None:
    await node.server.put_config_map("settings", {"a.conf": "old"})
    volume = {"name": "scratch", "configMap": {"name": "settings"}}
    mine = pod(volume, mounts=[part("a.conf")])
    assert (await node.mount(mine))["scratch"].read_text() == "old"
    await node.server.put_config_map("settings", {"a.conf": "new"})
    node.objects.register({**mine, "metadata": {**mine["metadata"], "labels": {}}})
    assert (await node.mount(mine))["scratch"].read_text() == "new"


@virtual_time
async def test_a_path_may_be_made_of_the_environment(node: Node, root: Path) -> None:
    await node.server.put_config_map("settings", {"region": "eu"})
    await node.server.put_service("db")
    env = [
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "REGION", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "region"}}},
    ]
    mine = pod(SCRATCH, mounts=[part(subPathExpr="$(REGION)/$(POD)/$(DB_SERVICE_PORT)")])
    mine["spec"]["containers"][0]["env"] = env
    shown = (await node.mount(mine))["scratch"]
    (shown / "file").write_text("")
    folder = root / "pods/uid-1/volumes/kubernetes.io~empty-dir/scratch"
    assert list(contents(folder)) == ["eu/web/80/file"]


@virtual_time
@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"subPath": "/abs"}, "error SubPath `/abs` must not be an absolute path"),
        ({"subPath": "a/../../b"}, "unable to provision SubPath `a/../../b`: must not contain '..'"),
        ({"subPathExpr": "$(B)/$(A)/$(EMPTY)"}, "missing value for A, B, EMPTY"),
        ({"subPathExpr": "$(UP)"}, "unable to provision SubPath `../..`: must not contain '..'"),
        ({"subPath": "link"}, 'failed to prepare subPath for volumeMount "scratch" of container "main"'),
        ({"subPath": "a\0b"}, 'failed to prepare subPath for volumeMount "scratch" of container "main"'),
        ({"name": "other"}, 'cannot find volume "other" to mount into container "main"'),
        (
            {"recursiveReadOnly": "Enabled", "readOnly": True},
            'failed to resolve recursive read-only mode: volume "scratch" requested recursive read-only mode, but it is not supported by the runtime',  # noqa: E501 - as it is shown
        ),
    ],
)
async def test_a_part_that_cannot_be_shown_says_why_and_nothing_of_the_node(
    node: Node, tmp_path: Path, said: Object, message: str
) -> None:
    first = pod(SCRATCH)
    folder = (await node.mount(first))["scratch"]
    (folder / "link").symlink_to(tmp_path)
    mine = pod(SCRATCH, mounts=[part(**said)])
    mine["spec"]["containers"][0]["env"] = [{"name": "UP", "value": "../.."}, {"name": "EMPTY", "value": ""}]
    with pytest.raises(ContainerConfigError) as failure:
        await node.mount(mine)
    assert str(failure.value) == message
