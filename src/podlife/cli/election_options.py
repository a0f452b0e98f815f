"""The flags of leader election, under kube-controller-manager's names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli.options import parse_duration

if TYPE_CHECKING:
    from podlife.daemons.election import ElectionSettings


@dataclass(frozen=True, slots=True)
class ElectionOptions:
    """The names are kube-controller-manager's."""

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

    def settings(self) -> ElectionSettings | None:
        """None without leader election; raises BadParameter when two processes could hold the lease at once."""
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
        if not self.leader_elect:
            return None
        from podlife.daemons.election import ElectionSettings

        return ElectionSettings(
            self.leader_elect_resource_name,
            self.leader_elect_resource_namespace,
            self.leader_elect_identity,
            lease,
            renew,
            retry,
        )
