"""Explains a pod: stage, causes, upcoming actions and history. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from podlife.api.codec import Object
from podlife.explain.audit_deletion import find_deletion
from podlife.explain.cluster_snapshot import ClusterSnapshot, is_ready
from podlife.explain.containers import container_causes
from podlife.explain.deleted_by import identity_of, who_deleted
from podlife.explain.deletion import deletion_causes, is_only_held
from podlife.explain.explanation import Cause, Explanation, UpcomingAction
from podlife.explain.finished_pods import budget_causes, expiry, finished_causes
from podlife.explain.node_state import collecting, eviction, live_pod_causes
from podlife.explain.objects import condition, has_ended, is_terminating, items, metadata, spec, status, text
from podlife.explain.policy import policy_causes, policy_upcoming
from podlife.explain.timeline import timeline_of, told_by_audit
from podlife.explain.unschedulable_pods import scheduling_causes


def explain_pod(world: ClusterSnapshot, pod: Object) -> Explanation:
    found = metadata(pod)
    events, identity = world.events_of(pod), identity_of(pod)
    causes = tuple(pod_causes(world, pod))
    told = {each for cause in causes for each in cause.upcoming}
    return Explanation(
        "Pod",
        text(found, "name"),
        text(found, "namespace"),
        text(found, "uid"),
        stage=stage_of(pod),
        deletion=who_deleted(
            pod,
            events,
            audited=find_deletion(world.audited, identity) if world.audited else None,
            went_with=world.went_with,
            replicas_set_by=world.replicas_set_by,
        ),
        causes=causes,
        timeline=timeline_of(pod, events, told_by_audit(world.audited, identity)),
        upcoming=tuple(each for each in _upcoming(world, pod) if each not in told),
        unread=world.unread,
    )


def pod_causes(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    """All that hold it up, the one to begin with first."""
    if is_terminating(pod):
        yield from deletion_causes(world, pod)
    elif has_ended(pod):
        yield from finished_causes(world, pod)
    elif not text(spec(pod), "nodeName"):
        yield from scheduling_causes(world, pod)
    else:
        yield from _on_a_node(world, pod)
    yield from policy_causes(world, pod)


def _on_a_node(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    node = world.node_of(pod)
    of_node = list(live_pod_causes(world, pod))
    yield from of_node
    # What a node says that nobody hears is old.
    if node is None or (is_ready(node) and not world.is_silent(node)):
        yield from container_causes(world, pod)
    yield from budget_causes(world, pod)


def stage_of(pod: Object) -> str:
    """Where it is in its life, in a few words."""
    phase = text(status(pod), "phase")
    if is_terminating(pod):
        return "deleted, held by finalizers" if is_only_held(pod) else "terminating"
    if has_ended(pod):
        return f"ended ({phase})"
    if not text(spec(pod), "nodeName"):
        return "waiting for a node"
    if phase != "Running":
        done = [bool(each.get("ready")) for each in items(status(pod), "initContainerStatuses")]
        return "initialising" if done and not all(done) else "starting"
    return "running and ready" if text(condition(pod, "Ready"), "status") == "True" else "running, not ready"


def _upcoming(world: ClusterSnapshot, pod: Object) -> Iterator[UpcomingAction]:
    """What acts on it even where nothing holds it up."""
    yield from collecting(world, pod)
    yield from policy_upcoming(world, pod)
    yield from expiry(world, pod)
    node = world.node_of(pod)
    if node is not None and not is_terminating(pod):
        yield from eviction(world, pod, node)
