"""The status of a pod: its initial value, and what its node may write."""

from __future__ import annotations

import ipaddress
from collections import deque

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value, forbidden
from podlife.api.names import check_dns_subdomain, check_label_key
from podlife.apiserver.strategies.core.pod.qos import qos_class
from podlife.apiserver.strategies.core.pod.spec import IP_RULE
from podlife.apiserver.strategies.field_checks import immutable, is_ip, problems_at, show_times

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


def validate_pod_status(new: Object, old: Object) -> list[FieldError]:
    """Validate the new status of a pod against the old pod."""
    status, before = new.get("status") or {}, old.get("status") or {}
    errors = _validate_conditions(status.get("conditions", ()))
    errors += _validate_nomination(status, before, old.get("spec") or {})
    if status.get("observedGeneration", 0) < 0:
        value = status["observedGeneration"]
        errors.append(bad_value("status.observedGeneration", value, "must be a non-negative integer"))
    errors += immutable("status.qosClass", status.get("qosClass", ""), before.get("qosClass", ""))
    for field, containers in _STATUSES:
        errors += _validate_transitions(status, before, old.get("spec") or {}, field, containers)
    if "podIPs" in status and status["podIPs"] != before.get("podIPs"):
        errors += _validate_addresses(status["podIPs"], "status.podIPs")
    if status.get("hostIPs") and status["hostIPs"] != before.get("hostIPs"):
        errors += _validate_host_addresses(status)
    return errors


def _validate_conditions(conditions: list[Object]) -> list[FieldError]:
    errors: list[FieldError] = []
    for index, condition in enumerate(conditions):
        if condition.get("observedGeneration", 0) < 0:
            at = f"status.conditions[{index}].observedGeneration"
            errors.append(bad_value(at, condition["observedGeneration"], "must be a non-negative integer"))
        kind = condition.get("type", "")
        if kind not in _SYSTEM_CONDITIONS:
            errors += problems_at(f"status.conditions[{index}].Type", kind, check_label_key(kind))
    return errors


def _validate_nomination(status: Object, before: Object, spec: Object) -> list[FieldError]:
    node = status.get("nominatedNodeName", "")
    if not node or node == before.get("nominatedNodeName", ""):
        return []
    path = "status.nominatedNodeName"
    errors = problems_at(path, node, check_dns_subdomain(node))
    if spec.get("nodeName"):
        errors.append(forbidden(path, "may not be set on pods that are already bound to a node"))
    return errors


def _validate_transitions(
    status: Object, before: Object, spec: Object, field: str, containers: str | None
) -> list[FieldError]:
    """A container that has terminated for good stays terminated."""
    if containers and _may_restart_all(spec):
        return []
    errors: list[FieldError] = []
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
            errors.append(forbidden(f"status.{field}[{index}].state", detail))
    return errors


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


def _validate_addresses(addresses: list[Object], path: str) -> list[FieldError]:
    texts = [address.get("ip", "") for address in addresses]
    bad = [index for index, text in enumerate(texts) if not is_ip(text)]
    errors = [bad_value(f"{path}[{index}]", texts[index], IP_RULE) for index in bad]
    if len(texts) > 1 and not bad:
        families = {ipaddress.ip_address(text).version for text in texts}
        if len(texts) > 2 or len(families) != 2:
            detail = "may specify no more than one IP for each IP family"
            errors.append(bad_value(path, [{"IP": text} for text in texts], detail))
    return errors


def _validate_host_addresses(status: Object) -> list[FieldError]:
    addresses = status["hostIPs"]
    errors: list[FieldError] = []
    if (first := addresses[0].get("ip", "")) != status.get("hostIP", ""):
        errors.append(bad_value("status.hostIPs[0].ip", first, "must be equal to `hostIP`"))
    return errors + _validate_addresses(addresses, "status.hostIPs")
