"""Cost follows change, not size, with a policy and without: counted in calls and bytes, not in time."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import msgspec

from podlife.api.selectors import parse_label_selector
from podlife.api.views import Metadata, Node
from podlife.client.watch import EventType, WatchEvent
from podlife.informer import Cache
from podlife.podgc import PodIndex, Settings, planner
from podlife.podgc.classifier import UpstreamClassifier
from podlife.podgc.effective_settings import index_for, pod_view
from podlife.podgc.policy.model import Keep, Per, Policy, Rule, Selector
from podlife.podgc.views import Namespace, Pod

NODES = 100


def wire_pod(number: int, *, phase: str = "Running") -> bytes:
    """A pod as a server sends it, with names as long as they are in clusters."""
    second, minute = number % 60, number // 60 % 60
    pod = {
        "metadata": {
            "name": f"some-deployment-name-7d4b9c6f5d-{number:07}",
            "namespace": f"namespace-{number % 50}",
            "uid": f"{number:08x}-1234-4321-8888-{number:012x}",
            "resourceVersion": str(100_000_000 + number),
            "generation": 1,
            "creationTimestamp": f"2030-01-01T00:{minute:02}:{second:02}Z",
            "labels": {"app": "some-deployment-name", "pod-template-hash": "7d4b9c6f5d"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "x", "uid": "y"}],
        },
        "spec": {"nodeName": f"node-{number % NODES:05}.cluster.local", "containers": [{"name": "c"}]},
        "status": {
            "phase": phase,
            "conditions": [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Ready")],
        },
    }
    return msgspec.json.encode(pod)


def view(number: int, *, phase: str = "Running") -> Pod:
    return msgspec.json.decode(wire_pod(number, phase=phase), type=Pod)


def index_of(size: int, *, terminated: int = 0) -> PodIndex:
    index = PodIndex(UpstreamClassifier())
    for number in range(NODES):
        index.put_node(Node(Metadata(name=f"node-{number:05}.cluster.local")))
    for number in range(size):
        index.add_pod(view(number, phase="Succeeded" if number < terminated else "Running"), 0.0)
    return index


def calls_of(action: Callable[[], object]) -> int:
    """How many calls, of Python's functions and of built-in ones, it takes."""
    count = 0

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    # What the collector ends meanwhile, of earlier tests too, is no call of this.
    gc.collect()
    gc.disable()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        gc.enable()
    return count


def test_a_plan_with_nothing_to_do_costs_the_same_at_any_size() -> None:
    settings = Settings(threshold=10_000)
    small, large = index_of(10, terminated=5), index_of(5000, terminated=2500)
    assert calls_of(lambda: planner.plan(large, settings, 0.0)) == calls_of(
        lambda: planner.plan(small, settings, 0.0)
    )


def test_a_look_for_some_victims_costs_what_they_cost_not_what_is_behind_them() -> None:
    index = index_of(5000, terminated=5000)

    def first_ten() -> None:
        found = planner.victims(index, Settings(threshold=1))
        for _ in range(10):
            next(found)

    assert calls_of(first_ten) < 500


def test_an_event_costs_little_more_at_a_hundred_times_the_size() -> None:
    small, large = index_of(50, terminated=25), index_of(5000, terminated=2500)

    def changes(index: PodIndex, number: int) -> Callable[[], object]:
        old, new = view(number), view(number, phase="Failed")
        return lambda: index.update_pod(old, new, 1.0)

    assert calls_of(changes(large, 4000)) <= 2 * calls_of(changes(small, 40))


def test_a_pod_costs_less_than_a_kibibyte_with_its_view_its_cache_and_its_place_in_the_index() -> None:
    size = 20_000
    raw = [wire_pod(number, phase="Succeeded" if number % 2 else "Running") for number in range(size)]
    decoder = msgspec.json.Decoder(Pod)
    tracemalloc.start()
    try:
        cache: Cache[Pod] = Cache()
        index = PodIndex(UpstreamClassifier())
        cache.begin_list()
        for each in raw:
            pod = decoder.decode(each)
            cache.apply(WatchEvent(EventType.ADDED, pod, ""))
            index.add_pod(pod, 0.0)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used / size <= 1024


# What a policy costs follows change, not size: counted in calls and bytes, not in time


NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAMESPACES = 50


def rules(count: int) -> Policy:
    """Each selects by something else than the others; the last takes what is left."""
    made = []
    for number in range(count - 1):
        selector = (
            Selector(namespaces=(f"nobody-{number}-*",)),
            Selector(labels=parse_label_selector(f"app=nothing-{number}")),
            Selector(owner_kinds=(f"Kind{number}",), nodes=(f"gpu-{number}-*",)),
        )[number % 3]
        made.append(Rule(f"rule-{number}", selector, keep=Keep(1, Per.NAMESPACE), ttl_seconds=1e9))
    return Policy((*made, Rule("rest", keep=Keep(3, Per.OWNER), ttl_seconds=1e9)))


def settings_of(count: int) -> Settings:
    return Settings(threshold=10_000_000, policy=rules(count))


def owned_pod(number: int, *, phase: str = "Running") -> bytes:
    pod: dict[str, Any] = msgspec.json.decode(wire_pod(number, phase=phase))
    pod["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": f"job-{number % 1000}", "controller": True}]
    return msgspec.json.encode(pod)


def policy_index(settings: Settings, size: int, *, ended: int) -> PodIndex:
    index = index_for(settings)
    index.pass_time(NOW)
    for number in range(NAMESPACES):
        index.put_namespace(msgspec.convert({"metadata": {"name": f"namespace-{number}"}}, Namespace))
    for number in range(size):
        index.add_pod(policy_view(settings, number, phase="Succeeded" if number < ended else "Running"), 0.0)
    return index


def policy_view(settings: Settings, number: int, *, phase: str = "Running") -> Pod:
    return msgspec.json.decode(owned_pod(number, phase=phase), type=pod_view(settings))


def change(settings: Settings, index: PodIndex, number: int) -> Callable[[], object]:
    """A pod ends, and whether anybody is to go is asked."""
    old, raw = policy_view(settings, number), owned_pod(number, phase="Failed")
    decoder = msgspec.json.Decoder(pod_view(settings))

    def happen() -> None:
        index.update_pod(old, decoder.decode(raw), 1.0)
        assert next(iter(planner.victims(index, settings)), None) is None
        assert index.classifier.next_due_at > NOW.timestamp()

    return happen


def test_an_event_costs_little_more_at_a_hundred_times_the_pods() -> None:
    settings = settings_of(20)
    small, large = policy_index(settings, 50, ended=25), policy_index(settings, 5000, ended=2500)
    assert calls_of(change(settings, large, 4000)) <= 1.5 * calls_of(change(settings, small, 40))


def test_an_event_costs_the_same_at_ten_times_the_rules_once_such_a_pod_was_seen() -> None:
    few, many = settings_of(10), settings_of(100)
    for settings in (few, many):
        policy_view(settings, 1, phase="Failed")
    costs = [calls_of(change(each, policy_index(each, 200, ended=100), 150)) for each in (few, many)]
    assert costs[0] == costs[1]


def test_a_hundred_rules_add_no_more_than_a_fifth_to_the_memory_of_a_pod() -> None:
    plain, governing = Settings(threshold=10_000_000), settings_of(100)
    assert bytes_each(governing) <= 1.2 * bytes_each(plain)


def bytes_each(settings: Settings, size: int = 6_000) -> float:
    """Of pods of which a third have ended, with their place in the index. What is made once, whatever comes after, is
    made before: which test ran first must not matter."""
    raw = [owned_pod(number, phase="Running" if number % 3 else "Succeeded") for number in range(size)]
    # The first warms up. The smaller of the others: all of the process is traced, and what an earlier test has left
    # (a thread, garbage with a finalizer, a table of the interpreter that grows) may allocate meanwhile.
    _, *used = (traced_bytes(settings, raw) for _ in range(3))
    return min(used) / size


def traced_bytes(settings: Settings, raw: list[bytes]) -> int:
    decoder = msgspec.json.Decoder(pod_view(settings))
    index = policy_index(settings, 0, ended=0)
    gc.collect()
    tracemalloc.start()
    try:
        for each in raw:
            index.add_pod(decoder.decode(each), 0.0)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return used
