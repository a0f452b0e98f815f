"""What has become of the nodes and pods of a scenario, in a form in which two runs can be compared.

The end of it: conditions with their reasons, taints, labels, which pods are left and on their way. How it came to that:
of each node the Ready condition, the NoSchedule and the NoExecute taints as they followed on each other, and the order
in which the condition and the taints of either effect came first; of each pod whether it was ready, told why it goes,
and going. And the events, those of type Normal with how often they came. Times, UIDs and the scenario's prefix are left
out.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from podlife.client import EVENTS, NODES, PODS
from tests.component.nodehealth.world import History, World, condition, is_terminating, taints

Object = dict[str, Any]
Outcome = dict[str, Any]


async def take(world: World, ignoring: Iterable[str] = ()) -> Outcome:
    """`ignoring` are parts of the outcome that are not the same twice with kube-controller-manager either."""
    nodes = await _named(world, NODES)
    pods = await _named(world, PODS)
    events = [each for each in (await world.client.list(EVENTS)).items if _is_of(world, each)]
    history = world.history
    outcome: Outcome = {
        "nodes": {name: _node(each) for name, each in nodes.items()},
        "pods": {name: _pod(each) for name, each in pods.items()},
        "order": {name: _order(history, world.prefix + name) for name in _seen(world, "Node")},
        "node history": {name: _node_history(history, world.prefix + name) for name in _seen(world, "Node")},
        "pod history": {name: _pod_history(history, world.prefix + name) for name in _seen(world, "Pod")},
        "events": _events(events, world.prefix),
    }
    for part in ignoring:
        del outcome[part]
    read: Outcome = json.loads(json.dumps(outcome, sort_keys=True))
    return read


def difference(expected: Outcome, found: Outcome) -> str:
    """Empty when there is none; else what was expected (-) and found (+)."""
    before, after = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (expected, found))
    return "\n".join(difflib.unified_diff(before, after, "expected", "found", lineterm="", n=8))


async def _named(world: World, ref: Any) -> dict[str, Object]:
    found = (await world.client.list(ref)).items
    names = sorted((each["metadata"]["name"], each) for each in found if _has_prefix(world, each["metadata"]))
    return {name.removeprefix(world.prefix): each for name, each in names}


def _has_prefix(world: World, metadata: Object) -> bool:
    name: str = metadata["name"]
    return name.startswith(world.prefix)


def _is_of(world: World, event: Object) -> bool:
    return _has_prefix(world, event["involvedObject"])


def _seen(world: World, kind: str) -> list[str]:
    names = {name for _, a_kind, name, _ in world.history.changes if a_kind == kind}
    return sorted(name.removeprefix(world.prefix) for name in names if name.startswith(world.prefix))


def _node(node: Object) -> Object:
    conditions = (node.get("status") or {}).get("conditions") or ()
    labels = node["metadata"].get("labels") or {}
    return {
        "conditions": [
            f"{each['type']}={each['status']} {each.get('reason', '')}: {each.get('message', '')}"
            for each in conditions
        ],
        "taints": sorted(taints(node)),
        "labels": {key: value for key, value in labels.items() if "zone" not in key},
    }


def _pod(pod: Object) -> Object:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return {
        "conditions": [
            f"{each['type']}={each['status']} {each.get('reason', '')}: {each.get('message', '')}"
            for each in conditions
        ],
        "phase": pod["status"]["phase"],
        "is going": is_terminating(pod),
    }


def _node_history(history: History, name: str) -> Object:
    return {
        "Ready": history.states("Node", name, lambda each: condition(each, "Ready").get("status")),
        "NoSchedule": history.states("Node", name, lambda each: _of_effect(each, "NoSchedule")),
        "NoExecute": history.states("Node", name, lambda each: _of_effect(each, "NoExecute")),
        "is gone": history.states("Node", name, lambda each: "gone" in each)[-1],
    }


def _of_effect(node: Object, effect: str) -> list[str]:
    return [each for each in taints(node) if each.endswith(f":{effect}")]


def _order(history: History, name: str) -> Object:
    """In which order things first were, by effect: taints of one effect are set beside those of the other, and which
    of them comes first is a race inside kube-controller-manager."""
    return {effect: _firsts(history, name, effect) for effect in ("NoSchedule", "NoExecute")}


def _firsts(history: History, name: str, effect: str) -> list[str]:
    firsts: dict[str, None] = {}
    for _, kind, a_name, obj in history.changes:
        if (kind, a_name) == ("Node", name):
            firsts.setdefault(f"Ready={condition(obj, 'Ready').get('status')}")
            for taint in _of_effect(obj, effect):
                firsts.setdefault(taint)
    return list(firsts)


def _pod_history(history: History, name: str) -> list[str]:
    def show(pod: Object) -> str:
        if "gone" in pod:
            return "gone"
        told = condition(pod, "DisruptionTarget")
        words = [f"Ready={condition(pod, 'Ready').get('status')}", told.get("reason", "")]
        return " ".join([*filter(None, words), *(["going"] if is_terminating(pod) else [])])

    return history.states("Pod", name, show)


def _events(events: Iterable[Object], prefix: str) -> list[str]:
    counts: Counter[str] = Counter()
    for event in events:
        about = event["involvedObject"]
        component = (event.get("source") or {}).get("component", "")
        text = f"{about['kind']} {about['name']}: {event['type']} {event['reason']}: {event['message']} ({component})"
        counts[text.replace(prefix, "")] += event.get("count") or 1
    # A warning comes again with every retry.
    return sorted(f"{count if ' Normal ' in text else 1} x {text}" for text, count in counts.items())
