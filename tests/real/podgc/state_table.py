"""The states that both collectors are given: every reason, alone and in the company of what must stay."""

from __future__ import annotations

from typing import Any

from podlife.client import Client
from tests.real.podgc.cluster import Object, make_node, taint
from tests.real.podgc.states import LONG_AGO, NodeState, PodState, State, World

PHASES = ("Pending", "Running", "Unknown", "Succeeded", "Failed")
OUT = (taint(),)


def condition(type_: str, status: str = "True", **more: str) -> Object:
    return {"type": type_, "status": status, "lastTransitionTime": LONG_AGO, **more}


CONDITIONS = tuple(condition(type_) for type_ in ("Initialized", "Ready", "ContainersReady", "PodScheduled"))


def each_phase(prefix: str = "", **more: Any) -> tuple[PodState, ...]:
    """A pod of each phase, the empty one and one that nobody knows among them."""
    named = ((phase.lower() or "no-phase", phase) for phase in (*PHASES, "", "Strange"))
    return tuple(PodState(f"{prefix}{name}", phase, **more) for name, phase in named)


async def _node_returns(client: Client, state: State) -> None:
    await make_node(client, state.node_name("back"))


def _out_of_service(name: str, *, ready: str = "False", taints: tuple[Object, ...] = OUT) -> State:
    """Pods of every phase on such a node: terminating, terminating and held, and neither."""
    pods = (
        *each_phase("ending-", node="n", deleted_with_grace=300),
        *each_phase("held-", node="n", deleted_with_grace=300, is_held=True),
        *each_phase("staying-", node="n"),
    )
    return State(name, pods, (NodeState("n", ready, taints),))


_ORPHANS = (
    State("orphans", each_phase(node="gone")),
    State("orphans-held", each_phase(node="gone", is_held=True)),
    State("orphans-terminating", each_phase(node="gone", deleted_with_grace=300)),
    State("orphans-terminating-held", each_phase(node="gone", deleted_with_grace=300, is_held=True)),
    State("orphans-at-grace-0-held", each_phase(node="gone", deleted_with_grace=0, is_held=True)),
    State("orphans-keep-conditions", (PodState("p", node="gone", is_held=True, conditions=CONDITIONS),)),
    State(
        "orphans-disrupted-before",
        tuple(
            PodState(
                status.lower(),
                node="gone",
                is_held=True,
                conditions=(condition("DisruptionTarget", status, reason="Other"), *CONDITIONS),
            )
            for status in ("True", "False", "Unknown")
        ),
    ),
    State(
        "orphans-ended-with-conditions",
        tuple(PodState(phase.lower(), phase, "gone", "", CONDITIONS, True) for phase in PHASES[3:]),
    ),
    State(
        "orphans-of-many-nodes",
        tuple(PodState(f"p-{n}", node=f"gone-{n % 4}") for n in range(12)),
        (NodeState("gone-0"), NodeState("gone-2")),
    ),
    State(
        "orphans-among-namesakes",
        tuple(
            PodState("p", node=node, namespace=namespace)
            for namespace, node in (("a", "gone"), ("b", "here"), ("c", ""), ("d", "gone"))
        ),
        (NodeState("here"),),
    ),
    State("node-returns-within-quarantine", each_phase(node="back"), then=_node_returns),
)

_NODES_THAT_ARE_THERE = (
    State("on-a-ready-node", each_phase(node="n"), (NodeState("n"),)),
    State("on-a-node-not-ready", each_phase(node="n"), (NodeState("n", "False"),)),
    State("on-a-node-without-conditions", each_phase(node="n"), (NodeState("n", ""),)),
    State("terminating-on-a-ready-node", each_phase(node="n", deleted_with_grace=300), (NodeState("n"),)),
    State(
        "ended-and-evicted-without-threshold",
        tuple(PodState(f"p-{n}", "Failed", "n", "Evicted") for n in range(8)),
        (NodeState("n"),),
    ),
)

_OUT_OF_SERVICE = (
    _out_of_service("out-of-service"),
    _out_of_service("out-of-service-ready-unknown", ready="Unknown"),
    _out_of_service("out-of-service-no-ready-condition", ready=""),
    _out_of_service("out-of-service-but-ready", ready="True"),
    _out_of_service("not-ready-without-taint", taints=()),
    _out_of_service("not-ready-with-another-taint", taints=({"key": "other", "effect": "NoExecute"},)),
    _out_of_service("out-of-service-no-schedule", taints=(taint("NoSchedule"),)),
    _out_of_service("out-of-service-with-value", taints=(taint("NoExecute", "any-value"),)),
    State(
        "out-of-service-keeps-conditions",
        (
            PodState(
                "p",
                node="n",
                is_held=True,
                deleted_with_grace=300,
                conditions=(*CONDITIONS, condition("DisruptionTarget", reason="EvictionByEvictionAPI")),
            ),
        ),
        (NodeState("n", "False", OUT),),
    ),
)

_UNSCHEDULED = (
    State("unscheduled-terminating-held", each_phase(deleted_with_grace=30, is_held=True)),
    State("unscheduled-terminating-at-grace-0", each_phase(deleted_with_grace=0, is_held=True)),
    State("unscheduled", each_phase()),
    State(
        "unscheduled-keeps-conditions",
        (PodState("p", "Pending", conditions=CONDITIONS, is_held=True, deleted_with_grace=30),),
    ),
)

WITHOUT_THRESHOLD = World(
    "without-threshold",
    (*_ORPHANS, *_NODES_THAT_ARE_THERE, *_OUT_OF_SERVICE, *_UNSCHEDULED),
    has_orphans=True,
)

HERE = (NodeState("n"),)


def ended(name: str, second: int, phase: str = "Failed", **more: Any) -> PodState:
    return PodState(name, phase, "n", second=second, **more)


def _alone(threshold: int, name: str, *pods: PodState, nodes: tuple[NodeState, ...] = HERE) -> World:
    has_orphans = any(pod.node and pod.node not in {node.name for node in nodes} for pod in pods)
    return World(name, (State(name, pods, nodes),), threshold, has_orphans)


WITH_THRESHOLD = (
    _alone(1, "threshold-oldest-go", ended("c", 0), ended("b", 1, "Succeeded"), ended("a", 2)),
    _alone(
        1,
        "threshold-counts-what-ended",
        *each_phase(node="n"),
        ended("x", 1, "Running"),
        ended("y", 1, "Succeeded"),
    ),
    _alone(2, "threshold-met", ended("a", 0), ended("b", 0, "Succeeded"), ended("c", 0, "Running")),
    _alone(9, "threshold-far", ended("a", 0), ended("b", 0, "Succeeded")),
    _alone(-1, "threshold-negative", *(ended(f"p-{n}", 0) for n in range(5))),
    _alone(2, "threshold-same-second-by-name", *(ended(f"p-{n}", 0) for n in (3, 1, 4, 2, 0))),
    _alone(
        2,
        "threshold-evicted-first",
        ended("old", 0),
        ended("older-evicted", 1, reason="Evicted"),
        ended("younger-evicted", 2, reason="Evicted"),
        ended("young", 2),
    ),
    _alone(
        1,
        "threshold-evicted-is-failed-and-says-so",
        ended("a-oldest", 0, "Succeeded"),
        ended("b-succeeded", 1, "Succeeded", reason="Evicted"),
        ended("c-lower-case", 1, reason="evicted"),
    ),
    _alone(
        3,
        "threshold-over-all-namespaces",
        *(
            ended(name, n % 3, namespace=namespace)
            for n, (name, namespace) in enumerate(
                (name, namespace) for name in ("same", "other") for namespace in ("a", "b", "c")
            )
        ),
    ),
    _alone(
        2,
        "threshold-victims-held",
        ended("held-old", 0, is_held=True),
        ended("held-evicted", 1, reason="Evicted", is_held=True),
        ended("b", 1),
        ended("c", 1),
    ),
    _alone(
        1,
        "threshold-oldest-held-at-grace-0",
        ended("a", 0, is_held=True, deleted_with_grace=0),
        ended("b", 1),
        ended("c", 2),
    ),
    _alone(
        3,
        "threshold-met-while-others-are-marked",
        *(ended(f"ended-{n}", 0) for n in range(3)),
        *(PodState(f"stuck-{n:02}", node="out", deleted_with_grace=300) for n in range(40)),
        nodes=(*HERE, NodeState("out", "False", OUT)),
    ),
    _alone(
        2,
        "threshold-and-unscheduled-held",
        *(ended(f"ended-{n}", n) for n in range(2)),
        PodState("stuck", "Pending", deleted_with_grace=30, is_held=True, second=2),
    ),
    _alone(
        4,
        "threshold-and-every-other-reason",
        *(ended(f"ended-{n}", 0) for n in range(6)),
        *(PodState(f"orphan-{n:02}", node="gone") for n in range(40)),
        *(PodState(f"stuck-{n}", node="out", deleted_with_grace=300) for n in range(5)),
        *(PodState(f"running-{n}", node="n") for n in range(5)),
        nodes=(*HERE, NodeState("out", "False", OUT)),
    ),
)

WORLDS = (WITHOUT_THRESHOLD, *WITH_THRESHOLD)
STATES = tuple((world, state) for world in WORLDS for state in world.states)
