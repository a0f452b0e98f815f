"""Admission of `pods/<name>/exec` and `attach`: webhooks for CONNECT see the options, and may change them."""

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
_KINDS = {"exec": "PodExecOptions", "attach": "PodAttachOptions"}


async def admit_exec(scope: RequestScope) -> Request:
    """Return the request as webhooks have changed it; raises ApiError if one rejects it."""
    kind = _KINDS[scope.subresource]
    webhooks = WebhookAdmission.of(
        scope, Operation.CONNECT, dry_run=False, subresource=scope.subresource, views=fixed_view("v1", kind)
    )
    if webhooks is None:
        return scope.request
    asked = _options_of(scope.request.query, kind)
    options = await webhooks.mutate(asked)
    await webhooks.validate(options)
    return scope.request if options == asked else replace(scope.request, query=_query_of(options))


def _options_of(query: Query, kind: str) -> Object:
    options: Object = {"kind": kind, "apiVersion": "v1"}
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
    return Query(urlencode(pairs))
