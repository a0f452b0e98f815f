"""The resources that the server serves now: the rows of `resource_table`, and those of custom resource definitions.

Requests, discovery, OpenAPI, metrics and the namespace controller read one `ResourceCatalog`, which the `Registry`
holds. Built-in rows never change. The rows of a definition are set and removed as one, under its name. Documents made
from the rows are kept until the next change.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from podlife.api.codec import Object
from podlife.apiserver.resource import Resource
from podlife.apiserver.resource_table import RESOURCES

T = TypeVar("T")

_KUBE_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_STABILITY = {None: 2, "beta": 1, "alpha": 0}
# Of groups of custom resource definitions, as upstream.
_CUSTOM_PRIORITY = 1000


@dataclass(frozen=True, slots=True)
class RemoteVersion:
    """A group and version that another API server serves: what discovery shows of it."""

    group_priority: int
    version_priority: int
    # In the form of aggregated discovery.
    resources: list[Object] = field(default_factory=list)
    # Whether the server responded to the last check.
    is_fresh: bool = False


class ResourceCatalog:
    """Rows by group, version and name. Groups are in the order in which discovery lists them."""

    def __init__(self, built_in: Sequence[Resource] = RESOURCES) -> None:
        self._built_in = tuple(built_in)
        self._custom: dict[str, tuple[Resource, ...]] = {}
        self.remote: Mapping[tuple[str, str], RemoteVersion] = {}
        # Number of changes so far.
        self.version = 0
        # Called when the rows of a definition have changed: its watches end. A dictionary for its order.
        self.listeners: dict[Callable[[], None], None] = {}
        self._arrange()

    def set_rows(self, owner: str, rows: Iterable[Resource]) -> None:
        """Serve these rows for a custom resource definition, instead of those it had. None: stop serving it."""
        if found := tuple(rows):
            self._custom[owner] = found
        elif self._custom.pop(owner, None) is None:
            return
        self.version += 1
        self._arrange()
        for listener in tuple(self.listeners):
            listener()

    def set_remote(self, versions: Mapping[tuple[str, str], RemoteVersion]) -> None:
        """Show these groups and versions of other API servers in discovery."""
        if versions != self.remote:
            self.remote = versions
            self.version += 1
            self._arrange()

    def is_local(self, group: str, version: str) -> bool:
        """Whether this server serves them itself, which no other can replace."""
        return (group, version) in self._local

    def _arrange(self) -> None:
        custom = [row for rows in self._custom.values() for row in rows]
        # Upstream lists the groups of definitions after its own, by name.
        custom.sort(key=lambda row: (row.group, *version_order(row.version), row.plural))
        self.rows = (*self._built_in, *custom)
        self.stored = tuple(row for row in self.rows if "list" in row.verbs)
        self.plurals = frozenset(row.plural for row in self.rows)
        self._local = dict.fromkeys((row.group, row.version) for row in self.rows)
        self.group_versions = self._all_versions() if self.remote else tuple(self._local)
        """Every served group and version, once."""
        self._by_name = {(row.group, row.version, row.plural): row for row in reversed(self.rows)}
        # Documents made from these rows. Work in a thread keeps the dictionary it began with.
        self.documents: dict[object, Any] = {}

    def _all_versions(self) -> tuple[tuple[str, str], ...]:
        """With those of other servers: built-in groups first, the others by priority."""
        built_in = dict.fromkeys((row.group, row.version) for row in self._built_in)
        groups = {group for group, _ in built_in}
        priorities = {key: (_CUSTOM_PRIORITY, 0) for key in self._local if key not in built_in}
        remote = {key: (one.group_priority, one.version_priority) for key, one in self.remote.items()}
        priorities |= {key: value for key, value in remote.items() if key not in self._local}
        highest = {
            group: max(priorities[key][0] for key in priorities if key[0] == group) for group, _ in priorities
        }

        def order(key: tuple[str, str]) -> tuple[Any, ...]:
            return (-highest[key[0]], key[0], -priorities[key][1], *version_order(key[1]))

        others = sorted((key for key in priorities if key[0] not in groups), key=order)
        return (*built_in, *(key for key in priorities if key[0] in groups), *others)

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        return self._by_name.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> Resource | None:
        """The row that stores a kind."""
        rows = (row for row in self.stored if (row.api_version, row.kind) == (api_version, kind))
        return next(rows, None)

    def equivalents(self, resource: Resource) -> tuple[Resource, ...]:
        """Other rows that serve the same objects: other versions, or another group."""
        same = (row for row in self.stored if row.storage_key == resource.storage_key)
        return self.kept(resource, lambda: tuple(row for row in same if row is not resource))

    def kept(self, key: object, make: Callable[[], T]) -> T:
        """What `make` returned for this key since the last change of the rows. Keys must be few."""
        if key not in self.documents:
            self.documents[key] = make()
        made: T = self.documents[key]
        return made


def version_order(version: str) -> tuple[int, int, int, int, str]:
    """Key that sorts versions as Kubernetes prefers them: v10, v2, v1, v1beta2, v1beta1, v1alpha1, then others."""
    found = _KUBE_VERSION.fullmatch(version)
    if found is None:
        return (1, 0, 0, 0, version)
    return (0, -_STABILITY[found[2]], -int(found[1]), -int(found[3] or 0), version)
