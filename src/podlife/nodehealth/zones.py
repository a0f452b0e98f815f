"""Zones: how many nodes are down, and the rate at which nodes may be tainted. Pure.

One broken zone is evicted at full rate, because the others can run its pods. If many nodes of a zone fail at once,
the network is more likely at fault: the rate is reduced, or zero. If no zone has a ready node, the controller itself
is most likely disconnected: evictions stop and taints are removed (NL-73).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from podlife.nodehealth.settings import NodeHealthSettings

_REGIONS = ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region")
_ZONES = ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone")
_SEPARATOR = ":\x00:"
_EXCLUDED = "node.kubernetes.io/exclude-disruption"


class ZoneState(StrEnum):
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


@dataclass(slots=True)
class ZoneCount:
    ready: int = 0
    not_ready: int = 0

    def add(self, *, is_ready: bool) -> None:
        if is_ready:
            self.ready += 1
        else:
            self.not_ready += 1

    @property
    def size(self) -> int:
        return self.ready + self.not_ready

    @property
    def percent_ready(self) -> float:
        return 100.0 * self.ready / self.size if self.size else 100.0


@dataclass(frozen=True, slots=True)
class Disruption:
    """State after the last pass. `is_stopped`: all zones were down and nothing is tainted."""

    states: Mapping[str, ZoneState] = field(default_factory=dict)
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class ZoneVerdict:
    disruption: Disruption
    # Zones whose rate changes.
    rates: Mapping[str, float] = field(default_factory=dict)
    # All zones fail or recover in this pass.
    stops: bool = False
    resumes: bool = False


def zone_of(labels: Mapping[str, str]) -> str:
    """Region and zone; the older labels count before the newer ones (NL-07)."""
    region, zone = (
        next((labels[name] for name in names if name in labels), "") for names in (_REGIONS, _ZONES)
    )
    return f"{region}{_SEPARATOR}{zone}" if region or zone else ""


def is_counted(labels: Mapping[str, str]) -> bool:
    """Nodes labelled exclude-disruption are not counted (NL-71)."""
    return _EXCLUDED not in labels


def state_of(count: ZoneCount, settings: NodeHealthSettings) -> ZoneState:
    """Full: no node is ready; partial: more than 2 and the threshold share are not ready (NL-70)."""
    if count.not_ready and not count.ready:
        return ZoneState.FULL
    if count.not_ready > 2 and count.not_ready / count.size >= settings.unhealthy_zone_threshold:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


def judge(before: Disruption, counts: Mapping[str, ZoneCount], settings: NodeHealthSettings) -> ZoneVerdict:
    """New zone states and rates from the node counts. Zones without nodes are forgotten."""
    states = {zone: state_of(count, settings) for zone, count in counts.items()}
    if not states:
        return ZoneVerdict(Disruption(is_stopped=before.is_stopped))
    is_stopped = all(state is ZoneState.FULL for state in states.values())
    if is_stopped:
        # A new zone is stopped too; the others already are (NL-75).
        changed = {zone for zone in states if not before.is_stopped or zone not in before.states}
        return ZoneVerdict(
            Disruption(states, is_stopped=True), dict.fromkeys(changed, 0.0), stops=not before.is_stopped
        )
    rates = {
        zone: _rate(state, counts[zone].size, settings)
        for zone, state in states.items()
        if before.is_stopped or before.states.get(zone) is not state
    }
    return ZoneVerdict(Disruption(states), rates, resumes=before.is_stopped)


def _rate(state: ZoneState, size: int, settings: NodeHealthSettings) -> float:
    """A partly disrupted zone has the secondary rate if it is large, else none (NL-72)."""
    if state is not ZoneState.PARTIAL:
        return settings.eviction_rate
    return settings.secondary_eviction_rate if size > settings.large_zone_threshold else 0.0
