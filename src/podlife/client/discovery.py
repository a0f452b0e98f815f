"""API discovery: the resources that a server has, and the resource of a kind.

Reads the aggregated discovery documents if the server has them, otherwise one document per group and version. A group
version whose discovery fails (an aggregated API that is down) is listed in `unknown`: earlier results about it remain
valid.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import msgspec

from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.client.client import Client
from podlife.client.refs import Ref
from podlife.client.views import decode
from podlife.errors import ApiError, PodlifeError

log = logging.getLogger(__name__)

_AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList, application/json"
_NEEDED = frozenset(("delete", "list", "watch"))


@dataclass(frozen=True, slots=True)
class ServerResources:
    # Resources to watch, each in the preferred version of its group.
    followed: frozenset[Ref] = frozenset()
    # The resource of each apiVersion and kind, in all served versions.
    kinds: Mapping[tuple[str, str], Ref] = field(default_factory=dict)
    # apiVersions whose discovery failed.
    unknown: frozenset[str] = frozenset()


class _Resource(msgspec.Struct, rename="camel"):
    """A resource of an unaggregated discovery document."""

    name: str
    kind: str = ""
    namespaced: bool = False
    verbs: tuple[str, ...] = ()


class _ResourceList(msgspec.Struct):
    resources: tuple[_Resource, ...] = ()


class _GroupVersion(msgspec.Struct):
    version: str = ""


class _Group(msgspec.Struct, rename="camel"):
    name: str = ""
    versions: tuple[_GroupVersion, ...] = ()
    preferred_version: _GroupVersion | None = None


class _ResponseKind(msgspec.Struct):
    kind: str = ""


class _AggregatedResource(msgspec.Struct, rename="camel"):
    resource: str
    response_kind: _ResponseKind | None = None
    scope: str = ""
    verbs: tuple[str, ...] = ()


class _AggregatedVersion(msgspec.Struct):
    version: str
    resources: tuple[_AggregatedResource, ...] = ()
    freshness: str = "Current"


class _Name(msgspec.Struct):
    name: str = ""


class _AggregatedGroup(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    versions: tuple[_AggregatedVersion, ...] = ()


class _Root(msgspec.Struct):
    """The response to /api or /apis, in any of its three forms."""

    kind: str = ""
    items: tuple[_AggregatedGroup, ...] = ()
    groups: tuple[_Group, ...] = ()
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Version:
    """One version of a group, preferred versions first. Without resources its discovery failed."""

    group: str
    version: str
    resources: tuple[_Resource, ...] | None

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


async def discover(client: Client) -> ServerResources:
    """Raises ApiError or UnreachableError if discovery fails as a whole."""
    core, others = await asyncio.gather(_read_root(client, "/api"), _read_root(client, "/apis"))
    return catalogue_of([*core, *others])


def catalogue_of(versions: Iterable[_Version]) -> ServerResources:
    followed: dict[tuple[str, str], Ref] = {}
    kinds: dict[tuple[str, str], Ref] = {}
    unknown = set()
    chosen: set[tuple[str, str]] = set()
    for version in versions:
        if version.resources is None:
            unknown.add(version.api_version)
            continue
        for resource in version.resources:
            if "/" in resource.name:
                continue
            ref = Ref(version.group, version.version, resource.name, resource.namespaced, resource.kind)
            kinds.setdefault((ref.api_version, ref.kind), ref)
            if (ref.group, ref.plural) in chosen:
                continue
            # Even if it cannot be watched in this version: another version would return the same objects again.
            chosen.add((ref.group, ref.plural))
            if _NEEDED.issubset(resource.verbs):
                followed[ref.group, ref.plural] = ref
    return ServerResources(frozenset(followed.values()), kinds, frozenset(unknown))


async def _read_root(client: Client, path: str) -> list[_Version]:
    reply = await client.request("GET", path, headers={"Accept": _AGGREGATED})
    root = decode(reply.body, _Root, f"GET {path}")
    if root.kind == "APIGroupDiscoveryList":
        return [_from_aggregated(group, version) for group in root.items for version in group.versions]
    groups = [("", version) for version in root.versions]
    for group in root.groups:
        preferred = group.preferred_version.version if group.preferred_version else ""
        names = sorted((each.version for each in group.versions), key=lambda name: name != preferred)
        groups += [(group.name, name) for name in names]
    return list(await asyncio.gather(*(_read_version(client, *each) for each in groups)))


def _from_aggregated(group: _AggregatedGroup, version: _AggregatedVersion) -> _Version:
    name = group.metadata.name
    if version.freshness == "Stale":
        return _Version(name, version.version, None)
    resources = tuple(
        _Resource(each.resource, each.response_kind.kind, each.scope == "Namespaced", each.verbs)
        for each in version.resources
        if each.response_kind is not None
    )
    return _Version(name, version.version, resources)


async def _read_version(client: Client, group: str, version: str) -> _Version:
    try:
        return _Version(group, version, await _read_resources(client, group, version))
    except PodlifeError as error:
        log.info("discovery of %s failed: %s", _path(group, version), error)
        return _Version(group, version, None)


async def kinds_of(client: Client, api_version: str) -> dict[str, Ref]:
    """The resources of one group version by kind; none if it is not served."""
    group, _, version = api_version.rpartition("/")
    if (group and check_dns_subdomain(group)) or check_dns_label(version):
        # Anything else could change the meaning of the path.
        return {}
    found = await _read_resources(client, group, version)
    own = (each for each in found if "/" not in each.name)
    return {each.kind: Ref(group, version, each.name, each.namespaced, each.kind) for each in own}


async def _read_resources(client: Client, group: str, version: str) -> tuple[_Resource, ...]:
    """Empty if the group version is not served."""
    path = _path(group, version)
    try:
        reply = await client.request("GET", path)
    except ApiError as error:
        if error.code != 404:
            raise
        return ()
    return decode(reply.body, _ResourceList, f"GET {path}").resources


def _path(group: str, version: str) -> str:
    return f"/apis/{group}/{version}" if group else f"/api/{version}"
