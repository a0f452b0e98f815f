"""POST `serviceaccounts/<name>/token`: a TokenRequest, answered with a signed token (upstream's TokenREST)."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

from podlife.api.codec import Object, decode_object, encode, format_time
from podlife.api.field_errors import FieldError, bad_value, invalid
from podlife.api.fieldpath import Updater, Version, merge_type_of_kind, zero_object
from podlife.apiserver.admission import Operation
from podlife.apiserver.registry import RequestScope, field_managers, response
from podlife.apiserver.registry.managed_fields import Managed
from podlife.apiserver.registry.metadata import adopt_namespace
from podlife.apiserver.registry.request_body import bad_request, read_typed
from podlife.apiserver.registry.webhook_admission import WebhookAdmission, fixed_view
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.service_accounts import BoundObjects, ServiceAccountTokens
from podlife.apiserver.storage import Key
from podlife.errors import ApiError, ConflictError, NotFoundError
from podlife.wire import Response

_KIND, _GROUP, _VERSION = "TokenRequest", "authentication.k8s.io", "authentication.k8s.io/v1"
_DEFAULT_SECONDS = 3600
_SHORTEST_SECONDS = 600
_LONGEST_SECONDS = 1 << 32


async def request_token(scope: RequestScope, tokens: ServiceAccountTokens) -> Response:
    dry_run = scope.dry_run("CreateOptions")
    body = await offload(lambda: read_typed(scope, _KIND, _VERSION), scope.request.body)
    spec = body.setdefault("spec", {})
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _DEFAULT_SECONDS
    adopt_namespace(scope, body.setdefault("metadata", {}))
    _track(scope, body)
    scope.registry.admission.admit(scope.admission(Operation.CREATE, subresource="token", new=body))
    views = fixed_view(_VERSION, _KIND)
    webhooks = WebhookAdmission.of(scope, Operation.CREATE, dry_run=dry_run, subresource="token", views=views)
    if webhooks is not None:
        body = await webhooks.mutate(body)
    account = _complete(scope, body, tokens)
    if webhooks is not None:
        await webhooks.validate(body)
    seconds, audiences = body["spec"]["expirationSeconds"], body["spec"]["audiences"]
    bound = _bound_objects(scope, body["spec"].get("boundObjectRef"))
    token, identity = tokens.issue(account, bound, audiences, seconds)
    scope.annotations["authentication.kubernetes.io/issued-credential-id"] = f"JTI={identity}"
    end = format_time(scope.now + timedelta(seconds=seconds))
    answer = encode({**body, "status": {"token": token, "expirationTimestamp": end}})
    to = response.representation(scope, has_tables=False)
    return Response(201, to.finish(answer), to.media_type, response.headers(scope))


def _track(scope: RequestScope, body: Object) -> None:
    """Upstream answers with the managers of a request that is not stored, too."""
    body["metadata"].pop("managedFields", None)
    if scope.registry.tracks_managers:
        managed = Managed.of(())
        manager = field_managers.updating_manager(scope, _updater())
        before = zero_object(_VERSION, _KIND)
        # Upstream's form of an empty request has this field, as null.
        before["spec"]["boundObjectRef"] = None
        field_managers.update(_updater(), managed, before, body, manager, format_time(scope.now))
        body["metadata"]["managedFields"] = managed.entries()


@cache
def _updater() -> Updater:
    return Updater({_VERSION: Version(merge_type_of_kind(_VERSION, _KIND))}, _VERSION)


def _complete(scope: RequestScope, body: Object, tokens: ServiceAccountTokens) -> Object:
    """Check the request and fill in what it leaves out; returns the metadata of the account."""
    meta, spec, name = body["metadata"], body["spec"], scope.name
    if meta.get("name", name) != name:
        why = "must match the service account name if specified"
        _refuse(name, bad_value("metadata.name", meta["name"], why))
    account: Object = decode_object(scope.find().value)["metadata"]
    if meta.get("uid", account["uid"]) != account["uid"]:
        raise _conflict(
            f"{_KIND}.{_GROUP}",
            name,
            f"the UID in the token request ({meta['uid']}) does not match the UID of the service account "
            f"({account['uid']})",
        )
    meta |= {field: account[field] for field in ("name", "namespace", "uid")}
    meta["creationTimestamp"] = format_time(scope.now)
    body.pop("status", None)
    spec["audiences"] = spec.get("audiences") or list(tokens.audiences)
    spec.setdefault("boundObjectRef", None)
    field, seconds = "spec.expirationSeconds", spec["expirationSeconds"]
    if seconds < _SHORTEST_SECONDS:
        _refuse("", bad_value(field, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _LONGEST_SECONDS:
        _refuse("", bad_value(field, seconds, "may not specify a duration larger than 2^32 seconds"))
    return account


def _bound_objects(scope: RequestScope, ref: Object | None) -> BoundObjects:
    if ref is None:
        return BoundObjects()
    group, _, version = (ref.get("apiVersion") or "").rpartition("/")
    kind, name = ref.get("kind") or "", ref.get("name") or ""
    if group or kind not in ("Pod", "Node", "Secret"):
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    found = _read(scope, f"{kind.lower()}s", "" if kind == "Node" else scope.namespace, name)
    if found is None:
        details = {"name": name, "kind": f"{kind.lower()}s"}
        raise NotFoundError(f'{kind.lower()}s "{name}" not found', details=details)
    if kind == "Pod" and found["spec"].get("serviceAccountName", "") != scope.name:
        raise bad_request(
            f'cannot bind token for serviceaccount "{scope.name}" to pod running with different serviceaccount name.'
        )
    metadata = found["metadata"]
    if ref.get("uid") and ref["uid"] != metadata["uid"]:
        raise _conflict(
            kind,
            name,
            f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. The object "
            "might have been deleted and then recreated",
        )
    node_name = found["spec"].get("nodeName") if kind == "Pod" else None
    if not node_name:
        return BoundObjects(**{kind.lower(): metadata})
    node = _read(scope, "nodes", "", node_name) or {"metadata": {"name": node_name}}
    return BoundObjects(pod=metadata, node=node["metadata"])


def _read(scope: RequestScope, resource: str, namespace: str, name: str) -> Object | None:
    record = scope.registry.store.get(Key(resource, namespace, name))
    return None if record is None else decode_object(record.value)


def _refuse(name: str, error: FieldError) -> Any:
    raise invalid(_KIND, _GROUP, name, [error])


def _conflict(resource: str, name: str, why: str) -> ApiError:
    kind, _, group = resource.partition(".")
    details = {"name": name, "group": group, "kind": kind}
    return ConflictError(
        f'Operation cannot be fulfilled on {resource} "{name}": {why}',
        details={key: value for key, value in details.items() if value},
    )
