"""PATCH with `application/apply-patch+yaml`: server-side apply. What it applies to need not exist."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import msgspec

from podlife.api import schema
from podlife.api.codec import Object, encode
from podlife.api.fieldpath import zero_object
from podlife.api.yaml_documents import read_yaml
from podlife.apiserver.admission import Operation
from podlife.apiserver.authn import CONTROLLERS, UserInfo
from podlife.apiserver.registry import field_managers, response
from podlife.apiserver.registry.create import create_object
from podlife.apiserver.registry.list_options import boolean_parameter
from podlife.apiserver.registry.object_codec import with_type
from podlife.apiserver.registry.request_body import bad_request, check_name, check_size
from podlife.apiserver.registry.request_scope import Registry, RequestScope
from podlife.apiserver.registry.update import apply_change, change_stored
from podlife.apiserver.registry.updaters import applier_for
from podlife.apiserver.registry.webhook_admission import WebhookAdmission
from podlife.apiserver.registry.worker_threads import offload, run_in_thread
from podlife.apiserver.resource import Resource
from podlife.wire import Query, Request, Response

MEDIA_TYPE = "application/apply-patch+yaml"


async def apply(scope: RequestScope) -> Response:
    dry_run = scope.dry_run("PatchOptions", needs_manager=True)
    resource = scope.resource
    config = await offload(
        lambda: read_config(scope, resource.kind, resource.api_version), scope.request.body
    )
    webhooks = WebhookAdmission.of(scope, Operation.UPDATE, dry_run=dry_run, subresource=scope.subresource)
    is_converted = scope.conversions is not None
    if webhooks is not None or is_converted or scope.admission_concern(Operation.CREATE) is not None:
        # The lock of the key is not held while they are asked.
        if scope.registry.store.get(scope.key) is None:
            return await _create(scope, config, dry_run=dry_run)
        value = await change_stored(
            webhooks,
            scope,
            scope.find,
            lambda old: _applied(scope, old, config),
            dry_run=dry_run,
            is_applied=True,
        )
        return await response.one(scope, value)
    async with scope.registry.store.locked(scope.key):
        record = scope.registry.store.get(scope.key)
        if record is None:
            return await _create(scope, config, dry_run=dry_run)
        value = await apply_change(
            scope, record, lambda old: _applied(scope, old, config), dry_run=dry_run, is_applied=True
        )
    return await response.one(scope, value)


async def _create(scope: RequestScope, config: Object, *, dry_run: bool) -> Response:
    if scope.subresource:
        raise scope.not_found()
    if scope.authorize is not None:
        await scope.authorize("create")
    resource = scope.resource
    live = deepcopy(zero_object(resource.api_version, resource.kind)) or {"metadata": {}}
    if resource.to_stored is not None:
        live = resource.to_stored(live)
    if scope.is_costly:
        obj = await run_in_thread(lambda: _applied(scope, live, config))
    else:
        obj = await offload(lambda: _applied(scope, live, config), scope.request.body)
    if uid := obj["metadata"].get("uid"):
        raise scope.conflict(
            f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        )
    # As upstream: what is applied to nothing need not be the version that the client read.
    obj["metadata"].pop("resourceVersion", None)
    value = await create_object(scope, obj, dry_run=dry_run, is_applied=True)
    return await response.one(scope, value, status=201)


def _applied(scope: RequestScope, old: Object, config: Object) -> Object:
    resource = scope.resource
    # A custom resource is in the form of its version already.
    live = old if resource.custom or resource.from_stored is None else resource.from_stored(old)
    try:
        updater = applier_for(scope)
        new = field_managers.apply(scope, updater, live, config, force=is_forced(scope))
    except RecursionError:
        raise bad_request("the object is nested too deeply") from None
    name = new["metadata"].get("name", "")
    if not name:
        raise bad_request(
            f"the name of the object ({scope.name} based on URL) was undeterminable: name must be provided"
        )
    check_name(scope, name)
    return new if resource.to_stored is None else resource.to_stored(new)


async def apply_status(
    registry: Registry, resource: Resource, name: str, manager: str, status: Object
) -> None:
    """As `apply_object`, of the status, by a controller of this server."""
    await apply_object(registry, resource, name, manager, {"status": status}, CONTROLLERS, "status")


async def apply_object(
    registry: Registry,
    resource: Resource,
    name: str,
    manager: str,
    fields: Object,
    user: UserInfo,
    subresource: str = "",
) -> None:
    """Apply fields to a cluster-wide object; raises ApiError, NotFoundError if it is gone."""
    config = with_type(resource, {"metadata": {"name": name}, **fields})
    request = Request("PATCH", "", Query(f"fieldManager={manager}&force=true"), body=encode(config))
    scope = RequestScope(registry, request, user, resource, "patch", "", name, subresource)

    async def refuse_to_create(_: str) -> None:
        raise scope.not_found()

    scope.authorize = refuse_to_create
    await apply(scope)


def is_forced(scope: RequestScope) -> bool:
    return bool(boolean_parameter(scope.request.query, "force"))


def read_config(scope: RequestScope, kind: str, api_version: str) -> Object:
    """The object that is applied, of the kind of the endpoint, as the client sent it; raises 400."""
    raw = scope.request.body
    check_size(raw)
    twice: list[str] | None = None
    try:
        config = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        config, twice = _read_yaml(raw)
    if config is None:
        config = {}
    if not isinstance(config, dict):
        raise bad_request(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: expected an object"
        )
    given_version, given_kind = config.get("apiVersion") or "", config.get("kind") or ""
    if (given_version, given_kind) != (api_version, kind):
        group, _, version = str(given_version).rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={given_kind}")
    directive = scope.request.query.get("fieldValidation") or "Warn"
    # Reading YAML is slow, and JSON is YAML too: only JSON with duplicates is read as such, for their lines.
    if twice is None and directive != "Ignore" and schema.duplicate_fields(raw, config):
        _, twice = _read_yaml(raw)
    if twice and directive != "Ignore":
        if directive == "Strict":
            lines = "\n  ".join(["yaml: unmarshal errors:", *twice])
            raise bad_request(f"error strict decoding YAML: error converting YAML to JSON: {lines}")
        scope.warnings.extend(twice)
    return config


def _read_yaml(raw: bytes) -> tuple[Any, list[str]]:
    try:
        body, twice = read_yaml(raw)
        return msgspec.json.decode(body), twice
    except (ValueError, RecursionError) as error:
        raise bad_request(f"error decoding YAML: error converting YAML to JSON: {error}") from None
