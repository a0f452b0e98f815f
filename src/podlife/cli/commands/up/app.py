"""`podlife up`: a whole cluster on this machine, for as long as the command runs."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli import completions, local_completions
from podlife.cli.commands.apiserver import (
    DataOption,
    MaxAgeOption,
    MaxBackupOption,
    MaxSizeOption,
    PolicyFileOption,
    check_audit,
    parse_folder,
    parse_host,
    parse_path,
)
from podlife.cli.commands.controllers.nodehealth_options import NodeHealthOptions
from podlife.cli.commands.gc.options import parse_quarantine
from podlife.cli.options import (
    RUNTIMES,
    GoCommand,
    VerbosityOption,
    parse_duration,
    parse_runtime,
    whole_number,
    with_groups,
    words,
)
from podlife.errors import ConfigError

if TYPE_CHECKING:
    from podlife.localcluster.plan import LocalClusterSettings


def _parse_audit_log(text: str | None) -> str | None:
    return "" if text == "none" else text and parse_path(text)


def _parse_grace(text: str | float) -> float:
    seconds = parse_duration(text)
    if seconds < 0:
        raise typer.BadParameter(f"{text!r} lies in the past: write how long to wait, as 30s")
    return seconds


def _tolerated(what: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        metavar="N", parser=whole_number(0), help=f"How many seconds pods stay on a node that is {what}."
    )
    return option


@dataclass(frozen=True, slots=True)
class UpOptions:
    nodes: Annotated[
        int, typer.Option(metavar="NUMBER", parser=whole_number(0, 1000), help="How many nodes to run.")
    ] = 3
    runtime: Annotated[
        str,
        typer.Option(
            metavar="|".join(RUNTIMES),
            parser=parse_runtime,
            autocompletion=local_completions.one_of(*RUNTIMES),
            help="What runs containers: processes of this machine, containerd, or nothing at all.",
        ),
    ] = "process"
    data: DataOption = None
    port: Annotated[
        int,
        typer.Option(
            metavar="PORT",
            parser=whole_number(0, 65_535),
            help="Port of the API server; 0 for any free one.",
        ),
    ] = 6443
    bind: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address of the API server: nodes of other machines need one they reach."
        ),
    ] = "127.0.0.1"
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST", parser=parse_host, help="Another name of the API server (repeatable)."),
    ] = None
    controllers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            show_default="*,scheduler",
            autocompletion=completions.controllers,
            help="Which controllers: names as `podlife controllers list` has them, -name to leave one out.",
        ),
    ] = None
    max_pods: Annotated[
        int, typer.Option(metavar="NUMBER", parser=whole_number(1), help="How many pods a node takes.")
    ] = 110
    terminated_pod_gc_threshold: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            parser=whole_number(),
            help="How many terminated pods may stay; 0 or less keeps all.",
        ),
    ] = 12_500
    pod_gc_quarantine: Annotated[
        float,
        typer.Option(
            "--pod-gc-quarantine",
            "--quarantine",
            metavar="DURATION",
            parser=parse_quarantine,
            show_default="40s",
            help="How long a node must be gone before the pods on it are collected.",
        ),
    ] = 40.0
    node_lease_duration_seconds: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            parser=whole_number(1),
            help="For how long a node's lease holds; it is renewed after a quarter of that.",
        ),
    ] = 40
    default_not_ready_toleration_seconds: Annotated[int, _tolerated("not ready")] = 300
    default_unreachable_toleration_seconds: Annotated[int, _tolerated("unreachable")] = 300
    stop_timeout: Annotated[
        float,
        typer.Option(
            metavar="DURATION",
            parser=_parse_grace,
            show_default="30s",
            help="How long pods may take to end when it is stopped.",
        ),
    ] = 30.0
    containerd_socket: Annotated[
        Path, typer.Option(metavar="FILE", parser=parse_folder, help="Where containerd listens.")
    ] = Path("/run/containerd/containerd.sock")
    detach: Annotated[
        bool,
        typer.Option("--detach", help="Come back when it is up, and leave it running in the background."),
    ] = False
    scenario: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", parser=parse_folder, help="What happens to simulated nodes and their pods."
        ),
    ] = None
    audit_log_path: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            parser=_parse_audit_log,
            show_default="DIR/audit/audit.log",
            help="Write the audit log to this file; 'none' for no log.",
        ),
    ] = None
    audit_policy_file: PolicyFileOption = ""
    audit_log_maxsize: MaxSizeOption = 10
    audit_log_maxage: MaxAgeOption = 0
    audit_log_maxbackup: MaxBackupOption = 3


def register(app: typer.Typer) -> None:
    app.command(cls=GoCommand)(up)


@with_groups
def up(
    node: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NODE]...",
            help="Start these nodes of a running `up` again.",
            autocompletion=completions.nodes_of_up,
        ),
    ] = None,
    *,
    options: UpOptions,
    node_health: NodeHealthOptions,
    v: VerbosityOption = 0,
) -> None:
    """Run a cluster on this machine: API server, controllers, scheduler and nodes. Ctrl-C stops it, with its pods; the
    next `up` goes on where it was. With names of nodes: start those again that `podlife down NODE` has stopped."""
    if node:
        from podlife.cli.commands.up.node_orders import order_nodes

        order_nodes(options.data, "start", node)
        return
    if sys.platform != "linux":
        raise ConfigError(
            f"podlife up needs Linux, this is {sys.platform}: `podlife apiserver` runs anywhere"
        )
    chosen = _checked(options)
    if options.detach:
        from podlife.cli.commands.up.detach import detach

        detach(options.data)
        return
    from podlife.cli.commands.up.screen import Screen
    from podlife.cli.guard import guard
    from podlife.daemons.xdg import default_data_dir
    from podlife.localcluster import session
    from podlife.localcluster.state_dir import StateDir

    state_dir = StateDir(options.data or default_data_dir())
    session.run(_settings(options, node_health, chosen, v), state_dir, Screen(), guard)


def _settings(
    options: UpOptions, node_health: NodeHealthOptions, controllers: list[str], verbosity: int
) -> LocalClusterSettings:
    from podlife.localcluster.plan import LocalClusterSettings

    return LocalClusterSettings(
        nodes=options.nodes,
        runtime=options.runtime,
        port=options.port,
        bind=options.bind,
        names=tuple(options.name or ()),
        controllers=tuple(controllers),
        node_health=node_health.settings(),
        max_pods=options.max_pods,
        pod_gc_threshold=options.terminated_pod_gc_threshold,
        pod_gc_quarantine_seconds=options.pod_gc_quarantine,
        node_lease_seconds=options.node_lease_duration_seconds,
        not_ready_toleration_seconds=options.default_not_ready_toleration_seconds,
        unreachable_toleration_seconds=options.default_unreachable_toleration_seconds,
        stop_seconds=options.stop_timeout,
        containerd_socket=options.containerd_socket,
        scenario=options.scenario,
        audit_log_path=options.audit_log_path,
        audit_policy_file=options.audit_policy_file,
        audit_log_max_mb=options.audit_log_maxsize,
        audit_log_max_days=options.audit_log_maxage,
        audit_log_max_backups=options.audit_log_maxbackup,
        verbosity=verbosity,
    )


def _checked(options: UpOptions) -> list[str]:
    """The controllers to run; raises BadParameter before anything is created."""
    from podlife.daemons.catalog import OUT_OF_SERVICE, choose

    check_audit(options.audit_log_path, options.audit_policy_file)
    chosen = ["*", "scheduler"] if options.controllers is None else words(options.controllers)
    try:
        known = {each.name for each in choose(chosen)}
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None
    if OUT_OF_SERVICE in known:
        raise typer.BadParameter(
            f"--controllers: {OUT_OF_SERVICE} has fence checks of its own: run it beside this with "
            f"`podlife controllers run --controllers={OUT_OF_SERVICE} --leader-elect-resource-name={OUT_OF_SERVICE}`"
        )
    if options.scenario is not None and options.runtime != "sim":
        raise typer.BadParameter("--scenario is for simulated nodes: add --runtime sim, or leave it out")
    if options.runtime == "containerd" and not options.containerd_socket.is_socket():
        raise typer.BadParameter(
            f"containerd does not listen on {options.containerd_socket}: start it, or say where with "
            "--containerd-socket"
        )
    if options.runtime == "containerd" and importlib.util.find_spec("grpc") is None:
        raise typer.BadParameter(
            "--runtime containerd needs grpcio, which is not installed: install podlife[containerd] (in a checkout: "
            "`.venv/bin/uv sync --extra containerd`)"
        )
    return chosen
