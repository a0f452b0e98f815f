"""Whether a node can run a pod, and its score: pure, in the order and with the messages of kube-scheduler's filters.

A node that is not ready carries a taint, which the node lifecycle controller sets.
"""

from __future__ import annotations

from podlife.api.pod_requests import clash
from podlife.scheduler.demand import Demand
from podlife.scheduler.node_cache import NodeInfo

Score = tuple[int, int, int, float, str]
"""The least is the best: pods of the same owner, weight of what is not preferred, taints that would rather have none,
how full, and the name, so that nothing is left to chance."""


def obstacles(demand: Demand, state: NodeInfo) -> tuple[str, ...]:
    """Why the node is unsuitable; empty if it is not. Only the first failing filter counts."""
    node = state.node
    assert node is not None
    if node.spec.unschedulable and not demand.bears_cordon:
        return ("node(s) were unschedulable",)
    for taint in node.spec.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not demand.tolerates(taint):
            return ("node(s) had untolerated taint(s)",)
    if not demand.requirement.matches(state.name, state.labels):
        return ("node(s) didn't match Pod's node affinity/selector",)
    if demand.ports and any(clash(one, other) for one in demand.ports for other in state.ports):
        return ("node(s) didn't have free ports for the requested pod ports",)
    return tuple(_lacking(demand, state))


def _lacking(demand: Demand, state: NodeInfo) -> list[str]:
    found = []
    if len(state.pods) + 1 > state.allocatable["pods"]:
        found.append("Too many pods")
    found += [
        f"Insufficient {key}"
        for key, wanted in demand.requests.items()
        if wanted > state.allocatable[key] - state.used[key]
    ]
    return found


def score(demand: Demand, state: NodeInfo) -> Score:
    node = state.node
    assert node is not None
    unwanted = sum(
        weight for weight, wish in demand.preferences if not wish.matches(state.name, state.labels)
    )
    avoided = sum(
        1 for taint in node.spec.taints if taint.effect == "PreferNoSchedule" and not demand.tolerates(taint)
    )
    together = state.owners[demand.owner] if demand.owner else 0
    return (together, unwanted, avoided, state.pod_share(), state.name)
