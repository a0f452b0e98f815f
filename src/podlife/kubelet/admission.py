"""Whether the node admits a pod that was bound to it, and the reason if not (ST-18, ST-19).

The scheduler has checked already; this covers pods that bypass it, and changes in between. Resources, ports, affinity,
taints and sysctls are checked; reasons and messages are upstream's. Preemption for critical pods is not implemented.
`admission_failure` decides and is pure; `Admitter` keeps track of admitted pods.

A sysctl is safe if it is namespaced and the pod does not share that namespace with the node. Others are rejected, as by
a kubelet without `--allowed-unsafe-sysctls`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from podlife.api.codec import Object
from podlife.api.node_requirement import NodeRequirement, tolerates
from podlife.api.pod_requests import HostPort, amount, clash, host_address, pod_requests
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_fields import Pod, containers_of, init_containers_of, is_static

_OS, _OS_LABEL = "linux", "kubernetes.io/os"
_IPC, _NET = "IPC", "Net"
# The namespace of each sysctl.
_SAFE_SYSCTLS = {
    "kernel.shm_rmid_forced": _IPC,
    **dict.fromkeys(
        (
            "net.ipv4.ip_local_port_range",
            "net.ipv4.ip_local_reserved_ports",
            "net.ipv4.ip_unprivileged_port_start",
            "net.ipv4.ping_group_range",
            "net.ipv4.tcp_fin_timeout",
            "net.ipv4.tcp_keepalive_intvl",
            "net.ipv4.tcp_keepalive_probes",
            "net.ipv4.tcp_keepalive_time",
            "net.ipv4.tcp_rmem",
            "net.ipv4.tcp_syncookies",
            "net.ipv4.tcp_wmem",
        ),
        _NET,
    ),
}


@dataclass(frozen=True, slots=True)
class AdmissionFailure:
    reason: str
    message: str


class AllocatedResources:
    """Resources allocated to pods, updated incrementally: admission costs the same for any number of pods."""

    def __init__(self) -> None:
        self.pods = 0
        self.amounts: Counter[str] = Counter()
        self.ports: Counter[HostPort] = Counter()

    def add(self, pod: Pod) -> None:
        self.pods += 1
        self.amounts.update(pod_requests(pod))
        self.ports.update(_ports(pod))

    def remove(self, pod: Pod) -> None:
        """Remove a pod, in the state in which it was added."""
        self.pods -= 1
        self.amounts.subtract(pod_requests(pod))
        self.ports = self.ports - Counter(_ports(pod))


def admission_failure(
    pod: Pod, node: Mapping[str, Any], taken: AllocatedResources
) -> AdmissionFailure | None:
    """Why the node does not admit the pod; None if it does."""
    return next(_failures(pod, node, taken), None)


def _failures(pod: Pod, node: Mapping[str, Any], taken: AllocatedResources) -> Iterator[AdmissionFailure]:
    """In upstream's order; only the first is reported."""
    if pod["spec"].get("resourceClaims"):
        message = "Failed to admit pod as this node cannot prepare devices for spec.resourceClaims"
        yield AdmissionFailure("ResourceClaimsNotSupported", message)
    for message in _forbidden_sysctls(pod):
        yield AdmissionFailure("SysctlForbidden", message)
    if (pod["metadata"].get("labels") or {}).get(_OS_LABEL, _OS) != _OS:
        message = f"Failed to admit pod as the `{_OS_LABEL}` label doesn't match node label"
        yield AdmissionFailure("PodOSSelectorNodeLabelDoesNotMatch", message)
    if (pod["spec"].get("os") or {}).get("name", _OS) != _OS:
        yield AdmissionFailure(
            "PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"
        )
    yield from _insufficient(pod, node, taken)
    if not _matches_node(pod, node):
        yield _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
    if (pod["spec"].get("nodeName") or node["metadata"]["name"]) != node["metadata"]["name"]:
        yield _predicate("NodeName", "node(s) didn't match the requested node name")
    if any(clash(one, two) for two in _ports(pod) for one in taken.ports):
        yield _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
    if not is_static(pod) and _has_untolerated_taint(pod, node):
        yield _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")


def _predicate(name: str, detail: str) -> AdmissionFailure:
    return AdmissionFailure(name, f"Predicate {name} failed: {detail}")


def _insufficient(pod: Pod, node: Mapping[str, Any], taken: AllocatedResources) -> Iterator[AdmissionFailure]:
    """Resources that the node lacks; the number of pods comes first."""
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    if "pods" in allocatable:
        yield from _short("pods", 1, taken.pods, amount("pods", allocatable["pods"]))
    wanted = pod_requests(pod)
    standard = ("cpu", "memory", "ephemeral-storage")
    for key in (*standard, *(key for key in wanted if key not in standard)):
        if key in wanted and (key in allocatable or not _is_extended(key)):
            yield from _short(key, wanted[key], taken.amounts[key], amount(key, allocatable.get(key, "0")))


def _is_extended(resource: str) -> bool:
    """Extended resources belong to device plugins; a node without the plugin does not check them."""
    return "/" in resource and "kubernetes.io/" not in resource


def _short(resource: str, requested: int, used: int, capacity: int) -> Iterator[AdmissionFailure]:
    if requested > capacity - used:
        yield AdmissionFailure(
            f"OutOf{resource}",
            f"Node didn't have enough resource: {resource}, "
            f"requested: {requested}, used: {used}, capacity: {capacity}",
        )


def _ports(pod: Pod) -> list[HostPort]:
    """Host ports of the pod."""
    return [
        (port.get("protocol") or "TCP", int(port["hostPort"]), host_address(port.get("hostIP") or ""))
        for container in (*containers_of(pod), *init_containers_of(pod))
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def rejected_status(failure: AdmissionFailure) -> Object:
    """The status of a rejected pod (ST-18)."""
    message = f"Pod was rejected: {failure.message}"
    return {"phase": "Failed", "reason": failure.reason, "message": message}


def in_order_of_admission(pods: Iterable[Pod]) -> list[Pod]:
    """The oldest first: pods are admitted in order of creation (ST-19)."""
    return sorted(pods, key=lambda each: str(each["metadata"].get("creationTimestamp") or ""))


def _matches_node(pod: Pod, node: Mapping[str, Any]) -> bool:
    """Checks nodeSelector and required node affinity."""
    metadata = node["metadata"]
    return NodeRequirement(pod["spec"]).matches(metadata["name"], metadata.get("labels") or {})


def _has_untolerated_taint(pod: Pod, node: Mapping[str, Any]) -> bool:
    """The kubelet rejects only for NoExecute: the scheduler checks NoSchedule."""
    tolerations = pod["spec"].get("tolerations") or ()
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(
        taint.get("effect") == "NoExecute" and not any(_is_tolerated(taint, each) for each in tolerations)
        for taint in taints
    )


def _is_tolerated(taint: Mapping[str, Any], toleration: Mapping[str, Any]) -> bool:
    return tolerates(toleration, **{name: taint.get(name) or "" for name in ("key", "effect", "value")})


def sysctls_of(pod: Pod) -> dict[str, str]:
    """By name with dots as separators; a manifest may use slashes."""
    listed = (pod["spec"].get("securityContext") or {}).get("sysctls") or ()
    return {_normalized(each["name"]): str(each.get("value") or "") for each in listed}


def _forbidden_sysctls(pod: Pod) -> Iterator[str]:
    """Upstream's message for each sysctl that is not allowed."""
    spec = pod["spec"]
    shared = {_IPC: bool(spec.get("hostIPC")), _NET: bool(spec.get("hostNetwork"))}
    for name in sysctls_of(pod):
        namespace = _SAFE_SYSCTLS.get(name)
        if namespace is None:
            yield f'forbidden sysctl: "{name}" not allowlisted'
        elif shared[namespace]:
            yield f'forbidden sysctl: "{name}" not allowed with host {namespace} enabled'


def _normalized(name: str) -> str:
    """If the first separator is a slash, slashes separate and dots belong to the parts."""
    first = next((each for each in name if each in "./"), "")
    return name.translate(str.maketrans("./", "/.")) if first == "/" else name


class Admitter:
    """An admitted pod keeps its resources until none of its containers runs; a rejected pod never has any."""

    def __init__(self, node: Callable[[], Object]) -> None:
        self._node = node
        self._taken = AllocatedResources()
        self._pods: dict[str, NodePod] = {}

    @property
    def pods(self) -> frozenset[str]:
        """UIDs of pods that hold resources."""
        return frozenset(self._pods)

    def admit(self, pod: NodePod) -> AdmissionFailure | None:
        """Allocate the pod's resources; returns the failure if it is rejected."""
        if pod.uid in self._pods:
            return None
        failure = admission_failure(pod, self._node(), self._taken)
        if failure is None:
            self.take(pod)
        return failure

    def admitted(self, uid: str) -> NodePod | None:
        """The pod as it was admitted or last resized."""
        return self._pods.get(uid)

    def resize(self, pod: NodePod) -> AdmissionFailure | None:
        """Allocate other resources to an admitted pod, if they fit beside all other pods."""
        held = self._pods[pod.uid]
        self._taken.remove(held)
        failure = admission_failure(pod, self._node(), self._taken)
        self._pods[pod.uid] = pod if failure is None else held
        self._taken.add(self._pods[pod.uid])
        return failure

    def take(self, pod: NodePod) -> None:
        """Allocate without a check, for a pod that already runs (HC-17)."""
        if pod.uid not in self._pods:
            self._pods[pod.uid] = pod
            self._taken.add(pod)

    def release(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self._taken.remove(pod)

    def keep_only(self, is_wanted: Callable[[str], bool]) -> None:
        """Release pods that ended before they started, for which no event arrives."""
        for uid in [each for each in self._pods if not is_wanted(each)]:
            self.release(uid)
