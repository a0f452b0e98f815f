"""With the rights of a node, on real servers: who else serves it, and which cluster it has joined, can be told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podlife.client import Client
from podlife.clock import SystemClock
from podlife.kubelet.node_status import (
    AnotherClusterError,
    ClusterMembership,
    KubeletIdentity,
    NameInUseError,
    NodeReporter,
    NodeSettings,
)
from tests.kit.real_parts import Server
from tests.real.node.test_registration import NAME, Machine, Runtime, connect, forget

SERVICE = "service/default/kubernetes"
ANCHORS = {"kube": [SERVICE], "podlife_server": ["namespace/kube-system", SERVICE]}


def reporter(own: Client, folder: Path) -> NodeReporter:
    folder.mkdir(exist_ok=True)
    return NodeReporter(
        own,
        NodeSettings(NAME, addresses=("127.0.0.1",)),
        SystemClock(),
        machine=Machine(folder),
        runtime=Runtime(),
        identity=KubeletIdentity(folder),
    )


@pytest.mark.parametrize("name", ANCHORS)
async def test_a_second_agent_is_refused_and_a_restarted_one_is_not(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    async with connect(server, NAME) as own, connect(server) as admin:
        try:
            await reporter(own, tmp_path / "1").claim()
            with pytest.raises(NameInUseError, match="is already served by another agent"):
                await reporter(own, tmp_path / "2").claim()
            await reporter(own, tmp_path / "1").claim()
        finally:
            await forget(admin)


@pytest.mark.parametrize(("name", "other"), [("kube", "podlife_server"), ("podlife_server", "kube")])
async def test_a_node_tells_its_cluster_from_another(
    name: str, other: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(name)
    elsewhere: Server = request.getfixturevalue(other)
    file = tmp_path / "cluster.json"
    async with connect(server, NAME) as own, connect(elsewhere, NAME) as stranger:
        await ClusterMembership(own, NAME, file).check()
        assert list(json.loads(file.read_text())) == ANCHORS[name]
        membership = ClusterMembership(own, NAME, file)
        membership.note_node("uid-of-a-node-that-was-deleted-since")
        await membership.check()
        with pytest.raises(AnotherClusterError):
            await ClusterMembership(stranger, NAME, file).check()
