"""Containers of every sort: regular, init (and sidecars), ephemeral."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldErrors,
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
from podlife.apiserver.strategies.core.pod.volumes import PULL_POLICIES, validate_mounts
from podlife.apiserver.strategies.core.resource_requirements import validate_resources
from podlife.apiserver.strategies.field_checks import (
    PORT_RANGE,
    PROTOCOLS,
    check_at,
    one_of,
    required_choice,
    unique,
)

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
    *_PROBES,
    "lifecycle",
)


class ContainerContext(NamedTuple):
    """What a container's validity depends on besides the container."""

    volumes: dict[str, Object]
    claims: frozenset[str]
    grace_seconds: int | None
    operating_system: str
    restart_policy: str
    host_users: bool


def validate_containers(containers: Sequence[Object], path: str, around: ContainerContext) -> FieldErrors:
    if not containers:
        yield required(path)
        return
    names: set[str] = set()
    for index, container in enumerate(containers):
        at = f"{path}[{index}]"
        yield from _validate_any(container, at, around)
        yield from unique(f"{at}.name", container.get("name", ""), names)
        yield from _validate_handlers(container, at, around)
        if "restartPolicy" in container or "restartPolicyRules" in container:
            yield from _validate_restart(container, at)
    yield from _validate_host_ports(containers, path)


def validate_init_containers(spec: Object, path: str, around: ContainerContext) -> FieldErrors:
    names = {container.get("name", "") for container in spec.get("containers") or ()}
    for index, container in enumerate(spec["initContainers"]):
        at = f"{path}[{index}]"
        yield from _validate_any(container, at, around)
        if "restartPolicy" in container or container.get("restartPolicyRules"):
            yield from _validate_restart(container, at)
        name = container.get("name", "")
        if name in names:
            yield duplicate(f"{at}.name", name)
        elif name:
            names.add(name)
        yield from _validate_host_ports([container], path)
        if container.get("restartPolicy") == "Always":
            yield from _validate_handlers(container, at, around)
        else:
            yield from _validate_runs_to_completion(container, at)


def _validate_runs_to_completion(container: Object, path: str) -> FieldErrors:
    for field in ("lifecycle", *_PROBES):
        if field in container:
            detail = "may not be set for init containers without restartPolicy=Always"
            yield forbidden(f"{path}.{field}", detail)
    for index, policy in enumerate(container.get("resizePolicy", ())):
        if policy.get("restartPolicy") == "RestartContainer":
            at = f"{path}.resizePolicy[{index}].restartPolicy"
            detail = "must not be set to 'RestartContainer' for non-sidecar initContainers"
            yield bad_value(at, "RestartContainer", detail)


def validate_ephemeral_containers(spec: Object, path: str, around: ContainerContext) -> FieldErrors:
    others = (*(spec.get("containers") or ()), *spec.get("initContainers", ()))
    targets = {container.get("name", "") for container in others}
    names = set(targets)
    for index, container in enumerate(spec["ephemeralContainers"]):
        at = f"{path}[{index}]"
        yield from _validate_any(container, at, around)
        yield from validate_image(container, at)
        yield from unique(f"{at}.name", container.get("name", ""), names)
        target = container.get("targetContainerName", "")
        if target and target not in targets:
            yield not_found(f"{at}.targetContainerName", target)
        detail = "cannot be set for an Ephemeral Container"
        yield from (forbidden(f"{at}.{field}", detail) for field in _NOT_IN_EPHEMERAL if container.get(field))
        for number, mount in enumerate(container.get("volumeMounts", ())):
            for field in ("subPath", "subPathExpr"):
                if mount.get(field):
                    yield forbidden(f"{at}.volumeMounts[{number}].{field}", detail)


def _validate_any(container: Object, path: str, around: ContainerContext) -> FieldErrors:
    """Rules for containers of every sort."""
    name = container.get("name", "")
    if not name:
        yield required(f"{path}.name")
    elif check_dns_label(name):
        yield from check_at(f"{path}.name", name, check_dns_label)
    if not container.get("image"):
        yield required(f"{path}.image")
    if (policy := container.get("terminationMessagePolicy", "")) not in _MESSAGE_POLICIES:
        yield not_supported(f"{path}.terminationMessagePolicy", policy, _MESSAGE_POLICIES)
    if "ports" in container:
        yield from _validate_ports(container["ports"], f"{path}.ports")
    if "env" in container:
        yield from validate_env(container["env"], f"{path}.env")
    if "envFrom" in container:
        yield from validate_env_from(container["envFrom"], f"{path}.envFrom")
    if "volumeMounts" in container or "volumeDevices" in container:
        yield from validate_mounts(container, around.volumes, path)
    if (pull := container.get("imagePullPolicy", "")) not in PULL_POLICIES:
        yield not_supported(f"{path}.imagePullPolicy", pull, PULL_POLICIES)
    if resources := container.get("resources"):
        yield from validate_resources(resources, f"{path}.resources", claims=around.claims)
    yield from _validate_rare(container, path, around)


def _validate_rare(container: Object, path: str, around: ContainerContext) -> FieldErrors:
    if "resizePolicy" in container:
        yield from _validate_resize(container["resizePolicy"], f"{path}.resizePolicy", around.restart_policy)
    if context := container.get("securityContext"):
        yield from validate_container_security(context, f"{path}.securityContext", around.host_users)


def _validate_handlers(container: Object, path: str, around: ContainerContext) -> FieldErrors:
    if "lifecycle" in container:
        lifecycle, at = container["lifecycle"], f"{path}.lifecycle"
        yield from validate_lifecycle(lifecycle, at, around.grace_seconds, around.operating_system)
    for field in _PROBES:
        if field in container:
            yield from validate_probe(container[field], path, field)


def _validate_ports(ports: Sequence[Object], path: str) -> FieldErrors:
    names: set[str] = set()
    for index, port in enumerate(ports):
        if name := port.get("name"):
            if check_port_name(name):
                yield from check_at(f"{path}[{index}].name", name, check_port_name)
            elif name in names:
                yield duplicate(f"{path}[{index}].name", name)
            names.add(name)
        number, on_host = port.get("containerPort", 0), port.get("hostPort", 0)
        if not number:
            yield required(f"{path}[{index}].containerPort")
        elif not 1 <= number <= 65535:
            yield bad_value(f"{path}[{index}].containerPort", number, PORT_RANGE)
        if not 0 <= on_host <= 65535:
            yield bad_value(f"{path}[{index}].hostPort", on_host, PORT_RANGE)
        if (protocol := port.get("protocol", "")) not in PROTOCOLS:
            yield not_supported(f"{path}[{index}].protocol", protocol, PROTOCOLS)


def _validate_host_ports(containers: Sequence[Object], path: str) -> FieldErrors:
    """No two containers of a pod may use the same host port."""
    taken: set[str] = set()
    for index, container in enumerate(containers):
        for number, port in enumerate(container.get("ports", ())):
            if not (on_host := port.get("hostPort")):
                continue
            key = f"{port.get('protocol', '')}/{port.get('hostIP', '')}/{on_host}"
            if key in taken:
                yield duplicate(f"{path}[{index}].ports[{number}].hostPort", key)
            taken.add(key)


def _validate_restart(container: Object, path: str) -> FieldErrors:
    """A container's own restart policy and its rules."""
    policy, rules = container.get("restartPolicy"), container.get("restartPolicyRules") or []
    if policy is None and rules:
        yield required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
    yield from one_of(f"{path}.restartPolicy", policy, _RESTART_POLICIES)
    if len(rules) > 20:
        yield too_many(f"{path}.restartPolicyRules", len(rules), 20)
    for index, rule in enumerate(rules):
        yield from _validate_rule(rule, f"{path}.restartPolicyRules[{index}]")


def _validate_rule(rule: Object, path: str) -> FieldErrors:
    yield from one_of(f"{path}.action", rule.get("action", ""), _RULE_ACTIONS)
    codes = rule.get("exitCodes")
    if codes is None:
        yield required(f"{path}.exitCodes", "must be specified")
        return
    yield from one_of(f"{path}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn"))
    if (count := len(codes.get("values") or ())) > 255:
        yield too_many(f"{path}.exitCodes.values", count, 255)


def _validate_resize(policies: Sequence[Object], path: str, restart_policy: str) -> FieldErrors:
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource, restart = policy.get("resourceName", ""), policy.get("restartPolicy", "")
        yield from unique(f"{path}[{index}]", resource, seen)
        yield from required_choice(path, resource, ("cpu", "memory"))
        yield from required_choice(path, restart, ("NotRequired", "RestartContainer"))
        if restart_policy == "Never" and restart != "NotRequired":
            yield bad_value(path, restart, "must be 'NotRequired' when pod `restartPolicy` is 'Never'")


def validate_image(container: Object, path: str) -> FieldErrors:
    """For pods, not for templates, which may still be completed."""
    image = container.get("image", "")
    if image != image.strip():
        yield bad_value(f"{path}.image", image, "must not have leading or trailing whitespace")
