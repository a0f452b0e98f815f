"""The description of one resource: everything the server knows of it stands in one row (see `resources`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podlife.api.codec import Object
from podlife.apiserver.strategies.strategy import Strategy

__all__ = ["ALL_VERBS", "Column", "Printer", "Resource"]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a server-side table. `priority` 1 shows only with `-o wide`."""

    name: str
    description: str = ""
    type: str = "string"
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Printer:
    """How `kubectl get` shows a resource: the columns, and the cells of one object (in the same order).

    `cells` gets the object and the current time as seconds since the epoch."""

    columns: tuple[Column, ...]
    cells: Callable[[Object, float], list[Any]]
    conditions: Callable[[Object], list[Object]] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    strategy: Strategy = field(default_factory=Strategy)
    # `status`, `scale`, `binding`, `eviction`, `log`, `exec`, `finalize` …
    subresources: tuple[str, ...] = ()
    # For subresources that write another part of the object by rules of their own.
    subresource_strategies: Mapping[str, Strategy] = field(default_factory=dict)
    # How clients may select besides metadata.name and metadata.namespace: the path's value in an object.
    # An absent value is the empty string; a selector on any other path is a 400.
    selectable: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    printer: Printer | None = None
    # Where the objects are kept, if not under their own name: events of both groups are one.
    stored_as: str = ""
    # For such a resource: its objects from what is stored, and back. Each gets and gives whole objects.
    from_stored: Callable[[Object], Object] | None = None
    to_stored: Callable[[Object], Object] | None = None
    # A review or a binding is only ever created: nothing of it is kept.
    verbs: tuple[str, ...] = ALL_VERBS

    @property
    def key(self) -> str:
        """`pods`, `deployments.apps`: how the resource is named in storage, messages and details."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def storage_key(self) -> str:
        return self.stored_as or self.key

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version
