"""A cluster with a socket, in real time and in a thread of its own."""

from __future__ import annotations

import asyncio

import pytest

from podlife.client import NODES, PODS, Client, Flags, load
from podlife.errors import ConfigError
from podlife.testing import Cluster, cluster_in_thread, function


def test_any_client_reaches_it_by_its_kubeconfig_and_its_file_is_private() -> None:
    with cluster_in_thread(nodes=2, controllers=()) as cluster:
        assert cluster.kubeconfig.stat().st_mode & 0o077 == 0

        async def names() -> list[str]:
            async with Client.connect(load(Flags(kubeconfig=str(cluster.kubeconfig)), {})) as client:
                return [each["metadata"]["name"] for each in (await client.list(NODES)).items]

        assert asyncio.run(names()) == ["n1", "n2"]

        async def run_a_pod(inside: Cluster) -> float:
            spec = {"nodeName": "n1", "containers": [{"name": "main", "image": "app"}]}
            await inside.client.create(PODS, {"metadata": {"name": "web"}, "spec": spec}, "default")
            return await inside.until(lambda: bool(inside.node("n1").containers), within=20)

        assert cluster.call(run_a_pod) < 20
        with pytest.raises(ConfigError, match="runs in real time, which cannot be advanced"):
            cluster.call(lambda inside: inside.advance(minutes=5))
        folder = cluster.kubeconfig.parent
    assert not folder.exists()


def test_what_ends_it_is_raised_where_it_is_used() -> None:
    async def broken(client: Client) -> None:
        raise ZeroDivisionError("in a controller")

    with (
        pytest.raises(ZeroDivisionError, match="in a controller"),
        cluster_in_thread(nodes=0, controllers={"broken": function(broken)}),
    ):
        pass
