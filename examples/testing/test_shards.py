"""An operator with its custom resource, from the class to its end, under virtual time."""

import msgspec
import pytest
from shards import SHARDS, Shard, Shards, ShardSpec

from podlife.api.crd import manifest_of
from podlife.api.views import Metadata
from podlife.client import PODS, save
from podlife.errors import InvalidError
from podlife.testing import DEFAULT, Behaviour, Cluster, is_gone


@pytest.fixture
def podlife_cluster():
    return Cluster(nodes=2, controllers={**DEFAULT, "shards": Shards}, crds=Shard)


async def create(cluster, **spec):
    shard = Shard(Metadata("a", "default"), ShardSpec("app", **spec))
    return await cluster.client.create(SHARDS, manifest_of(shard), view=Shard)


async def read(cluster):
    return await cluster.client.get(SHARDS, "a", "default", view=Shard)


async def pods(cluster):
    return [each["metadata"]["name"] for each in (await cluster.client.list(PODS, "default")).items]


async def test_a_shard_has_as_many_pods_as_it_says(podlife_cluster):
    cluster = podlife_cluster
    await create(cluster, size=3)
    await cluster.settled()
    shard = await read(cluster)
    assert (shard.status.ready, shard.status.observed_generation) == (3, shard.metadata.generation)
    await save(cluster.client, shard, msgspec.structs.replace(shard, spec=ShardSpec("app", 1)))
    await cluster.settled()
    assert await pods(cluster) == ["a-0"]
    assert (await read(cluster)).status.ready == 1


async def test_a_shard_ends_after_its_pods(podlife_cluster):
    cluster = podlife_cluster
    # A pod that needs 20 seconds to stop.
    cluster.behave(Behaviour(stop_seconds=20), pod="a-0")
    await create(cluster, size=2)
    await cluster.settled()
    async with cluster.timeline(SHARDS) as seen:
        await cluster.client.delete(SHARDS, "a", "default")
        await cluster.advance(minutes=1)
        assert 20 <= seen.first("Shard", "a", is_gone) < 22
    assert await pods(cluster) == []


async def test_the_operator_goes_on_after_it_was_killed(podlife_cluster):
    cluster = podlife_cluster
    await cluster.controllers.kill("shards")
    await create(cluster, size=2)
    await cluster.advance(minutes=5)
    assert await pods(cluster) == []
    await cluster.controllers.start("shards")
    await cluster.settled()
    assert await pods(cluster) == ["a-0", "a-1"]


async def test_what_the_class_does_not_allow_the_server_refuses(podlife_cluster):
    for spec, text in (
        ({"size": 21}, "less than or equal to 20"),
        ({"size": 3, "max_size": 2}, "must not exceed"),
    ):
        with pytest.raises(InvalidError, match=text):
            await create(podlife_cluster, **spec)
