from __future__ import annotations

from typing import Any

import msgspec
import pytest

from podlife.api.views import Metadata, MetadataOnly
from podlife.client import REPLICA_SETS
from podlife.informer.indexes import Key
from podlife.podcontrol import EnqueueOwner, OwnedPod, UidTrackedExpectations
from podlife.workqueue import Queue


def pod(name: str | None, *, kind: str = "ReplicaSet", api_version: str = "apps/v1") -> OwnedPod:
    metadata: dict[str, Any] = {"name": "p", "namespace": "default"}
    if name:
        reference = {"apiVersion": api_version, "kind": kind, "name": name, "uid": "u", "controller": True}
        metadata["ownerReferences"] = [reference]
    return msgspec.convert({"metadata": metadata}, OwnedPod)


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


OWNER = ("default", "web")


class Owners:
    """A cache with one owner."""

    def __init__(self, uid: str) -> None:
        self.owner = MetadataOnly(Metadata(name="web", namespace="default", uid=uid))

    def get(self, namespace: str, name: str) -> MetadataOnly | None:
        return self.owner if (namespace, name) == OWNER else None


def expecting(uid: str) -> tuple[EnqueueOwner, UidTrackedExpectations, Queue[Key]]:
    queue: Queue[Key] = Queue("test")
    expectations = UidTrackedExpectations()
    owners: Any = Owners(uid)
    return EnqueueOwner(queue, REPLICA_SETS, owners, expectations), expectations, queue


def named(name: str, uid: str, *, is_going: bool = False) -> OwnedPod:
    going = {"deletionTimestamp": "2030-01-01T00:00:00Z"} if is_going else {}
    given = msgspec.to_builtins(pod("web"))
    return msgspec.convert({"metadata": {**given["metadata"], "name": name, "uid": uid, **going}}, OwnedPod)


async def test_pods_that_come_and_go_meet_what_is_expected_of_their_owner() -> None:
    handler, expectations, queue = expecting("u")
    expectations.expect_creations(OWNER, 2)
    handler.on_add(named("a", "1"))
    assert not expectations.is_satisfied(OWNER)
    handler.on_add(named("b", "2"))
    assert expectations.is_satisfied(OWNER)
    expectations.expect_deletions(OWNER, ["1", "2"])
    # With grace a pod is seen twice, and counts once.
    handler.on_update(named("a", "1"), named("a", "1", is_going=True))
    handler.on_delete(named("a", "1", is_going=True))
    assert not expectations.is_satisfied(OWNER)
    handler.on_update(named("b", "2"), named("b", "3"))
    assert expectations.is_satisfied(OWNER)
    assert await drain(queue) == [OWNER]


async def test_the_pods_of_an_earlier_owner_of_the_same_name_meet_nothing() -> None:
    handler, expectations, queue = expecting("another")
    expectations.expect_creations(OWNER, 1)
    handler.on_add(named("a", "1"))
    assert not expectations.is_satisfied(OWNER)
    assert await drain(queue) == []


async def test_a_pod_that_is_first_seen_on_its_way_out_is_no_creation() -> None:
    handler, expectations, _ = expecting("u")
    expectations.expect_creations(OWNER, 1)
    handler.on_add(named("a", "1", is_going=True))
    assert not expectations.is_satisfied(OWNER)


def test_expectations_need_to_know_the_owners() -> None:
    with pytest.raises(ValueError, match="expectations require `owners`"):
        EnqueueOwner(Queue("test"), REPLICA_SETS, None, UidTrackedExpectations())
