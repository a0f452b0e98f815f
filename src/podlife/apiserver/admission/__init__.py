"""Admission: what may change or refuse a request after it is known who asks, before anything is stored.

A plug-in is a function of the request's attributes and a reader of the store; it changes the object in place
or raises. They run in the order of upstream's recommended plug-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from podlife.api.codec import Object
from podlife.apiserver.authn.authenticator import User
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage.store import Key, Record

__all__ = ["Admission", "Attributes", "Operation", "Plugin", "Reader"]

Reader = Callable[[Key], Record | None]


class Operation(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    CONNECT = "CONNECT"


@dataclass(frozen=True, slots=True)
class Attributes:
    """What admission may look at. `new` is absent in a delete, `old` in a create; `name` is empty where it is
    generated, which happens later."""

    operation: Operation
    user: User
    resource: Resource
    namespace: str
    name: str
    subresource: str = ""
    new: Object | None = None
    old: Object | None = None

    @property
    def shown_name(self) -> str:
        """What a refusal calls the object: its name, or the prefix from which one would have been generated."""
        metadata = (self.new or {}).get("metadata") or {}
        return self.name or str(metadata.get("generateName") or metadata.get("name") or "")


Plugin = Callable[[Attributes, Reader], None]


class Admission:
    """The chain of plug-ins. The first one that raises ends the request."""

    def __init__(self, plugins: Sequence[Plugin], reader: Reader) -> None:
        self._plugins = tuple(plugins)
        self._reader = reader

    def admit(self, attributes: Attributes) -> None:
        for plugin in self._plugins:
            plugin(attributes, self._reader)
