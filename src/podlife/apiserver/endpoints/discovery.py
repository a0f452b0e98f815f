"""API discovery: which groups, versions and resources are served, and the server's version.

Pure functions over the catalog of resources. The aggregated documents are encoded once per change of the catalog.
Both forms are served: one document per group and version, and the aggregated one from which kubectl learns everything
in two requests.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import podlife
from podlife.api.codec import Object, encode
from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.registry.negotiation import JSON, parse_accept
from podlife.apiserver.resource import Resource

AGGREGATED_CONTENT_TYPE = f"{JSON};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

_AGGREGATED = ("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList")
_KUBERNETES = ("1", "36", "0")
_UPDATE = ("get", "patch", "update")
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


@dataclass(frozen=True, slots=True)
class _Subresource:
    """Kind of a subresource that differs from its resource's own kind."""

    verbs: tuple[str, ...] = _UPDATE
    kind: str = ""
    group: str = ""
    version: str = ""


_SUBRESOURCES: Mapping[str, _Subresource] = {
    "approval": _Subresource(),
    "attach": _Subresource(("create", "get"), "PodAttachOptions"),
    "binding": _Subresource(("create",), "Binding"),
    "ephemeralcontainers": _Subresource(),
    "eviction": _Subresource(("create",), "Eviction", "policy", "v1"),
    "exec": _Subresource(("create", "get"), "PodExecOptions"),
    "finalize": _Subresource(("update",)),
    "log": _Subresource(("get",)),
    "portforward": _Subresource(("create", "get"), "PodPortForwardOptions"),
    "proxy": _Subresource(("create", "delete", "get", "patch", "update"), "{}ProxyOptions"),
    "resize": _Subresource(),
    "scale": _Subresource(_UPDATE, "Scale", "autoscaling", "v1"),
    "status": _Subresource(),
    "token": _Subresource(("create",), "TokenRequest", "authentication.k8s.io", "v1"),
}


@dataclass(frozen=True, slots=True)
class DiscoveryDocument:
    """An encoded document and its ETag."""

    body: bytes
    etag: str


def is_aggregated(accept: str) -> bool:
    """Return whether a request for /api or /apis asks for aggregated discovery."""
    return any(clause.conversion == _AGGREGATED and clause.allows(JSON) for clause in parse_accept(accept))


def api_versions(catalog: ResourceCatalog, server_address: str) -> Object:
    """Answer to /api. `server_address` is where clients reach the server."""
    return {
        "kind": "APIVersions",
        "versions": [version for group, version in catalog.group_versions if not group],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": server_address}],
    }


def api_group_list(catalog: ResourceCatalog) -> Object:
    """Answer to /apis."""
    names = dict.fromkeys(group for group, _ in catalog.group_versions if group)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(catalog, name) for name in names]}


def api_group(catalog: ResourceCatalog, group: str) -> Object | None:
    """Answer to /apis/<group>, or None if there is no such group."""
    if not group or not any(group == name for name, _ in catalog.group_versions):
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(catalog, group)}


def _group(catalog: ResourceCatalog, group: str) -> Object:
    versions = [
        {"groupVersion": f"{name}/{version}", "version": version}
        for name, version in catalog.group_versions
        if name == group
    ]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def api_resource_list(catalog: ResourceCatalog, group: str, version: str) -> Object | None:
    """Answer to /api/v1 and /apis/<group>/<version>, or None if there is no such version."""
    if (group, version) not in catalog.group_versions:
        return None
    answer: Object = {"kind": "APIResourceList"}
    if group:
        # Upstream's list for the core group has no apiVersion.
        answer["apiVersion"] = "v1"
    entries = [entry for row in _rows(catalog, group, version) for entry in _entries(catalog, row)]
    return answer | {"groupVersion": f"{group}/{version}" if group else version, "resources": entries}


def _rows(catalog: ResourceCatalog, group: str, version: str) -> list[Resource]:
    rows = [row for row in catalog.rows if (row.group, row.version) == (group, version)]
    return sorted(rows, key=lambda row: row.plural)


def _entries(catalog: ResourceCatalog, row: Resource) -> list[Object]:
    entry: Object = {
        "name": row.plural,
        "singularName": row.singular,
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": _verbs(row),
    }
    entry |= _other_names(row)
    if "list" in row.verbs:
        entry["storageVersionHash"] = _storage_version_hash(catalog, row)
    return [entry, *(_subresource_entry(row, name) for name in _subresources(row))]


def _verbs(row: Resource) -> tuple[str, ...]:
    return row.verbs if row.custom is None else row.custom.discovery_verbs


def _subresources(row: Resource) -> Sequence[str]:
    # Upstream sorts those of its own kinds.
    return sorted(row.subresources) if row.custom is None else row.subresources


def _response_kind(row: Resource) -> Object:
    """An empty group and version mean those of the enclosing document; upstream gives those of custom resources."""
    if row.custom is None:
        return {"group": "", "version": "", "kind": row.kind}
    return {"group": row.group, "version": row.version, "kind": row.kind}


def _other_names(row: Resource) -> Object:
    names = {"shortNames": row.short_names, "categories": row.categories}
    return {key: value for key, value in names.items() if value}


def _subresource_entry(row: Resource, name: str) -> Object:
    what = _SUBRESOURCES[name]
    entry: Object = {"name": f"{row.plural}/{name}", "singularName": "", "namespaced": row.namespaced}
    if what.group:
        entry |= {"group": what.group, "version": what.version}
    return entry | {"kind": what.kind.format(row.kind) or row.kind, "verbs": what.verbs}


def _storage_version_hash(catalog: ResourceCatalog, row: Resource) -> str:
    """Tells clients in which version objects are stored: the same as upstream's."""
    others = (each for each in catalog.stored if each.key == row.stored_as and not each.stored_as)
    stored = next(others, row)
    version = stored.version if stored.custom is None else stored.custom.storage_version
    name = f"{stored.group}/{version}/{stored.kind}"
    return base64.b64encode(hashlib.sha256(name.encode()).digest()[:8]).decode()


def aggregated(catalog: ResourceCatalog, *, core: bool) -> DiscoveryDocument:
    """Aggregated discovery: the core group (for /api), or all others (for /apis)."""
    return catalog.kept(("aggregated", core), lambda: _aggregated(catalog, core=core))


def _aggregated(catalog: ResourceCatalog, *, core: bool) -> DiscoveryDocument:
    versions: dict[str, list[str]] = {}
    for group, version in catalog.group_versions:
        if bool(group) != core:
            versions.setdefault(group, []).append(version)
    body = encode(
        {
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
            "metadata": {},
            "items": [
                {
                    "metadata": {"name": group} if group else {},
                    "versions": [_aggregated_version(catalog, group, version) for version in found],
                }
                for group, found in versions.items()
            ],
        }
    )
    return DiscoveryDocument(body, f'"{hashlib.sha512(body).hexdigest().upper()}"')


def _aggregated_version(catalog: ResourceCatalog, group: str, version: str) -> Object:
    if (remote := catalog.remote.get((group, version))) and not catalog.is_local(group, version):
        freshness = "Current" if remote.is_fresh else "Stale"
        return {"version": version, "resources": remote.resources, "freshness": freshness}
    resources = [_aggregated_resource(row) for row in _rows(catalog, group, version)]
    return {"version": version, "resources": resources, "freshness": "Current"}


def _aggregated_resource(row: Resource) -> Object:
    entry: Object = {
        "resource": row.plural,
        "responseKind": _response_kind(row),
        "scope": "Namespaced" if row.namespaced else "Cluster",
        "singularResource": row.singular,
        "verbs": _verbs(row),
    }
    entry |= _other_names(row)
    if row.subresources:
        entry["subresources"] = [_aggregated_subresource(row, name) for name in _subresources(row)]
    return entry


def _aggregated_subresource(row: Resource, name: str) -> Object:
    what = _SUBRESOURCES[name]
    kind = {"group": what.group, "version": what.version, "kind": what.kind.format(row.kind)}
    return {
        "subresource": name,
        "responseKind": kind if what.kind else _response_kind(row),
        "verbs": what.verbs,
    }


@cache
def version_info() -> Object:
    """Answer to /version: the Kubernetes version whose API this is, with podlife's version as the build."""
    import platform
    import sys

    major, minor, patch = _KUBERNETES
    machine = platform.machine()
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "minCompatibilityMajor": major,
        "minCompatibilityMinor": str(int(minor) - 1),
        "gitVersion": f"v{major}.{minor}.{patch}+podlife.{podlife.__version__}",
        # Clients' models require all of these fields.
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": f"python{platform.python_version()}",
        "platform": f"{sys.platform}/{_MACHINES.get(machine, machine)}",
    }
