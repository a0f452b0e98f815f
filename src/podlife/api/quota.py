"""What objects use of resource quotas: upstream's evaluators, pure.

An evaluator belongs to a resource (`pods`, `deployments.apps`) and says which of a quota's names concern it, how much
of them one object uses, and whether a scope contains the object. Admission charges by it, the controller counts by it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from podlife.api.codec import Object, parse_time
from podlife.api.pod_requests import Quantities
from podlife.api.quantity import NANOS, Quantity, parse_quantity

Usage = dict[str, Quantity]
"""Amounts by resource name. A missing name and an amount of zero are different."""

_ONE = Quantity(NANOS, "decimal")
ZERO = Quantity(0, "decimal")
_REQUESTS = "requests."
_HUGE_PAGES = "hugepages-"
_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
_COMPUTE = ("cpu", "memory", "ephemeral-storage")
_POD_LEVEL = ("cpu", "memory")
_POD_NAMES = frozenset(
    {"pods", "count/pods"} | {f"{side}{name}" for side in ("", _REQUESTS, "limits.") for name in _COMPUTE}
)
# A quota of these requires that every container sets them.
_REQUIRED_OF_CONTAINERS = frozenset(
    f"{side}{name}" for side in ("", _REQUESTS, "limits.") for name in _POD_LEVEL
)
_SERVICE_NAMES = frozenset({"services", "count/services", "services.nodeports", "services.loadbalancers"})
_CLAIM_NAMES = ("persistentvolumeclaims", "requests.storage")
_DEVICE_CLAIM_COUNT = "count/resourceclaims.resource.k8s.io"
_CLASS_OF_DEVICES = ".deviceclass.resource.k8s.io/devices"
_MOST_DEVICES = 32
_STORAGE_CLASS = ".storageclass.storage.k8s.io/"
_STORAGE_CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
# Kinds that were counted before `count/` existed.
_OLDER_NAMES = frozenset({"configmaps", "resourcequotas", "replicationcontrollers", "secrets"})
_IGNORED = frozenset({"bindings", "events", "events.events.k8s.io"})


def parse_usage(texts: Quantities | None) -> Usage:
    return {name: parse_quantity(str(text)) for name, text in (texts or {}).items()}


def add(one: Quantity, other: Quantity) -> Quantity:
    """As Go's Add: a sum is written as its first summand, unless that is zero."""
    return Quantity(one.nanos + other.nanos, one.style if one.nanos else other.style)


def add_usage(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Usage:
    both = {name: add(amount, other[name]) for name, amount in one.items() if name in other}
    return {**one, **other, **both}


def _largest(one: Usage, *others: Usage) -> Usage:
    result = dict(one)
    for other in others:
        for name, amount in other.items():
            if name not in result or amount.nanos > result[name].nanos:
                result[name] = amount
    return result


def _is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def scope_selectors(spec: Object) -> list[Object]:
    """The scopes of a quota in one form."""
    selectors = [{"scopeName": scope, "operator": "Exists"} for scope in spec.get("scopes") or ()]
    return selectors + ((spec.get("scopeSelector") or {}).get("matchExpressions") or [])


def _selects(selector: Object, values: set[str]) -> bool:
    """Whether one of the values is selected, or their absence."""
    given = selector.get("values") or ()
    match selector.get("operator"):
        case "In":
            return bool(values.intersection(given))
        case "NotIn":
            return not values or bool(values.difference(given))
        case "Exists":
            return bool(values)
        case _:
            return not values


# Pods


def is_terminating(pod: Object) -> bool:
    """In the sense of quota scopes: it has a deadline."""
    seconds = pod["spec"].get("activeDeadlineSeconds")
    return seconds is not None and seconds >= 0


def _pod_in_scope(selector: Object, pod: Object) -> bool:
    spec = pod["spec"]
    match selector["scopeName"]:
        case "Terminating":
            return is_terminating(pod)
        case "NotTerminating":
            return not is_terminating(pod)
        case "BestEffort":
            return (pod.get("status") or {}).get("qosClass") == "BestEffort"
        case "NotBestEffort":
            return (pod.get("status") or {}).get("qosClass") != "BestEffort"
        case "PriorityClass":
            return _selects(selector, {spec["priorityClassName"]} if spec.get("priorityClassName") else set())
        case "CrossNamespacePodAffinity":
            return any(map(_names_namespaces, _affinity_terms(spec.get("affinity") or {})))
    return False


def _affinity_terms(affinity: Object) -> Iterable[Object]:
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()
        for weighted in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ():
            yield weighted["podAffinityTerm"]


def _names_namespaces(term: Object) -> bool:
    return bool(term.get("namespaces")) or term.get("namespaceSelector") is not None


def pod_resources(pod: Object, side: str, *, observed: bool = False) -> Usage:
    """`requests` or `limits` of a whole pod, without overhead. With `observed`, what the node has given it counts too
    while a resize is under way."""
    spec, status = pod["spec"], (pod.get("status") or {}) if observed else {}
    reported = {
        each["name"]: each
        for field in ("containerStatuses", "initContainerStatuses")
        for each in status.get(field) or ()
        if each.get("resources") is not None
    }
    is_refused = any(
        each["type"] == "PodResizePending" and each.get("reason") == "Infeasible"
        for each in status.get("conditions") or ()
    )

    def effective(container: Object) -> Usage:
        wanted = parse_usage((container.get("resources") or {}).get(side))
        found = reported.get(container["name"])
        if found is None:
            return wanted
        given = [parse_usage(found["resources"].get(side))]
        if side == "requests":
            given.append(parse_usage(found.get("allocatedResources")))
        return _largest({} if is_refused else wanted, *given)

    total: Usage = {}
    for container in spec.get("containers") or ():
        total = add_usage(total, effective(container))
    sidecars: Usage = {}
    most: Usage = {}
    for container in spec.get("initContainers") or ():
        if container.get("restartPolicy") == "Always":
            used = effective(container)
            total, sidecars = add_usage(total, used), add_usage(sidecars, used)
            most = _largest(most, sidecars)
        else:
            used = parse_usage((container.get("resources") or {}).get(side))
            most = _largest(most, add_usage(used, sidecars))
    whole = parse_usage((spec.get("resources") or {}).get(side))
    # Upstream's LimitRanger leaves out huge pages.
    replaced = (name for name in whole if name in _POD_LEVEL or (observed and name.startswith(_HUGE_PAGES)))
    return _largest(total, most) | {name: whole[name] for name in replaced}


def _is_charged(pod: Object, now: datetime) -> bool:
    """Whether it counts as running: not ended, and not past the time by which it should have been."""
    if (pod.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return False
    meta = pod["metadata"]
    deleted, seconds = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    if deleted is None or seconds is None:
        return True
    return (now - parse_time(deleted)).total_seconds() <= int(seconds)


def _compute_usage(requests: Usage, limits: Usage) -> Usage:
    usage = {"pods": _ONE}
    for name, amount in requests.items():
        if name in _COMPUTE or name.startswith(_HUGE_PAGES):
            usage[name] = usage[_REQUESTS + name] = amount
        elif name.startswith(_DEVICE_CLASS) or not (_is_native(name) or name.startswith(_REQUESTS)):
            usage[_REQUESTS + name] = amount
    return usage | {f"limits.{name}": limits[name] for name in _COMPUTE if name in limits}


def _pod_usage(pod: Object, now: datetime) -> Usage:
    if not _is_charged(pod, now):
        return {"count/pods": _ONE}
    requests, limits = (pod_resources(pod, side, observed=True) for side in ("requests", "limits"))
    overhead = parse_usage(pod["spec"].get("overhead"))
    requests = add_usage(requests, overhead)
    limited = {name: amount for name, amount in overhead.items() if name in limits and limits[name].nanos}
    return {"count/pods": _ONE, **_compute_usage(requests, add_usage(limits, limited))}


def _pod_names(names: Iterable[str]) -> set[str]:
    def is_extended(name: str) -> bool:
        is_ours = not _is_native(name) or name.startswith(_REQUESTS + _DEVICE_CLASS)
        return is_ours and name.startswith(_REQUESTS)

    pages = (_HUGE_PAGES, _REQUESTS + _HUGE_PAGES)
    return {name for name in names if name in _POD_NAMES or name.startswith(pages) or is_extended(name)}


def missing_resources(pod: Object, names: Iterable[str]) -> str:
    """What containers must set because quotas limit it, in upstream's words; empty if nothing is missing."""
    spec = pod["spec"]
    whole = spec.get("resources") or {}
    at_pod_level = (*(whole.get("requests") or ()), *(whole.get("limits") or ()))
    if any(name in _POD_LEVEL or name.startswith(_HUGE_PAGES) for name in at_pod_level):
        return ""
    missing: dict[str, set[str]] = {}
    needed = _REQUIRED_OF_CONTAINERS.intersection(names)
    for container in (*spec["containers"], *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        given = _compute_usage(parse_usage(resources.get("requests")), parse_usage(resources.get("limits")))
        for name in needed - given.keys():
            missing.setdefault(name, set()).add(container["name"])
    parts = (f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))
    return f"must specify {'; '.join(parts)}" if missing else ""


# Services


def _service_usage(service: Object, now: datetime) -> Usage:
    spec = service["spec"]
    ports = spec.get("ports") or ()
    is_balanced = spec.get("type") == "LoadBalancer"
    count = len(ports) if is_balanced or spec.get("type") == "NodePort" else 0
    if is_balanced and spec.get("allocateLoadBalancerNodePorts") is False:
        count = sum(bool(port.get("nodePort")) for port in ports)
    return {
        "services": _ONE,
        "count/services": _ONE,
        "services.nodeports": Quantity(count * NANOS, "decimal"),
        "services.loadbalancers": _ONE if is_balanced else ZERO,
    }


# Volume claims


def _claim_usage(claim: Object, now: datetime) -> Usage:
    spec, status = claim["spec"], claim.get("status") or {}
    annotations = claim["metadata"].get("annotations") or {}
    storage_class = annotations.get(_STORAGE_CLASS_ANNOTATION, spec.get("storageClassName"))
    amounts = {"persistentvolumeclaims": _ONE}
    if (requested := ((spec.get("resources") or {}).get("requests") or {}).get("storage")) is not None:
        given = (status.get("allocatedResources") or {}).get("storage", "0")
        size = max(parse_quantity(requested), parse_quantity(given), key=lambda each: each.nanos)
        amounts["requests.storage"] = Quantity(-(-size.nanos // NANOS) * NANOS, size.style)
    by_class = {f"{storage_class}{_STORAGE_CLASS}{name}": amount for name, amount in amounts.items()}
    return {**amounts, "count/persistentvolumeclaims": _ONE, **(by_class if storage_class else {})}


def _claim_in_scope(selector: Object, claim: Object) -> bool:
    if selector["scopeName"] != "VolumeAttributesClass":
        return False
    status = claim.get("status") or {}
    classes = {
        claim["spec"].get("volumeAttributesClassName"),
        status.get("currentVolumeAttributesClassName"),
        (status.get("modifyVolumeStatus") or {}).get("targetVolumeAttributesClassName"),
    }
    return _selects(selector, {each for each in classes if each})


def _claim_names(names: Iterable[str]) -> set[str]:
    per_class = tuple(f"{_STORAGE_CLASS}{name}" for name in _CLAIM_NAMES)
    own = (*_CLAIM_NAMES, "count/persistentvolumeclaims")
    return {name for name in names if name in own or name.endswith(per_class)}


# Claims for devices


def _device_claim_usage(claim: Object, now: datetime) -> Usage:
    """Devices by class. Of alternatives, the most of each class; all of them are as many as a claim can have."""
    devices: Counter[str] = Counter()
    for request in claim["spec"]["devices"].get("requests") or ():
        worst: Counter[str] = Counter()
        for each in request.get("firstAvailable") or [request.get("exactly") or {}]:
            count = _MOST_DEVICES if each.get("allocationMode") == "All" else each.get("count", 0)
            worst |= Counter({f"{each.get('deviceClassName', '')}{_CLASS_OF_DEVICES}": count})
        devices += worst
    return {
        _DEVICE_CLAIM_COUNT: _ONE,
        **{name: Quantity(n * NANOS, "decimal") for name, n in devices.items()},
    }


def _device_claim_names(names: Iterable[str]) -> set[str]:
    return {name for name in names if name == _DEVICE_CLAIM_COUNT or name.endswith(_CLASS_OF_DEVICES)}


def _is_in_no_scope(selector: Object, obj: Object) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Evaluator:
    """`names` selects the names of a quota that concern the resource, `usage` measures an object at a time."""

    names: Callable[[Iterable[str]], AbstractSet[str]]
    usage: Callable[[Object, datetime], Usage]
    is_in_scope: Callable[[Object, Object], bool] = _is_in_no_scope

    @property
    def counts_only(self) -> bool:
        """Whether an object uses the same whatever is in it."""
        return self not in _EVALUATORS.values()

    def matches(self, quota: Object, hard: Iterable[str], obj: Object) -> bool:
        """Whether the object is charged to the quota, whose limits are `hard`."""
        selectors = scope_selectors(quota["spec"])
        return bool(self.names(hard)) and all(self.is_in_scope(each, obj) for each in selectors)


_EVALUATORS = {
    "pods": Evaluator(_pod_names, _pod_usage, _pod_in_scope),
    "services": Evaluator(_SERVICE_NAMES.intersection, _service_usage),
    "persistentvolumeclaims": Evaluator(_claim_names, _claim_usage, _claim_in_scope),
    "resourceclaims.resource.k8s.io": Evaluator(_device_claim_names, _device_claim_usage),
}


def evaluator_of(resource: str) -> Evaluator | None:
    """The evaluator of a resource; all but a few are counted. None for those that are not."""
    if resource in _IGNORED:
        return None
    if resource in _EVALUATORS:
        return _EVALUATORS[resource]
    names = frozenset({f"count/{resource}", resource} if resource in _OLDER_NAMES else {f"count/{resource}"})
    return Evaluator(names.intersection, lambda obj, now: dict.fromkeys(names, _ONE))


def usage_of(quota: Object, evaluator: Evaluator, objects: Iterable[Object], now: datetime) -> Usage:
    """What the objects of one kind use of a quota, by its spec."""
    hard = (quota["spec"].get("hard") or {}).keys()
    names = evaluator.names(hard)
    total: Usage = dict.fromkeys(names, ZERO)
    for obj in objects:
        if evaluator.matches(quota, hard, obj):
            used = evaluator.usage(obj, now)
            total.update({name: add(total[name], used[name]) for name in names & used.keys()})
    return total
