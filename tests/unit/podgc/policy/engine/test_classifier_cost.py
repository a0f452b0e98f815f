"""What a policy costs follows change, not size: counted in calls and bytes, not in time."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec

from podlife.api.selectors import parse_label_selector
from podlife.podgc import PodIndex, Settings, planner
from podlife.podgc.effective_settings import index_for, pod_view
from podlife.podgc.policy.model import Keep, Per, Policy, Rule, Selector
from podlife.podgc.views import Namespace, Pod
from tests.unit.podgc.test_index_cost import calls_of, wire_pod

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


def wire(number: int, *, phase: str = "Running") -> bytes:
    pod: dict[str, Any] = msgspec.json.decode(wire_pod(number, phase=phase))
    pod["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": f"job-{number % 1000}", "controller": True}]
    return msgspec.json.encode(pod)


def index_of(settings: Settings, size: int, *, ended: int) -> PodIndex:
    index = index_for(settings)
    index.pass_time(NOW)
    for number in range(NAMESPACES):
        index.put_namespace(msgspec.convert({"metadata": {"name": f"namespace-{number}"}}, Namespace))
    for number in range(size):
        index.add_pod(view(settings, number, phase="Succeeded" if number < ended else "Running"), 0.0)
    return index


def view(settings: Settings, number: int, *, phase: str = "Running") -> Pod:
    return msgspec.json.decode(wire(number, phase=phase), type=pod_view(settings))


def change(settings: Settings, index: PodIndex, number: int) -> Callable[[], object]:
    """A pod ends, and whether anybody is to go is asked."""
    old, raw = view(settings, number), wire(number, phase="Failed")
    decoder = msgspec.json.Decoder(pod_view(settings))

    def happen() -> None:
        index.update_pod(old, decoder.decode(raw), 1.0)
        assert next(iter(planner.victims(index, settings)), None) is None
        assert index.classifier.next_due_at > NOW.timestamp()

    return happen


def test_an_event_costs_little_more_at_a_hundred_times_the_pods() -> None:
    settings = settings_of(20)
    small, large = index_of(settings, 50, ended=25), index_of(settings, 5000, ended=2500)
    assert calls_of(change(settings, large, 4000)) <= 1.5 * calls_of(change(settings, small, 40))


def test_an_event_costs_the_same_at_ten_times_the_rules_once_such_a_pod_was_seen() -> None:
    few, many = settings_of(10), settings_of(100)
    for settings in (few, many):
        view(settings, 1, phase="Failed")
    costs = [calls_of(change(each, index_of(each, 200, ended=100), 150)) for each in (few, many)]
    assert costs[0] == costs[1]


def test_a_hundred_rules_add_no_more_than_a_fifth_to_the_memory_of_a_pod() -> None:
    plain, governing = Settings(threshold=10_000_000), settings_of(100)
    assert bytes_each(governing) <= 1.2 * bytes_each(plain)


def bytes_each(settings: Settings, size: int = 6_000) -> float:
    """Of pods of which a third have ended, with their place in the index. What is made once, whatever comes after, is
    made before: which test ran first must not matter."""
    raw = [wire(number, phase="Running" if number % 3 else "Succeeded") for number in range(size)]
    decoder = msgspec.json.Decoder(pod_view(settings))
    warm = index_of(settings, 0, ended=0)
    for each in raw:
        warm.add_pod(decoder.decode(each), 0.0)
    del warm
    index = index_of(settings, 0, ended=0)
    tracemalloc.start()
    try:
        for each in raw:
            index.add_pod(decoder.decode(each), 0.0)
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return used / size
