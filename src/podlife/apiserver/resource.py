"""Description of one resource: everything the server knows about it is in one row of `resource_table`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from podlife.api.codec import Object
from podlife.api.fieldpath import Path, Versions
from podlife.apiserver.strategies.strategy import Strategy
from podlife.errors import ApiError

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a server-side table. `priority` 1 is shown only with `-o wide`."""

    name: str
    description: str = ""
    type: str = "string"
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Printer:
    """How `kubectl get` shows a resource: the columns, and the cells of one object in the same order.

    `cells` gets the object and the current time as seconds since the epoch.
    """

    columns: tuple[Column, ...]
    cells: Callable[[Object, float], list[Any]]
    conditions: Callable[[Object], list[Object]] | None = None


class ConversionError(ApiError):
    """An object cannot be shown or stored in another version; as upstream, a failure without a reason."""

    reason = ""


class Converter(Protocol):
    """Converts whole objects between the versions of one definition. Every method raises ConversionError."""

    def read(self, value: bytes) -> Object:
        """A stored object, with kind and apiVersion, in the version in which it is stored."""

    async def convert(
        self, objects: Sequence[Object], api_version: str, *, prunes: bool = True
    ) -> list[Object]:
        """The objects in this version, without fields that its schema does not specify unless told otherwise."""


@dataclass(frozen=True, slots=True)
class CustomResource:
    """What only a row of a custom resource definition has."""

    list_kind: str
    # Version in which objects are stored.
    storage_version: str
    # In upstream's order.
    discovery_verbs: tuple[str, ...]
    # The schema as the definition has it (JSONSchemaProps).
    props: Object
    # Of the definition's UID, spec and accepted names: the watches of its resource end when one of them changes.
    digest: bytes = b""
    # Paths of the scale subresource.
    scale: Object | None = None
    # How server-side apply merges it, by API version, those included that are not served. Made when first needed.
    versions: Callable[[], Versions] = dict
    # API versions with a status subresource.
    status_versions: tuple[str, ...] = ()
    # By API version: the path of the replicas that a scale shows. Empty for a version without one.
    replicas_paths: Mapping[str, Path] = field(default_factory=dict)
    # Set if only a webhook can convert the objects to other versions; they are stored with their apiVersion then.
    converter: Converter | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Resource:
    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    strategy: Strategy = field(default_factory=Strategy)
    # `status`, `scale`, `binding`, `eviction`, `log`, `exec`, `finalize` …
    subresources: tuple[str, ...] = ()
    # For subresources that write another part of the object by rules of their own.
    subresource_strategies: Mapping[str, Strategy] = field(default_factory=dict)
    # Field selectors besides metadata.name and metadata.namespace: path to value. An absent value is the empty
    # string; a selector on any other path is a 400.
    selectable: Mapping[str, Callable[[Object], str]] = field(default_factory=dict)
    printer: Printer | None = None
    # Key the objects are stored under, if not the resource's own: both event groups share one.
    stored_as: str = ""
    # For such a resource: conversion from the stored form and back. Each takes and returns whole objects.
    from_stored: Callable[[Object], Object] | None = None
    to_stored: Callable[[Object], Object] | None = None
    # The kind in lower case, unless given.
    singular_name: str = ""
    # Brings an object from outside into the shape of its kind; returns the unknown fields that were removed. Without
    # one, `api.schema` knows the kind. Raises `api.schema.DecodeError`.
    check: Callable[[Object], list[str]] | None = None
    custom: CustomResource | None = None
    # Sent with every response of a deprecated kind or version.
    warning: str = ""
    # A review or a binding is only ever created: nothing is stored.
    verbs: tuple[str, ...] = ALL_VERBS

    @property
    def key(self) -> str:
        """`pods`, `deployments.apps`: the resource's name in storage, messages and details."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def list_kind(self) -> str:
        return self.custom.list_kind if self.custom is not None else f"{self.kind}List"

    @property
    def singular(self) -> str:
        return self.singular_name or self.kind.lower()

    @property
    def storage_key(self) -> str:
        return self.stored_as or self.key

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version
