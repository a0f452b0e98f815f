"""Whether a node is one that a pod asks for and bears: selector, required affinity, taints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podlife.api.selectors import LabelRequirement, LabelSelector
from podlife.kubelet.lifecycle.objects import Pod

__all__ = ["has_untolerated_taint", "is_wanted_node"]

_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!", "Gt": "gt", "Lt": "lt"}


def is_wanted_node(pod: Pod, node: Mapping[str, Any]) -> bool:
    """By nodeSelector and required node affinity. Terms are alternatives; one that cannot be read matches nothing."""
    labels = node["metadata"].get("labels") or {}
    wanted = pod["spec"].get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    affinity = (pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_matches(each, node, labels) for each in required.get("nodeSelectorTerms") or ())


def _matches(term: Mapping[str, Any], node: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    names = {"metadata.name": node["metadata"]["name"]}
    try:
        return _holds(expressions, labels) and _holds(fields, names)
    except ValueError:
        return False


def _holds(expressions: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> bool:
    requirements = []
    for each in expressions:
        operator = _OPERATORS.get(each.get("operator", ""))
        values = each.get("values") or ()
        if operator is None or (operator in ("gt", "lt") and not _is_one_number(values)):
            raise ValueError(f"no condition on a node: {each}")
        requirements.append(LabelRequirement(each.get("key", ""), operator, tuple(sorted(set(values)))))
    return LabelSelector(requirements).matches(labels)


def _is_one_number(values: Sequence[str]) -> bool:
    return len(values) == 1 and values[0].lstrip("+-").isdecimal()


def has_untolerated_taint(pod: Pod, node: Mapping[str, Any], effect: str = "NoExecute") -> bool:
    """A node only refuses for NoExecute: NoSchedule is the scheduler's to mind."""
    tolerations = pod["spec"].get("tolerations") or ()
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(
        taint.get("effect") == effect and not any(_tolerates(each, taint) for each in tolerations)
        for taint in taints
    )


def _tolerates(toleration: Mapping[str, Any], taint: Mapping[str, Any]) -> bool:
    """An empty effect or key stands for all of them."""
    for key in ("effect", "key"):
        if toleration.get(key) not in (None, "", taint.get(key)):
            return False
    if toleration.get("operator") == "Exists":
        return True
    is_equal = toleration.get("operator") in (None, "", "Equal")
    return is_equal and (toleration.get("value") or "") == (taint.get("value") or "")
