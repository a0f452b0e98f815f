"""Whom a pod's event wakes, and what it says to those who wait for pods to come and go."""

from __future__ import annotations

import time
from typing import Any

import msgspec
import pytest

from podlife.client import REPLICA_SETS
from podlife.client.watch import EventType, WatchEvent
from podlife.informer.cache import Cache
from podlife.informer.indexes import Key
from podlife.podcontrol import UidTrackedExpectations
from podlife.workloads.pod_event_handler import OWNER_INDEXERS, PodEventHandler
from podlife.workloads.replicaset.views import ReplicaSet
from podlife.workloads.views import WorkloadPod
from tests.kit import objects
from tests.unit.workloads.replicaset.made import pod

WEB, OTHER = ("default", "web"), ("default", "other")


class Keys:
    def __init__(self) -> None:
        self.added: list[Key] = []

    def add(self, key: Key) -> None:
        self.added.append(key)

    def taken(self) -> set[Key]:
        added, self.added = self.added, []
        return set(added)


class Situation:
    """Two ReplicaSets, that select `app=web` and `app=other`."""

    def __init__(self, **options: Any) -> None:
        owners: Cache[ReplicaSet] = Cache(OWNER_INDEXERS)
        for name in ("web", "other"):
            metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
            spec = {"selector": {"matchLabels": {"app": name}}}
            owner = msgspec.convert({"metadata": metadata, "spec": spec}, ReplicaSet)
            owners.apply(WatchEvent(EventType.ADDED, owner, "1"))
        self.keys = Keys()
        self.expectations = UidTrackedExpectations(seconds=lambda: 0.0)
        self.events = PodEventHandler(REPLICA_SETS, owners, self.keys, self.expectations, **options)

    def expected(self, key: Key = WEB) -> tuple[int, int]:
        found = self.expectations.get(key)
        assert found is not None
        return found.creations, found.deletions


def owned(
    name: str = "web-a", by: str = "web", *, uid: str = "", kind: str = "ReplicaSet", **rest: Any
) -> WorkloadPod:
    reference = objects.owner(kind, by, uid=uid or f"uid-{by}")
    return pod(name, ownerReferences=[reference], **rest)


def test_a_pod_that_comes_is_what_its_owner_waits_for() -> None:
    situation = Situation()
    situation.expectations.expect_creations(WEB, 2)
    situation.events.on_add(owned())
    assert situation.expected() == (1, 0)
    assert situation.keys.taken() == {WEB}


@pytest.mark.parametrize("stranger", [owned(uid="uid-of-one-before"), owned(kind="Job"), owned(by="nobody")])
def test_a_pod_of_somebody_else_wakes_nobody(stranger: WorkloadPod) -> None:
    situation = Situation()
    situation.expectations.expect_creations(WEB, 1)
    situation.events.on_add(stranger)
    situation.events.on_update(stranger, stranger)
    situation.events.on_delete(stranger)
    assert situation.expected() == (1, 0)
    assert situation.keys.taken() == set()


def test_a_pod_that_is_first_seen_as_it_goes_is_no_creation() -> None:
    situation = Situation()
    situation.expectations.expect(WEB, creations=1, deletions=["uid-web-a"])
    situation.events.on_add(owned(is_going=True))
    assert situation.expected() == (1, 0)
    assert situation.keys.taken() == {WEB}


def test_a_pod_that_goes_is_seen_twice_and_counts_once() -> None:
    situation = Situation()
    situation.expectations.expect_deletions(WEB, ["uid-web-a", "uid-web-b"])
    situation.events.on_update(owned(), owned(is_going=True))
    assert situation.expected() == (0, 1)
    situation.events.on_delete(owned(is_going=True))
    assert situation.expected() == (0, 1)
    assert situation.keys.taken() == {WEB}


def test_a_pod_made_again_under_its_name_is_one_that_went_and_one_that_came() -> None:
    situation = Situation()
    situation.expectations.expect(WEB, creations=1, deletions=["uid-web-a"])
    again = msgspec.structs.replace(
        owned(), metadata=msgspec.structs.replace(owned().metadata, uid="uid-new")
    )
    situation.events.on_update(owned(), again)
    assert situation.expected() == (0, 0)


def test_an_orphan_wakes_those_who_select_it() -> None:
    situation = Situation()
    situation.events.on_add(pod())
    assert situation.keys.taken() == {WEB}
    situation.events.on_add(pod(labels={"app": "nobodys"}))
    situation.events.on_add(pod(labels={}))
    assert situation.keys.taken() == set()


def test_an_orphan_that_changes_wakes_them_only_when_its_labels_do() -> None:
    situation = Situation()
    situation.events.on_update(pod(), pod(phase="Failed"))
    assert situation.keys.taken() == set()
    situation.events.on_update(pod(), pod(labels={"app": "other"}))
    assert situation.keys.taken() == {OTHER}
    situation.events.on_delete(pod())
    assert situation.keys.taken() == set()


def test_a_pod_that_changes_hands_wakes_both_owners() -> None:
    situation = Situation()
    situation.events.on_update(owned(by="web"), owned(by="other"))
    assert situation.keys.taken() == {WEB, OTHER}


def test_a_pod_that_is_released_wakes_its_owner_and_who_selects_it() -> None:
    situation = Situation()
    situation.events.on_update(owned(labels={"app": "other"}), pod(labels={"app": "other"}))
    assert situation.keys.taken() == {WEB, OTHER}


def test_a_change_that_does_not_matter_wakes_nobody_unless_labels_or_owner_change() -> None:
    situation = Situation(matters=lambda old, new: False)
    situation.events.on_update(owned(), owned(phase="Failed"))
    assert situation.keys.taken() == set()
    situation.events.on_update(owned(), owned(labels={"app": "web", "more": "yes"}))
    assert situation.keys.taken() == {WEB}
    situation.events.on_update(owned(by="other"), owned(by="web"))
    assert situation.keys.taken() == {WEB, OTHER}


def test_selector_is_read_once_however_many_orphans_there_are() -> None:
    """One that is large takes long to read, and nothing else happens meanwhile."""
    keys = Keys()
    owners: Cache[ReplicaSet] = Cache(OWNER_INDEXERS)
    many = [{"key": f"k{n}", "operator": "NotIn", "values": [str(v) for v in range(20)]} for n in range(500)]
    metadata = {"name": "large", "namespace": "default", "uid": "uid-large", "resourceVersion": "1"}
    owner = msgspec.convert(
        {"metadata": metadata, "spec": {"selector": {"matchExpressions": many}}}, ReplicaSet
    )
    owners.apply(WatchEvent(EventType.ADDED, owner, "1"))
    events = PodEventHandler(REPLICA_SETS, owners, keys)
    started = time.process_time()
    for number in range(1000):
        events.on_add(pod(f"orphan-{number}", labels={"app": "web"}))
    # Read for each of them it takes many times as long.
    assert time.process_time() - started < 3
    assert keys.taken() == {("default", "large")}
