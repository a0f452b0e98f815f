"""Webhooks and admission policies in the course of a verb.

A verb asks `WebhookAdmission.of` first; it is None unless one of them concerns the request, and then nothing else is
different. Otherwise the change is computed without the lock of its key, webhooks included, and committed under the lock
if the object is still the one that was read; if not, it is computed again (`guaranteed_update`, upstream's name).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from podlife.api.codec import Object, encode
from podlife.api.fieldpath import TypedValueError
from podlife.apiserver.admission import Operation
from podlife.apiserver.admission.dynamic import Concern
from podlife.apiserver.admission.webhooks import ReviewedRequest, View, Views
from podlife.apiserver.registry.conversion import settle
from podlife.apiserver.registry.graceful_deletion import DeleteOptions
from podlife.apiserver.registry.object_codec import with_type
from podlife.apiserver.registry.request_body import check_size, check_type, why_not_convertible
from podlife.apiserver.registry.request_scope import RequestScope
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.resource import ConversionError, Resource
from podlife.apiserver.storage import Record
from podlife.errors import ApiError

T = TypeVar("T")
R = TypeVar("R")

# Upstream's limit for a writing request.
_REQUEST_SECONDS = 34.0
# How often a change is computed before the request gets a conflict: webhooks may write the same object each time.
_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class WebhookAdmission:
    """The policies and webhooks of one request."""

    scope: RequestScope
    concern: Concern
    views: Views
    options: Object | None
    is_dry_run: bool
    deadline: float
    # What mutating ones see, if that is more.
    mutating_views: Views

    @classmethod
    def of(
        cls,
        scope: RequestScope,
        operation: Operation,
        *,
        dry_run: bool,
        deletion: DeleteOptions | None = None,
        subresource: str = "",
        views: Views | None = None,
        mutating_views: Views | None = None,
    ) -> WebhookAdmission | None:
        """None if neither a policy nor a webhook concerns the request. `deletion` has the options of a DELETE."""
        concern = scope.admission_concern(operation, subresource)
        if concern is None:
            return None
        options = None
        if operation is not Operation.CONNECT:
            kind = {"kind": f"{operation.value.capitalize()}Options", "apiVersion": "meta.k8s.io/v1"}
            options = {**kind, **(_write_options(scope) if deletion is None else deletion.to_object())}
        deadline = asyncio.get_running_loop().time() + _REQUEST_SECONDS
        views = views or _whole_objects(scope)
        return cls(scope, concern, views, options, dry_run, deadline, mutating_views or views)

    async def mutate(self, new: Object | None, old: Object | None = None) -> Object:
        """Return `new` as mutating policies and webhooks have changed it; raises ApiError."""
        request = self._request(new, old)
        scope, target = self.scope, self.concern.target

        async def admit_again(obj: Object) -> None:
            attributes = scope.admission(
                target.operation, name=request.name, subresource=target.subresource, new=obj, old=old
            )
            admit = scope.registry.admission.admit
            await offload(lambda: admit(attributes), is_costly=scope.is_costly)

        if scope.registry.dynamic_admission is not None:
            managers = _managers(new)
            await scope.registry.dynamic_admission.mutate(self.concern, request, admit_again)
            if request.new is not None and _managers(request.new) != managers:
                # Only the server tells who owns what.
                meta = {**request.new["metadata"], "managedFields": managers}
                request.new["metadata"] = {key: each for key, each in meta.items() if each is not None}
        return request.new or {}

    async def validate(self, new: Object | None, old: Object | None = None) -> None:
        """Raise ApiError if a validating policy or webhook rejects the request."""
        if self.scope.registry.dynamic_admission is not None:
            request = self._request(new, old, is_final=True)
            await self.scope.registry.dynamic_admission.validate(self.concern, request)

    def _request(self, new: Object | None, old: Object | None, *, is_final: bool = False) -> ReviewedRequest:
        scope, target = self.scope, self.concern.target
        name = scope.name
        if not name and new is not None and (is_final or target.operation is Operation.CREATE):
            # Not yet generated while webhooks may change it.
            name = (new.get("metadata") or {}).get("name", "")
        return ReviewedRequest(
            target,
            scope.user,
            name if target.is_namespace else scope.namespace,
            name,
            self.views if is_final else self.mutating_views,
            self.options,
            self.is_dry_run,
            self.deadline,
            new,
            old,
            scope.warnings,
            scope.annotations,
            partial(settle, scope.conversions),
        )


def _managers(obj: Object | None) -> object:
    return ((obj or {}).get("metadata") or {}).get("managedFields")


def _write_options(scope: RequestScope) -> Object:
    """The options of a create or an update, as webhooks see them."""
    query = scope.request.query
    options: Object = {"dryRun": query.all("dryRun")}
    options |= {name: query.get(name) for name in ("fieldManager", "fieldValidation")}
    return {key: value for key, value in options.items() if value}


def fixed_view(api_version: str, kind: str) -> Views:
    """For objects that are not stored: a binding, an eviction. They have their type in the registry's form, too."""

    def view_of(resource: Resource) -> View:
        def take(patched: Object, _: Object, is_strict: bool) -> Object:
            _check(resource, patched, api_version, kind, is_strict=is_strict)
            return patched

        return View(api_version, kind, lambda obj: obj, take)

    return view_of


def _whole_objects(scope: RequestScope) -> Views:
    strategy, conversions, own = scope.strategy, scope.conversions, scope.resource.api_version

    def converted(obj: Object, api_version: str, target: str) -> Object:
        if conversions is None:
            return obj
        try:
            return conversions.convert(obj, api_version, target)
        except TypedValueError as error:
            raise ConversionError(str(error)) from None

    def view_of(resource: Resource) -> View:
        def show(obj: Object) -> Object:
            # The verbs convert stored custom resources; without a webhook versions differ in nothing but the name.
            convert = resource.from_stored if resource.custom is None else None
            shown = converted(obj, own, resource.api_version)
            return with_type(resource, shown if convert is None else convert(shown))

        def take(patched: Object, _: Object, is_strict: bool) -> Object:
            _check(resource, patched, resource.api_version, resource.kind, is_strict=is_strict)
            obj = {key: value for key, value in patched.items() if key not in ("kind", "apiVersion")}
            obj.setdefault("metadata", {})
            obj = obj if resource.to_stored is None else resource.to_stored(obj)
            obj = converted(obj, resource.api_version, own)
            strategy.default(obj)
            return obj

        return View(resource.api_version, resource.kind, show, take)

    return view_of


def _check(resource: Resource, patched: Object, api_version: str, kind: str, *, is_strict: bool) -> None:
    """Raise ValueError or ApiError unless the object is still of its type; unknown fields are dropped, as upstream
    does, or refused."""
    given = str(patched.get("kind")), str(patched.get("apiVersion"))
    if given != (kind, api_version):
        raise ApiError(why_not_convertible(*given, kind, api_version), reason="")
    check_size(encode(patched))
    unknown = check_type(resource, api_version, kind, patched)
    if unknown and is_strict and resource.custom is None:
        raise ValueError(f"strict decoding error: {', '.join(unknown)}")


async def guaranteed_update(
    scope: RequestScope,
    find: Callable[[], Record],
    compute: Callable[[Record], Awaitable[T]],
    commit: Callable[[Record, T], Awaitable[R]],
) -> R:
    """Compute a change of the object without its lock and commit it under the lock, if the object has not changed
    meanwhile; else again, a few times. Raises ConflictError after that."""
    store = scope.registry.store
    for _ in range(_ATTEMPTS):
        record = find()
        change = await compute(record)
        async with store.locked(record.key):
            current = store.get(record.key)
            if current is not None and current.revision == record.revision:
                return await commit(record, change)
    raise scope.conflict(
        "the object has been modified; please apply your changes to the latest version and try again"
    )
