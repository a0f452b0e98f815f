"""Authentication: bearer tokens from a static token file, and client certificates."""

from podlife.apiserver.authn.authenticator import CLUSTER_INFO, Authenticator
from podlife.apiserver.authn.token_file import TokenFile, format_tokens, parse_tokens, read_token
from podlife.apiserver.authn.user import ADMIN, ANONYMOUS, BOOTSTRAPPERS, CONTROLLERS, MASTERS, UserInfo

__all__ = [
    "ADMIN",
    "ANONYMOUS",
    "BOOTSTRAPPERS",
    "CLUSTER_INFO",
    "CONTROLLERS",
    "MASTERS",
    "Authenticator",
    "TokenFile",
    "UserInfo",
    "format_tokens",
    "parse_tokens",
    "read_token",
]
