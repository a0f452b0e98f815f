"""The environment of a container: service variables, then whole config maps and secrets, then single variables in
order.

A later variable replaces an earlier one of the same name and may refer to earlier ones. The caller reads config maps
and secrets. The downward API provides fields of the pod and the node's resources; service variables have the format of
Docker links. Pure.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podlife.api.codec import Object
from podlife.api.quantity import parse_nanos
from podlife.errors import PodlifeError
from podlife.kubelet.pod_fields import Container, Pod, containers_of, init_containers_of

_SUBSCRIPTED = re.compile(r"(.*)\['(.*)'\]", re.DOTALL)
_RESOURCE = re.compile(r"(limits|requests)\.(.+)")
_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")

Reader = Callable[[str], Mapping[str, Any] | None]


class ContainerConfigError(PodlifeError):
    """The container cannot be created as specified: it waits with `CreateContainerConfigError`."""

    reason = "CreateContainerConfigError"


@dataclass(frozen=True, slots=True)
class DownwardContext:
    """Downward-API values that are not in the pod: addresses, and the node's allocatable resources."""

    host_ips: tuple[str, ...] = ()
    pod_ips: tuple[str, ...] = ()
    allocatable: Mapping[str, str] = field(default_factory=dict)


def _nothing(name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class EnvironmentSources:
    """Config maps and secrets of the pod's namespace by name, None if missing; service variables; and downward-API
    values that are not in the pod."""

    config_map: Reader = _nothing
    secret: Reader = _nothing
    services: Mapping[str, str] = field(default_factory=dict)
    context: DownwardContext = field(default_factory=DownwardContext)


def environment(pod: Pod, container: Container, sources: EnvironmentSources) -> dict[str, str]:
    """Raises `ContainerConfigError` if a required object or key is missing."""
    builder = _EnvironmentBuilder(pod, container, sources)
    for each in container.get("envFrom") or ():
        builder.add_all(each)
    for each in container.get("env") or ():
        builder.add(each)
    return {**sources.services, **builder.values}


def command_and_args(container: Container, env: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Command and arguments with references expanded."""
    command: Sequence[str] = container.get("command") or ()
    args: Sequence[str] = container.get("args") or ()
    return [expand(each, env) for each in command], [expand(each, env) for each in args]


def expand(text: str, *known: Mapping[str, str]) -> str:
    """Replace each reference with the value from the first mapping that has it. `$$` is a dollar sign, so `$$(NAME)` is
    not expanded; unknown references and all other text stay unchanged."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        return next((each[match[2]] for each in known if match[2] in each), match[0])

    return _REFERENCE.sub(value, text)


class _EnvironmentBuilder:
    def __init__(self, pod: Pod, container: Container, sources: EnvironmentSources) -> None:
        self.values: dict[str, str] = {}
        self._pod = pod
        self._container = container
        self._sources = sources

    def add_all(self, source: Mapping[str, Any]) -> None:
        for kind in ("configMapRef", "secretRef"):
            ref = source.get(kind)
            if ref is None:
                continue
            data = self._data(kind.removesuffix("Ref"), ref) or {}
            prefix = source.get("prefix") or ""
            is_secret = kind == "secretRef"
            self.values.update(
                {f"{prefix}{key}": _decoded(value) if is_secret else value for key, value in data.items()}
            )
            return

    def add(self, variable: Mapping[str, Any]) -> None:
        if variable.get("value"):
            value: str | None = expand(variable["value"], self.values, self._sources.services)
        else:
            value = self._value_from(variable.get("valueFrom") or {})
        if value is not None:
            self.values[variable["name"]] = value

    def _value_from(self, source: Mapping[str, Any]) -> str | None:
        """None if an optional object or key is missing."""
        context = self._sources.context
        if (ref := source.get("fieldRef")) is not None:
            return field_value(self._pod, ref.get("fieldPath") or "", context)
        if (ref := source.get("resourceFieldRef")) is not None:
            return resource_value(self._pod, self._container, ref, context)
        for kind, title in (("configMap", "ConfigMap"), ("secret", "Secret")):
            if (ref := source.get(f"{kind}KeyRef")) is None:
                continue
            data = self._data(kind, ref)
            if data is None or (ref["key"] not in data and ref.get("optional")):
                return None
            if ref["key"] not in data:
                raise ContainerConfigError(
                    f"couldn't find key {ref['key']} in {title} {self._namespace}/{ref['name']}"
                )
            value = data[ref["key"]]
            return _decoded(value) if kind == "secret" else value
        return ""

    @property
    def _namespace(self) -> str:
        return str(self._pod["metadata"].get("namespace", ""))

    def _data(self, kind: str, ref: Mapping[str, Any]) -> Mapping[str, str] | None:
        """As stored: the values of a secret are base64. None if it is missing and optional."""
        name = ref.get("name") or ""
        found = (self._sources.secret if kind == "secret" else self._sources.config_map)(name)
        if found is not None:
            return found.get("data") or {}
        if ref.get("optional"):
            return None
        raise ContainerConfigError(f'{kind.lower()} "{name}" not found')


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        raise ContainerConfigError("a value of a secret is not base64") from None


def field_value(pod: Pod, path: str, context: DownwardContext) -> str:
    """Raises `ContainerConfigError` for an unsupported path."""
    metadata, spec = pod["metadata"], pod["spec"]
    plain = {
        "metadata.name": metadata.get("name"),
        "metadata.namespace": metadata.get("namespace"),
        "metadata.uid": metadata.get("uid"),
        "metadata.labels": format_map(metadata.get("labels") or {}),
        "metadata.annotations": format_map(metadata.get("annotations") or {}),
        "spec.nodeName": spec.get("nodeName"),
        "spec.serviceAccountName": spec.get("serviceAccountName"),
        "status.hostIP": next(iter(context.host_ips), ""),
        "status.hostIPs": ",".join(context.host_ips),
        "status.podIP": next(iter(context.pod_ips), ""),
        "status.podIPs": ",".join(context.pod_ips),
    }
    if path in plain:
        return str(plain[path] or "")
    match = _SUBSCRIPTED.fullmatch(path)
    if match is None:
        raise ContainerConfigError(f"unsupported fieldPath: {path}")
    if match[1] not in ("metadata.labels", "metadata.annotations"):
        raise ContainerConfigError(f'fieldPath "{path}" does not support subscript')
    return str((metadata.get(match[1].removeprefix("metadata.")) or {}).get(match[2], ""))


def format_map(values: Mapping[str, str]) -> str:
    """One line per entry, sorted, with quoted values, as in files of the downward API."""
    return "\n".join(f"{key}={json.dumps(values[key], ensure_ascii=False)}" for key in sorted(values))


def resource_value(pod: Pod, container: Container, ref: Mapping[str, Any], context: DownwardContext) -> str:
    """In units of the divisor, rounded up. A limit that is not set defaults to the node's allocatable."""
    name = ref.get("containerName")
    if name:
        container = _container(pod, name)
    resource = ref.get("resource") or ""
    match = _RESOURCE.fullmatch(resource)
    if match is None:
        raise ContainerConfigError(f"unsupported container resource : {resource}")
    amounts = (container.get("resources") or {}).get(match[1]) or {}
    default = context.allocatable.get(match[2], "0") if match[1] == "limits" else "0"
    nanos = parse_nanos(str(amounts.get(match[2], default)))
    # A zero divisor, the API server's default, means one.
    divisor = parse_nanos(str(ref.get("divisor") or "1")) or 10**9
    if match[2] == "cpu":
        # In millicores and rounded up, as upstream.
        nanos, divisor = -(-nanos // 10**6), -(-divisor // 10**6)
    return str(-(-nanos // divisor))


def _container(pod: Pod, name: str) -> Container:
    for each in (*containers_of(pod), *init_containers_of(pod)):
        if each["name"] == name:
            return each
    raise ContainerConfigError(f"container {name} not found")


def service_variables(services: Iterable[Object]) -> dict[str, str]:
    """In order of service names, so that of two names that map to one variable the later one always wins."""
    variables: dict[str, str] = {}
    for service in sorted(services, key=lambda each: each["metadata"]["name"]):
        # Headless and ExternalName services have no address.
        if (service.get("spec") or {}).get("clusterIP") not in (None, "", "None"):
            variables.update(_variables(service))
    return variables


def _variables(service: Object) -> Iterator[tuple[str, str]]:
    prefix = _variable_name(service["metadata"]["name"])
    address, ports = service["spec"]["clusterIP"], service["spec"].get("ports") or []
    yield f"{prefix}_SERVICE_HOST", address
    if not ports:
        return
    yield f"{prefix}_SERVICE_PORT", str(ports[0]["port"])
    for port in ports:
        if port.get("name"):
            yield f"{prefix}_SERVICE_PORT_{_variable_name(port['name'])}", str(port["port"])
    yield f"{prefix}_PORT", _url(address, ports[0])
    for port in ports:
        link = f"{prefix}_PORT_{port['port']}_{_protocol(port)}"
        yield link, _url(address, port)
        yield f"{link}_PROTO", _protocol(port).lower()
        yield f"{link}_PORT", str(port["port"])
        yield f"{link}_ADDR", address


def _variable_name(name: str) -> str:
    return name.replace("-", "_").upper()


def _protocol(port: Mapping[str, Any]) -> str:
    return str(port.get("protocol") or "TCP").upper()


def _url(address: str, port: Mapping[str, Any]) -> str:
    host = f"[{address}]" if _is_v6(address) else address
    return f"{_protocol(port).lower()}://{host}:{port['port']}"


def _is_v6(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).version == 6
    except ValueError:
        return False
