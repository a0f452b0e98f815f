"""PUT and the rules that PUT and PATCH share.

The key's lock is held from reading the object to the commit, so a change is decided on the current object. Only if
webhooks are called the lock is taken for the commit alone (see `webhook_admission`).
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from podlife.api.codec import Object, decode_object, encode, is_same
from podlife.apiserver.admission import AdmissionRequest, Operation
from podlife.apiserver.registry import response
from podlife.apiserver.registry.conversion import in_version, record_in_version, settle, to_storage
from podlife.apiserver.registry.create import create_object
from podlife.apiserver.registry.field_managers import track
from podlife.apiserver.registry.graceful_deletion import is_finished_by_update
from podlife.apiserver.registry.managed_fields import keep_times, without_managers
from podlife.apiserver.registry.metadata import adopt_namespace, carry_over, check_updated
from podlife.apiserver.registry.object_codec import decode_stored, encode_stored, encoder
from podlife.apiserver.registry.quota_charges import charged
from podlife.apiserver.registry.request_body import (
    bad_request,
    check_bytes,
    check_name,
    check_size,
    fit_managers,
    read_object,
)
from podlife.apiserver.registry.request_scope import Registry, RequestScope
from podlife.apiserver.registry.webhook_admission import WebhookAdmission, guaranteed_update
from podlife.apiserver.registry.worker_threads import is_large, offload, run_in_thread
from podlife.apiserver.storage import Delete, Put, Record
from podlife.errors import InvalidError
from podlife.wire import Response

Transform = Callable[[Object], Object]
"""Returns the new object for a stored one, which it must neither change nor share."""


async def update(scope: RequestScope) -> Response:
    dry_run = scope.dry_run("UpdateOptions")
    obj = await offload(lambda: read_object(scope), scope.request.body)
    if scope.resource.to_stored is not None:
        obj = scope.resource.to_stored(obj)
    meta = obj["metadata"]
    check_name(scope, meta.get("name") or "")
    webhooks = WebhookAdmission.of(scope, Operation.UPDATE, dry_run=dry_run, subresource=scope.subresource)
    if webhooks is not None or scope.conversions is not None or _creates_with_webhooks(scope):
        return await _update_with(webhooks, scope, obj, dry_run=dry_run)
    async with scope.registry.store.locked(scope.key):
        record = scope.registry.store.get(scope.key)
        if record is None:
            return await _create_by_update(scope, obj, dry_run=dry_run)
        _check_uid(scope, meta.get("uid", ""), record)
        value = await apply_change(scope, record, lambda _: obj, dry_run=dry_run)
    return await response.one(scope, value)


def _creates_with_webhooks(scope: RequestScope) -> bool:
    return scope.strategy.creates_on_update and scope.admission_concern(Operation.CREATE) is not None


async def _update_with(
    webhooks: WebhookAdmission | None, scope: RequestScope, obj: Object, *, dry_run: bool
) -> Response:
    """As `update`, without the lock of the key while webhooks are called."""
    if scope.registry.store.get(scope.key) is None:
        return await _create_by_update(scope, obj, dry_run=dry_run)

    def find() -> Record:
        record = scope.find()
        _check_uid(scope, obj["metadata"].get("uid", ""), record)
        return record

    value = await change_stored(webhooks, scope, find, lambda _: deepcopy(obj), dry_run=dry_run)
    return await response.one(scope, value)


async def change_stored(
    webhooks: WebhookAdmission | None,
    scope: RequestScope,
    find: Callable[[], Record],
    transform: Transform,
    *,
    dry_run: bool,
    may_grow: bool = False,
    is_applied: bool = False,
) -> bytes:
    """Read, change and commit the object that `find` returns; under the lock of its key, unless webhooks are called.
    Returns the result in the version of the request."""
    resource, conversions = scope.resource, scope.conversions
    if webhooks is None and conversions is None:
        async with scope.registry.store.locked(scope.key):
            return await apply_change(
                scope, find(), transform, dry_run=dry_run, may_grow=may_grow, is_applied=is_applied
            )

    async def compute(record: Record) -> tuple[Object, Object]:
        shown = await record_in_version(resource, record)

        def begin() -> tuple[Object, Object]:
            old = decode_stored(resource, shown.value)
            new = transform(old)
            _admit(scope, new, old, is_applied)
            return new, old

        def finish() -> None:
            _check_version(scope, new["metadata"], record)
            adopt_namespace(scope, new["metadata"])
            _prepare(scope, new, old)

        is_costly = scope.is_costly
        inputs = scope.request.body, shown.value
        new, old = await settle(conversions, lambda: offload(begin, *inputs, is_costly=may_grow or is_costly))
        if webhooks is not None:
            new = await webhooks.mutate(new, old)
        data = encode(without_managers(new))
        check_size(data)
        await offload(finish, data, is_costly=is_costly)
        fit_managers(new, is_applied=is_applied)
        scope.registry.admission.validate(_attributes(scope, new, old))
        if webhooks is not None:
            await webhooks.validate(new, old)
        if conversions is not None:
            # What is compared and written is what is stored.
            stored = await to_storage(resource, new)
            check_bytes(encode(stored))
            return stored, decode_object(record.value)
        return new, old

    async def commit(record: Record, change: tuple[Object, Object]) -> bytes:
        return await _commit_charged(scope, record, *change, dry_run=dry_run)

    [value] = await in_version(resource, [await guaranteed_update(scope, find, compute, commit)])
    return value


def _check_uid(scope: RequestScope, uid: str, record: Record) -> None:
    stored = decode_object(record.value)["metadata"]["uid"] if uid else ""
    if uid and uid != stored:
        path = f"/registry/{scope.resource.plural}/{record.key.path}"
        prefix = (
            f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: "
        )
        raise scope.precondition_failed("UID", uid, stored, prefix=prefix)


async def _create_by_update(scope: RequestScope, obj: Object, *, dry_run: bool) -> Response:
    if not scope.strategy.creates_on_update or scope.subresource or obj["metadata"].get("uid"):
        raise scope.not_found()
    value = await create_object(scope, obj, dry_run=dry_run)
    return await response.one(scope, value, status=201)


async def apply_change(
    scope: RequestScope,
    record: Record,
    transform: Transform,
    *,
    dry_run: bool,
    may_grow: bool = False,
    is_applied: bool = False,
) -> bytes:
    """Change the stored object by the rules of its resource and subresource; returns the resulting bytes.

    `may_grow` says that the result can be large though neither the object nor the request is, `is_applied` that the
    result has its managers already. The caller holds the lock of the key.
    """
    if may_grow or scope.is_costly or is_large(scope.request.body, record.value):
        new, old = await run_in_thread(lambda: _bounded_change(scope, record, transform, is_applied))
    else:
        new, old = _changed(scope, record, transform, is_applied)
    return await _commit_charged(scope, record, new, old, dry_run=dry_run)


def _bounded_change(
    scope: RequestScope, record: Record, transform: Transform, is_applied: bool
) -> tuple[Object, Object]:
    """As `_changed`, but rejects a result larger than an object may be, before the work and before the store."""

    def bounded(stored: Object) -> Object:
        obj = transform(stored)
        check_size(encode(without_managers(obj)))
        return obj

    new, old = _changed(scope, record, bounded, is_applied)
    fit_managers(new, is_applied=is_applied)
    return new, old


def _changed(
    scope: RequestScope, record: Record, transform: Transform, is_applied: bool
) -> tuple[Object, Object]:
    """The object after and before the change, by all rules."""
    old = decode_stored(scope.resource, record.value)
    new = transform(old)
    _check_version(scope, new["metadata"], record)
    _admit(scope, new, old, is_applied)
    _prepare(scope, new, old)
    scope.registry.admission.validate(_attributes(scope, new, old))
    return new, old


def _attributes(scope: RequestScope, new: Object, old: Object) -> AdmissionRequest:
    return scope.admission(Operation.UPDATE, subresource=scope.subresource, new=new, old=old)


def _admit(scope: RequestScope, new: Object, old: Object, is_applied: bool) -> None:
    adopt_namespace(scope, new["metadata"])
    scope.strategy.default(new)
    scope.strategy.set_times(new, old, scope.now)
    if not is_applied:
        track(scope, new, old)
    scope.registry.admission.admit(_attributes(scope, new, old))


def _check_version(scope: RequestScope, meta: Object, record: Record) -> None:
    given = meta.get("resourceVersion", "")
    if given in ("", "0"):
        if not scope.strategy.unconditional_update:
            field, problem = "metadata.resourceVersion", "Invalid value: 0: must be specified for an update"
            cause = {"reason": "FieldValueInvalid", "message": problem, "field": field}
            raise InvalidError(
                f'{scope.resource.key} "{scope.name}" is invalid: {field}: {problem}',
                details=scope.details(causes=[cause]),
            )
        meta["resourceVersion"] = str(record.revision)
    elif given != str(record.revision):
        if not (given.isascii() and given.isdigit()):
            raise bad_request(f'invalid resource version "{given}": must be a number')
        raise scope.conflict(
            "the object has been modified; please apply your changes to the latest version and try again"
        )


def _prepare(scope: RequestScope, new: Object, old: Object) -> None:
    strategy = scope.strategy
    is_status = scope.subresource == "status"
    carry_over(new["metadata"], old["metadata"])
    if is_status:
        strategy.prepare_status_update(new, old)
    else:
        strategy.prepare_update(new, old)
        if strategy.has_generation and strategy.has_changed(new, old):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
    check_updated(scope, new, old, status=is_status)
    strategy.canonicalize(new)
    if not is_status:
        scope.warnings.extend(strategy.warnings(new))
    keep_times(new, old)


async def _commit_charged(
    scope: RequestScope, record: Record, new: Object, old: Object, *, dry_run: bool
) -> bytes:
    """As `commit_change`, with what the change uses of quotas."""
    async with charged(scope.registry.store, _attributes(scope, new, old), scope.now) as charges:
        return await commit_change(scope.registry, record, new, old, *charges, dry_run=dry_run)


async def commit_change(
    registry: Registry, record: Record, new: Object, old: Object, *others: Put, dry_run: bool
) -> bytes:
    """Commit the change: nothing if the object is unchanged, the removal if the update completes a pending deletion
    (GD-56, GD-58). `others` are committed together with a change."""
    is_held = record.key.resource == "namespaces" and bool(new.get("spec", {}).get("finalizers"))
    is_finished = is_finished_by_update(new, old) and not is_held
    if dry_run:
        return encode_stored(new)
    if is_finished:
        new["metadata"]["resourceVersion"] = str(record.revision)
        # Watchers see the last stored state; the caller gets what it sent.
        await registry.store.commit(Delete(record.key, encoder(old), expected=record.revision))
        return encode_stored(new)
    if is_same(new, old):
        return record.value
    put = Put(record.key, encoder(new), expected=record.revision)
    written, *_ = await registry.store.commit(put, *others)
    return written.value
