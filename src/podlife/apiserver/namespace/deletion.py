"""Deletion of namespaces in two steps, and the namespaces every cluster has.

A deleted namespace first becomes Terminating. It is removed when its `spec.finalizers` are empty, which the namespace
controller (here, or kube-controller-manager's) requests through `finalize`.
"""

from __future__ import annotations

from podlife.api.codec import Object, decode_object, format_time
from podlife.apiserver.admission import Operation
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.registry import Registry, RequestScope, response
from podlife.apiserver.registry.create import create_object
from podlife.apiserver.registry.delete import delete_record, read_options
from podlife.apiserver.registry.graceful_deletion import FOREGROUND, ORPHAN, DeleteOptions, check_options
from podlife.apiserver.registry.object_codec import encode_stored, encoder
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.resource_table import find
from podlife.apiserver.storage import Key, Put, Record
from podlife.wire import Request, Response

SYSTEM_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")


async def create_system_namespaces(registry: Registry, user: UserInfo) -> None:
    resource = find("", "v1", "namespaces")
    assert resource is not None
    for name in SYSTEM_NAMESPACES:
        if registry.store.get(Key(resource.storage_key, "", name)) is None:
            scope = RequestScope(Request("POST", "/api/v1/namespaces"), user, resource, "create", name=name)
            await create_object(registry, scope, {"metadata": {"name": name}}, dry_run=False)


async def delete_namespace(registry: Registry, scope: RequestScope) -> Response:
    options = await offload(lambda: read_options(scope.request), scope.request.body)
    check_options(options)
    async with registry.store.locked(scope.key):
        record = scope.find(registry)
        obj = decode_object(record.value)
        _check_preconditions(scope, obj["metadata"], options)
        if "deletionTimestamp" not in obj["metadata"]:
            obj = await _begin(registry, scope, record, obj, options)
        elif not obj.get("spec", {}).get("finalizers"):
            obj, _ = await delete_record(registry, scope, record, options)
    return await response.one(registry, scope, encode_stored(obj))


def _check_preconditions(scope: RequestScope, meta: Object, options: DeleteOptions) -> None:
    for what, meant, found in (
        ("UID", options.uid, meta["uid"]),
        ("ResourceVersion", options.resource_version, meta["resourceVersion"]),
    ):
        if meant is not None and meant != found:
            raise scope.conflict(
                f"Precondition failed: {what} in precondition: {meant}, {what} in object meta: {found}"
            )


async def _begin(
    registry: Registry, scope: RequestScope, record: Record, obj: Object, options: DeleteOptions
) -> Object:
    registry.admission.admit(scope.admission(Operation.DELETE, old=decode_object(record.value)))
    meta = obj["metadata"]
    meta["deletionTimestamp"] = format_time(registry.clock.now())
    obj.setdefault("status", {})["phase"] = "Terminating"
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(options.propagation or "")
    if wanted and wanted not in meta.get("finalizers", []):
        meta["finalizers"] = [*meta.get("finalizers", []), wanted]
    if not options.is_dry_run:
        await registry.store.commit(Put(record.key, encoder(obj), expected=record.revision))
    return obj
