"""Nodes, leases and pods as the pure parts see them, in a line each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from podlife.nodehealth.node_health import ClockReading, Examination, NodeHealthData, examine
from podlife.nodehealth.settings import NodeHealthSettings
from podlife.nodehealth.views import Lease, MonitoredNode, MonitoredPod, NodeTaint, Toleration
from tests.kit import objects

EPOCH = datetime(2030, 1, 1, tzinfo=UTC)
# The rules have upstream's grace.
UPSTREAM = NodeHealthSettings(monitor_grace_seconds=50.0)


def at(seconds: float) -> ClockReading:
    return ClockReading(EPOCH + timedelta(seconds=seconds), seconds)


def node(
    name: str = "n1",
    *,
    created: float = 0.0,
    heartbeat: float | None = None,
    status: str = "True",
    **more: str,
) -> MonitoredNode:
    """With a Ready condition if it has a heartbeat; `more` are other conditions."""
    told = {} if heartbeat is None else {"Ready": status}
    conditions = [
        objects.condition(type_, value, lastHeartbeatTime=_stamp(heartbeat or 0.0))
        for type_, value in {**told, **more}.items()
    ]
    metadata = {"name": name, "uid": f"uid-{name}", "creationTimestamp": _stamp(created)}
    return msgspec.convert({"metadata": metadata, "status": {"conditions": conditions}}, MonitoredNode)


def _stamp(seconds: float) -> str:
    return objects.ago(EPOCH, seconds=-seconds)


def lease(renewed: float) -> Lease:
    return msgspec.convert({"metadata": {"name": "n1"}, "spec": {"renewTime": _stamp(renewed)}}, Lease)


def look(
    seen: MonitoredNode,
    now: float,
    known: NodeHealthData | None = None,
    renewed: Lease | None = None,
    grace: float = 50.0,
) -> Examination:
    return examine(seen, renewed, known, at(now), NodeHealthSettings(monitor_grace_seconds=grace))


def taint(key: str, value: str = "", effect: str = "NoExecute") -> NodeTaint:
    return NodeTaint(key, value, effect)


def toleration(
    key: str = "", seconds: int | None = None, *, operator: str = "Exists", value: str = "", effect: str = ""
) -> Toleration:
    return Toleration(key, operator, value, effect, seconds)


def pod(name: str = "web", node_name: str = "n1", *tolerations: Toleration, uid: str = "") -> MonitoredPod:
    known = objects.stored(objects.pod(name, nodeName=node_name), uid=uid or f"uid-{name}")
    made = objects.read(known, MonitoredPod)
    made.spec.tolerations = tolerations
    return made
