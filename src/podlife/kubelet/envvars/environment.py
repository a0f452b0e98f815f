"""The environment of a container: services first, then whole config maps and secrets, then single variables in order.

A later variable replaces an earlier one of the same name, and may refer to those before it. Config maps and secrets are
parameters: reading them is left to the caller.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podlife.kubelet.envvars.downward_api import (
    ContainerConfigError,
    DownwardContext,
    field_value,
    resource_value,
)
from podlife.kubelet.pod_fields import Container, Pod

_REFERENCE = re.compile(r"\$(?:(\$)|\(([^)]*)\))")

Reader = Callable[[str], Mapping[str, Any] | None]


def _nothing(name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class EnvironmentSources:
    """Config maps and secrets of the pod's namespace by name, None where there is none; what services say; and what
    the pod does not say itself."""

    config_map: Reader = _nothing
    secret: Reader = _nothing
    services: Mapping[str, str] = field(default_factory=dict)
    context: DownwardContext = field(default_factory=DownwardContext)


def environment(pod: Pod, container: Container, sources: EnvironmentSources) -> dict[str, str]:
    """Raises `ContainerConfigError` when something that is not optional is not there."""
    maker = _Maker(pod, container, sources)
    for each in container.get("envFrom") or ():
        maker.add_all(each)
    for each in container.get("env") or ():
        maker.add(each)
    return {**sources.services, **maker.values}


def command_and_args(container: Container, env: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Both with their references expanded."""
    command: Sequence[str] = container.get("command") or ()
    args: Sequence[str] = container.get("args") or ()
    return [expand(each, env) for each in command], [expand(each, env) for each in args]


def expand(text: str, *known: Mapping[str, str]) -> str:
    """With each reference replaced by the value from the first mapping that has it. `$$` is a dollar sign, so that
    `$$(NAME)` stays unexpanded; what is not known, or is no reference, stays as written."""

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return "$"
        return next((each[match[2]] for each in known if match[2] in each), match[0])

    return _REFERENCE.sub(value, text)


class _Maker:
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
            data = self._data(kind.removesuffix("Ref"), ref)
            prefix = source.get("prefix") or ""
            self.values.update({f"{prefix}{key}": value for key, value in (data or {}).items()})
            return

    def add(self, variable: Mapping[str, Any]) -> None:
        if variable.get("value"):
            value: str | None = expand(variable["value"], self.values, self._sources.services)
        else:
            value = self._value_from(variable.get("valueFrom") or {})
        if value is not None:
            self.values[variable["name"]] = value

    def _value_from(self, source: Mapping[str, Any]) -> str | None:
        """None for something optional that is not there."""
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
            return data[ref["key"]]
        return ""

    @property
    def _namespace(self) -> str:
        return str(self._pod["metadata"].get("namespace", ""))

    def _data(self, kind: str, ref: Mapping[str, Any]) -> Mapping[str, str] | None:
        name = ref.get("name") or ""
        found = (self._sources.secret if kind == "secret" else self._sources.config_map)(name)
        if found is not None:
            data = found.get("data") or {}
            return {key: _decoded(value) for key, value in data.items()} if kind == "secret" else data
        if ref.get("optional"):
            return None
        raise ContainerConfigError(f'{kind.lower()} "{name}" not found')


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value).decode("utf-8", "surrogateescape")
    except (binascii.Error, ValueError):
        raise ContainerConfigError("a value of a secret is not base64") from None
