"""A client for the lifetime of a daemon or command, and API errors as messages that say what to do."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from podlife.errors import (
    ApiError,
    ConfigError,
    ForbiddenError,
    PodlifeError,
    TooManyRequestsError,
    UnauthorizedError,
)

if TYPE_CHECKING:
    from podlife.client import Client, Connection

GC_RIGHTS = "deploy/gc/rbac.yaml"
# Resources that only policies and guards read have their own manifest.
_GC_PARTS = {"namespaces": "deploy/gc/policy/rbac.yaml"}


@asynccontextmanager
async def connected(
    connection: Connection, *, timeout_seconds: float = 60.0, rights: str = GC_RIGHTS
) -> AsyncIterator[Client]:
    """A client for the duration of the block. An API error raised in it leaves as a PodlifeError that says what to do;
    `rights` names the manifest with the RBAC rules that the caller needs."""
    from podlife.client import Client

    client = Client.connect(connection, timeout_seconds=timeout_seconds)
    try:
        async with client:
            yield client
    except ApiError as error:
        raise explained(error, connection, rights=rights) from error
    except ExceptionGroup as group:
        # Of errors raised together, the first is enough.
        first = first_error(group)
        raise (
            explained(first, connection, rights=rights) if isinstance(first, ApiError) else first
        ) from group


def first_error(group: ExceptionGroup[Exception]) -> Exception:
    error = group.exceptions[0]
    return first_error(error) if isinstance(error, ExceptionGroup) else error


_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)


def explained(error: ApiError, connection: Connection, *, rights: str = GC_RIGHTS) -> PodlifeError:
    if isinstance(error, UnauthorizedError):
        return ConfigError(
            f"{connection.server} rejected the credentials (401 Unauthorized): log in again, or check those "
            f"of {connection.origin}"
        )
    if isinstance(error, ForbiddenError):
        return ConfigError(_missing_right(error.message, rights))
    if isinstance(error, TooManyRequestsError):
        return PodlifeError(
            f"{connection.server} is overloaded (429): try again later, or longer with --request-timeout"
        )
    return PodlifeError(f"{connection.server} answered {error.code} {error.reason}: {error.message}")


def _missing_right(message: str, rights: str) -> str:
    """Name the missing verb and resource, and where to grant them."""
    match = _FORBIDDEN.search(message)
    if match is None:
        return f"the server forbids it (403): {message}"
    group = f".{match['group']}" if match["group"] else ""
    where = f"in namespace {match['namespace']}" if match["namespace"] else "in the whole cluster"
    role = "Role" if match["namespace"] else "ClusterRole"
    if rights == GC_RIGHTS:
        rights = _GC_PARTS.get(match["resource"], rights)
    return (
        f"user {match['user']} may not {match['verb']} {match['resource']}{group} {where} (403): grant the verb "
        f"{match['verb']} on {match['resource']}{group} by a {role}; {rights} has all that is needed"
    )
