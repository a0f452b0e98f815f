"""Authenticates requests by bearer token or client certificate.

A client certificate identifies its subject: the common name is the user, the organizations are the groups. TLS has
verified it before this module sees it. Anonymous requests are limited to health checks and to what a node needs before
it joins, as upstream with anonymous authentication restricted to those paths.
"""

from __future__ import annotations

from podlife.apiserver.authn.token_file import TokenFile
from podlife.apiserver.authn.user import ANONYMOUS, UserInfo
from podlife.errors import UnauthorizedError
from podlife.wire import Request

# Namespace and name of the ConfigMap a joining node reads first: the server's address and CA. It is public.
CLUSTER_INFO = ("kube-public", "cluster-info")
_OPEN_PATHS = frozenset(
    {"/healthz", "/livez", "/readyz", "/api/v1/namespaces/{}/configmaps/{}".format(*CLUSTER_INFO)}
)


class Authenticator:
    def __init__(self, tokens: TokenFile | None = None) -> None:
        self._tokens = tokens

    def authenticate(self, request: Request) -> UserInfo:
        """Return the user that sent the request; raises UnauthorizedError."""
        if request.peer is not None:
            return UserInfo(request.peer.common_name, groups=request.peer.organizations).authenticated()
        header = request.headers.get("Authorization", "")
        if not header:
            if request.path in _OPEN_PATHS:
                return ANONYMOUS
            raise UnauthorizedError("Unauthorized")
        user = self.find_token(_bearer_token(header))
        if user is None:
            raise UnauthorizedError("Unauthorized")
        return user

    def find_token(self, token: str) -> UserInfo | None:
        """Return the user that a token belongs to, as TokenReview does."""
        return self._tokens.find(token) if self._tokens and token else None


def _bearer_token(header: str) -> str:
    scheme, _, token = header.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
