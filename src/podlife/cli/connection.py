"""From the flags that kubectl's users type to a client, and from a server's refusals to lines they can act on."""

from __future__ import annotations

import re
import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli import completions
from podlife.cli.options import parse_timeout
from podlife.errors import (
    ApiError,
    ConfigError,
    ForbiddenError,
    NoServerError,
    PodlifeError,
    TooManyRequestsError,
    UnauthorizedError,
)

if TYPE_CHECKING:
    from podlife.client import Client, Connection

__all__ = ["ConnectionOptions", "connected", "explained", "load_connection"]

_GC_RIGHTS = "deploy/gc/rbac.yaml"
# What only a policy or a guard reads is a part of its own there.
_GC_PARTS = {"namespaces": "deploy/gc/policy/rbac.yaml"}


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Which server, and as whom; what is left out comes from the kubeconfig or from the pod itself."""

    kubeconfig: Annotated[
        str, typer.Option(metavar="FILE", help="The kubeconfig to use.", show_default="$KUBECONFIG")
    ] = ""
    context: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="The context of the kubeconfig.", autocompletion=completions.contexts
        ),
    ] = ""
    server: Annotated[
        str, typer.Option("-s", "--server", metavar="URL", help="The address of the API server.")
    ] = ""
    cluster: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The cluster of the kubeconfig, in place of the context's.",
            autocompletion=completions.clusters,
        ),
    ] = ""
    user: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The user of the kubeconfig, in place of the context's.",
            autocompletion=completions.users,
        ),
    ] = ""
    token: Annotated[str, typer.Option(metavar="TOKEN", help="A bearer token to prove who you are.")] = ""
    certificate_authority: Annotated[str, typer.Option(metavar="FILE", help="CA bundle file.")] = ""
    client_certificate: Annotated[
        str, typer.Option(metavar="FILE", help="Client certificate file for TLS.")
    ] = ""
    client_key: Annotated[str, typer.Option(metavar="FILE", help="Client key file for TLS.")] = ""
    tls_server_name: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Name to expect in the server's certificate; default: its host name."
        ),
    ] = ""
    insecure_skip_tls_verify: Annotated[
        bool, typer.Option("--insecure-skip-tls-verify", help="Trust any certificate of the server's.")
    ] = False
    request_as: Annotated[str, typer.Option("--as", metavar="USER", help="Act as this user.")] = ""
    request_as_uid: Annotated[
        str, typer.Option("--as-uid", metavar="UID", help="UID to act as, with --as.")
    ] = ""
    request_as_group: Annotated[
        list[str] | None,
        typer.Option("--as-group", metavar="GROUP", help="Group to act as, with --as (repeatable)."),
    ] = None
    request_timeout: Annotated[
        float,
        typer.Option(
            metavar="DURATION",
            parser=parse_timeout,
            show_default="1m",
            help="How long one request may take, all its tries together.",
        ),
    ] = 0.0


def load_connection(options: ConnectionOptions) -> Connection:
    """Where to connect, and as whom; raises ConfigError. Nothing is sent."""
    from podlife.client import Flags, load

    flags = Flags(
        kubeconfig=options.kubeconfig,
        context=options.context,
        server=options.server,
        token=options.token,
        certificate_authority=options.certificate_authority,
        insecure_skip_tls_verify=options.insecure_skip_tls_verify,
        cluster=options.cluster,
        user=options.user,
        client_certificate=options.client_certificate,
        client_key=options.client_key,
        tls_server_name=options.tls_server_name,
        request_as=options.request_as,
        request_as_uid=options.request_as_uid,
        request_as_groups=tuple(options.request_as_group or ()),
    )
    try:
        return load(flags)
    except NoServerError as error:
        raise _with_running_clusters(error) from None


def _with_running_clusters(error: NoServerError) -> NoServerError:
    """Whoever runs `podlife up` beside it most likely means that one."""
    from podlife.localcluster.state_dir import running_folders

    found = [shlex.quote(str(each.kubeconfig)) for each in running_folders()]
    hint = " or ".join(f"export KUBECONFIG={each}" for each in found)
    return NoServerError(f"{error}; for the running `podlife up`: {hint}") if found else error


@asynccontextmanager
async def connected(
    options: ConnectionOptions, connection: Connection, *, rights: str = _GC_RIGHTS
) -> AsyncIterator[Client]:
    """A client for as long as the block lasts; what a server refuses in it leaves as a line to act on. `rights` is
    the file with all the rights that are needed in it."""
    from podlife.client import Client

    client = Client.connect(connection, timeout_seconds=options.request_timeout or 60.0)
    try:
        async with client:
            yield client
    except ApiError as error:
        raise explained(error, connection, rights=rights) from error
    except ExceptionGroup as group:
        # Of those who failed together, the first tells enough.
        raise _first(group, connection, rights) from group


def _first(group: ExceptionGroup[Exception], connection: Connection, rights: str) -> Exception:
    error = group.exceptions[0]
    if isinstance(error, ExceptionGroup):
        return _first(error, connection, rights)
    return explained(error, connection, rights=rights) if isinstance(error, ApiError) else error


_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)


def explained(error: ApiError, connection: Connection, *, rights: str = _GC_RIGHTS) -> PodlifeError:
    """The refusal, as one line that says what to do about it."""
    if isinstance(error, UnauthorizedError):
        return ConfigError(
            f"{connection.server} does not know who you are (401): log in anew, or check the credentials "
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
    """Names the verb and the resource that are missing, and where to grant them."""
    match = _FORBIDDEN.search(message)
    if match is None:
        return f"the server forbids it (403): {message}"
    group = f".{match['group']}" if match["group"] else ""
    where = f"in namespace {match['namespace']}" if match["namespace"] else "in the whole cluster"
    role = "Role" if match["namespace"] else "ClusterRole"
    if rights == _GC_RIGHTS:
        rights = _GC_PARTS.get(match["resource"], rights)
    return (
        f"user {match['user']} may not {match['verb']} {match['resource']}{group} {where} (403): grant the verb "
        f"{match['verb']} on {match['resource']}{group} by a {role}; {rights} has all that is needed"
    )
