"""Warnings about pods that are valid but probably not as intended."""

from __future__ import annotations

from collections.abc import Iterator

from podlife.api.codec import Object
from podlife.api.names import check_dns_label
from podlife.apiserver.strategies.field_checks import containers_of
from podlife.apiserver.strategies.strategy import MOST_WARNINGS


def name_warnings(obj: Object, used_in: str) -> list[str]:
    if not (problems := check_dns_label(obj["metadata"].get("name", ""))):
        return []
    advice = f"this is used in {used_in}, which can result in surprising behavior"
    return [f"metadata.name: {advice}; a DNS label is recommended: [{' '.join(problems)}]"]


def spec_warnings(spec: Object, path: str) -> list[str]:
    warnings: list[str] = []
    for index, constraint in enumerate(spec.get("topologySpreadConstraints", ())):
        if constraint.get("labelSelector") is None:
            at = f"{path}.topologySpreadConstraints[{index}].labelSelector"
            warnings.append(f"{at}: a null labelSelector results in matching no pod")
    if "imagePullSecrets" in spec:
        warnings += _secret_warnings(spec["imagePullSecrets"], f"{path}.imagePullSecrets")
    for container, at in containers_of(spec, path):
        if len(container.get("env", ())) > 1:
            warnings += _env_warnings(container["env"], f"{at}.env")
    warnings += _port_warnings(spec, path)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        rule = "must be >= 0; negative values are invalid and will be treated as 1"
        warnings.append(f"{path}.terminationGracePeriodSeconds: {rule}")
    return warnings


def _secret_warnings(secrets: list[Object], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, secret in enumerate(secrets):
        name = secret.get("name", "")
        if name in seen:
            yield f'{path}[{index}].name: duplicate name "{name}"'
        seen.add(name)
    for index, secret in enumerate(secrets):
        if not secret.get("name"):
            yield f'{path}[{index}].name: invalid empty name ""'


def _env_warnings(variables: list[Object], path: str) -> Iterator[str]:
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        # A later value may refer to the earlier one, as in PATH; then it hides nothing.
        extends = "valueFrom" not in variable and reference in value and value != reference
        if name in seen and not extends:
            hides = f'hides previous definition of "{name}", which may be dropped when using apply'
            yield f"{path}[{index}]: {hides}"
        seen.add(name)


def _port_warnings(spec: Object, path: str) -> list[str]:
    warnings: list[str] = []
    ports = [
        (port, f"{at}.ports[{index}]")
        for container, at in containers_of(spec, path)
        for index, port in enumerate(container.get("ports", ()))
    ]
    if len(ports) < 2:
        return warnings
    taken: dict[tuple[int, str], _TakenPorts] = {}
    for port, at in ports:
        key = port.get("containerPort", 0), port.get("protocol", "")
        same = taken.setdefault(key, _TakenPorts())
        for other, other_at in same.clashing(port, MOST_WARNINGS - len(warnings)):
            warnings += _overlap(port, at, other, other_at)
        same.add(port, at)
    by_name: dict[str, str] = {}
    for port, at in ports:
        name = port.get("name")
        if name and (first := by_name.setdefault(name, at)) != at:
            uses = f"services and probes that select ports by name will use {first}"
            warnings.append(f'{at}: duplicate port name "{name}" with {first}, {uses}')
    return warnings


class _TakenPorts:
    """Ports of one number and protocol. Conflicts are looked up: a pod can have a hundred thousand ports."""

    __slots__ = ("_all", "_by_binding", "_by_host_port", "_off_host")

    def __init__(self) -> None:
        self._all: list[tuple[Object, str]] = []
        self._by_binding: dict[tuple[str, int], list[int]] = {}
        self._by_host_port: dict[tuple[int, bool], list[int]] = {}
        self._off_host: list[int] = []

    def add(self, port: Object, at: str) -> None:
        address, on_host = port.get("hostIP", ""), port.get("hostPort", 0)
        place = len(self._all)
        self._all.append((port, at))
        self._by_binding.setdefault((address, on_host), []).append(place)
        self._by_host_port.setdefault((on_host, bool(address)), []).append(place)
        if not on_host:
            self._off_host.append(place)

    def clashing(self, port: Object, most: int) -> list[tuple[Object, str]]:
        """The first of those that `_overlap` warns about, in their order."""
        address, on_host = port.get("hostIP", ""), port.get("hostPort", 0)
        if not on_host:
            return self._all[: max(0, most)]
        places = [
            *self._by_binding.get((address, on_host), ())[:most],
            *self._by_host_port.get((on_host, not address), ())[:most],
            *self._off_host[:most],
        ]
        return [self._all[place] for place in sorted(places)[: max(0, most)]]


def _overlap(port: Object, at: str, other: Object, other_at: str) -> list[str]:
    address, other_address = port.get("hostIP", ""), other.get("hostIP", "")
    on_host, other_on_host = port.get("hostPort", 0), other.get("hostPort", 0)
    if (address, on_host) == (other_address, other_on_host):
        return [f"{at}: duplicate port definition with {other_at}"]
    if not on_host or not other_on_host:
        return [f"{at}: overlapping port definition with {other_at}"]
    if on_host == other_on_host and bool(address) != bool(other_address):
        return [f"{at}: dangerously ambiguous port definition with {other_at}"]
    return []
