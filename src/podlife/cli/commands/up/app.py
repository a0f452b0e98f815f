"""`podlife up`: a whole cluster on this machine, for as long as the command runs. `podlife down` ends it from another
terminal, `podlife status` shows it.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podlife.cli import completions
from podlife.cli.commands.apiserver import (
    AdvertiseOption,
    DataOption,
    EventTtlOption,
    MaxAgeOption,
    MaxBackupOption,
    MaxSizeOption,
    PolicyFileOption,
    check_audit,
    parse_folder,
    parse_host,
    parse_path,
)
from podlife.cli.commands.gc.options import quarantine_option
from podlife.cli.commands.nodehealth_options import NodeHealthOptions
from podlife.cli.options import (
    RuntimeOption,
    VerbosityOption,
    duration_option,
    format_option,
    not_negative,
    number_option,
    option,
    parse_timeout,
    with_groups,
    words,
)
from podlife.errors import ConfigError

if TYPE_CHECKING:
    from podlife.localcluster.plan import LocalClusterSettings


def _parse_audit_log(text: str | None) -> str | None:
    return "" if text == "none" else text and parse_path(text)


_parse_grace = not_negative("duration must not be negative")


def _tolerated(what: str) -> Any:
    return number_option(f"How many seconds pods stay on a node that is {what}.", 0, metavar="N")


@dataclass(frozen=True, slots=True)
class UpOptions:
    nodes: Annotated[int, number_option("How many nodes to run.", 0, 1000)] = 3
    runtime: RuntimeOption = "process"
    data: DataOption = None
    port: Annotated[
        int, number_option("Port of the API server; 0 for any free one.", 0, 65_535, metavar="PORT")
    ] = 6443
    bind: Annotated[
        str, option("ADDRESS", "Address of the API server: nodes of other machines need one they reach.")
    ] = "127.0.0.1"
    name: Annotated[
        list[str] | None, option("HOST", "Another name of the API server (repeatable).", parser=parse_host)
    ] = None
    advertise_address: AdvertiseOption = ""
    controllers: Annotated[
        list[str] | None,
        option(
            "NAMES",
            "Which controllers: names as `podlife controllers list` has them, -name to leave one out.",
            show_default="*,scheduler,local-path-provisioner",
            autocompletion=completions.controllers,
        ),
    ] = None
    max_pods: Annotated[int, number_option("How many pods a node takes.", 1)] = 110
    terminated_pod_gc_threshold: Annotated[
        int, number_option("How many terminated pods may stay; 0 or less keeps all.")
    ] = 12_500
    pod_gc_quarantine: Annotated[
        float, quarantine_option("How long a node must be gone before the pods on it are collected.")
    ] = 40.0
    node_lease_duration_seconds: Annotated[
        int, number_option("For how long a node's lease holds; it is renewed after a quarter of that.", 1)
    ] = 40
    default_not_ready_toleration_seconds: Annotated[int, _tolerated("not ready")] = 300
    default_unreachable_toleration_seconds: Annotated[int, _tolerated("unreachable")] = 300
    event_ttl: EventTtlOption = 3600.0
    stop_timeout: Annotated[
        float,
        duration_option("How long pods may take to end when it is stopped.", "30s", parser=_parse_grace),
    ] = 30.0
    containerd_socket: Annotated[Path, option("FILE", "Where containerd listens.", parser=parse_folder)] = (
        Path("/run/containerd/containerd.sock")
    )
    detach: Annotated[
        bool,
        typer.Option("--detach", help="Come back when it is up, and leave it running in the background."),
    ] = False
    scenario: Annotated[
        Path | None, option("FILE", "What happens to simulated nodes and their pods.", parser=parse_folder)
    ] = None
    audit_log_path: Annotated[
        str | None,
        option(
            "FILE",
            "Write the audit log to this file; 'none' for no log.",
            parser=_parse_audit_log,
            show_default="DIR/audit/audit.log",
        ),
    ] = None
    audit_policy_file: PolicyFileOption = ""
    audit_log_maxsize: MaxSizeOption = 10
    audit_log_maxage: MaxAgeOption = 0
    audit_log_maxbackup: MaxBackupOption = 3
    ui: Annotated[bool, typer.Option("--ui/--no-ui", help="Serve the page of `podlife ui`.")] = True


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
        _order_nodes(options.data, "start", node)
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


def down(
    node: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NODE]...",
            help="Stop only the agents of these nodes, as if their machines were silent.",
            autocompletion=completions.nodes_of_up,
        ),
    ] = None,
    data: DataOption = None,
    now: Annotated[bool, typer.Option("--now", help="End the pods at once, without their grace.")] = False,
    timeout: Annotated[
        float, duration_option("How long to wait for its end.", "2m", parser=parse_timeout)
    ] = 120.0,
) -> None:
    """End a running `podlife up` and its pods; what it keeps stays, for the next one. With names of nodes: stop only
    their agents, whose pods run on; `podlife up NODE` starts them again."""
    if node:
        _order_nodes(data, "stop", node)
        return
    from podlife.cli.commands.up.down import end_cluster
    from podlife.localcluster.state_dir import choose_state_dir

    end_cluster(choose_state_dir(data), timeout, is_at_once=now)


def status(
    data: DataOption = None, output: Annotated[str, format_option("table", "json", "yaml")] = "table"
) -> None:
    """Show what a running `podlife up` consists of: components, nodes, pods. The exit code is 1 where none runs."""
    from podlife.cli.commands.up.status import show_status
    from podlife.localcluster.state_dir import choose_state_dir

    show_status(choose_state_dir(data), output)


def _order_nodes(data: Path | None, order: str, nodes: list[str]) -> None:
    """`start` or `stop` nodes of a running `up`, and print the outcome."""
    from podlife.localcluster.control_socket import ask
    from podlife.localcluster.state_dir import choose_state_dir

    state_dir = choose_state_dir(data)
    for node in nodes:
        is_new = ask(state_dir, {"do": order, "node": node}).get("is_new", True)
        match order, is_new:
            case "start", True:
                print(f"{node} is started")
            case "start", False:
                print(f"{node} runs already")
            case _, True:
                print(f"{node} is stopped; its pods run on")
            case _:
                print(f"{node} is stopped already; its pods run on")


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
        advertise_address=options.advertise_address,
        controllers=tuple(controllers),
        node_health=node_health.settings(),
        max_pods=options.max_pods,
        pod_gc_threshold=options.terminated_pod_gc_threshold,
        pod_gc_quarantine_seconds=options.pod_gc_quarantine,
        node_lease_seconds=options.node_lease_duration_seconds,
        not_ready_toleration_seconds=options.default_not_ready_toleration_seconds,
        unreachable_toleration_seconds=options.default_unreachable_toleration_seconds,
        event_ttl_seconds=options.event_ttl,
        stop_seconds=options.stop_timeout,
        containerd_socket=options.containerd_socket,
        scenario=options.scenario,
        audit_log_path=options.audit_log_path,
        audit_policy_file=options.audit_policy_file,
        audit_log_max_mb=options.audit_log_maxsize,
        audit_log_max_days=options.audit_log_maxage,
        audit_log_max_backups=options.audit_log_maxbackup,
        ui=options.ui,
        verbosity=verbosity,
    )


def _checked(options: UpOptions) -> list[str]:
    """The controllers to run; raises BadParameter before anything is created."""
    from podlife.daemons.catalog import OUT_OF_SERVICE, choose

    check_audit(options.audit_log_path, options.audit_policy_file)
    chosen = (
        ["*", "scheduler", "local-path-provisioner"]
        if options.controllers is None
        else words(options.controllers)
    )
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
