"""What decides about managers at each endpoint: the versions of its kind, and the fields that it does not write."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache

from podlife.api.fieldpath import FieldSet, Updater, Version, merge_type_of_kind, of_paths
from podlife.apiserver.registry.request_scope import RequestScope
from podlife.apiserver.resource import Resource
from podlife.apiserver.resource_table import RESOURCES

_MOST_ENDPOINTS = 1024


def updater_of(resource: Resource, subresource: str) -> Updater:
    """What decides about managers at one endpoint."""
    if resource.custom is None:
        return _built_in(resource, subresource)
    return Updater(resource.custom.versions(), resource.api_version, _reset_of(resource, subresource))


@lru_cache(maxsize=_MOST_ENDPOINTS)
def _built_in(resource: Resource, subresource: str) -> Updater:
    versions = {
        row.api_version: Version(merge_type_of_kind(row.api_version, row.kind), row.from_stored)
        for row in _versions_of(resource)
    }
    return Updater(versions, resource.api_version, _reset_of(resource, subresource))


def _versions_of(resource: Resource) -> list[Resource]:
    """The rows that serve the same objects, of a built-in kind."""
    return [row for row in RESOURCES if row.storage_key == resource.storage_key]


def applier_of(resource: Resource, subresource: str) -> Updater:
    """As `updater_of`, for objects in the form of the resource's own version: what is applied is merged in it."""
    updater = updater_of(resource, subresource)
    if resource.to_stored is None:
        return updater
    versions = {
        name: Version(version.kind, None if name == resource.api_version else resource.to_stored)
        for name, version in updater.versions.items()
    }
    return Updater(versions, updater.api_version, updater.reset)


def applier_for(scope: RequestScope) -> Updater:
    """As `applier_of`, with the conversion webhook of the kind."""
    updater, conversions = applier_of(scope.resource, scope.subresource), scope.conversions
    return updater if conversions is None else replace(updater, convert=conversions.convert)


def _reset_of(resource: Resource, subresource: str) -> dict[str, FieldSet]:
    """The fields that this endpoint does not write, even if a request has them, by version."""
    if "status" not in resource.subresources or subresource not in ("", "finalize", "status"):
        return {}
    versions: Iterable[str] = (resource.api_version,)
    if resource.custom is None:
        versions = (row.api_version for row in _versions_of(resource))
    elif subresource == "status":
        versions = resource.custom.status_versions
    strategy = resource.strategy
    if subresource == "status":
        paths = [("spec",), *strategy.kept_by_status]
    else:
        paths = [("status",), *strategy.kept_by_update]
    reset = of_paths(*(tuple(f"f:{name}" for name in path) for path in paths))
    return dict.fromkeys(versions, reset)
