"""The variables of expressions about a request: its objects, itself, and what its user may do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from podlife.api import cel
from podlife.apiserver.admission.webhooks.request import ReviewedRequest
from podlife.apiserver.admission.webhooks.review import request_object
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz import Attributes, Decision
from podlife.apiserver.resource import Resource

Authorize = Callable[[UserInfo, Attributes], Decision]
_ACCOUNTS = "system:serviceaccounts"


def request_variables(request: ReviewedRequest, resource: Resource, authorize: Authorize) -> dict[str, Any]:
    """As `resource` shows the objects: an equivalent of the request's own, perhaps."""
    new, old = request.shown(resource)
    target = request.target
    authorizer = cel.Authorizer(lambda asked: _decide(request.user, asked, authorize))
    asked = {
        "group": target.resource.group,
        "resource": target.resource.plural,
        "subresource": target.subresource,
        "namespace": request.namespace,
        "name": request.name,
    }
    return {
        "object": new,
        "oldObject": old,
        "request": request_object(request, resource),
        "namespaceObject": None,
        "authorizer": authorizer,
        "authorizer.requestResource": replace(
            authorizer, attributes=tuple(asked.items()), kind="ResourceCheck"
        ),
    }


def condition_variables(request: ReviewedRequest, resource: Resource, authorize: Authorize) -> dict[str, Any]:
    """As upstream: match conditions see the request's own resource, and no namespace."""
    found = request_variables(request, resource, authorize)
    about = found["request"]
    return {**found, "request": {**about, "resource": about["requestResource"]}}


def _decide(user: UserInfo, asked: Mapping[str, str], authorize: Authorize) -> cel.Decision:
    if account := asked.get("user"):
        groups = _ACCOUNTS, f"{_ACCOUNTS}:{account.split(':')[2]}"
        user = UserInfo(account, groups=groups).authenticated()
    names = ("verb", "group", "resource", "subresource", "namespace", "name", "path")
    attributes = {name: asked[name] for name in names if name in asked}
    decision = authorize(user, Attributes(**attributes, field_selector=asked.get("fieldSelector", "")))
    return cel.Decision(decision.allowed, decision.reason)
