"""Pods that come from somewhere, and when they are taken."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from podlife.kubelet.config.pod_source import PodSource
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_manager import PodManager
from tests.kit import objects

Object = dict[str, Any]


def pod(uid: str, created: int = 0, **metadata: Any) -> Object:
    own = {"uid": uid, "creationTimestamp": f"2030-01-01T00:00:{created:02}Z", **metadata}
    made = objects.pod(f"p-{uid}", metadata=own, status={"phase": "Running"}, terminationGracePeriodSeconds=7)
    return objects.stored(made, "ns")


def uids(pods: list[NodePod]) -> list[str]:
    return [each.uid for each in pods]


def test_nothing_is_taken_before_the_source_has_told_of_all_and_then_the_oldest_first() -> None:
    """ST-19"""
    source = PodSource(asyncio.Event())
    source.put(pod("young", 9))
    source.put(pod("old", 1))
    assert source.take() == ([], [])
    source.complete()
    assert uids(source.take()[1]) == ["old", "young"]
    assert source.take() == ([], [])


def test_of_what_changes_faster_than_it_is_taken_only_the_newest_counts() -> None:
    wakeup = asyncio.Event()
    source = PodSource(wakeup)
    source.complete()
    source.put(pod("a"))
    source.put(pod("a", labels={"new": "yes"}))
    source.put(pod("b"))
    source.remove(pod("b"))
    removed, put = source.take()
    assert removed == ["b"]
    assert [each["metadata"].get("labels") for each in put] == [{"new": "yes"}]
    assert wakeup.is_set()


def test_a_pod_that_is_not_among_all_of_them_any_more_is_removed() -> None:
    source = PodSource(asyncio.Event())
    source.put_all([pod("a"), pod("b")])
    source.take()
    source.put_all([pod("b")])
    assert source.take()[0] == ["a"]
    assert source.uids == {"b"}


def test_a_pod_is_read_by_its_keys_and_by_the_attributes_that_the_workers_know() -> None:
    one = NodePod(pod("a", deletionTimestamp="2030-01-01T00:01:00Z", deletionGracePeriodSeconds=3))
    assert one["metadata"]["name"] == one.metadata.name == "p-a"
    assert one.metadata.deletion_grace_period_seconds == 3
    assert (one.spec.termination_grace_period_seconds, len(one.spec.containers)) == (7, 1)
    assert one.status.phase == "Running"
    assert one.key == ("ns", "p-a")
    with pytest.raises(KeyError):
        NodePod({"metadata": {"name": "without UID"}})


def test_of_two_pods_of_a_name_the_one_that_stays_is_found() -> None:
    known = PodManager(lambda uid: True)
    known.put(NodePod(pod("old", name="web", deletionTimestamp="2030-01-01T00:01:00Z")))
    known.put(NodePod(pod("new", name="web")))
    found = known.by_name("ns", "web")
    assert found is not None
    assert found.uid == "new"
    assert known.by_name("ns", "other") is None


def test_a_static_pod_and_its_mirror_know_each_other_by_name() -> None:
    known = PodManager(lambda uid: True)
    static = NodePod(pod("s", name="web", annotations={"kubernetes.io/config.source": "file"}))
    mirror = NodePod(
        pod(
            "m",
            name="web",
            annotations={"kubernetes.io/config.source": "file", "kubernetes.io/config.mirror": "digest"},
        )
    )
    known.put(static)
    known.put(mirror)
    assert known.mirror_of(static) is mirror
    assert known.static_of(mirror) is static
    assert uids(list(known)) == ["s"]
    assert known.remove("m") is mirror
    assert known.mirror_of(static) is None
    assert known.remove("s") is static
    assert known.static_of(mirror) is None
    assert known.remove("nobody") is None


def test_the_last_state_of_a_pod_that_was_removed_is_told_once() -> None:
    source = PodSource(asyncio.Event())
    source.complete()
    source.put(pod("a"))
    source.remove(pod("a", deletionGracePeriodSeconds=0))
    assert source.take() == (["a"], [])
    last = source.last_state("a")
    assert last is not None
    assert last.metadata.deletion_grace_period_seconds == 0
    assert source.last_state("a") is None
