"""Whether another kubelet holds the lease of a node, from the lease and the time alone. Pure.

A renewal time is written by another machine's clock, so it is believed only where both clocks would have to be far off
to make a difference. Values that no kubelet writes (no time, a year 9999, a duration of decades) hold a lease no longer
than `_MOST_SECONDS`.
"""

from __future__ import annotations

from datetime import datetime
from enum import Enum, auto

from podlife.api.codec import Object, parse_time
from podlife.errors import ConfigError

AGENT = "podlife.dev/agent"
_DEFAULT_SECONDS, _MOST_SECONDS = 40, 3600
# Clocks that differ by more than this are not expected in one cluster.
_MOST_SKEW_SECONDS = 600.0


class LeaseHold(Enum):
    FREE = auto()
    HELD = auto()
    # By its time it is over, or has not begun: it has to be watched.
    UNCLEAR = auto()


class NameInUseError(ConfigError):
    """Another kubelet serves the node of this name."""

    def __init__(self, name: str, lease: Object, now: datetime) -> None:
        renewed = renew_time(lease)
        ago = "" if renewed is None else f", its lease was renewed {max(0.0, _age(renewed, now)):.0f}s ago"
        super().__init__(
            f"node {name!r} is already served by another agent{ago}: stop that agent and wait until its lease has "
            f"expired ({lease_seconds(lease)}s), use another name, or force it with `podlife node --take-over`"
        )


def agent_of(lease: Object) -> str:
    return str((lease["metadata"].get("annotations") or {}).get(AGENT) or "")


def owner_uid(lease: Object) -> str:
    """Of the node that it belongs to; "" where it does not say."""
    owners = lease["metadata"].get("ownerReferences") or ()
    return next((str(each["uid"]) for each in owners if each["kind"] == "Node"), "")


def lease_seconds(lease: Object) -> int:
    seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
    return min(seconds, _MOST_SECONDS) if isinstance(seconds, int) and seconds > 0 else _DEFAULT_SECONDS


def hold_of(lease: Object, agent: str, now: datetime) -> LeaseHold:
    """The lease as the kubelet `agent` has to see it."""
    renewed = renew_time(lease)
    if agent_of(lease) == agent or renewed is None:
        return LeaseHold.FREE
    age, seconds = _age(renewed, now), lease_seconds(lease)
    if abs(age) <= seconds:
        return LeaseHold.HELD
    return LeaseHold.FREE if age > seconds + _MOST_SKEW_SECONDS else LeaseHold.UNCLEAR


def _age(renewed: datetime, now: datetime) -> float:
    return (now - renewed).total_seconds()


def renew_time(lease: Object) -> datetime | None:
    text = (lease.get("spec") or {}).get("renewTime")
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None
