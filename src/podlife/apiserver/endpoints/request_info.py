"""Parses a request's path into resource, namespace, name and subresource (upstream's RequestInfo)."""

from __future__ import annotations

from dataclasses import dataclass

from podlife.apiserver.catalog import ResourceCatalog
from podlife.apiserver.resource import Resource
from podlife.wire import Request


@dataclass(frozen=True, slots=True)
class RequestInfo:
    """A resource request's parsed path. `resource` is None if no served resource is meant."""

    group: str
    version: str
    plural: str
    namespace: str
    name: str
    subresource: str
    resource: Resource | None


def parse(path: str, catalog: ResourceCatalog) -> RequestInfo | None:
    """Parse a resource path; returns None for everything else (discovery, health and so on)."""
    parts = path.split("/")[1:]
    if parts and parts[-1] == "":
        parts.pop()
    if parts[:2] == ["api", "v1"]:
        return _resource_info(catalog, "", "v1", parts[2:])
    # A path under /apis needs a group: the core group is under /api.
    if parts[:1] == ["apis"] and len(parts) > 2 and parts[1]:
        return _resource_info(catalog, parts[1], parts[2], parts[3:])
    return None


def _resource_info(catalog: ResourceCatalog, group: str, version: str, rest: list[str]) -> RequestInfo | None:
    namespace = ""
    # What follows a `proxy` is a path of another server, and none of ours.
    at = 4 if rest[:1] == ["namespaces"] else 2
    if rest[at : at + 1] == ["proxy"]:
        rest = rest[: at + 1]
    if not all(rest):
        return None
    # `namespaces/x` is the namespace itself, `namespaces/x/pods` is in it; `namespaces/x/status` is the former.
    if (
        len(rest) > 2
        and rest[0] == "namespaces"
        and not (group == "" and len(rest) == 3 and rest[2] in ("status", "finalize"))
    ):
        namespace, rest = rest[1], rest[2:]
    if not 1 <= len(rest) <= 3:
        return None
    plural, name, subresource = (*rest, "", "")[:3]
    resource = catalog.find(group, version, plural)
    if resource is not None and not _fits(resource, namespace, name, subresource):
        resource = None
    if plural == "namespaces" and not namespace:
        # A namespace is in itself: a role that is bound there applies.
        namespace = name
    return RequestInfo(group, version, plural, namespace, name, subresource, resource)


def _fits(resource: Resource, namespace: str, name: str, subresource: str) -> bool:
    if namespace and not resource.namespaced:
        return False
    if name and resource.namespaced and not namespace:
        return False
    return not subresource or subresource in resource.subresources


def verb_of(request: Request, info: RequestInfo) -> str:
    """Return the request's verb, as authorization and the registry name it; empty for an unknown method."""
    match request.method:
        case "HEAD" if info.subresource == "proxy":
            return "get"
        case "GET":
            if info.name:
                return "get"
            flag = request.query.get("watch").lower()
            return "watch" if "watch" in request.query and flag not in ("false", "0") else "list"
        case "POST":
            return "create"
        case "PUT":
            return "update"
        case "PATCH":
            return "patch"
        case "DELETE":
            return "delete" if info.name else "deletecollection"
        case _:
            return ""
