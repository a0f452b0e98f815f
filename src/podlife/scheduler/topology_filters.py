"""Inter-pod affinity and anti-affinity, and topology spread constraints. Pure.

Required terms only: preferred terms and namespace selectors are ignored. Counts every pod of every node, but only
for pods that use these fields; one pod more or less is one more count (`count`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from podlife.api.selectors import LabelSelector, label_selector_from_dict
from podlife.scheduler.demand import REQUIRED, Demand
from podlife.scheduler.node_cache import NodeCache, NodeInfo


class _Term:
    """One required affinity or anti-affinity term of a pod."""

    def __init__(self, term: Mapping[str, Any], demand: Demand) -> None:
        self.topology_key = str(term.get("topologyKey") or "")
        self._selector = _selector(term.get("labelSelector"), term.get("matchLabelKeys"), demand)
        namespaces = set(term.get("namespaces") or ())
        every = term.get("namespaceSelector")
        # An empty namespace selector means all namespaces; without a selector, the named ones or the pod's own.
        self._is_everywhere = every is not None and not (
            every.get("matchLabels") or every.get("matchExpressions")
        )
        self._namespaces = namespaces or {demand.namespace}

    def matches(self, other: Demand) -> bool:
        in_reach = self._is_everywhere or other.namespace in self._namespaces
        return in_reach and self._selector is not None and self._selector.matches(other.labels)


def _selector(
    selector: Mapping[str, Any] | None, keys: Iterable[str] | None, demand: Demand
) -> LabelSelector | None:
    """None matches nothing."""
    if selector is None:
        return None
    wanted = {key: demand.labels[key] for key in keys or () if key in demand.labels}
    merged = {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), **wanted}}
    try:
        return label_selector_from_dict(merged)
    except ValueError:
        return None


def _terms(demand: Demand, kind: str) -> list[_Term]:
    return [_Term(each, demand) for each in (demand.affinity.get(kind) or {}).get(REQUIRED) or ()]


class TopologyFilter:
    """Constraints between one pod and all others, for one decision."""

    def __init__(self, demand: Demand, nodes: NodeCache) -> None:
        self._demand = demand
        # Per term, the number of pods that it matches, by the value of its topology key.
        self._affinity = [(term, Counter[str]()) for term in _terms(demand, "podAffinity")]
        self._anti_affinity = [(term, Counter[str]()) for term in _terms(demand, "podAntiAffinity")]
        # Terms of other pods that match this one, by topology key and value.
        self._existing_anti_affinity: Counter[tuple[str, str]] = Counter()
        self._spread = [_Spread(each, demand, nodes) for each in demand.spread]
        if demand.depends_on_pods:
            for state in nodes:
                for other in state.pods.values():
                    self.count(other, state, 1)
        else:
            for other, state in nodes.pods_with_anti_affinity.values():
                self.count(other, state, 1)

    def count(self, other: Demand, state: NodeInfo, number: int) -> None:
        """Add a pod on a node (`number` is 1) or remove it (-1)."""
        for term, domains in (*self._affinity, *self._anti_affinity):
            if term.topology_key in state.labels and term.matches(other):
                domains[state.labels[term.topology_key]] += number
        for spread in self._spread:
            spread.count(other, state, number)
        if other.has_anti_affinity:
            for term in _terms(other, "podAntiAffinity"):
                if term.topology_key in state.labels and term.matches(self._demand):
                    key = (term.topology_key, state.labels[term.topology_key])
                    self._existing_anti_affinity[key] += number

    def obstacle(self, state: NodeInfo) -> str:
        """Why other pods make the node unsuitable; empty if they do not."""
        if any(not spread.has_label(state) for spread in self._spread):
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        if any(not spread.allows(state) for spread in self._spread):
            return "node(s) didn't match pod topology spread constraints"
        if any(not self._satisfies(term, domains, state) for term, domains in self._affinity):
            return "node(s) didn't match pod affinity rules"
        if any(_count_of(term, domains, state) for term, domains in self._anti_affinity):
            return "node(s) didn't match pod anti-affinity rules"
        found = self._existing_anti_affinity
        if found and any(found[item] for item in state.labels.items()):
            return "node(s) didn't satisfy existing pods anti-affinity rules"
        return ""

    def _satisfies(self, term: _Term, domains: Counter[str], state: NodeInfo) -> bool:
        value = state.labels.get(term.topology_key)
        if value is None:
            return False
        # The first pod of a group with affinity to itself may run anywhere.
        is_first = not any(found.total() for _, found in self._affinity) and all(
            each.matches(self._demand) for each, _ in self._affinity
        )
        return is_first or domains[value] > 0


def _count_of(term: _Term, domains: Counter[str], state: NodeInfo) -> int:
    value = state.labels.get(term.topology_key)
    return 0 if value is None else domains[value]


class _Spread:
    """One topology spread constraint: a domain has at most maxSkew pods more than the domain with the fewest."""

    def __init__(self, constraint: Mapping[str, Any], demand: Demand, nodes: NodeCache) -> None:
        self._key = str(constraint.get("topologyKey") or "")
        self._most = int(constraint.get("maxSkew") or 1)
        self._least_domains = int(constraint.get("minDomains") or 1)
        self._demand = demand
        self._selector = _selector(constraint.get("labelSelector"), constraint.get("matchLabelKeys"), demand)
        self._counts: Counter[str] = Counter()
        # Nodes whose pods count.
        self._names: set[str] = set()
        honours_taints = constraint.get("nodeTaintsPolicy") == "Honor"
        honours_affinity = constraint.get("nodeAffinityPolicy", "Honor") == "Honor"
        for state in nodes:
            value = state.labels.get(self._key)
            if value is None or (honours_taints and _is_tainted(demand, state)):
                continue
            if honours_affinity and not demand.requirement.matches(state.name, state.labels):
                continue
            self._counts[value] += 0
            self._names.add(state.name)
        self._itself = int(self._matches(demand))

    def _matches(self, other: Demand) -> bool:
        if other.namespace != self._demand.namespace or self._selector is None:
            return False
        return self._selector.matches(other.labels)

    def count(self, other: Demand, state: NodeInfo, number: int) -> None:
        if state.name in self._names and self._matches(other):
            self._counts[state.labels[self._key]] += number

    def has_label(self, state: NodeInfo) -> bool:
        return self._key in state.labels

    def allows(self, state: NodeInfo) -> bool:
        too_few = len(self._counts) < self._least_domains
        fewest = 0 if too_few else min(self._counts.values(), default=0)
        return self._counts[state.labels[self._key]] + self._itself - fewest <= self._most


def _is_tainted(demand: Demand, state: NodeInfo) -> bool:
    taints = state.node.spec.taints if state.node is not None else ()
    return any(
        taint.effect in ("NoSchedule", "NoExecute") and not demand.tolerates(taint) for taint in taints
    )
