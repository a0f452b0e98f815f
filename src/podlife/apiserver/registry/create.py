"""POST: creates an object."""

from __future__ import annotations

from podlife.api.codec import Object, encode
from podlife.api.names import generate_name
from podlife.apiserver.admission import AdmissionRequest, Operation
from podlife.apiserver.admission.namespace_lifecycle import namespace_lifecycle
from podlife.apiserver.registry import response
from podlife.apiserver.registry.conversion import in_version, to_storage
from podlife.apiserver.registry.field_managers import track
from podlife.apiserver.registry.metadata import (
    adopt_namespace,
    check_created,
    clean_for_create,
    give_identity,
)
from podlife.apiserver.registry.object_codec import encode_stored, encoder
from podlife.apiserver.registry.quota_charges import charged
from podlife.apiserver.registry.request_body import bad_request, check_bytes, fit_managers, read_object
from podlife.apiserver.registry.request_scope import RequestScope
from podlife.apiserver.registry.webhook_admission import WebhookAdmission
from podlife.apiserver.registry.worker_threads import is_large, offload, run_in_thread
from podlife.apiserver.storage import MismatchError, Put
from podlife.wire import Response

# Attempts to generate an unused name.
_NAME_DRAWS = 8


async def create(scope: RequestScope) -> Response:
    dry_run = scope.dry_run("CreateOptions")
    obj = await offload(lambda: read_object(scope), scope.request.body)
    if scope.resource.to_stored is not None:
        obj = scope.resource.to_stored(obj)
    value = await create_object(scope, obj, dry_run=dry_run)
    return await response.one(scope, value, status=201)


async def create_object(
    scope: RequestScope, obj: Object, *, dry_run: bool, is_applied: bool = False
) -> bytes:
    """Create a checked object; returns its bytes in its version. An applied object has its managers already."""
    meta = obj["metadata"]
    is_stored_before = meta.pop("resourceVersion", "") not in ("", "0")
    clean_for_create(meta)
    adopt_namespace(scope, meta)
    # The name is generated after admission, which must not mistake the prefix for a name.
    asked_for = meta.get("name", "")
    webhooks = WebhookAdmission.of(scope, Operation.CREATE, dry_run=dry_run)
    if webhooks is not None:
        obj = await _make_ready_with(webhooks, obj, asked_for, is_applied=is_applied)
        meta = obj["metadata"]
    elif not is_large(scope.request.body) and not scope.is_costly:
        _make_ready(scope, obj, asked_for, is_applied=is_applied)
    else:
        await run_in_thread(lambda: _make_ready(scope, obj, asked_for, is_applied=is_applied))
        fit_managers(obj, is_applied=is_applied)
        _check_namespace_again(scope, obj, asked_for)
    if is_stored_before and not dry_run:
        # Only storage objects to it, as upstream: an invalid object is reported first, and a dry run stores nothing.
        raise bad_request("resourceVersion should not be set on objects to be created")
    is_generated = not asked_for and "generateName" in meta
    for _ in range(_NAME_DRAWS):
        try:
            return await _store(scope, obj, dry_run=dry_run)
        except MismatchError:
            if not is_generated:
                raise scope.already_exists(meta["name"]) from None
            meta["name"] = generate_name(meta["generateName"], scope.registry.chance)
    raise scope.already_exists(
        meta["generateName"], ", the server was not able to generate a unique name for the object"
    )


def _make_ready(scope: RequestScope, obj: Object, asked_for: str, *, is_applied: bool) -> None:
    """Prepare and check a new object before it is stored."""
    _admit(scope, obj, asked_for, is_applied=is_applied)
    _prepare(scope, obj)
    scope.registry.admission.validate(_about_to_be_stored(scope, obj))


async def _make_ready_with(
    webhooks: WebhookAdmission, obj: Object, asked_for: str, *, is_applied: bool
) -> Object:
    """As `_make_ready`, with webhooks in between; returns the object as they have changed it."""
    scope, body = webhooks.scope, webhooks.scope.request.body
    is_costly = scope.is_costly
    await offload(lambda: _admit(scope, obj, asked_for, is_applied=is_applied), body, is_costly=is_costly)
    new = await webhooks.mutate(obj)
    clean_for_create(new["metadata"])
    adopt_namespace(scope, new["metadata"])
    await offload(lambda: _prepare(scope, new), body, encode(new), is_costly=is_costly)
    fit_managers(new, is_applied=is_applied)
    scope.registry.admission.validate(_about_to_be_stored(scope, new))
    await webhooks.validate(new)
    _check_namespace_again(scope, new, asked_for)
    return new


def _check_namespace_again(scope: RequestScope, obj: Object, asked_for: str) -> None:
    """The namespace may have become Terminating meanwhile."""
    attributes = scope.admission(Operation.CREATE, name=asked_for, new=obj)
    namespace_lifecycle(attributes, scope.registry.store.get)


def _admit(scope: RequestScope, obj: Object, asked_for: str, *, is_applied: bool) -> None:
    scope.strategy.default(obj)
    scope.strategy.set_times(obj, None, scope.now)
    if not is_applied:
        track(scope, obj, None)
    scope.registry.admission.admit(scope.admission(Operation.CREATE, name=asked_for, new=obj))


def _prepare(scope: RequestScope, obj: Object) -> None:
    strategy = scope.strategy
    give_identity(obj["metadata"], scope.now, scope.registry.chance)
    strategy.prepare_create(obj)
    if strategy.has_generation:
        obj["metadata"]["generation"] = 1
    check_created(scope, obj)
    strategy.canonicalize(obj)
    scope.warnings.extend(strategy.warnings(obj))


def _about_to_be_stored(scope: RequestScope, obj: Object) -> AdmissionRequest:
    """What is only validated has its name, even if that was generated."""
    return scope.admission(Operation.CREATE, name=obj["metadata"]["name"], new=obj)


async def _store(scope: RequestScope, obj: Object, *, dry_run: bool) -> bytes:
    key = scope.key_of(scope.namespace, obj["metadata"]["name"])
    stored = await to_storage(scope.resource, obj)
    if stored is not obj:
        check_bytes(encode(stored))
    store = scope.registry.store
    async with charged(store, _about_to_be_stored(scope, obj), scope.now) as charges:
        if not dry_run:
            record, *_ = await store.commit(Put(key, encoder(stored), expected=0), *charges)
            value = record.value
        elif store.get(key) is not None:
            raise MismatchError("exists")
        else:
            value = encode_stored(stored)
    [shown] = await in_version(scope.resource, [value])
    return shown
