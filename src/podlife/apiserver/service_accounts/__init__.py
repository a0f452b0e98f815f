"""Tokens of service accounts: the keys they are signed with, what they claim, and whom they authenticate."""

from podlife.apiserver.service_accounts.keys import ServiceAccountKeys
from podlife.apiserver.service_accounts.tokens import DEFAULT_ISSUER, BoundObjects, ServiceAccountTokens

__all__ = ["DEFAULT_ISSUER", "BoundObjects", "ServiceAccountKeys", "ServiceAccountTokens"]
