"""What a pod requires of a node, computed once. Pods of one template have equal demands and share results."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from podlife.api.node_requirement import NodeRequirement, tolerates
from podlife.api.pod_requests import HostPort, Quantities, add_up, host_address
from podlife.api.quantity import parse_nanos
from podlife.api.views import controller_of
from podlife.scheduler.views import SchedulerContainer, SchedulerPod, SchedulerTaint

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_encode = msgspec.json.Encoder(order="deterministic").encode
# The taint of a cordoned node, which some pods tolerate.
_UNSCHEDULABLE = SchedulerTaint("node.kubernetes.io/unschedulable", "", "NoSchedule")


@dataclass(frozen=True)
class Demand:
    """`owner` is the UID of the controller, by which pods are spread. The priority is no part of `key`: it decides
    whom a pod may preempt, not where it fits."""

    namespace: str
    labels: dict[str, str]
    owner: str
    requests: dict[str, int]
    ports: tuple[HostPort, ...]
    tolerations: tuple[dict[str, Any], ...]
    node_selector: dict[str, str] | None
    affinity: dict[str, Any]
    spread: tuple[dict[str, Any], ...]
    priority: int = 0

    @cached_property
    def key(self) -> bytes:
        """Equal for pods with equal demands."""
        parts = (self.namespace, self.owner, self.requests, self.ports, self.tolerations, self.node_selector)
        return _encode((*parts, self.affinity, self.spread, self.labels if self.depends_on_pods else None))

    @cached_property
    def requirement(self) -> NodeRequirement:
        return NodeRequirement({"nodeSelector": self.node_selector, "affinity": self.affinity})

    @cached_property
    def depends_on_pods(self) -> bool:
        """Whether other pods affect its placement."""
        return bool(self.spread or self.affinity.get("podAffinity") or self.affinity.get("podAntiAffinity"))

    @cached_property
    def has_anti_affinity(self) -> bool:
        return bool((self.affinity.get("podAntiAffinity") or {}).get(REQUIRED))

    @cached_property
    def preferences(self) -> list[tuple[int, NodeRequirement]]:
        """Weighted node preferences."""
        node = self.affinity.get("nodeAffinity") or {}
        return [
            (int(each.get("weight") or 0), _preferred(each.get("preference") or {}))
            for each in node.get("preferredDuringSchedulingIgnoredDuringExecution") or ()
        ]

    def tolerates(self, taint: SchedulerTaint) -> bool:
        return any(
            tolerates(each, key=taint.key, effect=taint.effect, value=taint.value)
            for each in self.tolerations
        )

    @cached_property
    def tolerates_cordon(self) -> bool:
        return self.tolerates(_UNSCHEDULABLE)


def _preferred(term: dict[str, Any]) -> NodeRequirement:
    return NodeRequirement({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}})


def demand_of(pod: SchedulerPod) -> Demand:
    spec = pod.spec
    requests = _Requests(pod)
    owner = controller_of(pod.metadata)
    return Demand(
        namespace=pod.metadata.namespace,
        labels=pod.metadata.labels,
        owner=owner.uid if owner is not None else "",
        requests=add_up(
            (
                (requests.of(each), True)
                if each.restart_policy == "Always"
                else (each.resources.requests, False)
                for each in spec.init_containers
            ),
            map(requests.of, spec.containers),
            whole=spec.resources.requests if spec.resources is not None else None,
            overhead=spec.overhead,
        ),
        ports=tuple(_ports((*spec.containers, *spec.init_containers))),
        tolerations=spec.tolerations,
        node_selector=spec.node_selector,
        affinity=spec.affinity or {},
        spread=tuple(
            each
            for each in spec.topology_spread_constraints
            if each.get("whenUnsatisfiable") == "DoNotSchedule"
        ),
        priority=spec.priority or 0,
    )


class _Requests:
    """Requests of containers. While a resize is under way, the largest of what is wanted, what the node has
    allocated and what it has set counts; what is wanted does not if the node cannot grant it."""

    def __init__(self, pod: SchedulerPod) -> None:
        status = pod.status
        self._reported = {
            each.name: each for each in (*status.init_container_statuses, *status.container_statuses)
        }
        pending = pod.condition("PodResizePending")
        self._is_infeasible = pending is not None and pending.reason == "Infeasible"

    def of(self, container: SchedulerContainer) -> Quantities | None:
        wanted = container.resources.requests
        reported = self._reported.get(container.name)
        if reported is None or reported.resources is None:
            return wanted
        given = (reported.resources.requests or {}, reported.allocated_resources or {})
        if all(each == wanted for each in given):
            return wanted
        candidates = given if self._is_infeasible else (wanted or {}, *given)
        return {
            key: max(
                (each[key] for each in candidates if key in each), key=lambda text: parse_nanos(str(text))
            )
            for key in {key for each in candidates for key in each}
        }


def _ports(containers: tuple[SchedulerContainer, ...]) -> list[HostPort]:
    return [
        (port.protocol or "TCP", port.host_port, host_address(port.host_ip))
        for container in containers
        for port in container.ports
        if port.host_port
    ]
