"""Authentication and authorization of callers, by the API server.

Callers authenticate with a client certificate of the cluster's CA, verified in the TLS handshake, or with a token that
the API server reviews; anonymous access is not supported. Authorization is a SubjectAccessReview. As upstream, a token
is cached for two minutes (as a digest only), a yes for five minutes and a no for thirty seconds. Where two subresources
cover a path, the narrow one (`nodes/pods`, `nodes/healthz`) is checked first and `nodes/proxy`, which permits
everything, after it.

Any caller can trigger reviews, with any token: they have their own rate limiter, so that they never delay the node's
own requests.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from podlife.api.codec import Object, decode_object
from podlife.client import Client, Limiter
from podlife.errors import PodlifeError
from podlife.lru import TtlCache

from .request import HttpError

log = logging.getLogger(__name__)

_TIMEOUT_SECONDS = 10.0
_AUTHENTICATION_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
_AUTHORIZATION_PATH = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_AUTHENTICATED = "system:authenticated"
_TOKEN_SECONDS, _YES_SECONDS, _NO_SECONDS = 120.0, 300.0, 30.0
_VERBS = {"POST": "create", "GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NARROW = {"/pods": "pods", "/runningpods": "pods", "/healthz": "healthz", "/configz": "configz"}
_INSTEAD = {"/stats": "stats", "/metrics": "metrics", "/logs": "log"}


@dataclass(frozen=True, slots=True)
class Caller:
    """An authenticated caller. `extra` is sorted, so that equal callers are equal."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class ApiAccess:
    def __init__(self, client: Client, node_name: str) -> None:
        self._client = client.with_timeout(_TIMEOUT_SECONDS, limiter=Limiter())
        self._node_name = node_name
        self._callers: TtlCache[bytes, Caller] = TtlCache()
        self._decisions: TtlCache[tuple[Caller, str, str], bool] = TtlCache()

    async def authenticate(self, certificate: Mapping[str, Any] | None, authorization: str) -> Caller | None:
        """None if the caller is not authenticated. `certificate` was verified by the handshake."""
        if certificate:
            return _caller_of(certificate)
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        return await self._by_token(token) if scheme.lower() == "bearer" and token else None

    async def _by_token(self, token: str) -> Caller | None:
        digest = sha256(token.encode(errors="surrogateescape")).digest()
        if (known := self._callers.get(digest)) is not None:
            return known
        if not token.isprintable():
            return None
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        try:
            reply = await self._client.request("POST", _AUTHENTICATION_PATH, body=review)
            status = decode_object(reply.body).get("status") or {}
        except (PodlifeError, ValueError) as error:
            log.warning("token review failed: %s", error)
            return None
        if not status.get("authenticated"):
            return None
        caller = _caller_of_review(status.get("user") or {})
        self._callers.keep(digest, caller, seconds=_TOKEN_SECONDS)
        return caller

    async def authorize(self, caller: Caller, method: str, path: str) -> None:
        """Raises HttpError: 403 if the caller is not permitted, 500 if the API server does not respond."""
        verb = _VERBS.get(method, "")
        subresources = subresources_of(path)
        for subresource in subresources:
            if await self._may(caller, verb, subresource):
                return
        shown = " ".join(subresources)
        line = f"Forbidden (user={caller.name}, verb={verb}, resource=nodes, subresource(s)=[{shown}])\n"
        raise HttpError(403, line)

    async def _may(self, caller: Caller, verb: str, subresource: str) -> bool:
        key = (caller, verb, subresource)
        if (known := self._decisions.get(key)) is not None:
            return known
        try:
            reply = await self._client.request(
                "POST", _AUTHORIZATION_PATH, body=self._review(caller, verb, subresource)
            )
            allowed = (decode_object(reply.body).get("status") or {}).get("allowed") is True
        except (PodlifeError, ValueError) as error:
            log.warning("authorization of %s failed: %s", caller.name, error)
            what = f"user={caller.name}, verb={verb}, resource=nodes, subresource={subresource}"
            raise HttpError(500, f"Authorization error ({what})") from None
        self._decisions.keep(key, allowed, seconds=_YES_SECONDS if allowed else _NO_SECONDS)
        return allowed

    def _review(self, caller: Caller, verb: str, subresource: str) -> Object:
        node = {"version": "v1", "resource": "nodes", "subresource": subresource, "name": self._node_name}
        attributes = {"verb": verb, **node}
        spec: Object = {"user": caller.name, "resourceAttributes": attributes}
        if caller.uid:
            spec["uid"] = caller.uid
        if caller.groups:
            spec["groups"] = list(caller.groups)
        if caller.extra:
            spec["extra"] = {key: list(values) for key, values in caller.extra}
        return {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}


def _caller_of(certificate: Mapping[str, Any]) -> Caller | None:
    pairs = [pair for names in certificate.get("subject", ()) for pair in names]
    name = next((value for key, value in pairs if key == "commonName"), "")
    groups = tuple(value for key, value in pairs if key == "organizationName")
    return Caller(name, groups=_with_authenticated(groups)) if name else None


def _caller_of_review(user: Object) -> Caller:
    extra = sorted((key, tuple(values)) for key, values in (user.get("extra") or {}).items())
    groups = _with_authenticated(tuple(user.get("groups") or ()))
    return Caller(user.get("username") or "", user.get("uid") or "", groups, tuple(extra))


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if _AUTHENTICATED in groups else (*groups, _AUTHENTICATED)


def subresources_of(path: str) -> tuple[str, ...]:
    """Any one of them permits the path, as upstream."""
    narrow = tuple(name for root, name in _NARROW.items() if _is_below(path, root))
    instead = tuple(name for root, name in _INSTEAD.items() if _is_below(path, root))
    return (*narrow, *(instead or ("proxy",)))


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + "/")
