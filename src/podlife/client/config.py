"""Finds the API server to use, as kubectl does: flags, then kubeconfig files, then the pod's service account.

`load` returns a `Connection`; nothing is connected to. Invalid configuration raises ConfigError: one line with the
file, the problem and what to do.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from podlife.client.connection import Connection, TokenAuth, TokenFileAuth, is_this_machine, read_file
from podlife.client.kubeconfig import Kubeconfig
from podlife.errors import ConfigError, NoServerError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
# Where a node agent that cannot mount has put the same files.
SERVICE_ACCOUNT_VARIABLE = "PODLIFE_SERVICE_ACCOUNT"


@dataclass(frozen=True, slots=True)
class Flags:
    """Command-line flags; empty means not set."""

    kubeconfig: str = ""
    context: str = ""
    server: str = ""
    token: str = field(default="", repr=False)
    certificate_authority: str = ""
    insecure_skip_tls_verify: bool = False
    namespace: str = ""
    # Kubeconfig entries that override those of the context.
    cluster: str = ""
    user: str = ""
    # Files, in PEM.
    client_certificate: str = ""
    client_key: str = ""
    tls_server_name: str = ""
    request_as: str = ""
    request_as_uid: str = ""
    request_as_groups: tuple[str, ...] = ()


def load(flags: Flags | None = None, environment: Mapping[str, str] | None = None) -> Connection:
    """The connection that kubectl would use: flags, then kubeconfig, then the pod's service account."""
    flags = flags or Flags()
    environment = os.environ if environment is None else environment
    is_from_file = flags.context or flags.kubeconfig or flags.cluster or flags.user
    if flags.server and flags.token and not is_from_file:
        connection = Connection(flags.server, auth=TokenAuth(flags.token))
    else:
        connection = _from_files(flags, environment)
    return _with_flags(connection, flags, environment)


def _from_files(flags: Flags, environment: Mapping[str, str]) -> Connection:
    kubeconfig = Kubeconfig.find(flags.kubeconfig, environment)
    if kubeconfig is not None:
        return kubeconfig.connection(
            flags.context, server=flags.server, cluster=flags.cluster, user=flags.user
        )
    for what in ("context", "cluster", "user"):
        if name := getattr(flags, what):
            raise ConfigError(f"there is no {what} {name!r}: no kubeconfig file was found; set KUBECONFIG")
    if flags.server:
        return Connection(flags.server)
    if is_in_cluster(environment):
        return in_cluster(environment)
    if listed := environment.get("KUBECONFIG"):
        raise NoServerError(
            f"no API server is configured: KUBECONFIG names {listed}, which does not exist; "
            "correct it, or give --kubeconfig or --server"
        )
    raise NoServerError("no API server is configured; set KUBECONFIG, or give --kubeconfig or --server")


def _with_flags(connection: Connection, flags: Flags, environment: Mapping[str, str]) -> Connection:
    changes: dict[str, Any] = {}
    if flags.server:
        changes["server"] = flags.server
    if flags.token:
        changes["auth"] = TokenAuth(flags.token)
    if flags.namespace:
        changes["namespace"] = flags.namespace
    if flags.insecure_skip_tls_verify:
        changes |= {"is_insecure": True, "certificate_authority": b""}
    if flags.certificate_authority:
        authority = read_file(Path(flags.certificate_authority), "--certificate-authority")
        changes |= {"certificate_authority": authority, "is_insecure": flags.insecure_skip_tls_verify}
    if flags.client_certificate or flags.client_key:
        # A certificate from the flags replaces other configured credentials.
        changes |= _client_pair(flags) | {"auth": changes.get("auth")}
    if flags.tls_server_name:
        changes["tls_server_name"] = flags.tls_server_name
    if flags.request_as or flags.request_as_uid or flags.request_as_groups:
        changes["impersonation"] = _impersonation(flags)
    if not connection.proxy_url:
        changes["proxy_url"] = proxy_for(flags.server or connection.server, environment)
    return replace(connection, **changes)


def _client_pair(flags: Flags) -> dict[str, bytes]:
    """Raises ConfigError if only one of the two is given."""
    if not (flags.client_certificate and flags.client_key):
        raise ConfigError("--client-certificate and --client-key must be used together; specify both")
    return {
        "client_certificate": read_file(Path(flags.client_certificate), "--client-certificate"),
        "client_key": read_file(Path(flags.client_key), "--client-key"),
    }


def _impersonation(flags: Flags) -> tuple[tuple[str, str], ...]:
    """Raises ConfigError without a user: servers reject a group alone."""
    if not flags.request_as:
        raise ConfigError("--as-group and --as-uid require --as")
    uid = [("Impersonate-Uid", flags.request_as_uid)] if flags.request_as_uid else []
    groups = [("Impersonate-Group", each) for each in flags.request_as_groups]
    return (("Impersonate-User", flags.request_as), *uid, *groups)


def is_in_cluster(environment: Mapping[str, str]) -> bool:
    return bool(environment.get("KUBERNETES_SERVICE_HOST") and environment.get("KUBERNETES_SERVICE_PORT"))


def in_cluster(
    environment: Mapping[str, str] | None = None, service_account: Path | None = None
) -> Connection:
    """The connection of a pod to its own cluster, through its service account."""
    environment = os.environ if environment is None else environment
    if not is_in_cluster(environment):
        raise ConfigError(
            "this is not a pod: KUBERNETES_SERVICE_HOST or KUBERNETES_SERVICE_PORT is not set; give --server"
        )
    host, port = environment["KUBERNETES_SERVICE_HOST"], environment["KUBERNETES_SERVICE_PORT"]
    if service_account is None:
        service_account = Path(environment.get(SERVICE_ACCOUNT_VARIABLE) or SERVICE_ACCOUNT)
    token, namespace = service_account / "token", service_account / "namespace"
    origin = "the pod's service account"
    read_file(token, origin)
    return Connection(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        auth=TokenFileAuth(token),
        certificate_authority=read_file(service_account / "ca.crt", origin),
        origin=origin,
    )


def proxy_for(server: str, environment: Mapping[str, str]) -> str:
    """The proxy configured in the environment, except for NO_PROXY and loopback addresses."""
    # Missing in the type stubs.
    from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

    url = urlsplit(server)
    if is_this_machine(url.hostname or ""):
        return ""
    given = {name.lower(): value for name, value in environment.items() if name.lower().endswith("_proxy")}
    if proxy_bypass_environment(url.netloc, {"no": given.get("no_proxy", "")}):
        return ""
    proxy = given.get(f"{url.scheme}_proxy", "")
    return proxy if not proxy or "://" in proxy else f"http://{proxy}"
