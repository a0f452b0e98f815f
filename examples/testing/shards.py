"""An operator of a custom resource: a Shard keeps its size in pods, and says in its status how many are ready."""

import asyncio
import contextlib
from typing import Annotated

import msgspec

from podlife.api.crd import CustomResource, rule
from podlife.api.views import Metadata
from podlife.client import PODS, Client, DeleteOptions, Ref, load, save, save_status
from podlife.controller import Controller, ControlPlane, Enqueue
from podlife.errors import AlreadyExistsError
from podlife.informer import Key
from podlife.workqueue import RateLimitedQueue

FINALIZER = "example.com/shards"


class ShardSpec(msgspec.Struct, rename="camel"):
    """What a shard should be."""

    image: Annotated[str, msgspec.Meta(min_length=1, description="What its pods run.")]
    size: Annotated[int, msgspec.Meta(ge=0, le=20)] = 1
    max_size: Annotated[int, msgspec.Meta(ge=0, le=20)] = 20


class ShardStatus(msgspec.Struct, rename="camel"):
    ready: int = 0
    observed_generation: int = 0


@CustomResource(
    "example.com",
    "v1",
    "shards",
    short_names=("sh",),
    columns={"Size": ".spec.size", "Ready": ".status.ready", "Age": ".metadata.creationTimestamp"},
    scale=(".spec.size", ".status.ready"),
    rules=(rule("self.spec.size <= self.spec.maxSize", "size must not exceed maxSize"),),
)
class Shard(msgspec.Struct):
    metadata: Metadata
    spec: ShardSpec
    status: ShardStatus = msgspec.field(default_factory=ShardStatus)


SHARDS = Ref.of(Shard)


class PodStatus(msgspec.Struct):
    phase: str = ""


class Pod(msgspec.Struct):
    metadata: Metadata
    status: PodStatus = msgspec.field(default_factory=PodStatus)


def key_of(pod: Pod) -> Key:
    """Namespace and name of the shard that a pod belongs to."""
    return pod.metadata.namespace, pod.metadata.name.rpartition("-")[0]


class EnqueueShard:
    """Reconciles the shard of a pod when the pod changes."""

    def __init__(self, queue: RateLimitedQueue[Key]) -> None:
        self.queue = queue

    def on_add(self, pod: Pod) -> None:
        self.queue.add(key_of(pod))

    def on_update(self, old: Pod, new: Pod) -> None:
        self.queue.add(key_of(new))

    def on_delete(self, pod: Pod) -> None:
        self.queue.add(key_of(pod))


class Shards(Controller[Key]):
    def __init__(self, plane: ControlPlane) -> None:
        super().__init__("shards", RateLimitedQueue("shards"), self.reconcile)
        self.client = plane.client
        self.shards = plane.informer(Shard)
        self.pods = plane.informer(PODS, view=Pod, label_selector="shard")
        self.shards.add_handler(Enqueue(self.queue))
        self.pods.add_handler(EnqueueShard(self.queue))

    async def reconcile(self, key: Key) -> None:
        shard = self.shards.cache.get(*key)
        if shard is None:
            return
        finalizers = shard.metadata.finalizers
        is_deleting = shard.metadata.deletion_timestamp is not None
        if not is_deleting and FINALIZER not in finalizers:
            # The change is an event, which brings the shard back here.
            await self.set_finalizers(shard, *finalizers, FINALIZER)
            return
        pods = {pod.metadata.name: pod for pod in self.pods.cache.list() if key_of(pod) == key}
        wanted = [] if is_deleting else [f"{key[1]}-{number}" for number in range(shard.spec.size)]
        for name in wanted:
            if name not in pods:
                await self.create_pod(shard, name)
        for name, pod in pods.items():
            if name not in wanted and pod.metadata.deletion_timestamp is None:
                await self.client.delete(PODS, name, key[0], options=DeleteOptions(uid=pod.metadata.uid))
        if not is_deleting:
            ready = sum(pods[name].status.phase == "Running" for name in wanted if name in pods)
            await save_status(self.client, shard, ShardStatus(ready, shard.metadata.generation))
        elif not pods and FINALIZER in finalizers:
            await self.set_finalizers(shard, *(each for each in finalizers if each != FINALIZER))

    async def set_finalizers(self, shard: Shard, *finalizers: str) -> None:
        metadata = msgspec.structs.replace(shard.metadata, finalizers=finalizers)
        await save(self.client, shard, msgspec.structs.replace(shard, metadata=metadata))

    async def create_pod(self, shard: Shard, name: str) -> None:
        spec = {"containers": [{"name": "main", "image": shard.spec.image}]}
        pod = {"metadata": {"name": name, "labels": {"shard": shard.metadata.name}}, "spec": spec}
        # The cache may be a moment behind what this has done before.
        with contextlib.suppress(AlreadyExistsError):
            await self.client.create(PODS, pod, shard.metadata.namespace)


async def main() -> None:
    async with Client.connect(load()) as client:
        plane = ControlPlane(client)
        plane.add(Shards(plane))
        await plane.run()


if __name__ == "__main__":
    asyncio.run(main())
