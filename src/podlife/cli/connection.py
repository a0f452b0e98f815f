"""kubectl's connection flags, and the client made from them."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podlife.cli.options import Completer, duration_option, option, parse_timeout
from podlife.errors import NoServerError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from podlife.client import Client, Connection


def _complete_from_kubeconfig(section: str) -> Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        from podlife.client.kubeconfig import Kubeconfig
        from podlife.errors import PodlifeError

        try:
            config = Kubeconfig.find(ctx.params.get("kubeconfig") or "", os.environ)
        except PodlifeError:
            return []
        return sorted(getattr(config, section)) if config is not None else []

    return complete


def _of_kubeconfig(section: str, help_: str) -> Any:
    return option("NAME", help_, autocompletion=_complete_from_kubeconfig(section))


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Server and user; defaults come from the kubeconfig or the pod's service account."""

    kubeconfig: Annotated[str, option("FILE", "The kubeconfig to use.", show_default="$KUBECONFIG")] = ""
    context: Annotated[str, _of_kubeconfig("contexts", "The context of the kubeconfig.")] = ""
    server: Annotated[str, option("URL", "The address of the API server.", "-s", "--server")] = ""
    cluster: Annotated[
        str, _of_kubeconfig("clusters", "The cluster of the kubeconfig, overriding the context's.")
    ] = ""
    user: Annotated[str, _of_kubeconfig("users", "The user of the kubeconfig, overriding the context's.")] = (
        ""
    )
    token: Annotated[str, option("TOKEN", "Bearer token for authentication.")] = ""
    certificate_authority: Annotated[str, option("FILE", "CA bundle file.")] = ""
    client_certificate: Annotated[str, option("FILE", "Client certificate file for TLS.")] = ""
    client_key: Annotated[str, option("FILE", "Client key file for TLS.")] = ""
    tls_server_name: Annotated[
        str, option("NAME", "Name to expect in the server's certificate; default: its host name.")
    ] = ""
    insecure_skip_tls_verify: Annotated[
        bool, typer.Option("--insecure-skip-tls-verify", help="Do not verify the server's certificate.")
    ] = False
    request_as: Annotated[str, option("USER", "Act as this user.", "--as")] = ""
    request_as_uid: Annotated[str, option("UID", "UID to act as, with --as.", "--as-uid")] = ""
    request_as_groups: Annotated[
        list[str] | None, option("GROUP", "Group to act as, with --as (repeatable).", "--as-group")
    ] = None
    request_timeout: Annotated[
        float,
        duration_option("Maximum time of one request, including retries.", "1m", parser=parse_timeout),
    ] = 0.0

    @property
    def timeout_seconds(self) -> float:
        return self.request_timeout or 60.0


def load_connection(options: ConnectionOptions) -> Connection:
    """The server and credentials; raises ConfigError. Sends nothing."""
    from podlife.client import Flags, load

    flags = {each.name: getattr(options, each.name) for each in fields(options)}
    del flags["request_timeout"]
    try:
        return load(Flags(**flags | {"request_as_groups": tuple(options.request_as_groups or ())}))
    except NoServerError as error:
        raise _with_running_clusters(error) from None


def _with_running_clusters(error: NoServerError) -> NoServerError:
    """A user with a running `podlife up` most likely means that cluster."""
    from podlife.localcluster.state_dir import running_state_dirs

    running = [shlex.quote(str(each.kubeconfig)) for each in running_state_dirs()]
    hint = " or ".join(f"export KUBECONFIG={each}" for each in running)
    return NoServerError(f"{error}; for the running `podlife up`: {hint}") if running else error


def connected(
    options: ConnectionOptions, connection: Connection, *, rights: str = "deploy/gc/rbac.yaml"
) -> AbstractAsyncContextManager[Client]:
    """A client with the options' timeout; see `podlife.daemons.connection.connected`."""
    from podlife.daemons import connection as daemon_connection

    return daemon_connection.connected(connection, timeout_seconds=options.timeout_seconds, rights=rights)
