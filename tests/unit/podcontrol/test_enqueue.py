from __future__ import annotations

from typing import Any

import msgspec

from podlife.client import REPLICA_SETS
from podlife.informer.indexes import Key
from podlife.podcontrol import EnqueueOwner, Pod
from podlife.workqueue import Queue


def pod(name: str | None, *, kind: str = "ReplicaSet", api_version: str = "apps/v1") -> Pod:
    metadata: dict[str, Any] = {"name": "p", "namespace": "default"}
    if name:
        reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": True}
        metadata["ownerReferences"] = [reference]
    return msgspec.convert({"metadata": metadata}, Pod)


async def drain(queue: Queue[Key]) -> list[Key]:
    keys = []
    while queue.depth:
        keys.append(await queue.get())
        queue.done(keys[-1])
    return keys


async def test_every_event_enqueues_the_owner() -> None:
    queue: Queue[Key] = Queue("test")
    handler = EnqueueOwner(queue, REPLICA_SETS)
    for tell in (handler.on_add, handler.on_delete, lambda each: handler.on_update(each, each)):
        tell(pod("web"))
        assert await drain(queue) == [("default", "web")]


async def test_pod_that_changes_hands_enqueues_both_owners() -> None:
    queue: Queue[Key] = Queue("test")
    EnqueueOwner(queue, REPLICA_SETS).on_update(pod("old"), pod("new"))
    assert await drain(queue) == [("default", "old"), ("default", "new")]


async def test_orphans_and_owners_of_other_kinds_are_left_alone() -> None:
    queue: Queue[Key] = Queue("test")
    handler = EnqueueOwner(queue, REPLICA_SETS)
    for each in (pod(None), pod("web", kind="Job"), pod("web", api_version="example.com/v1")):
        handler.on_add(each)
    assert await drain(queue) == []


async def test_another_version_of_the_same_kind_is_the_same_owner() -> None:
    queue: Queue[Key] = Queue("test")
    EnqueueOwner(queue, REPLICA_SETS).on_add(pod("web", api_version="apps/v2"))
    assert await drain(queue) == [("default", "web")]
