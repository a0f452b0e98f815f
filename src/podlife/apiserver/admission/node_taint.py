"""TaintNodesByCondition: a new node takes no pods until the node lifecycle controller has seen that it is ready."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.apiserver.admission import AdmissionRequest, Operation, Reader

_NOT_READY: Object = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}


def taint_new_node(attributes: AdmissionRequest, reader: Reader) -> None:
    if attributes.resource.key != "nodes" or attributes.subresource or attributes.new is None:
        return
    if attributes.operation is Operation.CREATE:
        spec = attributes.new.setdefault("spec", {})
        given = spec.get("taints") or []
        if not any((each["key"], each["effect"]) == (*_NOT_READY.values(),) for each in given):
            spec["taints"] = [*given, dict(_NOT_READY)]
