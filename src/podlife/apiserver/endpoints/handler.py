"""From a request to its response: authentication, authorization and dispatch to the verb.

`ApiHandler` is a `wire.Handler`: the HTTP server and the in-process transport both call it. It turns every error into
a Status object, so that no client sees anything else.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from podlife.api import status
from podlife.api.codec import encode
from podlife.apiserver.admission.service_account import default_account_created
from podlife.apiserver.audit import AuditContext, Auditor
from podlife.apiserver.authn import Authenticator, UserInfo
from podlife.apiserver.authz import Attributes, Authorizer, forbidden, selected_name
from podlife.apiserver.endpoints import (
    certificate_signing_requests,
    non_resource_urls,
    openid,
    request_info,
    reviews,
)
from podlife.apiserver.endpoints.certificate_signing_requests import SignRequest
from podlife.apiserver.endpoints.impersonation import act_as
from podlife.apiserver.endpoints.metrics import ApiServerMetrics
from podlife.apiserver.endpoints.non_resource_urls import not_allowed
from podlife.apiserver.namespace import delete_namespace
from podlife.apiserver.registry import Registry, RequestScope, create, delete, get, patch, update, watch
from podlife.apiserver.registry.request_body import with_json
from podlife.apiserver.registry.response import headers
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.service_accounts import ServiceAccountTokens
from podlife.apiserver.storage import MismatchError, StoreError, StoreFullError, StoreLostError
from podlife.apiserver.subresources import (
    admit_connect,
    admit_proxy,
    bind,
    evict,
    get_scale,
    patch_scale,
    request_token,
    update_scale,
)
from podlife.errors import ApiError, ConflictError, NotFoundError, UnauthorizedError
from podlife.wire import Request, Response

if TYPE_CHECKING:
    # Loads an HTTP client, which a handler without a socket does not need.
    from podlife.apiserver.aggregation.controller import Aggregator
    from podlife.apiserver.subresources.kubelet_proxy import KubeletProxy
    from podlife.apiserver.subresources.proxy import ResourceProxy

log = logging.getLogger(__name__)

Verb = Callable[[RequestScope], Awaitable[Response]]

_VERBS: dict[str, Verb] = {
    "get": get.get,
    "list": get.list_,
    "watch": watch.watch,
    "create": create.create,
    "update": update.update,
    "patch": patch.patch,
    "delete": delete.delete,
    "deletecollection": delete.delete_collection,
}

# Handlers other than the resource's own verbs, by subresource or, where that is empty, by resource.
_SPECIAL: dict[tuple[str, str], Verb] = {
    ("scale", "get"): get_scale,
    ("scale", "update"): update_scale,
    ("scale", "patch"): patch_scale,
    ("eviction", "create"): evict,
    ("binding", "create"): bind,
    ("namespaces", "delete"): delete_namespace,
}
# Counted for a request whose client disconnected before the response, as proxies do.
_CLIENT_CLOSED_REQUEST = 499
_CONNECTED = ("log", "exec", "attach", "portforward")
_SURROGATE = re.compile("[\ud800-\udfff]")
# Subresources that are another view of the whole object and are read and written like it.
_VIEWS = ("status", "approval", "ephemeralcontainers", "finalize", "resize")


@dataclass(slots=True)
class ApiHandler:
    """Answers requests. Has no tasks of its own; a response may stream."""

    registry: Registry
    authenticator: Authenticator
    authorizer: Authorizer
    kubelet_proxy: KubeletProxy | None
    metrics: ApiServerMetrics
    sign_node_request: SignRequest | None = None
    auditor: Auditor | None = None
    aggregator: Aggregator | None = None
    resource_proxy: ResourceProxy | None = None
    # None if this server issues no tokens.
    service_accounts: ServiceAccountTokens | None = None
    needs_accounts: bool = False

    async def __call__(self, request: Request) -> Response:
        started = self.metrics.begin()
        audit = None if self.auditor is None else AuditContext(self.auditor, request)
        verb = resource = ""
        try:
            info = request_info.parse(request.path, self.registry.catalog)
            attributes = _attributes(request, info)
            if info is not None:
                verb, resource = attributes.verb, attributes.resource
            response = await self._answer(request, info, attributes, audit)
        except ApiError as error:
            response = _failure(error)
        except MismatchError as error:
            # Concurrent writers outside a lock: the loser retries, as after any conflict.
            response = _failure(ConflictError(f"the object has been modified: {error}"))
        except StoreFullError as error:
            response = _failure(ApiError(str(error), code=507, reason="InsufficientStorage"))
        except StoreError as error:
            # The store itself reports a full disk and lost files, once.
            if not isinstance(error, StoreLostError):
                log.error("the store refused %s %s: %s", request.method, request.path, error)
            response = _failure(ApiError(f"Internal error occurred: {error}"))
        except Exception:
            # Last resort: the log gets the details, the client does not.
            log.exception("%s %s failed", request.method, request.path)
            response = _failure(ApiError("Internal error occurred: see the server's log"))
            if audit is not None:
                audit.failed()
        except BaseException:
            self.metrics.end(started, verb, resource, _CLIENT_CLOSED_REQUEST)
            if audit is not None:
                audit.abandoned()
            raise
        self.metrics.end(started, verb, resource, response.status)
        return response if audit is None else audit.answered(response)

    async def _answer(
        self,
        request: Request,
        info: request_info.RequestInfo | None,
        attributes: Attributes,
        audit: AuditContext | None,
    ) -> Response:
        user = await self._identify(request, attributes, audit)
        if info is not None or not non_resource_urls.is_public(request.path):
            await self._authorize(user, attributes, audit)
        if self.aggregator is not None:
            answer = await self.aggregator.answer(request, user)
            if answer is not None:
                return answer
        if info is None:
            document = openid.answer(request, self.service_accounts)
            return document or await non_resource_urls.answer(request, self.registry, self.metrics)
        resource = info.resource
        if resource is None:
            raise self._no_subresource(info) or non_resource_urls.not_found()
        yaml_duplicates: list[str] = []
        if info.subresource != "proxy":
            request, yaml_duplicates = await with_json(request)
        if audit is not None:
            audit.read(request)
        scope = RequestScope(
            self.registry,
            request,
            user,
            resource,
            attributes.verb,
            (resource.namespaced and info.namespace) or "",
            info.name,
            info.subresource,
            list(filter(None, [resource.warning])),
            yaml_duplicates,
            authorize=lambda verb: self._authorize(user, replace(attributes, verb=verb), audit),
        )
        try:
            return await self._run(scope)
        except ApiError as error:
            if not scope.warnings:
                raise
            # A rejection carries the warnings that were given before it.
            failure = _failure(error)
            failure.headers = [*dict(failure.headers).items(), *headers(scope)]
            return failure
        finally:
            if audit is not None:
                audit.annotate(scope.annotations)

    def _no_subresource(self, info: request_info.RequestInfo) -> ApiError | None:
        """As upstream says of a custom resource."""
        resource = self.registry.catalog.find(info.group, info.version, info.plural)
        if resource is None or resource.custom is None or not info.subresource:
            return None
        details = {"name": info.name, "group": info.group, "kind": info.plural}
        return NotFoundError(f'{resource.key} "{info.name}" not found', details=details)

    def identify(self, request: Request) -> UserInfo:
        """Return the user that sends the request; raises UnauthorizedError. Called before the body has been read."""
        if self.auditor is None:
            return self.authenticator.authenticate(request)
        attributes = _attributes(request, request_info.parse(request.path, self.registry.catalog))
        return self.auditor.identified(request, attributes, self.authenticator.authenticate)

    async def _identify(
        self, request: Request, attributes: Attributes, audit: AuditContext | None
    ) -> UserInfo:
        if audit is None:
            return await act_as(self.authenticator.authenticate(request), request, self._authorize)
        try:
            sender = self.authenticator.authenticate(request)
        except UnauthorizedError:
            audit.received(None, attributes)
            raise
        audit.received(sender, attributes)
        user = await act_as(sender, request, self._authorize)
        if user is not sender:
            audit.impersonated(user)
        return user

    async def _authorize(
        self, user: UserInfo, attributes: Attributes, audit: AuditContext | None = None
    ) -> None:
        is_costly = self.authorizer.is_costly(user, attributes.namespace)
        decision = await offload(lambda: self.authorizer.authorize(user, attributes), is_costly=is_costly)
        if audit is not None:
            audit.decided(decision)
        if not decision.allowed:
            raise forbidden(user, attributes, decision)

    async def _run(self, scope: RequestScope) -> Response:
        resource, verb, subresource = scope.resource, scope.verb, scope.subresource
        if not subresource and verb not in resource.verbs:
            raise not_allowed()
        if resource.key == "bindings" or subresource == "binding":
            pods = self.registry.catalog.find("", "v1", "pods")
            assert pods is not None
            scope.resource = pods
            subresource = "binding"
        elif resource.group in ("authorization.k8s.io", "authentication.k8s.io"):
            now = self.registry.clock.now()
            return await reviews.answer(scope, self.authenticator, self.authorizer, now)
        elif resource.group == "certificates.k8s.io" and verb == "create" and not (scope.name or subresource):
            return await certificate_signing_requests.create(scope, self.sign_node_request)
        if subresource and (answer := self._answers().get(subresource)):
            return await answer(scope)
        if subresource and subresource not in _VIEWS:
            special = _SPECIAL.get((subresource, verb))
            if special is None:
                raise not_allowed()
            return await special(scope)
        if subresource and verb not in (
            ("update",) if subresource == "finalize" else ("get", "update", "patch")
        ):
            raise not_allowed()
        await self._prepare_account(scope)
        is_whole = verb in ("create", "deletecollection")
        if is_whole and (scope.name or (resource.namespaced and not scope.namespace)):
            raise not_allowed()
        if verb in ("update", "patch") and not scope.name:
            raise not_allowed()
        run = _SPECIAL.get((resource.key, verb)) or _VERBS[verb]
        return await run(scope)

    def _answers(self) -> Mapping[str, Callable[[RequestScope], Awaitable[Response]]]:
        """Subresources that are not a part of an object."""
        connected = dict.fromkeys(_CONNECTED, self._connect)
        return {"proxy": self._proxy, "token": self._request_token, **connected}

    async def _prepare_account(self, scope: RequestScope) -> None:
        if self.needs_accounts and scope.verb == "create" and scope.resource.key == "pods":
            await default_account_created(self.registry.store.get, scope.namespace)

    async def _request_token(self, scope: RequestScope) -> Response:
        if scope.verb != "create":
            raise not_allowed()
        if self.service_accounts is None:
            raise non_resource_urls.not_found()
        return await request_token(scope, self.service_accounts)

    async def _connect(self, scope: RequestScope) -> Response:
        if self.kubelet_proxy is None:
            raise ApiError("this server cannot reach kubelets", code=503, reason="ServiceUnavailable")
        is_log = scope.subresource == "log"
        if scope.verb not in (("get",) if is_log else ("get", "create")):
            raise not_allowed()
        if is_log:
            return await self.kubelet_proxy.log(scope.request, scope.namespace, scope.name)
        request = await admit_connect(scope)
        if scope.verb != "create" and scope.authorize is not None:
            # A WebSocket begins with GET, but does more than to read.
            await scope.authorize("create")
        return await self.kubelet_proxy.connect(request, scope.namespace, scope.name, scope.subresource)

    async def _proxy(self, scope: RequestScope) -> Response:
        if self.resource_proxy is None:
            raise ApiError("this server cannot reach pods", code=503, reason="ServiceUnavailable")
        if not scope.verb and scope.request.method != "OPTIONS":
            raise not_allowed()
        plural = scope.resource.plural
        subpath = scope.request.path.partition(f"/{plural}/{scope.name}/proxy")[2]
        subpath = await admit_proxy(scope, subpath)
        return await self.resource_proxy.answer(scope.request, plural, scope.namespace, scope.name, subpath)


def _attributes(request: Request, info: request_info.RequestInfo | None) -> Attributes:
    if info is None:
        return Attributes(verb=request.method.lower(), path=request.path)
    verb, name = request_info.verb_of(request, info), info.name
    selector = request.query.get("fieldSelector")
    if selector and not name and verb in ("list", "watch"):
        # A list that selects one name is about that object.
        name = selected_name(selector)
    return Attributes(
        verb=verb,
        group=info.group,
        resource=info.plural,
        subresource=info.subresource,
        namespace=info.namespace,
        name=name,
        path=request.path,
        field_selector=selector,
    )


def _failure(error: ApiError) -> Response:
    headers = {}
    if error.retry_after_seconds:
        headers["Retry-After"] = str(error.retry_after_seconds)
    found = status.failure(error)
    try:
        body = encode(found)
    except UnicodeEncodeError:
        # A header may hold any bytes; bytes that are not UTF-8 appear as surrogates. Written as Go does.
        found["message"] = _SURROGATE.sub(lambda byte: f"\\x{ord(byte[0]) & 0xFF:02x}", found["message"])
        if "details" in found:
            texts = ((key, each) for key, each in found["details"].items() if isinstance(each, str))
            found["details"] |= {key: _SURROGATE.sub("\ufffd", text) for key, text in texts}
        body = encode(found)
    return Response(error.code, body, headers=headers)
