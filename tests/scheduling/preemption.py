"""Scenarios of preemption: what is on the nodes, who comes, and who has to go. For every API server and scheduler.

No kubelet runs: a victim terminates until the scenario removes it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from podlife.client import (
    NAMESPACES,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    Client,
    DeleteOptions,
    Ref,
)
from podlife.errors import ApiError
from tests.kit.objects import container
from tests.unit.scheduler.objects import node_object, pod_object

Object = dict[str, Any]
PRIORITY_CLASSES = Ref("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False, kind="PriorityClass")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_DEADLINE_SECONDS = 60.0
_NOW = DeleteOptions(grace_period_seconds=0)


@dataclass(frozen=True)
class P:
    """A pod; `started` is the minute of its start, `never` its preemptionPolicy."""

    name: str
    priority: int = 0
    cpu: str = "1"
    node: str = ""
    started: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    never: bool = False
    spec: Object = field(default_factory=dict)


@dataclass(frozen=True)
class Scenario:
    """`expected` and `finally_`, after the victims are gone, are states as `state_of` shows them."""

    name: str
    nodes: dict[str, Object]
    bound: tuple[P, ...]
    pending: tuple[P, ...]
    expected: dict[str, str]
    finally_: dict[str, str] = field(default_factory=dict)
    budgets: dict[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def state_of(pod: Object) -> str:
    status = pod.get("status") or {}
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    if pod["metadata"].get("deletionTimestamp"):
        target = conditions.get("DisruptionTarget") or {}
        return f"ends: {target.get('reason')}: {target.get('message')}"
    if node := pod["spec"].get("nodeName"):
        return f"on {node}" + (" nominated" if status.get("nominatedNodeName") else "")
    if node := status.get("nominatedNodeName"):
        return f"waits for {node}"
    message = str((conditions.get("PodScheduled") or {}).get("message"))
    # Of kube-scheduler's plug-in for devices.
    return message.replace("no new claims to deallocate, ", "")


class Play:
    """One scenario in a namespace of its own; its nodes belong to it alone."""

    def __init__(self, client: Client, scenario: Scenario, scheduler_name: str = "default-scheduler") -> None:
        self._client = client
        self._scenario = scenario
        self._scheduler_name = scheduler_name
        self._namespace = f"preempt-{scenario.name}"[:63].rstrip("-")

    async def run(self) -> tuple[dict[str, str], dict[str, str]]:
        """The states before and after the victims were removed."""
        try:
            await self._prepare()
            for each in self._scenario.pending:
                await self._create(each)
                await self._until(lambda found, name=each.name: _is_decided(found.get(name)))
            wanted = {each.name: f"on {each.node}" for each in self._scenario.bound} | self._scenario.expected
            before = await self._settled(wanted)
            for pod in (await self._pods()).values():
                if pod["metadata"].get("deletionTimestamp"):
                    await self._client.delete(PODS, pod["metadata"]["name"], self._namespace, options=_NOW)
            return before, await self._settled(self._scenario.finally_) if self._scenario.finally_ else {}
        finally:
            await self._clean_up()

    async def _prepare(self) -> None:
        scenario, client = self._scenario, self._client
        await client.create(NAMESPACES, {"metadata": {"name": self._namespace}})
        for each in (*scenario.bound, *scenario.pending):
            policy = {"preemptionPolicy": "Never"} if each.never else {}
            await _ensure(client, {"metadata": {"name": _class_of(each)}, "value": each.priority, **policy})
        for name, changes in scenario.nodes.items():
            made = node_object(name, **changes)
            await client.create(NODES, {"metadata": made["metadata"], "spec": made.get("spec") or {}})
            await client.patch(NODES, name, {"status": made["status"]}, subresource="status")
            # What the server adds to a new node, and node health would remove.
            await client.patch(NODES, name, {"spec": {"taints": (made.get("spec") or {}).get("taints")}})
        for name, allowed in scenario.budgets.items():
            spec = {"selector": {"matchLabels": {"guard": name}}, "minAvailable": 1}
            await client.create(
                POD_DISRUPTION_BUDGETS, {"metadata": {"name": name}, "spec": spec}, self._namespace
            )
            counts = {"disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1}
            status = {**counts, "expectedPods": 1, "observedGeneration": 1}
            await client.patch(
                POD_DISRUPTION_BUDGETS, name, {"status": status}, self._namespace, subresource="status"
            )
        for each in scenario.bound:
            await self._create(each)
            started = f"2026-01-01T00:{each.started:02}:00Z"
            await client.patch(
                PODS, each.name, {"status": {"startTime": started}}, self._namespace, subresource="status"
            )

    async def _create(self, each: P) -> None:
        made = pod_object(
            each.name,
            cpu=each.cpu,
            labels=each.labels,
            schedulerName=self._scheduler_name,
            priorityClassName=_class_of(each),
            **({"nodeName": each.node} if each.node else {}),
            **each.spec,
        )
        del made["metadata"]["uid"]
        made["metadata"]["namespace"] = self._namespace
        await self._client.create(PODS, made)

    async def _pods(self) -> dict[str, Object]:
        page = await self._client.list(PODS, self._namespace)
        return {each["metadata"]["name"]: each for each in page.items}

    async def _until(self, holds: Any) -> None:
        async with asyncio.timeout(_DEADLINE_SECONDS):
            while not holds(await self._pods()):
                await asyncio.sleep(0.05)

    async def _settled(self, expected: dict[str, str]) -> dict[str, str]:
        """The expected states once they have held for some looks, or those at the deadline."""
        held = 0
        states: dict[str, str] = {}
        for _ in range(round(_DEADLINE_SECONDS / 0.2)):
            states = {name: state_of(pod) for name, pod in (await self._pods()).items()}
            held = held + 1 if states == expected else 0
            if held > 10:
                break
            await asyncio.sleep(0.2)
        return states

    async def _clean_up(self) -> None:
        for name in await self._pods():
            try:
                await self._client.delete(PODS, name, self._namespace, options=_NOW)
            except ApiError:
                continue
        for name in self._scenario.nodes:
            await self._client.delete(NODES, name)


async def _ensure(client: Client, priority_class: Object) -> None:
    if priority_class["metadata"]["name"].startswith("system-"):
        return
    try:
        await client.create(PRIORITY_CLASSES, priority_class)
    except ApiError as error:
        if error.code != 409:
            raise


def _class_of(pod: P) -> str:
    if pod.priority > 10**9:
        return "system-node-critical"
    return f"{'never' if pod.never else 'value'}-{pod.priority}".replace("--", "-minus-")


def _is_decided(pod: Object | None) -> bool:
    """Whether the scheduler has seen it."""
    return pod is None or state_of(pod) != "None"


def _node(cpu: str = "1", **changes: Any) -> Object:
    return {"allocatable": {"cpu": cpu, **changes.pop("allocatable", {})}, **changes}


def _near(kind: str, key: str = "kubernetes.io/hostname", **labels: str) -> Object:
    return {"affinity": {kind: {REQUIRED: [{"topologyKey": key, "labelSelector": {"matchLabels": labels}}]}}}


ENDS = "ends: PreemptionByScheduler: default-scheduler: preempting to accommodate a higher priority pod"
HIGH = P("high", 100)


def _none(count: int, why: str, because: str) -> str:
    """The message of a pod that fits nowhere, and preempts nothing."""
    return f"0/{count} nodes are available: {why}. preemption: 0/{count} nodes are available: {because}."


def _one(name: str, bound: Iterable[P], expected: dict[str, str], **changes: Any) -> Scenario:
    """One node `a` with one CPU, unless said otherwise, and the pod `high`."""
    settings: Object = {"nodes": {"a": _node()}, "pending": (HIGH,), **changes}
    return Scenario(name, bound=tuple(bound), expected=expected, **settings)


_AB = {"a": _node(), "b": _node()}
_NO_VICTIMS = "No preemption victims found for incoming pod"
_NOT_HELPFUL = "Preemption is not helpful for scheduling"
_GUARDED = {"guard": "g"}
_WITH_PORT = container(ports=[{"containerPort": 80, "hostPort": 80}])
_LOW = P("low", 1, node="a")

SCENARIOS = (
    _one(
        "one-victim",
        [_LOW],
        {"low": ENDS, "high": "waits for a"},
        finally_={"high": "on a"},
    ),
    _one(
        "equal-priority",
        [P("low", 100, node="a")],
        {"high": _none(1, "1 Insufficient cpu", f"1 {_NO_VICTIMS}")},
    ),
    _one(
        "higher-priority",
        [P("low", 200, node="a")],
        {"high": _none(1, "1 Insufficient cpu", f"1 {_NO_VICTIMS}")},
    ),
    _one(
        "never",
        [_LOW],
        {
            "n": "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
        },
        pending=(P("n", 100, never=True),),
    ),
    _one(
        "fewest-victims-youngest-first",
        [P(f"p{number}", 1, node="a", started=number) for number in range(4)],
        {"p3": ENDS, "p2": ENDS, "high": "waits for a"},
        nodes={"a": _node("4")},
        pending=(P("high", 100, cpu="2"),),
        finally_={"p0": "on a", "p1": "on a", "high": "on a"},
    ),
    _one(
        "least-important-on-one-node",
        [P("p9", 9, node="a"), P("p1", 1, node="a"), P("p5", 5, node="a")],
        {"p1": ENDS, "high": "waits for a"},
        nodes={"a": _node("3")},
    ),
    _one(
        "one-large-rather-than-two-small",
        [P("small", 1, cpu="500m", node="a"), P("large", 5, cpu="1500m", node="a")],
        {"large": ENDS, "high": "waits for a"},
        nodes={"a": _node("2")},
        pending=(P("high", 100, cpu="1500m"),),
    ),
    _one(
        "lowest-highest-priority",
        [P("p9", 9, node="a"), P("p5", 5, node="b")],
        {"p5": ENDS, "high": "waits for b"},
        nodes=_AB,
        finally_={"p9": "on a", "high": "on b"},
    ),
    _one(
        "smallest-sum",
        [P("a1", 5, "500m", "a"), P("a2", 5, "500m", "a"), P("b1", 5, "1", "b")],
        {"b1": ENDS, "high": "waits for b"},
        nodes=_AB,
    ),
    _one(
        "negative-priorities",
        [P("a1", -5, "500m", "a"), P("a2", -5, "500m", "a"), P("b1", -5, "1", "b")],
        {"b1": ENDS, "zero": "waits for b"},
        nodes=_AB,
        pending=(P("zero", 0),),
    ),
    _one(
        "latest-start",
        [P("old", 5, node="a", started=1), P("young", 5, node="b", started=9)],
        {"young": ENDS, "high": "waits for b"},
        nodes=_AB,
    ),
    _one(
        "room-elsewhere",
        [_LOW],
        {"high": "on b"},
        nodes=_AB,
    ),
    _one(
        "budget-avoided",
        [P("low", 1, node="a", labels=_GUARDED), P("mid", 50, node="b")],
        {"mid": ENDS, "high": "waits for b"},
        nodes=_AB,
        budgets={"g": 0},
    ),
    _one(
        "budget-allows-one",
        [P("low", 1, node="a", labels=_GUARDED), P("mid", 50, node="b")],
        {"low": ENDS, "high": "waits for a"},
        nodes=_AB,
        budgets={"g": 1},
    ),
    _one(
        "budget-before-priority",
        [P("low", 1, node="a", labels=_GUARDED), P("mid", 50, node="a")],
        {"mid": ENDS, "high": "waits for a"},
        nodes={"a": _node("2")},
        budgets={"g": 0},
    ),
    _one(
        "budget-violated-at-last",
        [P("low", 1, node="a", labels=_GUARDED)],
        {"low": ENDS, "high": "waits for a"},
        budgets={"g": 0},
    ),
    _one(
        "fewest-violations",
        [
            P("a1", 1, "500m", "a", labels=_GUARDED),
            P("a2", 1, "500m", "a", labels=_GUARDED),
            P("b1", 90, "1", "b", labels=_GUARDED),
        ],
        {"b1": ENDS, "high": "waits for b"},
        nodes=_AB,
        budgets={"g": 0},
    ),
    _one(
        "too-large",
        [_LOW],
        {"high": _none(1, "1 Insufficient cpu", f"1 {_NOT_HELPFUL}")},
        pending=(P("high", 100, cpu="2"),),
    ),
    _one(
        "not-enough-below",
        [P("low", 1, "500m", "a"), P("other", 200, "500m", "a")],
        {"high": _none(1, "1 Insufficient cpu", "1 Insufficient cpu")},
    ),
    _one(
        "other-node",
        [_LOW],
        {"high": _none(1, "1 node(s) didn't match Pod's node affinity/selector", f"1 {_NOT_HELPFUL}")},
        pending=(P("high", 100, spec={"nodeSelector": {"disk": "ssd"}}),),
    ),
    _one(
        "tainted-and-cordoned",
        [_LOW, P("low2", 1, node="b")],
        {
            "high": _none(
                2, "1 node(s) had untolerated taint(s), 1 node(s) were unschedulable", f"2 {_NOT_HELPFUL}"
            )
        },
        nodes={
            "a": _node(taints=[{"key": "k", "effect": "NoSchedule"}]),
            "b": _node(unschedulable=True),
        },
    ),
    _one(
        "host-port",
        [P("low", 1, "100m", "a", spec={"containers": [_WITH_PORT]})],
        {"low": ENDS, "high": "waits for a"},
        pending=(P("high", 100, "100m", spec={"containers": [_WITH_PORT]}),),
    ),
    _one(
        "anti-affinity",
        [P("low", 1, "100m", "a", labels={"app": "x"}), P("other", 1, "100m", "a")],
        {"low": ENDS, "high": "waits for a"},
        pending=(P("high", 100, "100m", spec=_near("podAntiAffinity", app="x")),),
        finally_={"other": "on a", "high": "on a"},
    ),
    _one(
        "anti-affinity-of-the-victim",
        [P("low", 1, "100m", "a", spec=_near("podAntiAffinity", app="x"))],
        {"low": ENDS, "high": "waits for a"},
        pending=(P("high", 100, "100m", labels={"app": "x"}),),
        finally_={"high": "on a"},
    ),
    _one(
        "affinity-to-the-victim",
        [P("low", 1, "1", "a", labels={"app": "x"})],
        {"high": _none(1, "1 Insufficient cpu", "1 node(s) didn't match pod affinity rules")},
        pending=(P("high", 100, spec=_near("podAffinity", app="x")),),
    ),
    _one(
        "topology-spread",
        [P("a1", 1, "100m", "a", labels={"app": "x"}), P("b1", 100, "1", "b")],
        {"a1": ENDS, "high": "waits for a"},
        nodes=_AB,
        pending=(
            P(
                "high",
                100,
                "100m",
                labels={"app": "x"},
                spec={
                    "topologySpreadConstraints": [
                        {
                            "maxSkew": 1,
                            "topologyKey": "kubernetes.io/hostname",
                            "whenUnsatisfiable": "DoNotSchedule",
                            "labelSelector": {"matchLabels": {"app": "x"}},
                        }
                    ]
                },
            ),
        ),
        finally_={"b1": "on b", "high": "on a"},
    ),
    _one(
        "too-many-pods",
        [P("low", 1, "100m", "a")],
        {"low": ENDS, "high": "waits for a"},
        nodes={"a": _node(allocatable={"pods": "1"})},
        finally_={"high": "on a"},
    ),
    _one(
        "room-is-kept",
        [_LOW],
        {
            "low": ENDS,
            "high": "waits for a",
            "mid": _none(1, "1 Insufficient cpu", "1 Insufficient cpu"),
        },
        pending=(HIGH, P("mid", 50)),
        finally_={"high": "on a", "mid": _none(1, "1 Insufficient cpu", f"1 {_NO_VICTIMS}")},
    ),
    _one(
        "nomination-is-taken-over",
        [_LOW],
        {
            "low": ENDS,
            "high": "waits for a",
            "mid": _none(1, "1 Insufficient cpu", "1 Insufficient cpu"),
        },
        pending=(P("mid", 50), HIGH),
        finally_={"high": "on a", "mid": _none(1, "1 Insufficient cpu", f"1 {_NO_VICTIMS}")},
    ),
    _one(
        "two-preemptors-two-nodes",
        [_LOW, P("low2", 1, node="b")],
        {"low": ENDS, "low2": ENDS, "high": "waits for a", "high2": "waits for b"},
        nodes=_AB,
        pending=(HIGH, P("high2", 100)),
        finally_={"high": "on a", "high2": "on b"},
    ),
    _one(
        "system-node-critical",
        [P("low", 10**9, node="a")],
        {"low": ENDS, "high": "waits for a"},
        pending=(P("high", 2_000_001_000),),
        finally_={"high": "on a"},
    ),
)


def show(states: dict[str, str]) -> str:
    return json.dumps(states, indent=1, sort_keys=True)
