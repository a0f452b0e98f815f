"""Admission of CONNECT: webhooks see the options of `exec`, `attach`, `portforward` and `proxy`, and may alter them."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlencode

from podlife.api.codec import Object
from podlife.apiserver.admission import Operation
from podlife.apiserver.registry import RequestScope
from podlife.apiserver.registry.list_options import boolean_parameter
from podlife.apiserver.registry.webhook_admission import WebhookAdmission, fixed_view
from podlife.wire import Query, Request

_FLAGS = ("stdin", "stdout", "stderr", "tty")
_KINDS = {"exec": "PodExecOptions", "attach": "PodAttachOptions", "portforward": "PodPortForwardOptions"}


async def admit_connect(scope: RequestScope) -> Request:
    """Return the request as webhooks have changed it; raises ApiError if one rejects it."""
    kind = _KINDS[scope.subresource]
    options = _options_of(scope.request.query, kind)
    changed = await _admit(scope, kind, options)
    return scope.request if changed == options else replace(scope.request, query=_query_of(changed))


async def admit_proxy(scope: RequestScope, path: str) -> str:
    """Return the path as webhooks have changed it; raises ApiError if one rejects it."""
    kind = f"{scope.resource.kind}ProxyOptions"
    changed = await _admit(scope, kind, {"kind": kind, "apiVersion": "v1"} | ({"path": path} if path else {}))
    return str(changed.get("path") or "")


async def _admit(scope: RequestScope, kind: str, options: Object) -> Object:
    webhooks = WebhookAdmission.of(
        scope, Operation.CONNECT, dry_run=False, subresource=scope.subresource, views=fixed_view("v1", kind)
    )
    if webhooks is None:
        return options
    changed = await webhooks.mutate(options)
    await webhooks.validate(changed)
    return changed


def _options_of(query: Query, kind: str) -> Object:
    options: Object = {"kind": kind, "apiVersion": "v1"}
    if kind == _KINDS["portforward"]:
        ports = [int(port) for port in query.all("ports") if port.isascii() and port.isdecimal()]
        return options | ({"ports": ports} if ports else {})
    options |= {flag: True for flag in _FLAGS if boolean_parameter(query, flag)}
    if container := query.get("container"):
        options["container"] = container
    # Always written, as upstream does.
    return options | ({"command": query.all("command") or None} if kind == _KINDS["exec"] else {})


def _query_of(options: Object) -> Query:
    pairs = [(flag, "true") for flag in _FLAGS if options.get(flag)]
    if container := options.get("container"):
        pairs.append(("container", container))
    pairs += [("command", part) for part in options.get("command") or ()]
    pairs += [("ports", str(port)) for port in options.get("ports") or ()]
    return Query(urlencode(pairs))
