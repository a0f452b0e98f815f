"""Attributes of a request, rules that match them, and decisions about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes of a request. A non-resource request has an empty `resource`."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""
    field_selector: str = ""

    @property
    def target(self) -> str:
        """Resource as rules name it: `pods`, `pods/status`."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


@dataclass(frozen=True, slots=True)
class Decision:
    allowed: bool
    reason: str = ""


ALLOWED = Decision(True)
DENIED = Decision(False)


class NodeView(Protocol):
    """Knows which objects the pods bound to a node need."""

    def is_related(self, node_name: str, resource: str, namespace: str, name: str) -> bool:
        """Return whether a pod on this node is, or refers to, the object of a `resource` such as `secrets`."""
        ...


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """Allowed verbs on resources of API groups, or on paths. `*` matches everything."""

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def allows(self, attributes: Attributes) -> bool:
        if not _covers(self.verbs, attributes.verb):
            return False
        if not attributes.resource:
            return any(_covers_path(path, attributes.path) for path in self.paths)
        if not _covers(self.groups, attributes.group):
            return False
        any_subresource = attributes.subresource and f"*/{attributes.subresource}" in self.resources
        return bool(any_subresource) or _covers(self.resources, attributes.target)


def _covers(values: tuple[str, ...], value: str) -> bool:
    return value in values or "*" in values


def _covers_path(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return path == pattern
