"""kubectl's connection flags, and the client made from them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli import local_completions
from podlife.cli.options import parse_timeout
from podlife.errors import NoServerError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from podlife.client import Client, Connection


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Which server, and as which user; what is left out comes from the kubeconfig or the pod's service account."""

    kubeconfig: Annotated[
        str, typer.Option(metavar="FILE", help="The kubeconfig to use.", show_default="$KUBECONFIG")
    ] = ""
    context: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The context of the kubeconfig.",
            autocompletion=local_completions.contexts,
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
            autocompletion=local_completions.clusters,
        ),
    ] = ""
    user: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The user of the kubeconfig, in place of the context's.",
            autocompletion=local_completions.users,
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
    """Where to connect, and as which user; raises ConfigError. Nothing is sent."""
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
    """A user with a running `podlife up` most likely means that cluster."""
    from podlife.localcluster.state_dir import running_state_dirs

    found = [shlex.quote(str(each.kubeconfig)) for each in running_state_dirs()]
    hint = " or ".join(f"export KUBECONFIG={each}" for each in found)
    return NoServerError(f"{error}; for the running `podlife up`: {hint}") if found else error


def connected(
    options: ConnectionOptions, connection: Connection, *, rights: str = "deploy/gc/rbac.yaml"
) -> AbstractAsyncContextManager[Client]:
    """A client with the options' timeout; see `podlife.daemons.connection.connected`."""
    from podlife.daemons import connection as daemon_connection

    return daemon_connection.connected(
        connection, timeout_seconds=options.request_timeout or 60.0, rights=rights
    )
