"""What containers see at /etc/hosts."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from podlife.client import Client
from podlife.clock import SystemClock
from podlife.kubelet.hollow.fake_parts import NoObjects
from podlife.kubelet.volumemanager import VolumeManager, VolumeSettings
from tests.kit.embedded import connect, start

Object = dict[str, Any]
ALIASES = [
    {"ip": "192.0.2.9", "hostnames": ["db", "db.example"]},
    {"ip": "2001:db8::9", "hostnames": ["db6"]},
]
OWN = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""
SHOWN_ALIASES = """
# Entries added by HostAliases.
192.0.2.9\tdb\tdb.example
2001:db8::9\tdb6
"""


def a_pod(**spec: Any) -> Object:
    return {
        "metadata": {"name": "web", "namespace": "shop", "uid": "u"},
        "spec": {"containers": [{"name": "c"}], **spec},
    }


@pytest.fixture
async def client() -> Client:
    return connect(await start())


def shown(
    client: Client, folder: Path, pod: Object, ips: tuple[str, ...] = ("10.0.0.7",), *, is_own: bool = True
) -> str | None:
    settings = VolumeSettings(is_network_own=is_own)
    volumes = VolumeManager(client, NoObjects(), SystemClock(), folder, settings)
    mount = volumes.hosts_file(pod, pod["spec"]["containers"][0], ips)
    if mount is None:
        return None
    assert mount.container_path == "/etc/hosts"
    assert not mount.readonly
    path = Path(mount.host_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    return path.read_text()


async def test_a_pod_with_addresses_is_in_it_by_its_name(client: Client, tmp_path: Path) -> None:
    assert shown(client, tmp_path, a_pod()) == f"{OWN}10.0.0.7\tweb\n"
    both = shown(client, tmp_path, a_pod(hostname="h"), ("10.0.0.8", "fd00::8"))
    assert both == f"{OWN}10.0.0.8\th\nfd00::8\th\n"


async def test_a_pod_with_a_subdomain_is_in_it_by_its_whole_name(client: Client, tmp_path: Path) -> None:
    text = shown(client, tmp_path, a_pod(hostname="h", subdomain="s"))
    assert text == f"{OWN}10.0.0.7\th.s.shop.svc.cluster.local\th\n"


async def test_host_aliases_come_last(client: Client, tmp_path: Path) -> None:
    assert shown(client, tmp_path, a_pod(hostAliases=ALIASES)) == f"{OWN}10.0.0.7\tweb\n{SHOWN_ALIASES}"


@pytest.mark.parametrize(("spec", "is_own"), [({"hostNetwork": True}, True), ({}, False)])
async def test_in_the_node_s_network_the_node_s_own_file_is_seen_and_aliases_are_added_to_it(
    client: Client, tmp_path: Path, spec: Object, is_own: bool
) -> None:
    assert shown(client, tmp_path, a_pod(**spec), is_own=is_own) is None
    text = shown(client, tmp_path, a_pod(hostAliases=ALIASES, **spec), is_own=is_own)
    of_the_node = Path("/etc/hosts").read_text()
    assert text == f"# Kubernetes-managed hosts file (host network).\n{of_the_node}{SHOWN_ALIASES}"


async def test_a_container_that_mounts_a_file_there_keeps_it(client: Client, tmp_path: Path) -> None:
    container = {"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/etc/hosts"}]}
    assert shown(client, tmp_path, a_pod(containers=[container])) is None


async def test_the_file_goes_with_the_pod_s_volumes(client: Client, tmp_path: Path) -> None:
    settings = VolumeSettings(is_network_own=True)
    volumes = VolumeManager(client, NoObjects(), SystemClock(), tmp_path, settings)
    pod = a_pod()
    assert volumes.hosts_file(pod, pod["spec"]["containers"][0], ("10.0.0.7",)) is not None
    assert list(volumes.mounted()) == ["u"]
    await volumes.unmount("u")
    assert list(volumes.mounted()) == []
    assert not list((tmp_path / "pods").iterdir())
