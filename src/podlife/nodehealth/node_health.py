"""Whether a node is alive, from its Ready condition, its lease and its previous state, and the actions that follow.
Pure.

A node is alive whenever the heartbeat time of its Ready condition changes or its lease is renewed. These times are
only compared with each other and never with a local clock, because clocks of other machines may be off (NL-10). The
time of the last change is kept in the event loop's time.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from podlife.api.codec import Object, format_time
from podlife.nodehealth.settings import NodeHealthSettings
from podlife.nodehealth.taints import NOT_READY, UNREACHABLE, TaintKey, has_taint, opposite_of
from podlife.nodehealth.views import READY, Lease, MonitoredNode, MonitoredNodeCondition

# Conditions that the kubelet reports; NetworkUnavailable belongs to the network plugin (NL-13).
EXPIRING = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
UNKNOWN = "Unknown"


@dataclass(frozen=True, slots=True)
class ClockReading:
    """The same time by the wall clock and by the event loop."""

    wall: datetime
    loop: float


@dataclass(frozen=True, slots=True)
class NodeHealthData:
    uid: str
    last_report_at: float
    # As last examined, including what was written then (NL-32).
    ready: MonitoredNodeCondition | None
    renewed: datetime | None = None
    has_lease: bool = False


@dataclass(frozen=True, slots=True)
class Examination:
    health: NodeHealthData
    # Status of the Ready condition; Unknown if there is none.
    observed: str
    # Status after the grace period; None if there is none yet and the period has not passed.
    current: str | None
    # Whether to write it: only if the Ready condition changes (NL-17).
    must_write: bool
    is_new: bool

    @property
    def has_failed(self) -> bool:
        """Whether this examination changed the node from ready to not ready (NL-40)."""
        return self.observed == "True" and self.current not in (None, "True")


def examine(
    node: MonitoredNode,
    lease: Lease | None,
    known: NodeHealthData | None,
    now: ClockReading,
    settings: NodeHealthSettings,
) -> Examination:
    ready = node.ready
    is_new = known is None or known.uid != node.metadata.uid
    health = _first_seen(node, now) if known is None or is_new else _updated(known, ready, now)
    if lease is not None and (not health.has_lease or _is_later(lease.spec.renew_time, health.renewed)):
        health = replace(health, last_report_at=now.loop, renewed=lease.spec.renew_time, has_lease=True)
    grace = settings.startup_grace_seconds if ready is None else settings.monitor_grace_seconds
    observed = UNKNOWN if ready is None else ready.status
    # Exactly at the end of the grace period a node is still alive (NL-12).
    is_expired = now.loop - health.last_report_at > grace
    must_write = is_expired and (ready is None or observed != UNKNOWN)
    current = UNKNOWN if is_expired else None if ready is None else observed
    return Examination(health, observed, current, must_write, is_new)


def _first_seen(node: MonitoredNode, now: ClockReading) -> NodeHealthData:
    last_report_at = now.loop
    created = node.metadata.creation_timestamp
    if node.ready is None and created is not None:
        # It has not reported since it was created (NL-11).
        last_report_at -= (now.wall - created).total_seconds()
    return NodeHealthData(node.metadata.uid, last_report_at, node.ready)


def _updated(
    known: NodeHealthData, ready: MonitoredNodeCondition | None, now: ClockReading
) -> NodeHealthData:
    """NL-10: the node reported if the condition was added, removed or has another heartbeat."""
    if (known.ready is None) != (ready is None) or (
        known.ready is not None
        and ready is not None
        and known.ready.last_heartbeat_time != ready.last_heartbeat_time
    ):
        return replace(known, last_report_at=now.loop, ready=ready)
    return replace(known, ready=ready) if known.ready != ready else known


def _is_later(renewed: datetime | None, known: datetime | None) -> bool:
    return renewed is not None and (known is None or known < renewed)


def expired_conditions(node: Object, now: datetime) -> list[Object]:
    """The conditions of `node` that become Unknown; those that already are stay unchanged (NL-13 to NL-16)."""
    status = node.get("status") or {}
    known = {each.get("type"): each for each in status.get("conditions") or ()}
    changed = []
    for type_ in EXPIRING:
        condition: Object | None = known.get(type_)
        if condition is None:
            changed.append(_never_updated(type_, node["metadata"]["creationTimestamp"], now))
        elif condition.get("status") != UNKNOWN:
            silent = {
                "status": UNKNOWN,
                "reason": "NodeStatusUnknown",
                "message": "Kubelet stopped posting node status.",
                "lastTransitionTime": format_time(now),
            }
            changed.append({**condition, **silent})
    return changed


def _never_updated(type_: str, created: str, now: datetime) -> Object:
    return {
        "type": type_,
        "status": UNKNOWN,
        "reason": "NodeStatusNeverUpdated",
        "message": "Kubelet never posted node status.",
        "lastHeartbeatTime": created,
        "lastTransitionTime": format_time(now),
    }


@dataclass(frozen=True, slots=True)
class NodeAction:
    """Actions for one node, in this order."""

    # Replace one NoExecute taint by the other, at once: the rate limit was already applied (NL-52).
    swap: tuple[TaintKey, TaintKey] | None = None
    # Queue it for its NoExecute taint; `lacks_taint`: it has none yet (NL-50).
    waits: bool = False
    lacks_taint: bool = False
    # It is ready: dequeue it and remove these taints (NL-53).
    is_released: bool = False
    removes: tuple[TaintKey, ...] = ()
    # Record one event for the node and mark its pods as not ready (NL-40).
    records_event: bool = False
    marks_pods: bool = False

    @property
    def asks_server(self) -> bool:
        return self.swap is not None or bool(self.removes) or self.marks_pods


def decide(node: MonitoredNode, seen: Examination, *, has_unmarked_pods: bool) -> NodeAction:
    """`has_unmarked_pods`: an earlier pass failed to mark some of its pods (NL-44)."""
    if seen.current is None:
        return NodeAction()
    # A node that is Unknown when it is first seen may have become so before its pods were marked: they are marked now,
    # but not those of a node that never reported (NL-20).
    is_shown_silent = seen.observed == "Unknown" and seen.health.ready is not None and not seen.must_write
    was_missed = seen.is_new and is_shown_silent
    marks_pods = seen.has_failed or (seen.observed != "True" and (has_unmarked_pods or was_missed))
    pair = opposite_of(seen.current)
    if pair is None:
        present = tuple(each for each in (UNREACHABLE, NOT_READY) if has_taint(node.spec.taints, each))
        return NodeAction(is_released=True, removes=present, marks_pods=marks_pods)
    wanted, other = pair
    if has_taint(node.spec.taints, other):
        return NodeAction(swap=pair, records_event=seen.has_failed, marks_pods=marks_pods)
    lacks = not has_taint(node.spec.taints, wanted)
    return NodeAction(waits=True, lacks_taint=lacks, records_event=seen.has_failed, marks_pods=marks_pods)
