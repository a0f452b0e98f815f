"""Whether a node is one that a pod asks for and bears: selector, required affinity, taints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.api.node_requirement import NodeRequirement, tolerates
from podlife.kubelet.pod_fields import Pod


def is_wanted_node(pod: Pod, node: Mapping[str, Any]) -> bool:
    """By nodeSelector and required node affinity."""
    metadata = node["metadata"]
    return NodeRequirement(pod["spec"]).matches(metadata["name"], metadata.get("labels") or {})


def has_untolerated_taint(pod: Pod, node: Mapping[str, Any], effect: str = "NoExecute") -> bool:
    """A node only refuses for NoExecute: NoSchedule is the scheduler's to mind."""
    tolerations = pod["spec"].get("tolerations") or ()
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(
        taint.get("effect") == effect and not any(_is_about(each, taint) for each in tolerations)
        for taint in taints
    )


def _is_about(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    names = ("key", "effect", "value")
    return tolerates(toleration, **{name: taint.get(name) or "" for name in names})
