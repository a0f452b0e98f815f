"""Authenticates callers by a client certificate of the cluster's CA, or by a token that the API server reviews.

The TLS handshake has verified the certificate already. No caller is anonymous. A token review is cached for two
minutes, as upstream; tokens are kept as digests only.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from podlife.api.codec import Object, decode_object
from podlife.client import Client
from podlife.errors import PodlifeError
from podlife.lru import TtlCache

log = logging.getLogger(__name__)

_PATH = "/apis/authentication.k8s.io/v1/tokenreviews"
_AUTHENTICATED = "system:authenticated"
_KEEP_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Caller:
    """Somebody who has proved who they are. `extra` is sorted, so that equal callers are equal."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: tuple[tuple[str, tuple[str, ...]], ...] = ()


class Authenticator:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._kept: TtlCache[bytes, Caller] = TtlCache()

    async def authenticate(self, certificate: Mapping[str, Any] | None, authorization: str) -> Caller | None:
        """Who it is; None where that cannot be told. `certificate` is what the handshake has verified."""
        if certificate:
            return _caller_of(certificate)
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        return await self._by_token(token) if scheme.lower() == "bearer" and token else None

    async def _by_token(self, token: str) -> Caller | None:
        digest = sha256(token.encode(errors="surrogateescape")).digest()
        if (known := self._kept.get(digest)) is not None:
            return known
        if not token.isprintable():
            return None
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        try:
            reply = await self._client.request("POST", _PATH, body=review)
            status = decode_object(reply.body).get("status") or {}
        except (PodlifeError, ValueError) as error:
            log.warning("token review failed: %s", error)
            return None
        if not status.get("authenticated"):
            return None
        caller = _reviewed(status.get("user") or {})
        self._kept.keep(digest, caller, seconds=_KEEP_SECONDS)
        return caller


def _caller_of(certificate: Mapping[str, Any]) -> Caller | None:
    pairs = [pair for names in certificate.get("subject", ()) for pair in names]
    name = next((value for key, value in pairs if key == "commonName"), "")
    groups = tuple(value for key, value in pairs if key == "organizationName")
    return Caller(name, groups=_with_authenticated(groups)) if name else None


def _reviewed(user: Object) -> Caller:
    extra = sorted((key, tuple(values)) for key, values in (user.get("extra") or {}).items())
    groups = _with_authenticated(tuple(user.get("groups") or ()))
    return Caller(user.get("username") or "", user.get("uid") or "", groups, tuple(extra))


def _with_authenticated(groups: tuple[str, ...]) -> tuple[str, ...]:
    return groups if _AUTHENTICATED in groups else (*groups, _AUTHENTICATED)
