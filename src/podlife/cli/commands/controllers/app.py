"""`podlife controllers`: Kubernetes' own controllers, any of them, against any API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from podlife.cli import completions
from podlife.cli.commands.controllers.nodehealth_options import NodeHealthOptions
from podlife.cli.commands.controllers.out_of_service_options import OutOfServiceOptions
from podlife.cli.commands.gc.options import parse_quarantine
from podlife.cli.connection import ConnectionOptions, load_connection
from podlife.cli.options import (
    ElectionOptions,
    GoCommand,
    ListenOption,
    VerbosityOption,
    parse_address,
    whole_number,
    with_groups,
    words,
)
from podlife.errors import ConfigError

app = typer.Typer(
    help="Run Kubernetes' own controllers: ReplicaSets, Deployments, Jobs, garbage collection and more.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@dataclass(frozen=True, slots=True)
class ControllersElection(ElectionOptions):
    leader_elect_resource_name: Annotated[
        str, typer.Option(metavar="NAME", help="The name of the lease.")
    ] = "podlife-controllers"


def _syncs(of: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        metavar="NUMBER", parser=whole_number(1), help=f"How many {of} are worked on at once."
    )
    return option


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """The names and the numbers are kube-controller-manager's."""

    concurrent_replicaset_syncs: Annotated[int, _syncs("ReplicaSets")] = 5
    concurrent_statefulset_syncs: Annotated[int, _syncs("StatefulSets")] = 5
    concurrent_job_syncs: Annotated[int, _syncs("Jobs")] = 5
    concurrent_ttl_after_finished_syncs: Annotated[int, _syncs("Jobs that are over")] = 5
    concurrent_daemonset_syncs: Annotated[int, _syncs("DaemonSets")] = 2
    concurrent_deployment_syncs: Annotated[int, _syncs("Deployments")] = 5
    concurrent_gc_syncs: Annotated[int, _syncs("owned objects")] = 20
    terminated_pod_gc_threshold: Annotated[
        int,
        typer.Option(
            metavar="NUMBER",
            parser=whole_number(),
            help="How many terminated pods may stay in the cluster; 0 or less keeps all of them.",
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
    scheduler_name: Annotated[
        str,
        typer.Option(metavar="NAME", help="The scheduler schedules the pods that ask for one of this name."),
    ] = "default-scheduler"

    def of(self, name: str) -> dict[str, int | float | str]:
        """What the controller of this name is made with."""
        if name == "scheduler":
            return {"scheduler_name": self.scheduler_name}
        if name == "pod-garbage-collector-controller":
            return {
                "threshold": self.terminated_pod_gc_threshold,
                "quarantine_seconds": self.pod_gc_quarantine,
            }
        subject = name.removesuffix("-controller").replace("-", "_")
        subject = "gc" if subject == "garbage_collector" else subject
        workers = getattr(self, f"concurrent_{subject}_syncs", None)
        return {} if workers is None else {"workers": workers}


@app.command(cls=GoCommand)
@with_groups
def run(  # noqa: PLR0913 - groups of flags, each of its own part
    controllers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAMES",
            show_default="*",
            autocompletion=completions.controllers,
            help="Which: names (see `podlife controllers list`), * for all but the scheduler and "
            "out-of-service, -name for all but that (with commas, or repeated).",
        ),
    ] = None,
    *,
    syncs: SyncOptions,
    node_health: NodeHealthOptions,
    out_of_service: OutOfServiceOptions,
    election: ControllersElection,
    connection: ConnectionOptions,
    listen: ListenOption = "",
    v: VerbosityOption = 0,
) -> None:
    """Run controllers. Ctrl-C or SIGTERM ends them after the calls that are under way."""
    from podlife.daemons.catalog import choose

    # Wrong options are reported before anything is loaded or connected to.
    try:
        chosen = choose(["*"] if controllers is None else words(controllers))
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None
    names = [each.name for each in chosen]
    out_of_service.check(names)
    address, elected = parse_address(listen) if listen else None, election.settings()
    from podlife.daemons import controllers as daemon
    from podlife.daemons import event_loop
    from podlife.daemons.logs import set_up_logs
    from podlife.daemons.service import ServiceSettings

    service = ServiceSettings(
        load_connection(connection), elected, address, connection.request_timeout or 60.0
    )
    set_up_logs(v)
    options = {name: {**syncs.of(name), **node_health.of(name), **out_of_service.of(name)} for name in names}
    settings = daemon.ControllersSettings(service, names, options)
    event_loop.run(daemon.run(settings, shutdown=event_loop.stopped_by_signals))


@app.command(name="list")
def list_controllers(
    names: Annotated[bool, typer.Option("--names", help="Only the names, one a line.")] = False,
) -> None:
    """Show the controllers there are."""
    from podlife.daemons.catalog import known_controllers

    known = known_controllers()
    if names:
        print("\n".join(each.name for each in known))
        return
    rows = [("NAME", "SHORT", "WHAT IT KEEPS"), *((each.name, each.short, each.about) for each in known)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, short, about in rows:
        print(f"{name:<{widths[0]}}   {short:<{widths[1]}}   {about}".rstrip())
