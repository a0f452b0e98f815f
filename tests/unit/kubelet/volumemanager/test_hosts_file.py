"""What containers see at /etc/hosts."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from podlife.api.codec import Object
from podlife.clock import SystemClock
from podlife.kubelet.hollow.fake_parts import NoObjects
from podlife.kubelet.volumemanager import VolumeManager, VolumeSettings
from tests.kit.objects import container, pod, stored

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
    return stored(pod("web", container("c"), **spec), "shop")


def volumes_in(folder: Path, *, is_own: bool = True) -> VolumeManager:
    no_client: Any = None
    settings = VolumeSettings(is_network_own=is_own)
    return VolumeManager(no_client, NoObjects(), SystemClock(), folder, settings)


def shown(
    folder: Path, of_pod: Object, ips: tuple[str, ...] = ("10.0.0.7",), *, is_own: bool = True
) -> str | None:
    mount = volumes_in(folder, is_own=is_own).hosts_file(of_pod, of_pod["spec"]["containers"][0], ips)
    if mount is None:
        return None
    assert (mount.container_path, mount.readonly) == ("/etc/hosts", False)
    path = Path(mount.host_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    return path.read_text()


@pytest.mark.parametrize(
    ("spec", "ips", "expected"),
    [
        ({}, ["10.0.0.7"], "10.0.0.7\tweb\n"),
        ({"hostname": "h"}, ["10.0.0.8", "fd00::8"], "10.0.0.8\th\nfd00::8\th\n"),
        ({"hostname": "h", "subdomain": "s"}, ["10.0.0.7"], "10.0.0.7\th.s.shop.svc.cluster.local\th\n"),
        ({"hostAliases": ALIASES}, ["10.0.0.7"], f"10.0.0.7\tweb\n{SHOWN_ALIASES}"),
    ],
)
def test_a_pod_with_addresses_is_in_it_by_its_names_and_aliases_come_last(
    tmp_path: Path, spec: Object, ips: list[str], expected: str
) -> None:
    assert shown(tmp_path, a_pod(**spec), tuple(ips)) == OWN + expected


@pytest.mark.parametrize(("spec", "is_own"), [({"hostNetwork": True}, True), ({}, False)])
def test_in_the_node_s_network_the_node_s_own_file_is_seen_and_aliases_are_added_to_it(
    tmp_path: Path, spec: Object, is_own: bool
) -> None:
    assert shown(tmp_path, a_pod(**spec), is_own=is_own) is None
    text = shown(tmp_path, a_pod(hostAliases=ALIASES, **spec), is_own=is_own)
    of_the_node = Path("/etc/hosts").read_text()
    assert text == f"# Kubernetes-managed hosts file (host network).\n{of_the_node}{SHOWN_ALIASES}"


def test_a_container_that_mounts_a_file_there_keeps_it(tmp_path: Path) -> None:
    mounting = container("c", volumeMounts=[{"name": "v", "mountPath": "/etc/hosts"}])
    assert shown(tmp_path, a_pod(containers=[mounting])) is None


async def test_the_file_goes_with_the_pod_s_volumes(tmp_path: Path) -> None:
    volumes, of_pod = volumes_in(tmp_path), a_pod()
    assert volumes.hosts_file(of_pod, of_pod["spec"]["containers"][0], ("10.0.0.7",)) is not None
    assert list(volumes.mounted()) == ["uid-web"]
    await volumes.unmount("uid-web")
    assert list(volumes.mounted()) == []
    assert not list((tmp_path / "pods").iterdir())
