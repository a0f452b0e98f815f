"""POST `pods/<name>/binding` and `bindings`: assigns a pod to a node, once."""

from __future__ import annotations

from functools import cache

from podlife.api import status
from podlife.api.codec import Object, encode, format_time
from podlife.api.field_errors import FieldError, invalid, not_supported, required
from podlife.api.fieldpath import Updater, Version, merge_type_of_kind, zero_object
from podlife.apiserver.admission import Operation
from podlife.apiserver.registry import RequestScope, field_managers, response
from podlife.apiserver.registry.managed_fields import Managed
from podlife.apiserver.registry.metadata import adopt_namespace
from podlife.apiserver.registry.object_codec import decode_in_part, encoder
from podlife.apiserver.registry.request_body import bad_request, read_typed
from podlife.apiserver.registry.webhook_admission import WebhookAdmission, fixed_view
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.storage import Put
from podlife.errors import ConflictError
from podlife.wire import Response

_VERSION, _KIND = "v1", "Binding"


async def bind(scope: RequestScope) -> Response:
    """Bind the pod of `scope`; its name may still be empty (POST to the collection of bindings)."""
    dry_run = scope.dry_run("CreateOptions")
    binding = await offload(lambda: _read_binding(scope), scope.request.body)
    scope.name = scope.name or binding["metadata"].get("name", "")
    if not scope.name:
        raise bad_request("Name parameter required.")
    scope.registry.admission.admit(scope.admission(Operation.CREATE, subresource="binding", new=binding))
    webhooks = WebhookAdmission.of(
        scope,
        Operation.CREATE,
        dry_run=dry_run,
        subresource="binding",
        views=fixed_view(_VERSION, _KIND),
    )
    if webhooks is not None:
        _track(scope, binding)
        binding = await webhooks.mutate(binding)
        _check_target(scope.name, binding.setdefault("target", {}))
        await webhooks.validate(binding)
    async with scope.registry.store.locked(scope.key):
        record = scope.find()
        pod = decode_in_part(record.value)
        _assign(scope, pod, binding, format_time(scope.registry.clock.now()))
        if not dry_run:
            await scope.registry.store.commit(Put(record.key, encoder(pod), expected=record.revision))
    return Response(201, encode({**status.success(), "code": 201}), headers=response.headers(scope))


def _read_binding(scope: RequestScope) -> Object:
    binding = read_typed(scope, _KIND, _VERSION)
    meta = binding.setdefault("metadata", {})
    adopt_namespace(scope, meta)
    name = meta.get("name", "")
    if scope.name and name != scope.name:
        raise bad_request("name in URL does not match name in Binding object")
    _check_target(name, binding.setdefault("target", {}))
    return binding


def _track(scope: RequestScope, binding: Object) -> None:
    """Set the managers of a binding, which only webhooks see."""
    managed, updater = Managed.of(()), _updater()
    if scope.registry.tracks_managers:
        manager = field_managers.updating_manager(scope, updater)
        before = zero_object(_VERSION, _KIND)
        field_managers.update(updater, managed, before, binding, manager, format_time(scope.now))
        binding["metadata"]["managedFields"] = managed.entries()


@cache
def _updater() -> Updater:
    return Updater({_VERSION: Version(merge_type_of_kind(_VERSION, _KIND))}, _VERSION)


def _check_target(name: str, target: Object) -> None:
    errors: list[FieldError] = []
    if target.get("kind") and target["kind"] != "Node":
        errors.append(not_supported("target.kind", target["kind"], ["Node", "<empty>"]))
    if not target.get("name"):
        errors.append(required("target.name"))
    if errors:
        raise invalid("Binding", "", name, errors)


def _assign(scope: RequestScope, pod: Object, binding: Object, now: str) -> None:
    meta, spec = pod["metadata"], pod["spec"]
    if (uid := binding["metadata"].get("uid")) and uid != meta["uid"]:
        raise scope.precondition_failed("UID", uid, meta["uid"])
    node = binding["target"]["name"]
    name = scope.name
    if "deletionTimestamp" in meta:
        raise _refused(scope, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _refused(scope, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
    if spec.get("schedulingGates"):
        raise _refused(scope, f"pod {name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = node
    for field in ("annotations", "labels"):
        if binding["metadata"].get(field):
            meta.setdefault(field, {}).update(binding["metadata"][field])
    pod.setdefault("status", {}).pop("nominatedNodeName", None)
    conditions = pod["status"].setdefault("conditions", [])
    conditions[:] = [each for each in conditions if each["type"] != "PodScheduled"]
    conditions.append(
        {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    )


def _refused(scope: RequestScope, why: str) -> ConflictError:
    return ConflictError(
        f'Operation cannot be fulfilled on pods/binding "{scope.name}": {why}',
        details={"name": scope.name, "kind": "pods/binding"},
    )
