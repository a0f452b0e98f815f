"""`podlife controllers`: runs Kubernetes' controllers against any API server."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from podlife.cli import completions
from podlife.cli.commands.gc.options import quarantine_option
from podlife.cli.commands.nodehealth_options import NodeHealthOptions
from podlife.cli.commands.out_of_service_options import OutOfServiceOptions
from podlife.cli.connection import ConnectionOptions, load_connection
from podlife.cli.options import (
    ElectionOptions,
    GoCommand,
    ListenOption,
    VerbosityOption,
    command_group,
    duration_option,
    number_option,
    option,
    parse_address,
    with_groups,
    words,
)
from podlife.errors import ConfigError

app = command_group(
    "Run Kubernetes' own controllers: ReplicaSets, Deployments, Jobs, garbage collection and more."
)


@dataclass(frozen=True, slots=True)
class ControllersElection(ElectionOptions):
    leader_elect_resource_name: Annotated[str, option("NAME", "The name of the lease.")] = (
        "podlife-controllers"
    )


def _syncs(of: str) -> Any:
    return number_option(f"Number of {of} synced concurrently.", 1)


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """The names and the numbers are kube-controller-manager's."""

    concurrent_replicaset_syncs: Annotated[int, _syncs("ReplicaSets")] = 5
    concurrent_rc_syncs: Annotated[int, _syncs("ReplicationControllers")] = 5
    concurrent_statefulset_syncs: Annotated[int, _syncs("StatefulSets")] = 5
    concurrent_cron_job_syncs: Annotated[int, _syncs("CronJobs")] = 5
    concurrent_job_syncs: Annotated[int, _syncs("Jobs")] = 5
    concurrent_ttl_after_finished_syncs: Annotated[int, _syncs("finished Jobs")] = 5
    concurrent_daemonset_syncs: Annotated[int, _syncs("DaemonSets")] = 2
    concurrent_deployment_syncs: Annotated[int, _syncs("Deployments")] = 5
    concurrent_gc_syncs: Annotated[int, _syncs("owned objects")] = 20
    terminated_pod_gc_threshold: Annotated[
        int, number_option("Maximum number of terminated pods in the cluster; 0 or less keeps all.")
    ] = 12_500
    pod_gc_quarantine: Annotated[
        float, quarantine_option("How long a node must be gone before its pods are collected.")
    ] = 40.0
    scheduler_name: Annotated[str, option("NAME", "Schedule the pods with this schedulerName.")] = (
        "default-scheduler"
    )
    cluster_signing_cert_file: Annotated[
        str,
        option("FILE", "CA certificate (PEM) that signs approved certificate requests; none: sign nothing."),
    ] = ""
    cluster_signing_key_file: Annotated[
        str, option("FILE", "Key (PEM) of the CA; default: the file of its certificate.")
    ] = ""
    cluster_signing_duration: Annotated[
        float, duration_option("Maximum lifetime of signed certificates.", "8760h")
    ] = 8760 * 3600.0

    service_account_private_key_file: Annotated[
        str, option("FILE", "Private key that signs the tokens in secrets.", show_default=False)
    ] = ""

    def of(self, name: str) -> dict[str, int | float | str]:
        """The keyword arguments of the controller with this name."""
        if name == "serviceaccount-token-controller":
            return {"private_key_file": self.service_account_private_key_file}
        if name == "scheduler":
            return {"scheduler_name": self.scheduler_name}
        if name == "certificatesigningrequest-signing-controller":
            return {
                "signing_cert_file": self.cluster_signing_cert_file,
                "signing_key_file": self.cluster_signing_key_file,
                "signing_seconds": self.cluster_signing_duration,
            }
        if name == "pod-garbage-collector-controller":
            return {
                "threshold": self.terminated_pod_gc_threshold,
                "quarantine_seconds": self.pod_gc_quarantine,
            }
        subject = name.removesuffix("-controller").replace("-", "_")
        named = {"cronjob": "cron_job", "garbage_collector": "gc", "replicationcontroller": "rc"}
        subject = named.get(subject, subject)
        workers = getattr(self, f"concurrent_{subject}_syncs", None)
        return {} if workers is None else {"workers": workers}


@app.command(cls=GoCommand)
@with_groups
def run(  # noqa: PLR0913 - one parameter per group of flags
    controllers: Annotated[
        list[str] | None,
        option(
            "NAMES",
            "Controllers to run (see `podlife controllers list`): * for all but scheduler, "
            "local-path-provisioner and out-of-service, -NAME to exclude one (comma-separated or repeated).",
            show_default="*",
            autocompletion=completions.controllers,
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
    """Run controllers. Ctrl-C or SIGTERM stops them after requests in flight."""
    from podlife.daemons.catalog import choose

    # Invalid options are reported before anything is loaded or connected.
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

    service = ServiceSettings(load_connection(connection), elected, address, connection.timeout_seconds)
    set_up_logs(v)
    options = {name: {**syncs.of(name), **node_health.of(name), **out_of_service.of(name)} for name in names}
    settings = daemon.ControllersSettings(service, names, options)
    event_loop.run(daemon.run(settings, shutdown=event_loop.stopped_by_signals))


@app.command(name="list")
def list_controllers(
    names: Annotated[bool, typer.Option("--names", help="Print only the names, one per line.")] = False,
) -> None:
    """List the available controllers."""
    from podlife.cli.output import table
    from podlife.daemons.catalog import known_controllers

    known = known_controllers()
    if names:
        print("\n".join(each.name for each in known))
        return
    titles = ("NAME", "SHORT", "WHAT IT KEEPS")
    sys.stdout.write(table([titles, *((each.name, each.short, each.about) for each in known)]))
