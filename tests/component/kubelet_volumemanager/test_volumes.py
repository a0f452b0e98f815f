"""The volumes of pods, on a real disk, with what they show on the embedded API server, under virtual time."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from podlife.api.codec import Object
from podlife.client import CONFIG_MAPS
from podlife.kubelet.envvars import DownwardContext
from podlife.kubelet.interfaces import VolumeError
from podlife.kubelet.volumemanager import atomic_writer
from podlife.kubelet.volumemanager import mount as kernel
from podlife.testing import virtual_time
from podlife.wire import Response
from tests.component.kubelet_volumemanager.conftest import needs_root
from tests.component.kubelet_volumemanager.node import CONFIG, SCRATCH, Node, contents, pod
from tests.kit import embedded

SET_UP = 'MountVolume.SetUp failed for volume "x" : '
FIND_PLUGIN = 'MountVolume.FindPluginBySpec failed for volume "x" : '


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@virtual_time
async def test_a_config_map_is_files_where_every_node_has_them(node: Node, root: Path) -> None:
    binary = base64.b64encode(b"\xff\x00\xfe").decode()
    await node.server.put_config_map("settings", {"a.conf": "one", "b": "zwei ü"}, binaryData={"raw": binary})
    found = await node.mount(pod(CONFIG))
    assert found["config"] == root / "pods/uid-1/volumes/kubernetes.io~configmap/config"
    assert contents(found["config"]) == {"a.conf": b"one", "b": "zwei ü".encode(), "raw": b"\xff\x00\xfe"}
    assert mode(found["config"] / "a.conf") == 0o644
    assert str((found["config"] / "a.conf").readlink()) == "..data/a.conf"


@virtual_time
async def test_every_folder_between_the_root_and_a_volume_is_private(node: Node, root: Path) -> None:
    root.mkdir(mode=0o755)
    (root / "pods").mkdir(mode=0o777)
    found = await node.mount(pod(SCRATCH))
    above = [each for each in found["scratch"].parents if root in each.parents]
    assert {str(each): mode(each) for each in above} == {str(each): 0o700 for each in above}
    assert mode(found["scratch"]) == 0o777
    assert mode(root) == 0o755


@virtual_time
async def test_items_choose_keys_paths_and_modes(node: Node) -> None:
    await node.server.put_config_map("settings", {"a": "1", "b": "2", "c": "3"})
    items = [{"key": "a", "path": "deep/er/a"}, {"key": "b", "path": "b", "mode": 0o400}]
    source = {"name": "settings", "items": items, "defaultMode": 0o440}
    found = await node.mount(pod({"name": "config", "configMap": source}))
    assert contents(found["config"]) == {"deep/er/a": b"1", "b": b"2"}
    assert mode(found["config"] / "deep/er/a") == 0o440
    assert mode(found["config"] / "b") == 0o400


@virtual_time
async def test_a_change_arrives_and_what_is_gone_goes(node: Node) -> None:
    await node.server.put_config_map("settings", {"a": "1", "b": "2"})
    mine = pod(CONFIG)
    folder = (await node.mount(mine))["config"]
    before = str((folder / "..data").readlink())
    await node.mount(mine)
    assert str((folder / "..data").readlink()) == before
    await node.server.put_config_map("settings", {"b": "new", "c": "3"})
    await asyncio.sleep(61)
    await node.mount(mine)
    assert contents(folder) == {"b": b"new", "c": b"3"}
    hidden = sorted(each.name for each in folder.iterdir() if each.name.startswith(".."))
    assert hidden == sorted(["..data", str((folder / "..data").readlink())])


@virtual_time
@pytest.mark.parametrize(
    ("volume", "message"),
    [
        ({"configMap": {"name": "y"}}, SET_UP + 'configmap "y" not found'),
        ({"secret": {"secretName": "y"}}, SET_UP + 'secret "y" not found'),
        (
            {"projected": {"sources": [{"secret": {"name": "s"}}, {"configMap": {"name": "y"}}]}},
            SET_UP + '[secret "s" not found, configmap "y" not found]',
        ),
        (
            {"configMap": {"name": "settings", "items": [{"key": "z", "path": "z"}]}},
            SET_UP + "configmap references non-existent config key: z",
        ),
        (
            {"configMap": {"name": "settings", "items": [{"key": "a", "path": "../a"}]}},
            SET_UP + "invalid path: must not contain '..': ../a",
        ),
        (
            {"configMap": {"name": "../../secrets/y?watch=1"}},
            SET_UP + 'configmap "../../secrets/y?watch=1" not found',
        ),
        (
            {"downwardAPI": {"items": [{"path": "ip", "fieldRef": {"fieldPath": "status.podIP"}}]}},
            SET_UP + "unsupported fieldPath: status.podIP",
        ),
        (
            {"nfs": {"server": "s", "path": "/"}},
            FIND_PLUGIN + 'no volume plugin matched: this node does not support volumes of type "nfs"',
        ),
        (
            {"emptyDir": {"medium": "HugePages"}},
            SET_UP + 'unknown storage medium "HugePages": this node has "" and "Memory"',
        ),
        (
            {"configMap": {"name": "settings", "items": [{"key": "a"}]}},
            SET_UP + "the volume cannot be understood: KeyError('path')",
        ),
        (
            {"projected": {"sources": [{"clusterTrustBundle": {"path": "ca"}}]}},
            SET_UP + 'this node does not support "clusterTrustBundle" in a projected volume',
        ),
    ],
)
async def test_what_cannot_be_mounted_says_why(node: Node, volume: Object, message: str) -> None:
    await node.server.put_config_map("settings", {"a": "1"})
    with pytest.raises(VolumeError) as failure:
        await node.mount(pod({"name": "x", **volume}))
    assert str(failure.value) == message


@virtual_time
async def test_one_volume_that_fails_keeps_no_other_from_being_ready(node: Node, root: Path) -> None:
    await node.server.put_config_map("settings", {"a": "1"})
    missing = [{"name": f"m{number}", "configMap": {"name": f"none-{number}"}} for number in (1, 2)]
    mine = pod(missing[0], CONFIG, missing[1])
    with pytest.raises(VolumeError, match=r'"none-1" not found; .*"none-2" not found'):
        await node.mount(mine)
    assert contents(root / "pods/uid-1/volumes/kubernetes.io~configmap/config") == {"a": b"1"}
    for number in (1, 2):
        await node.server.put_config_map(f"none-{number}", {})
    await node.mount(mine)


@virtual_time
async def test_what_is_optional_may_be_missing_and_comes_when_it_is_there(node: Node) -> None:
    source = {"name": "settings", "optional": True, "items": [{"key": "a", "path": "a"}]}
    mine = pod({"name": "config", "configMap": source})
    folder = (await node.mount(mine))["config"]
    assert contents(folder) == {}
    await node.server.put_config_map("settings", {"b": "not chosen"})
    await node.mount(mine)
    assert contents(folder) == {}
    await node.server.put_config_map("settings", {"a": "1"})
    await asyncio.sleep(61)
    await node.mount(mine)
    assert contents(folder) == {"a": b"1"}


@virtual_time
async def test_a_volume_that_was_ready_keeps_what_it_has_when_its_object_goes(node: Node) -> None:
    await node.server.put_config_map("settings", {"a": "1"})
    mine = pod(CONFIG)
    await node.mount(mine)
    await node.server.client.delete(CONFIG_MAPS, "settings", "default")
    await asyncio.sleep(61)
    folder = (await node.mount(mine))["config"]
    assert contents(folder) == {"a": b"1"}
    assert node.reports == ['MountVolume.SetUp failed for volume "config" : configmap "settings" not found']


@virtual_time
async def test_a_server_that_fails_is_said_with_the_volume(node: Node) -> None:
    node.server.refuse = lambda _: embedded.refusal(403, "Forbidden")
    with pytest.raises(VolumeError, match=r'^MountVolume.SetUp failed for volume "x" : no: 403$'):
        await node.mount(pod({"name": "x", "configMap": {"name": "settings"}}))


@virtual_time
async def test_a_server_that_does_not_answer_ends_the_mount_in_time(node: Node) -> None:
    node.server.held_back = asyncio.Event()
    with pytest.raises(VolumeError):
        await node.mount(pod({"name": "x", "configMap": {"name": "settings"}}))
    assert asyncio.get_running_loop().time() < 130


@virtual_time
async def test_a_secret_is_files_of_any_bytes(node: Node) -> None:
    await node.server.put_secret("key", {"tls.key": b"\x00\xff\n"})
    source = {"secretName": "key", "defaultMode": 0o400}
    found = await node.mount(pod({"name": "tls", "secret": source}))
    assert contents(found["tls"]) == {"tls.key": b"\x00\xff\n"}
    assert mode(found["tls"] / "tls.key") == 0o400


@needs_root
@virtual_time
async def test_what_may_be_secret_is_in_memory_alone_and_goes_with_the_last_pod(
    node: Node, root: Path
) -> None:
    await node.server.put_secret("key", {"a": b"1"})
    secret = {"name": "s", "secret": {"secretName": "key"}}
    projected = {"name": "p", "projected": {"sources": [{"secret": {"name": "key"}}]}}
    for uid in ("uid-1", "uid-2"):
        found = await node.mount(pod(secret, projected, uid=uid))
        assert {name: contents(path) for name, path in found.items()} == {"s": {"a": b"1"}, "p": {"a": b"1"}}
    assert kernel.mount_points(root) == [str(root / "memory")]
    assert mode(root / "memory") == mode(root / "memory/uid-1") == 0o700
    on_disk = root.stat().st_dev
    assert {(path / "a").stat().st_dev == on_disk for path in found.values()} == {False}
    await node.volumes.unmount("uid-1")
    assert list(node.volumes.mounted()) == ["uid-2"]
    await node.volumes.unmount("uid-2")
    assert kernel.mount_points(root) == []
    assert [each.name for each in root.iterdir()] == ["pods"]


@needs_root
@virtual_time
async def test_secrets_come_back_after_the_node_was_started_anew(node: Node, root: Path) -> None:
    await node.server.put_secret("key", {"a": b"1"})
    mine = pod({"name": "s", "secret": {"secretName": "key"}})
    await node.mount(mine)
    kernel.unmount(str(root / "memory"))
    again = Node(root, node.server)
    assert contents((await again.mount(mine))["s"]) == {"a": b"1"}
    await again.volumes.unmount("uid-1")
    assert [each.name for each in root.iterdir()] == ["pods"]


@virtual_time
async def test_where_nothing_can_be_mounted_secrets_are_private_files(
    node: Node, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(target: Path, **options: object) -> None:
        raise PermissionError(1, "not root")

    monkeypatch.setattr(kernel, "mount_memory", refuse)
    await node.server.put_secret("key", {"a": b"1"})
    fast = {"name": "fast", "emptyDir": {"medium": "Memory"}}
    found = await node.mount(pod({"name": "s", "secret": {"secretName": "key"}}, fast))
    assert contents(found["s"]) == {"a": b"1"}
    assert mode(found["fast"]) == 0o777
    await node.volumes.unmount("uid-1")
    assert list((root / "pods").iterdir()) == []


@virtual_time
async def test_a_config_map_as_large_as_they_come_is_written_whole(node: Node) -> None:
    data = {f"key-{number}": "x" * 100_000 for number in range(10)}
    large = {"metadata": {"name": "large", "resourceVersion": "1"}, "data": data}
    node.server.refuse = lambda _: Response(200, json.dumps(large).encode())
    found = await node.mount(pod({"name": "config", "configMap": {"name": "large"}}))
    assert contents(found["config"]) == {key: value.encode() for key, value in data.items()}


@virtual_time
async def test_a_pod_reads_of_itself_and_of_its_changes(root: Path) -> None:
    context = DownwardContext(allocatable={"memory": "8Gi", "cpu": "4"})
    node = Node(root, context=lambda _: context)
    items = [
        {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
        {"path": "one/label", "fieldRef": {"fieldPath": "metadata.labels['app']"}},
        {"path": "name", "mode": 0o600, "fieldRef": {"fieldPath": "metadata.name"}},
        {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
    ]
    mine = pod({"name": "info", "downwardAPI": {"items": items}})
    folder = (await node.mount(mine))["info"]
    assert folder.parent.name == "kubernetes.io~downward-api"
    assert contents(folder) == {"labels": b'app="web"', "one/label": b"web", "name": b"web", "cpu": b"4"}
    assert mode(folder / "name") == 0o600
    mine["metadata"]["labels"] = {"app": "new"}
    await node.mount(mine)
    assert contents(folder)["labels"] == b'app="new"'


@virtual_time
async def test_a_projected_volume_joins_all_sources_and_renews_its_token(node: Node, root: Path) -> None:
    await node.server.put_config_map("kube-root-ca.crt", {"ca.crt": "CA"})
    await node.server.put_secret("key", {"a": b"secret", "same": b"first"})
    sources: list[Object] = [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}},
        {"secret": {"name": "key"}},
        {"secret": {"name": "key", "items": [{"key": "a", "path": "same"}]}},
        {"configMap": {"name": "none", "optional": True}},
    ]
    mine = pod({"name": "all", "projected": {"sources": sources, "defaultMode": 0o444}})
    folder = (await node.mount(mine))["all"]
    expected = {"ca.crt": b"CA", "namespace": b"default", "a": b"secret", "same": b"secret"}
    assert contents(folder) == {**expected, "token": b"token-1"}
    assert mode(folder / "token") == 0o444
    await asyncio.sleep(3000)
    await node.mount(mine)
    assert contents(folder) == {**expected, "token": b"token-2"}


@virtual_time
async def test_a_token_of_a_pod_with_a_user_is_for_that_user_alone(node: Node) -> None:
    source = {"sources": [{"serviceAccountToken": {"path": "token"}}]}
    mine = pod({"name": "t", "projected": source}, securityContext={"runAsUser": 1234})
    folder = (await node.mount(mine))["t"]
    assert mode(folder / "token") == 0o600
    if os.geteuid() == 0:
        assert (folder / "token").stat().st_uid == 1234


@virtual_time
async def test_without_tokens_on_the_server_the_volume_says_so(node: Node) -> None:
    node.server.has_tokens = False
    source = {"sources": [{"serviceAccountToken": {"path": "token"}}]}
    with pytest.raises(VolumeError, match="failed to fetch token: the API server does not have TokenRequest"):
        await node.mount(pod({"name": "t", "projected": source}))


@virtual_time
async def test_what_a_container_wrote_to_an_empty_dir_stays_until_its_pod_goes(
    node: Node, root: Path
) -> None:
    mine = pod(SCRATCH)
    folder = (await node.mount(mine))["scratch"]
    (folder / "work").write_text("kept")
    folder.chmod(0o750)
    again = Node(root, node.server)
    assert (await again.mount(mine))["scratch"] == folder
    assert contents(folder) == {"work": b"kept"}
    assert mode(folder) == 0o750
    assert again.volumes.mounted() == ["uid-1"]
    await again.volumes.unmount("uid-1")
    assert not (root / "pods/uid-1").exists()
    assert again.volumes.mounted() == []
    await again.volumes.unmount("uid-1")


@needs_root
@virtual_time
async def test_an_empty_dir_in_memory_is_as_large_as_the_least_bound_and_goes_with_its_pod(
    root: Path,
) -> None:
    context = DownwardContext(allocatable={"memory": "1Gi"})
    node = Node(root, context=lambda _: context)
    source = {"medium": "Memory", "sizeLimit": "1Mi"}
    mine = pod({"name": "fast", "emptyDir": source}, securityContext={"fsGroup": 2345})
    folder = (await node.mount(mine))["fast"]
    size = os.statvfs(folder)
    assert folder.is_mount()
    assert size.f_blocks * size.f_frsize == 1024 * 1024
    assert (folder.stat().st_gid, mode(folder)) == (2345, 0o2777)
    (folder / "file").write_text("kept")
    await Node(root, node.server).mount(mine)
    assert contents(folder) == {"file": b"kept"}
    await node.volumes.unmount("uid-1")
    assert not folder.exists()
    assert kernel.mount_points(root) == []


@needs_root
@virtual_time
async def test_files_belong_to_the_group_of_the_pod(node: Node) -> None:
    await node.server.put_config_map("settings", {"a": "1"})
    config = {"name": "config", "configMap": {"name": "settings", "defaultMode": 0o400}}
    found = await node.mount(pod(config, SCRATCH, securityContext={"fsGroup": 2345}))
    file = (found["config"] / "a").stat()
    assert (file.st_gid, stat.S_IMODE(file.st_mode)) == (2345, 0o440)
    assert (found["scratch"].stat().st_gid, mode(found["scratch"])) == (2345, 0o2777)


@virtual_time
async def test_a_volume_that_no_container_mounts_is_not_set_up(node: Node) -> None:
    mine = pod({"name": "unused", "configMap": {"name": "none"}}, mounts=[])
    await node.mount(mine)
    assert node.volumes.mounted() == []


@virtual_time
async def test_a_volume_mounted_inside_of_another_finds_its_folder_there(node: Node) -> None:
    await node.server.put_config_map("settings", {"a": "1"})
    paths = {"config": "/etc/app", "scratch": "/etc/app/var/run"}
    mounts = [{"name": name, "mountPath": path} for name, path in paths.items()]
    folder = (await node.mount(pod(CONFIG, SCRATCH, mounts=mounts)))["config"]
    assert (folder / "var/run").is_dir()
    assert contents(folder) == {"a": b"1"}


@virtual_time
async def test_a_host_path_is_shown_and_never_removed(node: Node, root: Path, tmp_path: Path) -> None:
    host = tmp_path / "host"
    source = {"path": str(host), "type": "DirectoryOrCreate"}
    mine = pod({"name": "host", "hostPath": source}, SCRATCH)
    found = await node.mount(mine)
    assert found["host"] == host
    (host / "precious").write_text("1")
    (found["scratch"] / "link").symlink_to(host)
    await node.volumes.unmount("uid-1")
    assert contents(host) == {"precious": b"1"}
    assert not (root / "pods/uid-1").exists()


@virtual_time
async def test_what_is_read_only_is_shown_read_only(node: Node, tmp_path: Path) -> None:
    await node.server.put_config_map("settings", {})
    mounts: list[Object] = [
        {"name": "config", "mountPath": "/config"},
        {"name": "scratch", "mountPath": "/read", "readOnly": True},
        {"name": "scratch", "mountPath": "write"},
    ]
    mine = pod(CONFIG, SCRATCH, mounts=mounts)
    await node.mount(mine)
    shown = node.volumes.mounts(mine, mine["spec"]["containers"][0])
    is_readonly = {each.container_path: each.readonly for each in shown}
    assert is_readonly == {"/config": True, "/read": True, "/write": False}


@virtual_time
async def test_names_that_lead_elsewhere_are_refused_and_removed_nowhere(node: Node, tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    for name in ("..", "../../../../precious", "a/b"):
        with pytest.raises(VolumeError, match="cannot be the name of a volume's folder"):
            await node.mount(pod({"name": name, "emptyDir": {}}))
    with pytest.raises(VolumeError, match="cannot be the name of a pod's folder"):
        await node.mount(pod({"name": "v", "emptyDir": {}}, uid="../../precious"))
    for uid in ("..", "../../precious", "", "."):
        await node.volumes.unmount(uid)
    assert (tmp_path / "precious").is_dir()


async def test_what_is_still_being_written_when_its_pod_goes_is_removed_as_well(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step that is overtaken is cancelled; the thread that writes for it is not."""
    node = Node(root, in_threads=True)
    await node.server.put_config_map("settings", {"a": "1"})
    is_writing, may_go_on = threading.Event(), threading.Event()
    write = atomic_writer.write

    def slow(*arguments: Any) -> bool:
        is_writing.set()
        may_go_on.wait(60)
        return write(*arguments)

    monkeypatch.setattr(atomic_writer, "write", slow)
    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        mounting = tasks.create_task(node.mount(pod({"name": "c", "configMap": {"name": "settings"}})))
        await asyncio.to_thread(is_writing.wait, 20)
        mounting.cancel()
        while not mounting.done():
            await asyncio.sleep(0)
        removing = tasks.create_task(node.volumes.unmount("uid-1"))
        await asyncio.sleep(0)
        assert not removing.done()
        may_go_on.set()
    assert list((root / "pods").iterdir()) == []
    assert list(node.volumes.mounted()) == []


@virtual_time
async def test_pods_without_volumes_cost_no_folder(node: Node, root: Path) -> None:
    await node.mount(pod())
    await node.volumes.unmount("uid-1")
    assert not root.exists()
