"""Pods that have finished and are still there, and pods that must not be evicted. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from podlife.api.codec import Object
from podlife.api.selectors import label_selector_from_dict
from podlife.clock import add_seconds
from podlife.explain import kubectl_commands as commands
from podlife.explain.cluster_snapshot import ClusterSnapshot
from podlife.explain.explanation import Cause, Remedy, UpcomingAction
from podlife.explain.node_state import collecting
from podlife.explain.objects import (
    all_statuses,
    condition,
    controller_of,
    has_ended,
    is_terminating,
    items,
    metadata,
    moment,
    spec,
    status,
    text,
)

# Of podlife's own collector: until when, or for ever.
KEEP_UNTIL = "podlife.dev/keep-until"
_TRACKING = "batch.kubernetes.io/job-tracking"
_NOT_COUNTED_SECONDS = 30.0
# Which is a flag of the cluster's controller manager, and so unknown here.
_THRESHOLD = UpcomingAction("pod GC", "deletes it once more pods have ended than its threshold allows")
_FINISHED = ("Complete", "Failed")


def ended_at(pod: Object) -> datetime | None:
    ends = [
        moment(((each.get("state") or {}).get("terminated") or {}).get("finishedAt"))
        for each, _ in all_statuses(pod)
    ]
    found = max((each for each in ends if each is not None), default=None)
    return found or moment(condition(pod, "DisruptionTarget").get("lastTransitionTime"))


def finished_causes(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    yield from _not_counted(world, pod)
    reason, standing = text(status(pod), "reason"), world.rules.standing(pod)
    # What a policy keeps is told by that, with the command that lifts it: nobody has left it behind.
    is_kept = standing is not None and standing.is_kept
    if text(status(pod), "phase") == "Failed" and reason and not is_kept:
        yield _left_behind(world, pod, reason)


def _not_counted(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    """Its Job has to see the end before anybody may take the pod away."""
    finalizers, since = items(metadata(pod), "finalizers"), ended_at(pod)
    if _TRACKING in finalizers and world.seconds_since(since) > _NOT_COUNTED_SECONDS:
        place = finalizers.index(_TRACKING)
        command = commands.remove_from_list("pod", pod, "/metadata/finalizers", place, _TRACKING)
        remedy = Remedy(
            command, "The Job may count this pod wrongly: look first whether the Job controller runs."
        )
        yield Cause("job-not-counted", "it has ended, and its Job has not counted it", since, (remedy,))


def _left_behind(world: ClusterSnapshot, pod: Object, reason: str) -> Cause:
    """Evicted, refused by its node, shut down with it: kept for whoever wants to know, and by nobody cleared away."""
    message = text(status(pod), "message")
    said = (
        f"it has failed for good ({reason}{f': {message}' if message else ''}), and its object is still there"
    )
    standing = world.rules.standing(pod)
    is_ruled = standing is not None and bool(standing.rule or standing.reason)
    coming = collecting(world, pod) or tuple(expiry(world, pod)) or (() if is_ruled else (_THRESHOLD,))
    remedy = Remedy(commands.delete(pod), "What its status tells about the failure is gone with it.")
    # A pod that was refused has nothing but when its node took note of it.
    noted = moment(status(pod).get("startTime"))
    since = ended_at(pod) or noted or moment(metadata(pod).get("creationTimestamp"))
    return Cause("left-behind", said, since, (remedy,), coming)


def expiry(world: ClusterSnapshot, pod: Object) -> Iterator[UpcomingAction]:
    """When the time to live of its Job ends: the Job is deleted then, and the pod with it."""
    job = world.jobs.get(text(controller_of(pod), "uid"), {})
    seconds = spec(job).get("ttlSecondsAfterFinished")
    if not isinstance(seconds, int) or not has_ended(pod) or is_terminating(pod):
        return
    ended = next((each for kind in _FINISHED if text(each := condition(job, kind), "status") == "True"), {})
    at = moment(ended.get("lastTransitionTime"))
    name = text(controller_of(pod), "name")
    when = "" if at is not None else " when the Job has finished"
    what = f"deletes it with its Job {name}{when} (ttlSecondsAfterFinished: {seconds})"
    yield UpcomingAction("the TTL controller", what, None if at is None else add_seconds(at, seconds))


def protection_causes(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    """A note for podlife's collector; nobody else heeds it."""
    noted = (metadata(pod).get("annotations") or {}).get(KEEP_UNTIL)
    if noted is None:
        return
    until = moment(noted)
    if until is not None and until <= world.now:
        return
    words = ["annotate", "pod", text(metadata(pod), "name"), *commands.namespace_flag(pod), f"{KEEP_UNTIL}-"]
    remedy = Remedy(commands.kubectl(*words), "The collector may delete it from then on.")
    wait = UpcomingAction("podlife gc", "may collect it from then on", until)
    said = f"protected from podlife's collector by its annotation {KEEP_UNTIL}: {noted}"
    yield Cause("protected", said, None, (remedy,), (wait,), is_stuck=False)


def budget_causes(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    """On a node that is to be emptied, a budget that allows nothing holds the pod where it is."""
    node = world.node_of(pod)
    if node is None or not spec(node).get("unschedulable"):
        return
    for budget in world.budgets:
        if _covers(budget, pod) and not (status(budget).get("disruptionsAllowed") or 0):
            name = text(metadata(budget), "name")
            healthy, wanted = status(budget).get("currentHealthy", 0), status(budget).get("desiredHealthy", 0)
            said = (
                f"node {text(metadata(node), 'name')} is cordoned, and disruption budget {name} lets nobody "
                f"evict the pod: {healthy} healthy, {wanted} wanted"
            )
            remedy = Remedy(
                commands.delete(pod), "Past the budget: there are fewer healthy pods than it asks for."
            )
            yield Cause("disruption-budget", said, None, (remedy,))


def _covers(budget: Object, pod: Object) -> bool:
    found, other = metadata(budget), metadata(pod)
    if text(found, "namespace") != text(other, "namespace"):
        return False
    try:
        selector = label_selector_from_dict(spec(budget).get("selector"))
    except ValueError:
        return False
    return selector.matches(other.get("labels") or {})
