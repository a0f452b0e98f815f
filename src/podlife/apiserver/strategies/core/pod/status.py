"""The status of a pod: its initial value with the quality-of-service class, and what its node may write."""

from __future__ import annotations

import ipaddress
from collections import deque

from podlife.api.codec import Object
from podlife.api.field_errors import FieldErrors, bad_value, forbidden
from podlife.api.names import check_dns_subdomain, check_label_key
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.field_checks import check_at, check_ip, immutable, is_ip, show_times

_SYSTEM_CONDITIONS = frozenset({"PodScheduled", "Ready", "Initialized"})
_STATUSES = (
    ("containerStatuses", "containers"),
    ("initContainerStatuses", "initContainers"),
    ("ephemeralContainerStatuses", None),
)


def first_status(spec: Object, created: str | None) -> Object:
    status: Object = {"phase": "Pending", "qosClass": qos_class(spec)}
    if spec.get("schedulingGates"):
        status["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
                "lastProbeTime": None,
                "lastTransitionTime": created,
            }
        ]
    return status


def qos_class(spec: Object) -> str:
    """Guaranteed if everything has limits equal to its requests, BestEffort if nothing has either."""
    if (whole := spec.get("resources")) is not None:
        parts = [whole]
    else:
        every = [*spec.get("containers", ()), *spec.get("initContainers", ())]
        parts = [container.get("resources") or {} for container in every]
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    is_guaranteed = True
    for resources in parts:
        _add(requests, resources.get("requests"))
        limited = _add(limits, resources.get("limits"))
        # A pod as a whole may omit its limits; a container may not.
        if limited < 2 and not (whole is not None and not resources.get("limits")):
            is_guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if is_guaranteed and requests == limits else "Burstable"


def _add(totals: dict[str, int], amounts: Object | None) -> int:
    """Add up cpu and memory; returns how many of them are set."""
    if not amounts:
        return 0
    found = 0
    for name in ("cpu", "memory"):
        if (text := amounts.get(name)) is not None and (nanos := parse_nanos(text)) > 0:
            totals[name] = totals.get(name, 0) + nanos
            found += 1
    return found


def default_pod_status(status: Object) -> None:
    """Fields that upstream always shows in a status, and the address that is stored in two fields."""
    show_times(status, "lastProbeTime", "lastTransitionTime")
    for field, _ in _STATUSES:
        for entry in status.get(field, ()):
            for name, empty in (("image", ""), ("imageID", ""), ("ready", False), ("restartCount", 0)):
                entry.setdefault(name, empty)
            _default_state(entry.setdefault("state", {}))
            _default_state(entry.setdefault("lastState", {}))
    address, addresses = status.get("podIP"), status.get("podIPs")
    # Older kubelets write podIP only: if both are set and differ, it wins.
    if address and (not addresses or addresses[0].get("ip") != address):
        status["podIPs"] = [{"ip": address}]
    elif addresses and not address:
        status["podIP"] = addresses[0].get("ip", "")


def _default_state(state: Object) -> None:
    if (running := state.get("running")) is not None:
        running.setdefault("startedAt", None)
    if (ended := state.get("terminated")) is not None:
        ended.setdefault("exitCode", 0)
        ended.setdefault("startedAt", None)
        ended.setdefault("finishedAt", None)


def keep_of_old_status(new: Object, old: Object) -> None:
    """What a status update cannot lose: the QoS class and observedGeneration."""
    if not new.get("qosClass") and "qosClass" in old:
        new["qosClass"] = old["qosClass"]
    if not new.get("observedGeneration") and old.get("observedGeneration"):
        new["observedGeneration"] = old["observedGeneration"]
    observed: dict[str, deque[int]] = {}
    for condition in old.get("conditions", ()):
        generations = observed.setdefault(condition.get("type", ""), deque())
        generations.append(condition.get("observedGeneration", 0))
    for condition in new.get("conditions", ()):
        unseen = observed.get(condition.get("type", ""))
        generation = unseen.popleft() if unseen else 0
        if generation and not condition.get("observedGeneration"):
            condition["observedGeneration"] = generation


def validate_pod_status(new: Object, old: Object) -> FieldErrors:
    """Validate the new status of a pod against the old pod."""
    status, before = new.get("status") or {}, old.get("status") or {}
    yield from _validate_conditions(status.get("conditions", ()))
    yield from _validate_nomination(status, before, old.get("spec") or {})
    yield from _validate_generation(status, "status")
    yield from immutable("status.qosClass", status.get("qosClass", ""), before.get("qosClass", ""))
    for field, containers in _STATUSES:
        yield from _validate_transitions(status, before, old.get("spec") or {}, field, containers)
    if "podIPs" in status and status["podIPs"] != before.get("podIPs"):
        yield from _validate_addresses(status["podIPs"], "status.podIPs")
    if status.get("hostIPs") and status["hostIPs"] != before.get("hostIPs"):
        if (first := status["hostIPs"][0].get("ip", "")) != status.get("hostIP", ""):
            yield bad_value("status.hostIPs[0].ip", first, "must be equal to `hostIP`")
        yield from _validate_addresses(status["hostIPs"], "status.hostIPs")


def _validate_conditions(conditions: list[Object]) -> FieldErrors:
    for index, condition in enumerate(conditions):
        yield from _validate_generation(condition, f"status.conditions[{index}]")
        kind = condition.get("type", "")
        if kind not in _SYSTEM_CONDITIONS:
            yield from check_at(f"status.conditions[{index}].Type", kind, check_label_key)


def _validate_generation(holder: Object, path: str) -> FieldErrors:
    if (generation := holder.get("observedGeneration", 0)) < 0:
        yield bad_value(f"{path}.observedGeneration", generation, "must be a non-negative integer")


def _validate_nomination(status: Object, before: Object, spec: Object) -> FieldErrors:
    node = status.get("nominatedNodeName", "")
    if not node or node == before.get("nominatedNodeName", ""):
        return
    path = "status.nominatedNodeName"
    yield from check_at(path, node, check_dns_subdomain)
    if spec.get("nodeName"):
        yield forbidden(path, "may not be set on pods that are already bound to a node")


def _validate_transitions(
    status: Object, before: Object, spec: Object, field: str, containers: str | None
) -> FieldErrors:
    """A container that has terminated for good stays terminated."""
    if containers and _may_restart_all(spec):
        return
    statuses = {entry.get("name", ""): entry for entry in status.get(field, ())}
    # The first of a name counts.
    by_name = {item.get("name", ""): item for item in reversed(spec.get(containers or "", ()))}
    for index, entry in enumerate(before.get(field, ())):
        ended = (entry.get("state") or {}).get("terminated")
        after = statuses.get(entry.get("name", ""))
        if ended is None or after is None or "terminated" in (after.get("state") or {}):
            continue
        exit_code = ended.get("exitCode", 0)
        if not _restarts(spec, by_name.get(entry.get("name", "")), exit_code):
            detail = "may not be transitioned to non-terminated state"
            yield forbidden(f"status.{field}[{index}].state", detail)


def _may_restart_all(spec: Object) -> bool:
    return any(
        rule.get("action") == "RestartAllContainers"
        for field in ("initContainers", "containers")
        for container in spec.get(field, ())
        for rule in container.get("restartPolicyRules", ())
    )


def _restarts(spec: Object, container: Object | None, exit_code: int) -> bool:
    if container is None:
        return False
    policy = container.get("restartPolicy")
    if policy is not None and _has_restart_rule(container, exit_code):
        return True
    policy = policy or spec.get("restartPolicy", "Always")
    return bool(policy == "Always" or (policy == "OnFailure" and exit_code != 0))


def _has_restart_rule(container: Object, exit_code: int) -> bool:
    for rule in container.get("restartPolicyRules", ()):
        codes = rule.get("exitCodes") or {}
        is_listed = exit_code in (codes.get("values") or ())
        if is_listed == (codes.get("operator") == "In"):
            return rule.get("action") in ("Restart", "RestartAllContainers")
    return False


def _validate_addresses(addresses: list[Object], path: str) -> FieldErrors:
    texts = [address.get("ip", "") for address in addresses]
    for index, text in enumerate(texts):
        yield from check_at(f"{path}[{index}]", text, check_ip)
    if len(texts) > 1 and all(map(is_ip, texts)):
        families = {ipaddress.ip_address(text).version for text in texts}
        if len(texts) > 2 or len(families) != 2:
            detail = "may specify no more than one IP for each IP family"
            yield bad_value(path, [{"IP": text} for text in texts], detail)
