"""What is to be done about the daemon pods of one node, whatever revision is being rolled out. Pure.

One pod on a node that should run it and none where it must not be; of too many the oldest stays. While an update may
surge there are two, the old one for as long as it serves and the new one does not yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from podlife.podcontrol import is_active, is_available, is_ready, is_terminal, ready_since
from podlife.workloads.daemonset.placement import Fit
from podlife.workloads.daemonset.pod_template import HASH_LABEL, target_node
from podlife.workloads.views import Pod

__all__ = ["NodeChange", "Revision", "by_node", "decide", "has_other_part", "oldest_first"]


@dataclass(frozen=True, slots=True)
class Revision:
    """The revision that is wanted, and when its pods count: what decisions need to know of a DaemonSet."""

    hash: str
    generation: str = ""
    min_ready_seconds: int = 0
    # Two pods may be on a node while it is updated.
    is_surging: bool = False


@dataclass(slots=True)
class NodeChange:
    needs_pod: bool = False
    delete: list[Pod] = field(default_factory=list)
    # Pods that have come to an end, to be deleted so that others can come: failed ones not too often.
    failed: list[Pod] = field(default_factory=list)
    succeeded: list[Pod] = field(default_factory=list)


def by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """By the nodes they are on or for. One that has ended and was asked to go is no longer on any; one that is for
    no node in particular is nobody's to place."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        if is_terminal(pod) and pod.metadata.deletion_timestamp is not None:
            continue
        if name := target_node(pod):
            found.setdefault(name, []).append(pod)
    return found


def decide(fit: Fit, pods: Sequence[Pod], revision: Revision, now: datetime) -> NodeChange | None:
    """`pods` are those of the daemon on this node. None: it is as it should be."""
    if not pods:
        return NodeChange(needs_pod=True) if fit is Fit.SHOULD_RUN else None
    if len(pods) == 1 and fit is not Fit.MUST_NOT and is_active(pods[0]):
        # As nearly every node is, nearly all the time.
        return None
    present = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    if fit is Fit.MUST_NOT:
        return NodeChange(delete=present)
    change = NodeChange(
        failed=[pod for pod in present if pod.status.phase == "Failed"],
        succeeded=[pod for pod in present if pod.status.phase == "Succeeded"],
    )
    running = oldest_first(pod for pod in present if not is_terminal(pod))
    if not revision.is_surging:
        change.delete = running[1:]
    elif running:
        change.delete = _excess_of_surge(running, revision, now)
    else:
        # Another one is still going, and there may be two.
        change.needs_pod = fit is Fit.SHOULD_RUN
    return change


def has_other_part(old: Pod, new: Pod) -> bool:
    """Whether the pod plays another part than before: on a node, at its end, ready, or ready since another time. What
    else kubelets say of it decides nothing."""
    return (
        old.spec.node_name != new.spec.node_name
        or old.status.phase != new.status.phase
        or is_ready(old) != is_ready(new)
        or ready_since(old) != ready_since(new)
    )


def oldest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Those that are on the node come before those that are only meant for it."""
    return sorted(pods, key=_age)


def _age(pod: Pod) -> tuple[bool, float, str]:
    created = pod.metadata.creation_timestamp
    return (not pod.spec.node_name, created.timestamp() if created else 0.0, pod.metadata.name)


def _excess_of_surge(running: Sequence[Pod], revision: Revision, now: datetime) -> list[Pod]:
    """All but the oldest of the new and the oldest of the old; and the old one too, once it does not serve or the
    new one does."""
    if len(running) == 1:
        return []
    new = [pod for pod in running if pod.metadata.labels.get(HASH_LABEL) == revision.hash]
    old = [pod for pod in running if pod.metadata.labels.get(HASH_LABEL) != revision.hash]
    excess = new[1:] + old[1:]
    if new and old and (not is_ready(old[0]) or is_available(new[0], revision.min_ready_seconds, now)):
        excess.append(old[0])
    return excess
