"""DELETE: one object, or a collection of them."""

from __future__ import annotations

import asyncio

from podlife.api import schema, status
from podlife.api.codec import Object, encode
from podlife.api.integers import parse_int64
from podlife.apiserver.admission import Attributes, Operation
from podlife.apiserver.registry import response as output
from podlife.apiserver.registry.get import Selection, select
from podlife.apiserver.registry.graceful_deletion import (
    DeleteOptions,
    Outcome,
    check_options,
    decide,
)
from podlife.apiserver.registry.object_codec import encoder, freeze, thaw
from podlife.apiserver.registry.request_body import bad_request, decode_body, unregistered
from podlife.apiserver.registry.request_scope import Registry, Scope
from podlife.apiserver.registry.worker_threads import aside
from podlife.apiserver.storage.store import Delete, Key, Put, Record, StoreError
from podlife.errors import ApiError
from podlife.wire import Request, Response

__all__ = ["delete", "delete_collection", "delete_record", "read_options"]

# How many objects of a collection are deleted at the same time: enough to share commits.
_COLLECTION_WIDTH = 64


async def delete(registry: Registry, scope: Scope) -> Response:
    options = await aside(lambda: read_options(scope.request), scope.request.body)
    check_options(options)
    async with registry.store.locked(scope.key):
        record = scope.find(registry)
        obj, is_gone = await delete_record(registry, scope, record, options)
    resource = scope.resource
    if (
        resource.strategy.deletion_warning
        and options.propagation is None
        and options.orphan_dependents is None
    ):
        scope.warnings.append(resource.strategy.deletion_warning)
    code = 202 if not is_gone and options.orphan_dependents is False else 200  # GD-81
    if resource.strategy.returns_deleted_object or not is_gone:
        return await output.one(registry, scope, freeze(obj), status=code)
    details = scope.details(uid=obj["metadata"]["uid"])
    return Response(code, encode(status.success(details)), headers=output.headers(scope))


def read_options(request: Request) -> DeleteOptions:
    """From the body, or where there is none from the query (GD-08: neither is empty options, not none)."""
    if not request.body:
        return _options_from_query(request)
    try:
        body = decode_body(request)
        body.setdefault("kind", "DeleteOptions")
        body.setdefault("apiVersion", "v1")
        if body["kind"] != "DeleteOptions":
            raise bad_request(unregistered(str(body["kind"]), str(body["apiVersion"])))
        body.pop("apiVersion")
        schema.check("v1", "DeleteOptions", body)
    except ValueError as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None
    return DeleteOptions.from_object(body)


def _options_from_query(request: Request) -> DeleteOptions:
    query = request.query
    body: Object = {"dryRun": query.all("dryRun")}
    try:
        if grace := query.get("gracePeriodSeconds"):
            body["gracePeriodSeconds"] = parse_int64(grace)
    except ValueError as error:
        raise bad_request(str(error)) from None
    if policy := query.get("propagationPolicy"):
        body["propagationPolicy"] = policy
    if orphan := query.get("orphanDependents"):
        body["orphanDependents"] = orphan not in ("false", "0")
    return DeleteOptions.from_object(body)


async def delete_record(
    registry: Registry, scope: Scope, record: Record, options: DeleteOptions
) -> tuple[Object, bool]:
    """Delete what is stored, by the rules of its kind; the object as it is answered, and whether it is gone.

    The caller holds the lock of the key."""
    obj, old = thaw(record.value), thaw(record.value)
    resource = scope.resource
    registry.admission.admit(
        Attributes(Operation.DELETE, scope.user, resource, scope.namespace, record.key.name, old=old)
    )
    outcome = decide(
        obj, options, resource.strategy, registry.clock.now(), kind=resource.kind, group=resource.group
    )
    is_marked_already = outcome is Outcome.MARKED and obj == old  # waits for its finalizers, told again to go
    if not options.is_dry_run and not is_marked_already:
        await _write(registry, record, obj, outcome)
    return obj, outcome in (Outcome.REMOVED, Outcome.MARKED_AND_REMOVED)


async def _write(registry: Registry, record: Record, obj: Object, outcome: Outcome) -> None:
    key, store = record.key, registry.store
    match outcome:
        case Outcome.MARKED:
            await store.commit(Put(key, encoder(obj), expected=record.revision))
        case Outcome.MARKED_AND_REMOVED:
            # Two changes and two events, as upstream has it, but in one transaction: a crash can not leave
            # the half of it that upstream must be able to repair (GD-10).
            await store.commit(
                Put(key, encoder(obj), expected=record.revision),
                Delete(key, encoder(obj), expected=record.revision),
            )
        case Outcome.REMOVED:
            await store.commit(Delete(key, encoder(obj), expected=record.revision))
        case Outcome.PENDING:
            pass


async def delete_collection(registry: Registry, scope: Scope) -> Response:
    """Every object that the selectors choose, each by its own rules (GD-64)."""
    options = await aside(lambda: read_options(scope.request), scope.request.body)
    check_options(options)
    selection = await Selection.asked_for(scope)
    revision = registry.store.revision
    chosen = await select(registry, scope, selection)
    remaining = iter(chosen)
    errors: list[ApiError | StoreError] = []

    async def delete_remaining() -> None:
        for record in remaining:
            if errors:
                return
            try:
                await _delete_if_there(registry, scope, record.key, options)
            except (ApiError, StoreError) as error:
                errors.append(error)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(_COLLECTION_WIDTH, len(chosen))):
            group.create_task(delete_remaining())
    if errors:
        raise errors[0]
    meta = {"resourceVersion": str(revision)}
    return output.many(registry, scope, [record.value for record in chosen], meta)


async def _delete_if_there(registry: Registry, scope: Scope, key: Key, options: DeleteOptions) -> None:
    async with registry.store.locked(key):
        if (record := registry.store.get(key)) is not None:
            await delete_record(registry, scope, record, options)
