"""From a request to its response: authentication, authorization, discovery, and dispatch to the registry."""

from podlife.apiserver.endpoints.handler import ApiHandler

__all__ = ["ApiHandler"]
