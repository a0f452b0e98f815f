"""Authentication and authorization of callers by the API server.

Any caller can make the kubelet ask, with any token: these requests have a rate limit of their own, so that they never
delay the node's own work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.client import Client, Limiter

from .authentication import Authenticator, Caller
from .authorization import Authorizer

_ANSWER_SECONDS = 10.0


class ApiAccess:
    def __init__(self, client: Client, node_name: str) -> None:
        asking = client.with_timeout(_ANSWER_SECONDS, limiter=Limiter())
        self._authenticator = Authenticator(asking)
        self._authorizer = Authorizer(asking, node_name)

    async def authenticate(self, certificate: Mapping[str, Any] | None, authorization: str) -> Caller | None:
        return await self._authenticator.authenticate(certificate, authorization)

    async def authorize(self, caller: Caller, method: str, path: str) -> None:
        await self._authorizer.authorize(caller, method, path)
