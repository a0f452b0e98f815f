"""Who calls the node and what they may do, both by the word of the API server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podlife.client import Client

from .authentication import Authenticator, Caller
from .authorization import Authorizer

__all__ = ["ApiAccess"]


class ApiAccess:
    def __init__(self, client: Client, node_name: str) -> None:
        self._authenticator = Authenticator(client)
        self._authorizer = Authorizer(client, node_name)

    async def authenticate(self, certificate: Mapping[str, Any] | None, authorization: str) -> Caller | None:
        return await self._authenticator.authenticate(certificate, authorization)

    async def authorize(self, caller: Caller, method: str, path: str) -> None:
        await self._authorizer.authorize(caller, method, path)
