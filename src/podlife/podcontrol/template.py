"""Builds pods from templates. Pure and lossless: every field of the template's spec is kept.

The pod shares no data with the template.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.api.names import check_dns_subdomain
from podlife.api.selectors import LabelSelector
from podlife.podcontrol.errors import InvalidOwnerError, InvalidTemplateError, SelectorMismatchError
from podlife.podcontrol.owner import ControllerRef, Owner, Parent, owner_of

Template = Mapping[str, Any]
"""A PodTemplateSpec: `metadata` and `spec` as in the API."""


def pod_from_template(
    template: Template,
    parent: Parent,
    controller_ref: ControllerRef | None = None,
    *,
    generate_name: str = "",
) -> Object:
    """The pod of the template for its parent: without name and namespace, with the parent's name as the prefix unless
    `generate_name` is set, and with no other owner than `controller_ref`.

    Raises InvalidOwnerError for a parent without metadata, InvalidTemplateError for an invalid template."""
    try:
        owner = owner_of(parent)
    except InvalidOwnerError as error:
        raise InvalidOwnerError(f"parentObject does not have ObjectMeta, {error}") from None
    if not isinstance(template.get("spec"), Mapping):
        raise InvalidTemplateError(f"the pod template of {_shown(owner)} has no spec")
    wanted = template.get("metadata") or {}
    metadata: Object = {
        "labels": dict(wanted.get("labels") or {}),
        "annotations": dict(wanted.get("annotations") or {}),
        "finalizers": list(wanted.get("finalizers") or ()),
        "generateName": generate_name or pod_name_prefix(owner.name),
    }
    if controller_ref is not None:
        metadata["ownerReferences"] = [controller_ref.to_object()]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": _copy(template["spec"])}


def pod_name_prefix(name: str) -> str:
    """The name with a dash, unless it would be too long (PC-13, PC-14)."""
    prefix = f"{name}-"
    return name if check_dns_subdomain(prefix, prefix=True) else prefix


def validate_selector(selector: LabelSelector, template: Template) -> None:
    """Raises SelectorMismatchError if the controller would not recognize its own pods."""
    labels = (template.get("metadata") or {}).get("labels") or {}
    if not selector.matches(labels):
        shown = ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "<none>"
        raise SelectorMismatchError(f"selector {str(selector)!r} does not match template labels {shown!r}")


def _copy(value: Any) -> Any:
    # JSON types only: several times as fast as copy.deepcopy.
    if isinstance(value, Mapping):
        return {key: _copy(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_copy(each) for each in value]
    return value


def _shown(owner: Owner) -> str:
    where = f"{owner.namespace}/" if owner.namespace else ""
    return f"{owner.kind or 'object'} {where}{owner.name}"
