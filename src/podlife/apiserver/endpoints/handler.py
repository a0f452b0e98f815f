"""From a request to its answer: who asks, what for, whether they may, and the verb that does it.

`Handler` is a `wire.Handler`: the HTTP face and the in-process transport both call it. Every error becomes a
Status object here, so no client ever sees anything else.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from podlife.api import status
from podlife.api.codec import encode
from podlife.apiserver.audit import Auditor, Trail
from podlife.apiserver.authn.authenticator import Authenticator, User
from podlife.apiserver.authz.authorizer import (
    Attributes,
    NodeView,
    authorize,
    forbidden,
)
from podlife.apiserver.endpoints import (
    certificate_signing_requests as node_certificates,
)
from podlife.apiserver.endpoints import (
    non_resource_urls as meta_endpoints,
)
from podlife.apiserver.endpoints import (
    request_info as routes,
)
from podlife.apiserver.endpoints import (
    review_endpoints,
)
from podlife.apiserver.endpoints.certificate_signing_requests import SignRequest
from podlife.apiserver.endpoints.impersonation import act_as
from podlife.apiserver.endpoints.metrics import Metrics
from podlife.apiserver.namespace import deletion as namespaces
from podlife.apiserver.registry import (
    create,
    delete,
    patch,
    update,
    watch,
)
from podlife.apiserver.registry import (
    get as read,
)
from podlife.apiserver.registry.request_body import with_json
from podlife.apiserver.registry.request_scope import Registry, Scope
from podlife.apiserver.registry.worker_threads import aside
from podlife.apiserver.resource_table import find
from podlife.apiserver.storage.store import MismatchError, StoreError, StoreFullError, StoreLostError
from podlife.apiserver.subresources import binding, eviction, scale
from podlife.errors import ApiError, ConflictError, NotFoundError, UnauthorizedError
from podlife.wire import Request, Response

__all__ = ["ApiHandler", "NodeProxy"]

log = logging.getLogger(__name__)

Verb = Callable[[Registry, Scope], Awaitable[Response]]

_VERBS: dict[str, Verb] = {
    "get": read.get,
    "list": read.list_,
    "watch": watch.watch,
    "create": create.create,
    "update": update.update,
    "patch": patch.patch,
    "delete": delete.delete,
    "deletecollection": delete.delete_collection,
}

# What is not simply the verb of the resource: by subresource or, where that is empty, by resource.
_SPECIAL: dict[tuple[str, str], Verb] = {
    ("scale", "get"): scale.get_scale,
    ("scale", "update"): scale.update_scale,
    ("scale", "patch"): scale.patch_scale,
    ("eviction", "create"): eviction.evict,
    ("binding", "create"): binding.bind,
    ("namespaces", "delete"): namespaces.delete_namespace,
}
# Subresources that are another view of the whole object: read and written like it.
_VIEWS = ("status", "ephemeralcontainers", "finalize", "resize")


class NodeProxy(Protocol):
    """Passes `log` and `exec` on to the agent of the pod's node."""

    async def log(self, request: Request, namespace: str, name: str) -> Response: ...

    async def exec(self, request: Request, namespace: str, name: str) -> Response: ...


@dataclass(slots=True)
class ApiHandler:
    """Answers requests. Has no tasks of its own; what it answers with may stream."""

    registry: Registry
    authenticator: Authenticator
    nodes: NodeView
    node_proxy: NodeProxy | None
    metrics: Metrics
    sign_node_request: SignRequest | None = None
    auditor: Auditor | None = None

    async def __call__(self, request: Request) -> Response:
        started = self.metrics.begin()
        trail = None if self.auditor is None else self.auditor.begin(request)
        verb = resource = ""
        try:
            route = routes.parse(request.path)
            asked = _attributes(request, route)
            if route is None:
                response = await self._answer_meta(request, asked, trail)
            else:
                verb, resource = asked.verb, asked.resource
                response = await self._answer(request, route, asked, trail)
        except ApiError as error:
            response = _failure(error)
        except MismatchError as error:
            # Two writers met outside a lock: the loser reads and tries again, as after any conflict.
            response = _failure(ConflictError(f"the object has been modified: {error}"))
        except StoreFullError as error:
            response = _failure(ApiError(str(error), code=507, reason="InsufficientStorage"))
        except StoreError as error:
            # The store itself reports a full disk and lost files, once.
            if not isinstance(error, StoreLostError):
                log.error("the store refused %s %s: %s", request.method, request.path, error)
            response = _failure(ApiError(f"Internal error occurred: {error}"))
        except Exception:
            # The last line of defence: the client learns nothing of the inside, the log has it all.
            log.exception("%s %s failed", request.method, request.path)
            response = _failure(ApiError("Internal error occurred: see the server's log"))
            if trail is not None:
                trail.failed()
        except BaseException:
            if trail is not None:
                trail.abandoned()
            raise
        self.metrics.end(started, verb, resource, response.status)
        return response if trail is None else trail.answered(response)

    async def _answer_meta(self, request: Request, asked: Attributes, trail: Trail | None) -> Response:
        user = self._identify(request, asked, trail)
        if not meta_endpoints.is_public(request.path):
            self._authorize(user, asked, trail)
        return meta_endpoints.answer(request, self.registry.store, self.metrics)

    async def _answer(
        self, request: Request, route: routes.Route, asked: Attributes, trail: Trail | None
    ) -> Response:
        user = self._identify(request, asked, trail)
        self._authorize(user, asked, trail)
        resource = route.resource
        if resource is None:
            raise _not_offered(route) or _no_such_resource()
        request = await with_json(request)
        if trail is not None:
            trail.read(request)
        scope = Scope(
            request,
            user,
            resource,
            asked.verb,
            (resource.namespaced and route.namespace) or "",
            route.name,
            route.subresource,
        )
        return await self._run(scope)

    def identify(self, request: Request) -> User:
        """Who sends this; raises UnauthorizedError. For a face that has not read the body yet."""
        if self.auditor is None:
            return self.authenticator.authenticate(request)
        asked = _attributes(request, routes.parse(request.path))
        return self.auditor.identified(request, asked, self.authenticator.authenticate)

    def _identify(self, request: Request, asked: Attributes, trail: Trail | None) -> User:
        if trail is None:
            return act_as(self.authenticator.authenticate(request), request, self._authorize)
        try:
            sender = self.authenticator.authenticate(request)
        except UnauthorizedError:
            trail.received(None, asked)
            raise
        trail.received(sender, asked)
        user = act_as(sender, request, self._authorize)
        if user is not sender:
            trail.impersonated(user)
        return user

    def _authorize(self, user: User, asked: Attributes, trail: Trail | None = None) -> None:
        decision = authorize(user, asked, self.nodes)
        if trail is not None:
            trail.decided(decision)
        if not decision.allowed:
            raise forbidden(user, asked, decision)

    async def _run(self, scope: Scope) -> Response:
        resource, verb, subresource = scope.resource, scope.verb, scope.subresource
        if not subresource and verb not in resource.verbs:
            raise _not_allowed()
        if resource.key == "bindings" or subresource == "binding":
            pods = find("", "v1", "pods")
            assert pods is not None
            scope.resource = pods
            subresource = "binding"
        elif resource.group in ("authorization.k8s.io", "authentication.k8s.io"):
            now = self.registry.clock.now()
            return await aside(
                lambda: review_endpoints.answer(scope, self.authenticator, self.nodes, now),
                scope.request.body,
            )
        elif resource.group == "certificates.k8s.io":
            now, sign = self.registry.clock.now(), self.sign_node_request
            return await aside(
                lambda: node_certificates.answer(self.registry, scope, sign, now), scope.request.body
            )
        if subresource in ("log", "exec"):
            return await self._connect(scope)
        if subresource and subresource not in _VIEWS:
            special = _SPECIAL.get((subresource, verb))
            if special is None:
                raise _not_allowed()
            return await special(self.registry, scope)
        if subresource and verb not in (
            ("update",) if subresource == "finalize" else ("get", "update", "patch")
        ):
            raise _not_allowed()
        is_whole = verb in ("create", "deletecollection")
        if is_whole and (scope.name or (resource.namespaced and not scope.namespace)):
            raise _not_allowed()
        if verb in ("update", "patch") and not scope.name:
            raise _not_allowed()
        run = _SPECIAL.get((resource.key, verb)) or _VERBS[verb]
        return await run(self.registry, scope)

    async def _connect(self, scope: Scope) -> Response:
        if self.node_proxy is None:
            raise ApiError("this server has no nodes to ask", code=503, reason="ServiceUnavailable")
        if scope.subresource == "log":
            if scope.verb != "get":
                raise _not_allowed()
            return await self.node_proxy.log(scope.request, scope.namespace, scope.name)
        if scope.verb not in ("get", "create"):
            raise _not_allowed()
        return await self.node_proxy.exec(scope.request, scope.namespace, scope.name)


def _attributes(request: Request, route: routes.Route | None) -> Attributes:
    if route is None:
        return Attributes(verb=request.method.lower(), path=request.path)
    return Attributes(
        verb=routes.verb_of(request, route),
        group=route.group,
        resource=route.plural,
        subresource=route.subresource,
        namespace=route.namespace,
        name=route.name,
        path=request.path,
        field_selector=request.query.get("fieldSelector"),
    )


def _failure(error: ApiError) -> Response:
    headers = {}
    if error.retry_after_seconds:
        headers["Retry-After"] = str(error.retry_after_seconds)
    return Response(error.code, encode(status.failure(error)), headers=headers)


# What people ask of pods that is not there, and what to do instead.
_INSTEAD = {
    "attach": "`kubectl logs -f` shows what the pod says, `kubectl exec -it` runs a command in it",
    "portforward": "connect to the pod's own address, `kubectl get pod -o wide` shows it",
    "proxy": "connect to the pod's own address, `kubectl get pod -o wide` shows it",
}


def _not_offered(route: routes.Route) -> ApiError | None:
    if (route.group, route.plural) != ("", "pods") or route.subresource not in _INSTEAD:
        return None
    return NotFoundError(
        f"{route.subresource} is not offered by this server: {_INSTEAD[route.subresource]}", details={}
    )


def _no_such_resource() -> ApiError:
    return NotFoundError("the server could not find the requested resource", details={})


def _not_allowed() -> ApiError:
    return ApiError(
        "the server does not allow this method on the requested resource",
        code=405,
        reason="MethodNotAllowed",
        details={},
    )
