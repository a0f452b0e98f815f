"""Which of several processes works: the options of leader election, and the elector that they ask for."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli.options import parse_duration

if TYPE_CHECKING:
    from podlife.client import Client, Connection
    from podlife.clock import Clock
    from podlife.controller import LeaderElector
    from podlife.events import Recorder

log = logging.getLogger(__name__)

__all__ = ["ElectionOptions", "lease_of", "make_elector"]


@dataclass(frozen=True, slots=True)
class ElectionOptions:
    """Which of several works; the names are kube-controller-manager's."""

    leader_elect: Annotated[
        bool, typer.Option(help="Work only while this one holds the lease; without it, at once.")
    ] = True
    leader_elect_lease_duration: Annotated[
        float,
        typer.Option(
            metavar="DURATION",
            parser=parse_duration,
            show_default="15s",
            help="How long others wait after they last saw the lease renewed.",
        ),
    ] = 15.0
    leader_elect_renew_deadline: Annotated[
        float,
        typer.Option(
            metavar="DURATION",
            parser=parse_duration,
            show_default="10s",
            help="How long the holder tries to renew before it stops working.",
        ),
    ] = 10.0
    leader_elect_retry_period: Annotated[
        float,
        typer.Option(
            metavar="DURATION", parser=parse_duration, show_default="2s", help="How long between two tries."
        ),
    ] = 2.0
    leader_elect_resource_name: Annotated[
        str, typer.Option(metavar="NAME", help="The name of the lease.")
    ] = "podlife-gc"
    leader_elect_resource_namespace: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The namespace of the lease.",
            show_default="the pod's own, or kube-system",
        ),
    ] = ""
    leader_elect_identity: Annotated[
        str, typer.Option(metavar="NAME", help="What this one calls itself.", show_default="HOST_UUID")
    ] = ""

    def checked(self) -> ElectionOptions:
        """Itself; raises BadParameter when two could hold the lease at once."""
        lease, renew = self.leader_elect_lease_duration, self.leader_elect_renew_deadline
        retry = self.leader_elect_retry_period
        if lease <= renew:
            raise typer.BadParameter(
                "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline"
            )
        # The factor is client-go's: a retry comes up to that much later.
        if renew <= retry * 1.2:
            raise typer.BadParameter(
                "--leader-elect-renew-deadline must be longer than 1.2 times --leader-elect-retry-period"
            )
        if retry <= 0:
            raise typer.BadParameter("--leader-elect-retry-period must be longer than 0")
        if not self.leader_elect_resource_name:
            raise typer.BadParameter("--leader-elect-resource-name must not be empty")
        return self


def lease_of(options: ElectionOptions, connection: Connection) -> tuple[str, str]:
    """Namespace and name of the lease.

    All who do the same in one cluster must mean one lease. A pod may use that of its own namespace alone; for others
    the context's namespace would be somebody's habit, not a place to meet."""
    from podlife.client import TokenFileAuth

    is_pod = isinstance(connection.auth, TokenFileAuth)
    namespace = options.leader_elect_resource_namespace or (connection.namespace if is_pod else "kube-system")
    return namespace, options.leader_elect_resource_name


def make_elector(
    options: ElectionOptions,
    connection: Connection,
    client: Client,
    *,
    recorder: Recorder,
    clock: Clock,
    beside: str,
) -> LeaderElector | None:
    """Nobody where it is turned off. `beside` is what the log says when another one holds the lease."""
    from podlife.controller import LeaderElector, make_identity

    if not options.leader_elect:
        return None
    identity = options.leader_elect_identity or make_identity()

    def notice(leader: str) -> None:
        if beside and leader != identity:
            log.info(beside)

    return LeaderElector(
        client,
        *lease_of(options, connection),
        identity,
        lease_seconds=options.leader_elect_lease_duration,
        renew_seconds=options.leader_elect_renew_deadline,
        retry_seconds=options.leader_elect_retry_period,
        clock=clock,
        recorder=recorder,
        on_new_leader=notice,
    )
