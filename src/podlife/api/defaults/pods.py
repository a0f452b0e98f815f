"""kube-apiserver's defaulting of pods.

`default_pod_spec` is shared by pods and pod templates; `default_pod` adds defaults for pods only. Runs on every write
of a pod, so it avoids visiting absent fields.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.defaults.fields import (
    default_requests_from_limits,
    default_resource_list,
    default_resource_lists,
    drop_empty,
    drop_empty_parts,
    fill_absent,
    pull_policy,
)
from podlife.api.defaults.volumes import default_references, default_volume
from podlife.api.quantity import Quantity, parse_nanos

# The fields that upstream keeps even when they are empty, because they are pointers or have no omitempty.
_SPEC_KEEPS = frozenset(
    {"activeDeadlineSeconds", "affinity", "automountServiceAccountToken", "containers", "dnsConfig"}
    | {"enableServiceLinks", "hostUsers", "hostnameOverride", "os", "preemptionPolicy", "priority"}
    | {"resources", "runtimeClassName", "schedulingGroup", "securityContext", "setHostnameAsFQDN"}
    | {"shareProcessNamespace", "terminationGracePeriodSeconds"}
)
_CONTAINER_KEEPS = frozenset(
    {"lifecycle", "livenessProbe", "name", "readinessProbe", "resources", "restartPolicy"}
    | {"securityContext", "startupProbe"}
)
_ENV_KEEPS = frozenset({"name", "valueFrom"})
_PORT_KEEPS = frozenset({"containerPort"})
_MOUNT_KEEPS = frozenset({"mountPath", "mountPropagation", "name", "recursiveReadOnly"})
_PROBE_KEEPS = frozenset({"exec", "grpc", "httpGet", "tcpSocket", "terminationGracePeriodSeconds"})
_HTTP_KEEPS = frozenset({"port"})
_TOLERATION_KEEPS = frozenset({"tolerationSeconds"})


def default_pod(pod: Object) -> None:
    spec = pod.setdefault("spec", {})
    default_pod_spec(spec)
    for field in ("containers", "initContainers"):
        for container in spec.get(field, ()):
            default_requests_from_limits(container["resources"])
    if "resources" in spec:
        _default_pod_level_requests(spec)
    if spec.get("enableServiceLinks") is None:
        spec["enableServiceLinks"] = True
    if spec.get("hostNetwork"):
        _default_host_ports(spec)


def _default_host_ports(spec: Object) -> None:
    for field in ("containers", "initContainers"):
        for container in spec.get(field, ()):
            for port in container.get("ports", ()):
                if not port.get("hostPort"):
                    port["hostPort"] = port.get("containerPort", 0)


def default_pod_spec(spec: Object) -> None:
    drop_empty(spec, _SPEC_KEEPS)
    if not spec.get("dnsPolicy"):
        spec["dnsPolicy"] = "ClusterFirst"
    if not spec.get("restartPolicy"):
        spec["restartPolicy"] = "Always"
    if spec.get("securityContext") is None:
        spec["securityContext"] = {}
    grace = spec.get("terminationGracePeriodSeconds", 30)
    spec["terminationGracePeriodSeconds"] = grace if grace >= 0 else 1
    if not spec.get("schedulerName"):
        spec["schedulerName"] = "default-scheduler"
    # An old and a new name of the same field: upstream always shows both.
    if account := spec.get("serviceAccountName") or spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"] = account
    for field in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(field, ()):
            default_container(container)
    for volume in spec.get("volumes", ()):
        default_volume(volume)
    for toleration in spec.get("tolerations", ()):
        drop_empty(toleration, _TOLERATION_KEEPS)
    _default_rare(spec)


def _default_rare(spec: Object) -> None:
    for field in ("affinity", "topologySpreadConstraints", "dnsConfig"):
        if field in spec:
            drop_empty_parts(spec[field])
    for setting in (spec["securityContext"] or {}).get("sysctls", ()):
        setting.setdefault("value", "")
    if overhead := spec.get("overhead"):
        default_resource_list(overhead)
    if resources := spec.get("resources"):
        default_resource_lists(resources)


def default_container(container: Object) -> None:
    drop_empty(container, _CONTAINER_KEEPS)
    container.setdefault("name", "")
    if "imagePullPolicy" not in container:
        container["imagePullPolicy"] = pull_policy(container.get("image", ""))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if resources := container.setdefault("resources", {}):
        default_resource_lists(resources)
    if "ports" in container:
        _default_ports(container["ports"])
    for variable in container.get("env", ()):
        drop_empty(variable, _ENV_KEEPS)
        if source := variable.get("valueFrom"):
            default_references(source)
    for mount in container.get("volumeMounts", ()):
        drop_empty(mount, _MOUNT_KEEPS)
    _default_handlers(container)


def _default_ports(ports: list[Object]) -> None:
    for port in ports:
        drop_empty(port, _PORT_KEEPS)
        port.setdefault("containerPort", 0)
        port.setdefault("protocol", "TCP")


def _default_handlers(container: Object) -> None:
    for field in ("livenessProbe", "readinessProbe", "startupProbe"):
        if (probe := container.get(field)) is not None:
            _default_probe(probe)
    if lifecycle := container.get("lifecycle"):
        for hook in ("postStart", "preStop"):
            if (handler := lifecycle.get(hook)) is not None:
                _default_http(handler)
                if (sleep := handler.get("sleep")) is not None:
                    sleep.setdefault("seconds", 0)


def _default_probe(probe: Object) -> None:
    drop_empty(probe, _PROBE_KEEPS)
    fill_absent(probe, timeoutSeconds=1, periodSeconds=10, successThreshold=1, failureThreshold=3)
    _default_http(probe)
    if (grpc := probe.get("grpc")) is not None:
        grpc.setdefault("service", "")


def _default_http(handler: Object) -> None:
    if (http := handler.get("httpGet")) is not None:
        drop_empty(http, _HTTP_KEEPS)
        fill_absent(http, path="/", scheme="HTTP")


def _default_pod_level_requests(spec: Object) -> None:
    """Pod-level requests for pod-level limits: the sum of the containers' requests, or the limits."""
    limits = (spec.get("resources") or {}).get("limits")
    if not limits:
        return
    requests = dict(spec["resources"].get("requests") or {})
    for name, amount in _together(spec).items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, amount)
    for name, amount in limits.items():
        if name in ("cpu", "memory") or name.startswith("hugepages-"):
            requests.setdefault(name, amount)
    if requests:
        spec["resources"]["requests"] = requests


def _together(spec: Object) -> dict[str, str]:
    """Requests of all containers: regular ones and sidecars, or the largest init container if that is more."""
    totals: dict[str, int] = {}
    largest: dict[str, int] = {}
    sidecars: dict[str, int] = {}
    for container in spec.get("initContainers", ()):
        is_sidecar = container.get("restartPolicy") == "Always"
        for name, text in (container["resources"].get("requests") or {}).items():
            amount = parse_nanos(text) + sidecars.get(name, 0)
            largest[name] = max(largest.get(name, 0), amount)
            if is_sidecar:
                sidecars[name] = amount
    for container in spec.get("containers", ()):
        for name, text in (container["resources"].get("requests") or {}).items():
            totals[name] = totals.get(name, 0) + parse_nanos(text)
    for name in totals.keys() | largest.keys():
        totals[name] = max(totals.get(name, 0) + sidecars.get(name, 0), largest.get(name, 0))
    return {
        name: str(Quantity(nanos, "binary" if name == "memory" else "decimal"))
        for name, nanos in totals.items()
    }
