"""`podlife node`: runs this machine as a node of a cluster."""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from podlife.cli.commands.apiserver import parse_folder
from podlife.cli.connection import ConnectionOptions, load_connection
from podlife.cli.options import (
    RuntimeOption,
    VerbosityOption,
    number_option,
    option,
    parse_address,
    with_groups,
    words,
)

_DEFAULT_LISTEN = ":10250"
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def _parse_name(text: str) -> str:
    from podlife.api.names import check_dns_subdomain

    if text and check_dns_subdomain(text):
        raise typer.BadParameter(
            f"invalid node name {text!r}: use lower case letters, digits, dots and dashes"
        )
    return text


def _parse_ip(text: str) -> str:
    from ipaddress import ip_address

    try:
        return str(ip_address(text)) if text else ""
    except ValueError:
        raise typer.BadParameter(
            f"invalid IP address {text!r}: expected an address such as 192.0.2.1"
        ) from None


@dataclass(frozen=True, slots=True)
class NodeOptions:
    name: Annotated[
        str, option("NAME", "The node's name.", parser=_parse_name, show_default="this machine's")
    ] = ""
    runtime: RuntimeOption = "process"
    data: Annotated[
        Path | None,
        option(
            "DIR",
            "Data folder for pods, logs and keys (default: ~/.local/share/podlife/nodes/NAME).",
            parser=parse_folder,
        ),
    ] = None
    static_pods: Annotated[
        Path | None,
        option("DIR", "Run the pod manifests in this folder as static pods.", parser=parse_folder),
    ] = None
    listen: Annotated[
        str,
        option(
            "HOST:PORT",
            "Address to serve logs, exec and metrics on; port 0 is any free one.",
            show_default="the node's address, port 10250",
        ),
    ] = ""
    node_ip: Annotated[
        str, option("ADDRESS", "The node's address (default: the one the server sees).", parser=_parse_ip)
    ] = ""
    max_pods: Annotated[int, number_option("Maximum number of pods.", 1)] = 110
    labels: Annotated[
        list[str] | None,
        option("KEY=VALUE", "Labels of the node (comma-separated or repeated).", "--labels", "--node-labels"),
    ] = None
    register_with_taints: Annotated[
        list[str] | None,
        option("KEY=VALUE:EFFECT", "Taints to register the node with (comma-separated or repeated)."),
    ] = None
    containerd_socket: Annotated[Path, option("FILE", "Socket of containerd.", parser=parse_folder)] = Path(
        "/run/containerd/containerd.sock"
    )
    node_lease_duration_seconds: Annotated[
        int, number_option("Duration of the node's lease; it is renewed after a quarter of it.", 1)
    ] = 40
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Take the node over from an agent that renews its lease; that one exits, its pods keep running.",
        ),
    ] = False
    join: Annotated[
        str,
        option(
            "FILE|URL",
            "Join a cluster by the join file of `podlife up`, or by its URL with --token and --ca-hash.",
        ),
    ] = ""
    ca_hash: Annotated[str, option("sha256:HASH", "Expected hash of the public key of the server's CA.")] = ""


def _parse_label(text: str) -> tuple[str, str]:
    from podlife.api.names import check_label_key, check_label_value

    key, equals, value = text.partition("=")
    if not equals or check_label_key(key) or check_label_value(value):
        raise typer.BadParameter(f"invalid --labels value {text!r}: expected KEY=VALUE, such as disk=ssd")
    return key, value


def _parse_taint(text: str) -> dict[str, str]:
    from podlife.api.names import check_label_key, check_label_value

    label, _, effect = text.rpartition(":")
    key, _, value = label.partition("=")
    if effect not in _EFFECTS or check_label_key(key) or check_label_value(value):
        raise typer.BadParameter(
            f"invalid taint {text!r}: expected KEY=VALUE:EFFECT, with an effect of {', '.join(_EFFECTS)}"
        )
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


@with_groups
def node(*, options: NodeOptions, connection: ConnectionOptions, v: VerbosityOption = 0) -> None:
    """Run this machine as a node of a cluster. Ctrl-C or SIGTERM stops the node's agent; pods keep running."""
    from podlife.daemons.xdg import default_data_dir

    name = options.name or _parse_name(socket.gethostname().lower())
    data = options.data or default_data_dir() / "nodes" / name
    listen = parse_address(options.listen or _DEFAULT_LISTEN)
    labels = dict(_parse_label(each) for each in words(options.labels))
    taints = tuple(_parse_taint(each) for each in words(options.register_with_taints))
    if options.ca_hash and not options.join:
        raise typer.BadParameter("--ca-hash requires --join URL")
    if options.join:
        connection = _joined(name, data, options, connection)
    from podlife.daemons import event_loop
    from podlife.daemons import node as daemon
    from podlife.daemons.limits import allow_many_open_files
    from podlife.daemons.logs import set_up_logs

    settings = daemon.NodeDaemonSettings(
        name,
        load_connection(connection),
        daemon.RuntimeSettings(data, options.runtime, options.containerd_socket),
        listen=listen,
        address=options.node_ip,
        labels=labels,
        taints=taints,
        max_pods=options.max_pods,
        static_pods=options.static_pods,
        lease_seconds=options.node_lease_duration_seconds,
        takes_over=options.take_over,
        request_timeout_seconds=connection.timeout_seconds,
    )
    set_up_logs(v)
    allow_many_open_files(daemon.MOST_OPEN_FILES)
    event_loop.run(daemon.run(settings, shutdown=event_loop.stopped_by_signals))


def _joined(name: str, data: Path, options: NodeOptions, connection: ConnectionOptions) -> ConnectionOptions:
    """The connection as this node; raises PodlifeError if the cluster refuses it."""
    from podlife.daemons import event_loop, join

    settings = join.JoinSettings(
        name,
        data,
        options.join,
        token=connection.token,
        ca_hash=options.ca_hash,
        certificate_authority=connection.certificate_authority,
    )
    kubeconfig = event_loop.run(join.run(settings))
    return replace(
        connection, kubeconfig=str(kubeconfig), context="", server="", token="", certificate_authority=""
    )
