"""Which nodes are tainted as out of service, which are not and why, and from which the taint is removed. Pure.

Guarantees, whatever the facts:
* A ready node is never tainted, nor one whose kubelet reports.
* A node is tainted only after the required number of fence checks confirmed it dead, recently and after its kubelet
  last reported.
* The maximum number of nodes out of service is never exceeded; if more nodes are dead, or too few are healthy, none
  is tainted.
* A taint that the controller did not set is never removed.

Every node that has been not ready for long enough and is not tainted gets a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from podlife.clock import add_seconds
from podlife.nodehealth.node_health import ClockReading
from podlife.nodehealth.out_of_service.fence_checks import FenceVerdict
from podlife.nodehealth.out_of_service.record import RecordState, TaintOwner, TaintRecord
from podlife.nodehealth.out_of_service.settings import OutOfServiceSettings


@dataclass(frozen=True, slots=True)
class NodeContents:
    """What the taint would release, or has not released yet."""

    pods: int = 0
    attachments: int = 0

    def __bool__(self) -> bool:
        return bool(self.pods or self.attachments)


@dataclass(frozen=True, slots=True)
class OutOfServiceFacts:
    name: str
    uid: str
    is_ready: bool
    # How long the controller has observed it as not ready, and its kubelet as silent.
    not_ready_seconds: float = 0.0
    silent_seconds: float = 0.0
    # Lease duration: a shorter silence does not count.
    lease_seconds: float = 0.0
    is_control_plane: bool = False
    taint: TaintOwner = TaintOwner.NONE
    record: TaintRecord | None = None
    # None: not read yet, or cannot be read now.
    held: NodeContents | None = None
    # None: no check has run yet.
    verdict: FenceVerdict | None = None


class OutOfServiceAction(StrEnum):
    NOTHING = "nothing"
    # Read its contents first.
    LOOK = "look"
    # Run the fence checks first.
    CHECK = "check"
    # Checked recently; checked again before anything is done.
    WAIT = "wait"
    SET = "set"
    REMOVE = "remove"
    # Record that it has come back.
    NOTE = "note"
    # Remove the obsolete record.
    FORGET = "forget"
    REFUSE = "refuse"


class RefusalReason(StrEnum):
    """Why a node is not tainted, or why its taint is removed."""

    READY = "ready-again"
    FREED = "freed"
    AGENT_SPEAKS = "agent-speaks"
    CONTROL_PLANE = "control-plane"
    COOL_DOWN = "cool-down"
    TAKEN_OFF = "taken-off-by-somebody"
    TAINTED_ALREADY = "tainted-by-somebody-else"
    NOTHING_TO_FREE = "nothing-to-free"
    TOO_FEW_HEALTHY = "too-few-healthy"
    TOO_MANY = "too-many-at-once"
    NOT_CONFIRMED = "not-confirmed"


@dataclass(frozen=True, slots=True)
class NodeDecision:
    """`message` is for users. Refusals with the same `key` are reported once: numbers in `message` may differ."""

    step: OutOfServiceAction
    reason: RefusalReason | None = None
    message: str = ""
    details: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        return self.step, self.reason, self.details


_NOTHING = NodeDecision(OutOfServiceAction.NOTHING)


def decide(
    nodes: Sequence[OutOfServiceFacts], settings: OutOfServiceSettings, now: ClockReading
) -> Mapping[str, NodeDecision]:
    """Decisions by node name."""
    decided = {node.name: _decide_alone(node, settings, now) for node in nodes}
    candidates = [node for node in nodes if decided[node.name] is None]
    suspects = [node for node in nodes if _is_suspect(node, decided[node.name])]
    alone = {name: decision for name, decision in decided.items() if decision is not None}
    return {**alone, **_decide_together(nodes, candidates, suspects, settings, now.loop)}


def _is_suspect(node: OutOfServiceFacts, decision: NodeDecision | None) -> bool:
    """A node whose contents cannot be read now may be dead too."""
    return decision is None or (decision.step is OutOfServiceAction.LOOK and node.taint is TaintOwner.NONE)


# Each node on its own


def _decide_alone(
    node: OutOfServiceFacts, settings: OutOfServiceSettings, now: ClockReading
) -> NodeDecision | None:
    """None if the decision depends on other nodes and on the fence checks."""
    if node.taint is TaintOwner.OURS:
        return _ours(node)
    if node.is_ready:
        return _back(node.record, settings, now)
    if node.not_ready_seconds < settings.after_seconds:
        return _NOTHING
    return _kept(node, settings, now)


def _ours(node: OutOfServiceFacts) -> NodeDecision:
    if node.is_ready:
        return NodeDecision(OutOfServiceAction.REMOVE, RefusalReason.READY, "it is ready again")
    if node.held is None:
        return NodeDecision(OutOfServiceAction.LOOK)
    if node.held:
        return _NOTHING
    return NodeDecision(
        OutOfServiceAction.REMOVE, RefusalReason.FREED, "its pods and VolumeAttachments are gone"
    )


def _back(record: TaintRecord | None, settings: OutOfServiceSettings, now: ClockReading) -> NodeDecision:
    if record is None:
        return _NOTHING
    if record.state is not RecordState.RETURNED:
        return NodeDecision(OutOfServiceAction.NOTE)
    return (
        _NOTHING if _cooling_seconds(record, settings, now) > 0 else NodeDecision(OutOfServiceAction.FORGET)
    )


def _kept(node: OutOfServiceFacts, settings: OutOfServiceSettings, now: ClockReading) -> NodeDecision | None:
    """Reasons not to taint a node that has been not ready for long enough, independent of other nodes."""
    record = node.record
    if node.taint is TaintOwner.OTHER:
        return _refuse(
            RefusalReason.TAINTED_ALREADY, "the taint was set by others, who are expected to remove it"
        )
    needed = max(settings.after_seconds, node.lease_seconds)
    if node.silent_seconds < needed:
        return _refuse(
            RefusalReason.AGENT_SPEAKS,
            f"its kubelet has renewed neither lease nor status for {node.silent_seconds:.0f} s, "
            f"less than the required {needed:.0f} s: it may be alive",
        )
    if node.is_control_plane and not settings.with_control_plane:
        return _refuse(
            RefusalReason.CONTROL_PLANE,
            "control plane nodes are excluded (--out-of-service-control-plane includes them)",
        )
    if record is not None and record.state is RecordState.TAINTED:
        return _refuse(
            RefusalReason.TAKEN_OFF,
            "the taint was removed by hand: it is not set again until the node has been ready",
        )
    if record is not None and record.state is RecordState.FREED:
        # Reported when it happened.
        return _NOTHING
    if record is not None and (seconds := _cooling_seconds(record, settings, now)) > 0:
        return _refuse(
            RefusalReason.COOL_DOWN, f"it came back recently and is left alone for {seconds:.0f} s"
        )
    if node.held is None:
        return NodeDecision(OutOfServiceAction.LOOK)
    if not node.held:
        return _refuse(
            RefusalReason.NOTHING_TO_FREE,
            "it has no VolumeAttachment and no pod that the taint would release",
        )
    return None


def _cooling_seconds(record: TaintRecord, settings: OutOfServiceSettings, now: ClockReading) -> float:
    """At most the whole duration, whatever clock wrote the start."""
    over = add_seconds(record.at, settings.cool_down_seconds)
    return min(settings.cool_down_seconds, (over - now.wall).total_seconds())


def _refuse(reason: RefusalReason, message: str, details: Iterable[str] = ()) -> NodeDecision:
    return NodeDecision(OutOfServiceAction.REFUSE, reason, message, tuple(details))


# All nodes together


def _decide_together(
    nodes: Sequence[OutOfServiceFacts],
    candidates: Sequence[OutOfServiceFacts],
    suspects: Sequence[OutOfServiceFacts],
    settings: OutOfServiceSettings,
    now: float,
) -> Mapping[str, NodeDecision]:
    healthy, needed = sum(node.is_ready for node in nodes), settings.min_healthy.at_least(len(nodes))
    if healthy < needed:
        message = (
            f"only {healthy} of {len(nodes)} nodes are ready, {needed} required "
            f"(--out-of-service-min-healthy={settings.min_healthy}): no node is tainted"
        )
        # Contents are not read either: a server that lost most nodes is busy enough.
        return {node.name: _refuse(RefusalReason.TOO_FEW_HEALTHY, message) for node in suspects}
    storm = _storm(nodes, suspects, settings)
    return {node.name: _judge(node, settings, now, storm) for node in candidates}


def _storm(
    nodes: Sequence[OutOfServiceFacts], suspects: Sequence[OutOfServiceFacts], settings: OutOfServiceSettings
) -> NodeDecision | None:
    """A node not known to be alive counts as dead: a mass failure must be recognized early."""
    dead = sum(node.verdict is None or node.verdict.is_confirmed(settings.require) for node in suspects)
    out = sum(map(_is_out, nodes))
    most = settings.most.at_most(len(nodes))
    if out + dead <= most:
        return None
    return _refuse(
        RefusalReason.TOO_MANY,
        f"{dead} nodes appear dead and {out} are already out of service, at most {most} of {len(nodes)} allowed "
        f"(--out-of-service-most-share={settings.most}): no node is tainted; if they are dead, set the taint by hand",
    )


def _is_out(node: OutOfServiceFacts) -> bool:
    """Even without the taint, until it is ready: nodes that fail one after the other must not all be tainted."""
    is_freed = node.record is not None and node.record.state is RecordState.FREED
    return node.taint is not TaintOwner.NONE or (is_freed and not node.is_ready)


def _judge(
    node: OutOfServiceFacts, settings: OutOfServiceSettings, now: float, storm: NodeDecision | None
) -> NodeDecision:
    verdict = node.verdict
    if verdict is None:
        return NodeDecision(OutOfServiceAction.CHECK)
    # A result from before the agent's last report is void.
    was_silent = now - verdict.asked_at <= node.silent_seconds
    is_fresh = was_silent and now - verdict.came_at <= settings.fresh_seconds
    is_due = now - verdict.asked_at >= settings.fence_every_seconds
    if not verdict.is_confirmed(settings.require):
        return NodeDecision(OutOfServiceAction.CHECK) if is_due else _unconfirmed(verdict, settings)
    if is_fresh:
        return storm or NodeDecision(OutOfServiceAction.SET, None, _confirmation(verdict))
    # The machine may have been switched on since.
    return (
        NodeDecision(OutOfServiceAction.CHECK) if is_due else storm or NodeDecision(OutOfServiceAction.WAIT)
    )


def _confirmation(verdict: FenceVerdict) -> str:
    return f"confirmed dead by {', '.join(each.check for each in verdict.answers if each.result == 'dead')}"


def _unconfirmed(verdict: FenceVerdict, settings: OutOfServiceSettings) -> NodeDecision:
    needed = "all" if settings.require is None else str(settings.require)
    answers = "; ".join(f"{each.check}: {each.text or each.result}" for each in verdict.answers)
    count = f"{verdict.confirming} of {len(verdict.answers)} fence checks confirm that it is dead"
    message = f"{count}, {needed} required: {answers}"
    return _refuse(RefusalReason.NOT_CONFIRMED, message, (each.result for each in verdict.answers))
