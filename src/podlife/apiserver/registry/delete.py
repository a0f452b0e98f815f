"""DELETE: one object, or a collection."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from podlife.api import schema, status
from podlife.api.codec import Object, decode_object, encode
from podlife.apiserver.admission import Operation
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.registry import response
from podlife.apiserver.registry.conversion import in_version, record_in_version, records_in_version
from podlife.apiserver.registry.graceful_deletion import (
    DeleteOptions,
    DeleteOutcome,
    before_delete,
    check_options,
)
from podlife.apiserver.registry.list_options import integer_parameter
from podlife.apiserver.registry.object_codec import (
    decode_in_part,
    decode_stored,
    encode_stored,
    encoder,
)
from podlife.apiserver.registry.request_body import bad_request, decode_body, unregistered
from podlife.apiserver.registry.request_scope import Registry, RequestScope
from podlife.apiserver.registry.selection_predicate import SelectionPredicate, select
from podlife.apiserver.registry.webhook_admission import WebhookAdmission, guaranteed_update
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.resource import Resource
from podlife.apiserver.storage import Delete, Key, Put, Record, StoreError
from podlife.errors import ApiError, NotFoundError
from podlife.wire import Request, Response

# As upstream: nothing is orphaned, and no orphan finalizer has to be removed.
_IN_BACKGROUND = DeleteOptions(propagation="Background")
# Objects of a collection deleted concurrently: enough to share commits.
_COLLECTION_WIDTH = 64


async def delete(scope: RequestScope) -> Response:
    options = await offload(lambda: read_options(scope.request), scope.request.body)
    check_options(options)
    if scope.conversions is not None:
        # As upstream: what cannot be shown cannot be deleted.
        await record_in_version(scope.resource, scope.find())
    obj, is_gone = await delete_stored(scope, scope.key, options)
    resource = scope.resource
    has_policy = options.propagation is not None or options.orphan_dependents is not None
    if resource.strategy.deletion_warning and not has_policy:
        scope.warnings.append(resource.strategy.deletion_warning)
    code = 202 if not is_gone and options.orphan_dependents is False else 200  # GD-81: 202 is for old clients
    if resource.strategy.returns_deleted_object or not is_gone:
        [value] = await in_version(resource, [encode_stored(obj)])
        return await response.one(scope, value, status=code)
    details = scope.details(uid=obj["metadata"]["uid"])
    return Response(code, encode(status.success(details)), headers=response.headers(scope))


def read_options(request: Request) -> DeleteOptions:
    """Read the options from the body, or without one from the query (GD-08: neither means empty options)."""
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
    if (grace := integer_parameter(query, "gracePeriodSeconds")) is not None:
        body["gracePeriodSeconds"] = grace
    if policy := query.get("propagationPolicy"):
        body["propagationPolicy"] = policy
    if orphan := query.get("orphanDependents"):
        body["orphanDependents"] = orphan not in ("false", "0")
    return DeleteOptions.from_object(body)


async def delete_stored(scope: RequestScope, key: Key, options: DeleteOptions) -> tuple[Object, bool]:
    """As `delete_record`, for the object of this key; raises NotFoundError. Takes the lock of the key."""
    store = scope.registry.store

    def find() -> Record:
        if (record := store.get(key)) is None:
            raise scope.not_found()
        return record

    webhooks = WebhookAdmission.of(scope, Operation.DELETE, dry_run=options.is_dry_run, deletion=options)
    if webhooks is None:
        async with store.locked(key):
            return await delete_record(scope, find(), options)

    async def review(record: Record) -> None:
        await review_deletion(webhooks, record, options)

    async def commit(record: Record, _: None) -> tuple[Object, bool]:
        return await delete_record(scope, record, options)

    return await guaranteed_update(scope, find, review, commit)


async def review_deletion(webhooks: WebhookAdmission, record: Record, options: DeleteOptions) -> None:
    """Ask the webhooks about the deletion of an object, unless its grace period is running already."""
    scope = webhooks.scope
    old = decode_stored(scope.resource, (await record_in_version(scope.resource, record)).value)
    scope.registry.admission.admit(scope.admission(Operation.DELETE, name=record.key.name, old=old))
    resource, now = scope.resource, scope.registry.clock.now()
    scratch = decode_object(record.value)
    outcome = before_delete(
        scratch, options, resource.strategy, now, kind=resource.kind, group=resource.group
    )
    if outcome is not DeleteOutcome.PENDING:
        await webhooks.mutate(None, old)
        await webhooks.validate(None, old)


async def delete_record(scope: RequestScope, record: Record, options: DeleteOptions) -> tuple[Object, bool]:
    """Delete a stored object by the rules of its kind; returns the object for the response, and whether it is gone.

    The caller holds the lock of the key.
    """
    old = decode_in_part(record.value)
    obj = {**old, "metadata": {**old["metadata"]}}
    resource = scope.resource
    scope.registry.admission.admit(scope.admission(Operation.DELETE, name=record.key.name, old=old))
    resource.strategy.prepare_delete(obj, scope.registry.clock.now())
    outcome = before_delete(
        obj, options, resource.strategy, scope.registry.clock.now(), kind=resource.kind, group=resource.group
    )
    # A repeated delete of an object that waits for its finalizers.
    is_marked_already = outcome is DeleteOutcome.MARKED and obj == old
    if not options.is_dry_run and not is_marked_already:
        await _write(scope.registry, record, obj, outcome)
    return obj, outcome in (DeleteOutcome.REMOVED, DeleteOutcome.MARKED_AND_REMOVED)


async def delete_in_background(registry: Registry, resource: Resource, key: Key, user: UserInfo) -> None:
    """Delete an object, if it is still there, and leave its dependents to the garbage collector. For controllers."""
    request = Request("DELETE", "")
    scope = RequestScope(registry, request, user, resource, "delete", key.namespace, key.name)
    await _delete_if_there(scope, key, _IN_BACKGROUND)


async def _write(registry: Registry, record: Record, obj: Object, outcome: DeleteOutcome) -> None:
    key, store = record.key, registry.store
    match outcome:
        case DeleteOutcome.MARKED:
            await store.commit(Put(key, encoder(obj), expected=record.revision))
        case DeleteOutcome.MARKED_AND_REMOVED:
            # Two changes and two events, as upstream, but in one transaction: a crash cannot leave the half-done
            # state that upstream must be able to repair (GD-10).
            await store.commit(
                Put(key, encoder(obj), expected=record.revision),
                Delete(key, encoder(obj), expected=record.revision),
            )
        case DeleteOutcome.REMOVED:
            await store.commit(Delete(key, encoder(obj), expected=record.revision))
        case DeleteOutcome.PENDING:
            pass


async def delete_collection(scope: RequestScope) -> Response:
    """Delete every object that the selectors match, each by its own rules (GD-64)."""
    options = await offload(lambda: read_options(scope.request), scope.request.body)
    check_options(options)
    selection = await SelectionPredicate.asked_for(scope)
    revision = scope.registry.store.revision
    chosen = await select(scope, selection)
    if selection.is_everything:
        chosen = await records_in_version(scope.resource, chosen)
    remaining = iter(chosen)
    errors: list[ApiError | StoreError] = []

    async def delete_remaining() -> None:
        for record in remaining:
            if errors:
                return
            try:
                await _delete_if_there(scope, record.key, options)
            except (ApiError, StoreError) as error:
                errors.append(error)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(_COLLECTION_WIDTH, len(chosen))):
            group.create_task(delete_remaining())
    if errors:
        raise errors[0]
    meta = {"resourceVersion": str(revision)}
    return response.many(scope, [record.value for record in chosen], meta)


async def _delete_if_there(scope: RequestScope, key: Key, options: DeleteOptions) -> None:
    with suppress(NotFoundError):
        await delete_stored(scope, key, options)
