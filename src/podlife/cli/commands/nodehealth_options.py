"""Flags of the node health controllers, with kube-controller-manager's names."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podlife.cli.options import duration_option, number_option, option, parse_duration

if TYPE_CHECKING:
    from podlife.nodehealth import NodeHealthSettings


def _time(text: str | float) -> float:
    seconds = parse_duration(text)
    if seconds <= 0:
        raise typer.BadParameter(f"duration must be positive: {text!r}")
    return seconds


def _number(what: str, maximum: float) -> Callable[[str | float], float]:
    def parse(text: str | float) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not 0 <= number <= maximum:
            raise typer.BadParameter(f"invalid value {text!r}: expected {what}, such as 0.1")
        return number

    return parse


def _wait(help_: str, shown: str) -> Any:
    return duration_option(help_, shown, parser=_time)


_rate = _number("a rate in nodes per second", 1e6)
_share = _number("a share between 0 and 1", 1)


@dataclass(frozen=True, slots=True)
class NodeHealthOptions:
    """The names are kube-controller-manager's."""

    node_monitor_period: Annotated[float, _wait("Period of the check of all nodes.", "5s")] = 5.0
    node_monitor_grace_period: Annotated[
        float, _wait("Time without heartbeats after which a node is marked not ready.", "40s")
    ] = 40.0
    node_startup_grace_period: Annotated[
        float, _wait("The same for a node that has never sent a heartbeat.", "1m")
    ] = 60.0
    node_eviction_rate: Annotated[
        float, option("NUMBER", "Unreachable nodes of a zone to evict per second.", parser=_rate)
    ] = 0.1
    secondary_node_eviction_rate: Annotated[
        float, option("NUMBER", "The same in a large zone that is partly down.", parser=_rate)
    ] = 0.01
    large_cluster_size_threshold: Annotated[
        int,
        number_option("Zones with more nodes are large; smaller ones that are partly down evict no pods.", 0),
    ] = 50
    unhealthy_zone_threshold: Annotated[
        float,
        option(
            "NUMBER", "Share of not ready nodes, at least 3, from which a zone is partly down.", parser=_share
        ),
    ] = 0.55

    def of(self, name: str) -> dict[str, Any]:
        """The keyword arguments of the controller with this name."""
        from podlife.daemons.catalog import NODE_LIFECYCLE

        return {"settings": self.settings()} if name == NODE_LIFECYCLE else {}

    def settings(self) -> NodeHealthSettings:
        from podlife.nodehealth import NodeHealthSettings

        return NodeHealthSettings(
            monitor_period_seconds=self.node_monitor_period,
            monitor_grace_seconds=self.node_monitor_grace_period,
            startup_grace_seconds=self.node_startup_grace_period,
            eviction_rate=self.node_eviction_rate,
            secondary_eviction_rate=self.secondary_node_eviction_rate,
            large_zone_threshold=self.large_cluster_size_threshold,
            unhealthy_zone_threshold=self.unhealthy_zone_threshold,
        )
