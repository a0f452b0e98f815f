"""Containers of every sort: regular, init (and sidecars), ephemeral."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    bad_value,
    duplicate,
    forbidden,
    not_found,
    not_supported,
    required,
    too_many,
)
from podlife.api.names import check_dns_label, check_port_name
from podlife.apiserver.strategies.core.pod.env import validate_env, validate_env_from
from podlife.apiserver.strategies.core.pod.handlers import validate_lifecycle, validate_probe
from podlife.apiserver.strategies.core.pod.security_context import validate_container_security
from podlife.apiserver.strategies.core.pod.volume_mounts import validate_mounts
from podlife.apiserver.strategies.core.pod.volumes import PULL_POLICIES
from podlife.apiserver.strategies.core.resource_requirements import validate_resources
from podlife.apiserver.strategies.field_checks import not_one_of, problems_at

_PROTOCOLS = ("SCTP", "TCP", "UDP")
_MESSAGE_POLICIES = ("File", "FallbackToLogsOnError")
_RESTART_POLICIES = ("Always", "Never", "OnFailure")
_RULE_ACTIONS = ("Restart", "RestartAllContainers")
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_NOT_IN_EPHEMERAL = (
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
)
_PORT_RANGE = "must be between 1 and 65535, inclusive"


class ContainerContext(NamedTuple):
    """What a container's validity depends on besides the container."""

    volumes: dict[str, Object]
    claims: frozenset[str]
    grace_seconds: int | None
    operating_system: str
    restart_policy: str
    host_users: bool


def validate_containers(
    containers: Sequence[Object], path: str, around: ContainerContext
) -> list[FieldError]:
    if not containers:
        return [required(path)]
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        errors += _validate_any(container, at, around)
        name = container.get("name", "")
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        errors += _validate_handlers(container, at, around)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            errors += _validate_restart(container, at)
    return errors + _validate_host_ports(containers, path)


def validate_init_containers(
    containers: Sequence[Object], path: str, regular: Sequence[Object], around: ContainerContext
) -> list[FieldError]:
    errors: list[FieldError] = []
    names = {container.get("name", "") for container in regular}
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        errors += _validate_any(container, at, around)
        if "restartPolicy" in container or container.get("restartPolicyRules"):
            errors += _validate_restart(container, at)
        name = container.get("name", "")
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        elif name:
            names.add(name)
        errors += _validate_host_ports([container], path)
        if container.get("restartPolicy") == "Always":
            errors += _validate_handlers(container, at, around)
        else:
            errors += _validate_runs_to_completion(container, at)
    return errors


def _validate_runs_to_completion(container: Object, path: str) -> list[FieldError]:
    detail = "may not be set for init containers without restartPolicy=Always"
    errors = [forbidden(f"{path}.{field}", detail) for field in ("lifecycle", *_PROBES) if field in container]
    for index, policy in enumerate(container.get("resizePolicy", ())):
        if policy.get("restartPolicy") == "RestartContainer":
            at = f"{path}.resizePolicy[{index}].restartPolicy"
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            errors.append(bad_value(at, "RestartContainer", detail))
    return errors


def validate_ephemeral_containers(
    containers: Sequence[Object], path: str, others: Iterable[Object], around: ContainerContext
) -> list[FieldError]:
    errors: list[FieldError] = []
    targets = {container.get("name", "") for container in others}
    names = set(targets)
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        errors += _validate_any(container, at, around)
        errors += _validate_image(container, at)
        name, target = container.get("name", ""), container.get("targetContainerName", "")
        if name in names:
            errors.append(duplicate(f"{at}.name", name))
        names.add(name)
        if target and target not in targets:
            errors.append(not_found(f"{at}.targetContainerName", target))
        detail = "cannot be set for an Ephemeral Container"
        errors += [forbidden(f"{at}.{field}", detail) for field in _NOT_IN_EPHEMERAL if container.get(field)]
        for number, mount in enumerate(container.get("volumeMounts", ())):
            errors += [
                forbidden(f"{at}.volumeMounts[{number}].{field}", detail)
                for field in ("subPath", "subPathExpr")
                if mount.get(field)
            ]
    return errors


def _validate_any(container: Object, path: str, around: ContainerContext) -> list[FieldError]:
    """Rules for containers of every sort."""
    errors: list[FieldError] = []
    name = container.get("name", "")
    if not name:
        errors.append(required(f"{path}.name"))
    elif problems := check_dns_label(name):
        errors += problems_at(f"{path}.name", name, problems)
    if not container.get("image"):
        errors.append(required(f"{path}.image"))
    if (policy := container.get("terminationMessagePolicy", "")) not in _MESSAGE_POLICIES:
        errors.append(not_one_of(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES))
    if "ports" in container:
        errors += _validate_ports(container["ports"], f"{path}.ports")
    if "env" in container:
        errors += validate_env(container["env"], f"{path}.env")
    if "envFrom" in container:
        errors += validate_env_from(container["envFrom"], f"{path}.envFrom")
    if "volumeMounts" in container or "volumeDevices" in container:
        errors += validate_mounts(container, around.volumes, path)
    if (pull := container.get("imagePullPolicy", "")) not in PULL_POLICIES:
        errors.append(not_supported(f"{path}.imagePullPolicy", pull, PULL_POLICIES))
    if resources := container.get("resources"):
        errors += validate_resources(resources, f"{path}.resources", claims=around.claims)
    return errors + _validate_rare(container, path, around)


def _validate_rare(container: Object, path: str, around: ContainerContext) -> list[FieldError]:
    errors: list[FieldError] = []
    if "resizePolicy" in container:
        errors += _validate_resize(container["resizePolicy"], f"{path}.resizePolicy", around.restart_policy)
    if context := container.get("securityContext"):
        at = f"{path}.securityContext"
        errors += validate_container_security(context, at, host_users=around.host_users)
    return errors


def _validate_handlers(container: Object, path: str, around: ContainerContext) -> list[FieldError]:
    errors: list[FieldError] = []
    if "lifecycle" in container:
        lifecycle, at = container["lifecycle"], f"{path}.lifecycle"
        errors += validate_lifecycle(lifecycle, at, around.grace_seconds, around.operating_system)
    for field in _PROBES:
        if field in container:
            is_readiness = field == "readinessProbe"
            errors += validate_probe(container[field], f"{path}.{field}", is_readiness=is_readiness)
    return errors


def _validate_ports(ports: Sequence[Object], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        if name := port.get("name"):
            if problems := check_port_name(name):
                errors += problems_at(f"{path}[{index}].name", name, problems)
            elif name in names:
                errors.append(duplicate(f"{path}[{index}].name", name))
            names.add(name)
        number, on_host = port.get("containerPort", 0), port.get("hostPort", 0)
        if not number:
            errors.append(required(f"{path}[{index}].containerPort"))
        elif not 1 <= number <= 65535:
            errors.append(bad_value(f"{path}[{index}].containerPort", number, _PORT_RANGE))
        if not 0 <= on_host <= 65535:
            errors.append(bad_value(f"{path}[{index}].hostPort", on_host, _PORT_RANGE))
        if (protocol := port.get("protocol", "")) not in _PROTOCOLS:
            errors.append(not_supported(f"{path}[{index}].protocol", protocol, _PROTOCOLS))
    return errors


def _validate_host_ports(containers: Sequence[Object], path: str) -> list[FieldError]:
    """No two containers of a pod may use the same host port."""
    errors: list[FieldError] = []
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports", ())):
            if not (on_host := port.get("hostPort")):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{on_host}"
            if key in taken:
                errors.append(duplicate(f"{path}[{index}].ports[{number}].hostPort", key))
            taken.add(key)
    return errors


def _validate_restart(container: Object, path: str) -> list[FieldError]:
    """A container's own restart policy and its rules."""
    errors: list[FieldError] = []
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None:
        if not rules:
            return []
        detail = "must specify restartPolicy when restart rules are used"
        errors.append(required(f"{path}.restartPolicy", detail))
    elif policy not in _RESTART_POLICIES:
        errors.append(not_supported(f"{path}.restartPolicy", policy, _RESTART_POLICIES))
    if len(rules) > 20:
        errors.append(too_many(f"{path}.restartPolicyRules", len(rules), 20))
    for index, rule in enumerate(rules):
        errors += _validate_rule(rule, f"{path}.restartPolicyRules[{index}]")
    return errors


def _validate_rule(rule: Object, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if (action := rule.get("action", "")) not in _RULE_ACTIONS:
        errors.append(not_supported(f"{path}.action", action, _RULE_ACTIONS))
    codes = rule.get("exitCodes")
    if codes is None:
        errors.append(required(f"{path}.exitCodes", "must be specified"))
        return errors
    if (operator := codes.get("operator", "")) not in ("In", "NotIn"):
        errors.append(not_supported(f"{path}.exitCodes.operator", operator, ("In", "NotIn")))
    if (count := len(codes.get("values") or ())) > 255:
        errors.append(too_many(f"{path}.exitCodes.values", count, 255))
    return errors


def _validate_resize(policies: Sequence[Object], path: str, restart_policy: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        if resource in seen:
            errors.append(duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        for value, known in (
            (resource, ("cpu", "memory")),
            (restart, ("NotRequired", "RestartContainer")),
        ):
            if value not in known:
                errors.append(not_supported(path, value, known) if value else required(path))
        if restart_policy == "Never" and restart != "NotRequired":
            detail = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"
            errors.append(bad_value(path, restart, detail))
    return errors


def _validate_image(container: Object, path: str) -> list[FieldError]:
    image = container.get("image", "")
    if image == image.strip():
        return []
    return [bad_value(f"{path}.image", image, "must not have leading or trailing whitespace")]


def validate_images(containers: Sequence[Object], path: str) -> list[FieldError]:
    """For pods, not for templates, which may still be completed."""
    errors: list[FieldError] = []
    for index, container in enumerate(containers):
        image = container.get("image", "")
        if image != image.strip():
            errors += _validate_image(container, f"{path}[{index}]")
    return errors
