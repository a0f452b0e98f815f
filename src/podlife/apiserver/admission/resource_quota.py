"""ResourceQuota: whether a write fits into the quotas of its namespace, and what they have used after it. Pure.

The verbs commit the write and the changed quotas together (`registry/quota_charges`), so a quota is never exceeded by
concurrent requests. What is deleted is credited by the resource quota controller, as upstream.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from podlife.api.codec import Object
from podlife.api.quantity import Quantity
from podlife.api.quota import (
    ZERO,
    Evaluator,
    Usage,
    add,
    add_usage,
    evaluator_of,
    is_terminating,
    missing_resources,
    parse_usage,
)
from podlife.apiserver.admission import AdmissionRequest, Operation


def is_charged(attributes: AdmissionRequest) -> bool:
    """Whether the request can use more of a quota."""
    new, old, subresource = attributes.new, attributes.old, attributes.subresource
    if new is None or not attributes.namespace or not attributes.resource.namespaced:
        return False
    if attributes.operation is Operation.CREATE and not subresource:
        return evaluator_of(attributes.resource.key) is not None
    if attributes.operation is not Operation.UPDATE or old is None:
        return False
    match attributes.resource.key:
        case "pods":
            return subresource == "resize" or (not subresource and is_terminating(new) != is_terminating(old))
        case "services":
            return not subresource
        case "persistentvolumeclaims":
            return subresource in ("", "status")
    return False


def charge(attributes: AdmissionRequest, quotas: Sequence[Object], now: datetime) -> list[Usage | None]:
    """What each quota has used after the request; None if that is unchanged. Raises ForbiddenError."""
    evaluator, obj = evaluator_of(attributes.resource.key), attributes.new
    if evaluator is None or obj is None:
        return [None] * len(quotas)
    matching = [_is_concerned(attributes, evaluator, quota, obj) for quota in quotas]
    if not any(matching):
        return [None] * len(quotas)
    usage = evaluator.usage(obj, now)
    if negative := sorted(name for name, amount in usage.items() if amount.nanos < 0):
        raise attributes.forbidden(f"quota usage is negative for resource(s): {','.join(negative)}")
    results: list[Usage | None] = []
    for quota, is_concerned in zip(quotas, matching, strict=True):
        used = None
        if is_concerned:
            more = _increase(attributes, evaluator, quota, usage, now)
            used = _charge_one(attributes, quota, more) if more else None
        results.append(used)
    return results


def _is_concerned(attributes: AdmissionRequest, evaluator: Evaluator, quota: Object, obj: Object) -> bool:
    status = quota.get("status") or {}
    hard, name = status.get("hard") or {}, quota["metadata"]["name"]
    if not evaluator.matches(quota, hard, obj):
        return False
    limited = evaluator.names(hard)
    if attributes.resource.key == "pods" and (missing := missing_resources(obj, limited)):
        raise attributes.forbidden(f"failed quota: {name}: {missing}")
    if limited - (status.get("used") or {}).keys():
        resources = ",".join(sorted(limited))
        raise attributes.forbidden(f"status unknown for quota: {name}, resources: {resources}")
    return True


def _increase(
    attributes: AdmissionRequest, evaluator: Evaluator, quota: Object, usage: Usage, now: datetime
) -> Usage:
    """What the request adds to the quota. An update is charged for the difference, unless the quota did not contain the
    object before."""
    old, hard = attributes.old, (quota["status"].get("hard") or {}).keys()
    if attributes.operation is Operation.UPDATE and old is not None and evaluator.matches(quota, hard, old):
        before = evaluator.usage(old, now)
        usage = {name: _less(amount, before.get(name, ZERO)) for name, amount in usage.items()}
    return {name: amount for name, amount in usage.items() if amount.nanos > 0 and name in hard}


def _less(one: Quantity, other: Quantity) -> Quantity:
    return add(one, Quantity(-other.nanos, other.style))


def _charge_one(attributes: AdmissionRequest, quota: Object, more: Usage) -> Usage:
    status = quota["status"]
    used, hard = parse_usage(status["used"]), parse_usage(status["hard"])
    after = add_usage(used, more)
    exceeded = sorted(name for name in more if after[name].nanos > hard[name].nanos)
    # A status reports what is the case already.
    if exceeded and attributes.subresource != "status":
        parts = (("requested", more), ("used", status["used"]), ("limited", status["hard"]))
        listed = ", ".join(
            f"{what}: {','.join(f'{name}={amounts[name]}' for name in exceeded)}" for what, amounts in parts
        )
        raise attributes.forbidden(f"exceeded quota: {quota['metadata']['name']}, {listed}")
    return after
