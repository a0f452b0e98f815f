"""A plain async function, tested through hours that take no time."""

import pytest
from janitor import tidy

from podlife.client import PODS
from podlife.testing import Behaviour, Cluster, function


def pod(name):
    spec = {"nodeName": "n1", "restartPolicy": "Never", "containers": [{"name": "main", "image": "app"}]}
    return {"metadata": {"name": name}, "spec": spec}


@pytest.fixture
def podlife_cluster():
    cluster = Cluster(nodes=1, controllers={"janitor": function(lambda client: tidy(client, cluster.clock))})
    return cluster


async def names(cluster):
    return [each["metadata"]["name"] for each in (await cluster.client.list(PODS)).items]


async def test_a_pod_that_has_ended_goes_an_hour_later(podlife_cluster):
    podlife_cluster.behave(Behaviour(run_seconds=60), pod="short")
    for name in ("short", "long"):
        await podlife_cluster.client.create(PODS, pod(name), "default")
    await podlife_cluster.advance(minutes=60)
    assert await names(podlife_cluster) == ["long", "short"]
    await podlife_cluster.advance(minutes=3)
    assert await names(podlife_cluster) == ["long"]


async def test_it_goes_on_where_it_was_after_a_restart_and_an_outage(podlife_cluster):
    podlife_cluster.behave(Behaviour(run_seconds=60))
    await podlife_cluster.client.create(PODS, pod("short"), "default")
    await podlife_cluster.advance(minutes=30)
    await podlife_cluster.controllers.restart("janitor")
    podlife_cluster.api.stall()
    await podlife_cluster.advance(seconds=20)
    podlife_cluster.api.resume()
    await podlife_cluster.advance(minutes=33)
    assert await names(podlife_cluster) == []
