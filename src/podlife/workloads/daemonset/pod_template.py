"""The pod template for one node, its tolerations, and the target node of a pod. Pure.

The scheduler binds daemon pods; a required affinity to the node's name restricts it to that node. It replaces the
template's own node affinity, which the node already meets. Daemons are needed on broken nodes: they tolerate nodes that
are not ready, unreachable, under pressure or unschedulable.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.workloads.views import Template, WorkloadPod

HASH_LABEL = "controller-revision-hash"
_GENERATION_LABEL = "pod-template-generation"
_NAME = "metadata.name"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
NO_SCHEDULE = "NoSchedule"
NO_EXECUTE = "NoExecute"

_FOR_ALL = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
# A daemon on the host network may be what makes the network available.
_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


def daemon_template(template: Template, generation: str, hash_: str) -> Template:
    """The template with the revision labels and tolerations of daemon pods."""
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    labels = dict(metadata.get("labels") or {})
    if generation:
        labels[_GENERATION_LABEL] = generation
    if hash_:
        labels[HASH_LABEL] = hash_
    return {
        **template,
        "metadata": {**metadata, "labels": labels},
        "spec": {**spec, "tolerations": with_daemon_tolerations(spec)},
    }


def for_node(template: Template, node_name: str) -> Template:
    """The template of a pod that can only run on this node."""
    spec = template["spec"]
    affinity = spec.get("affinity") or {}
    is_node = {"key": _NAME, "operator": "In", "values": [node_name]}
    required: dict[str, Any] = {"nodeSelectorTerms": [{"matchFields": [is_node]}]}
    node_affinity = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: required}
    return {**template, "spec": {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}}}


def target_node(pod: WorkloadPod) -> str:
    """The current or target node of the pod; empty if it has none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    for term in required.node_selector_terms if required else ():
        for field in term.match_fields:
            if field.get("key") == _NAME and field.get("operator") == "In":
                values: list[str] = field.get("values") or []
                return values[0] if len(values) == 1 else ""
    return ""


def is_updated(pod: WorkloadPod, generation: str, hash_: str) -> bool:
    """Whether it was created from the current template: by revision or, for old pods, by template generation."""
    labels = pod.metadata.labels
    if hash_ and labels.get(HASH_LABEL) == hash_:
        return True
    return bool(generation) and labels.get(_GENERATION_LABEL) == generation


def with_daemon_tolerations(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The template's tolerations, then those of all daemon pods, which remove the time limit of equal ones."""
    tolerations = [dict(each) for each in spec.get("tolerations") or ()]
    wanted = (*_FOR_ALL, _ON_HOST_NETWORK) if spec.get("hostNetwork") else _FOR_ALL
    for key, effect in wanted:
        added = {"key": key, "operator": "Exists", "effect": effect}
        same = [index for index, each in enumerate(tolerations) if _identity(each) == _identity(added)]
        for index in same:
            tolerations[index] = added
        if not same:
            tolerations.append(added)
    return tolerations


def _identity(toleration: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(toleration.get(name) or "" for name in ("key", "effect", "operator", "value"))
