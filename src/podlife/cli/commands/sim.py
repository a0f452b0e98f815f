"""`podlife sim`: thousands of simulated nodes and pods, for any API server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from podlife.cli.connection import ConnectionOptions, load_connection
from podlife.cli.namespaces import namespace_option
from podlife.cli.options import (
    VerbosityOption,
    duration_option,
    number_option,
    option,
    parse_timeout,
    with_groups,
)

app = typer.Typer(rich_markup_mode=None)


def _parse_name(text: str) -> str:
    from podlife.api.names import check_dns_label

    # A dash and a number are appended to it.
    if check_dns_label(text) or len(text) > 50:
        raise typer.BadParameter(
            f"invalid name for nodes {text!r}: use up to 50 lower case letters, digits and -"
        )
    return text


@dataclass(frozen=True, slots=True)
class SimOptions:
    nodes: Annotated[int, number_option("Number of nodes to simulate.", 1, 100_000)] = 1
    pods: Annotated[
        int,
        number_option("Number of pods to create on them, in addition to pods from elsewhere.", 0, 10_000_000),
    ] = 0
    scenario: Annotated[Path | None, option("FILE", "Scenario file: slow starts, crashes, node outages.")] = (
        None
    )
    duration: Annotated[
        float,
        duration_option(
            "Duration of the simulation, measured once all nodes are ready.",
            "until Ctrl-C",
            parser=parse_timeout,
        ),
    ] = 0.0
    name: Annotated[str, option("NAME", "Prefix of the node names: NAME-0, NAME-1 …", parser=_parse_name)] = (
        "sim"
    )
    namespace: Annotated[str, namespace_option("Namespace to create pods in.")] = "default"
    max_pods: Annotated[int, number_option("Maximum number of pods per node.", 1)] = 110
    events: Annotated[bool, typer.Option("--events", help="Send the events of real nodes, too.")] = False
    quick_ends: Annotated[
        bool, typer.Option("--quick-ends", help="Remove deleted pods without a final status update.")
    ] = False
    keep: Annotated[bool, typer.Option("--keep", help="Keep the created nodes and pods on exit.")] = False


@app.callback(invoke_without_command=True)
@with_groups
def sim(
    ctx: typer.Context, *, options: SimOptions, connection: ConnectionOptions, v: VerbosityOption = 0
) -> None:
    """Simulate many nodes whose pods only pretend to run. On Ctrl-C, or after --duration, it deletes the nodes and pods
    that it created."""
    if ctx.invoked_subcommand is not None:
        return
    if options.pods > options.nodes * options.max_pods:
        raise typer.BadParameter(
            f"--pods {options.pods} exceeds the capacity of --nodes {options.nodes} with --max-pods {options.max_pods}"
        )
    import logging

    from podlife.cli.commands.sim_output import ConsoleReporter
    from podlife.daemons import event_loop, simulation
    from podlife.daemons.logs import set_up_logs
    from podlife.kubelet.hollow import Scenario, load_scenario

    scenario = load_scenario(options.scenario) if options.scenario is not None else Scenario()
    loaded = load_connection(connection)
    set_up_logs(v)
    if not v:
        # Thousands of nodes and pods would flood the log.
        logging.getLogger("podlife").setLevel(logging.CRITICAL)
        logging.getLogger("podlife.kubelet.hollow").setLevel(logging.WARNING)
    simulated = simulation.SimulationSettings(
        nodes=options.nodes,
        pods=options.pods,
        scenario=scenario,
        duration_seconds=options.duration,
        name=options.name,
        namespace=options.namespace,
        max_pods=options.max_pods,
        has_events=options.events,
        has_quick_ends=options.quick_ends,
        is_kept=options.keep,
    )
    settings = simulation.SimulationDaemonSettings(loaded, simulated, connection.timeout_seconds)
    event_loop.run(
        simulation.run(settings, ConsoleReporter(simulated), shutdown=event_loop.stopped_by_signals)
    )


@app.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The scenario.", show_default=False)],
) -> None:
    """Validate a scenario and summarize it."""
    from podlife.cli.commands.sim_output import describe_scenario
    from podlife.kubelet.hollow import load_scenario

    print(describe_scenario(load_scenario(file)))
