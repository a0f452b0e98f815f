"""Attributes of a request, and decisions about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from podlife.api.names import check_path_segment
from podlife.api.selectors import parse_field_selector


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


def selected_name(field_selector: str) -> str:
    """Return the only name that a field selector can match, if it is a name; a selector may be invalid."""
    try:
        name = parse_field_selector(field_selector).exact("metadata.name")
    except ValueError:
        return ""
    return name if name and not check_path_segment(name) else ""
