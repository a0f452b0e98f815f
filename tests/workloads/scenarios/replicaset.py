"""ReplicaSets: as many pods as are asked for, whatever becomes of them."""

from __future__ import annotations

from podlife.client import REPLICA_SETS
from tests.workloads.objects import replica_set
from tests.workloads.scenario import scenario
from tests.workloads.world import World

RS = REPLICA_SETS


@scenario("replicaset")
async def scale_up(world: World) -> None:
    await world.create(RS, replica_set("web", 2))
    await world.until_status(RS, "web", availableReplicas=2)
    await world.scale(RS, "web", 5)
    await world.until_status(RS, "web", availableReplicas=5)


@scenario("replicaset")
async def scale_down(world: World) -> None:
    await world.create(RS, replica_set("web", 5))
    await world.until_status(RS, "web", availableReplicas=5)
    await world.scale(RS, "web", 2)
    await world.until_status(RS, "web", replicas=2)
    await world.until("the others are gone", lambda: len(world.pods()) == 2)


@scenario("replicaset")
async def quota_refuses_then_allows(world: World) -> None:
    await world.refuse_pods(2)
    await world.create(RS, replica_set("web", 4))
    await world.until_event("FailedCreate", times=2)
    await world.allow_pods()
    await world.until_status(RS, "web", availableReplicas=4)
