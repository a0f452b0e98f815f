"""Why a deleted pod still exists. Pure.

The node's agent, or the pod garbage collector if there is no agent, must confirm that nothing of the pod runs. After
that only finalizers keep it.
"""

from __future__ import annotations

from collections.abc import Iterator

from podlife.api.codec import Object
from podlife.explain import kubectl_commands as commands
from podlife.explain.cluster_snapshot import ClusterSnapshot, is_out_of_service, is_ready
from podlife.explain.explanation import Cause, Remedy, UpcomingAction
from podlife.explain.finalizers import causes_of_finalizers
from podlife.explain.node_state import collecting, describe_unready, silent
from podlife.explain.objects import (
    all_statuses,
    condition_since,
    container_spec,
    deleted_at,
    grace_ends_at,
    has_ended,
    metadata,
    spec,
    text,
)
from podlife.explain.risks import FORCED, TAINTED

# What an agent may need after the grace to kill, to clean up and to say so.
_AFTER_GRACE_SECONDS = 30.0


def deletion_causes(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    if not is_only_held(pod):
        yield from _unfinished(world, pod)
    yield from causes_of_finalizers("pod", pod)


def is_only_held(pod: Object) -> bool:
    """Its node has said its last word, and the object stays for its finalizers alone."""
    found = metadata(pod)
    return bool(found.get("finalizers")) and (
        found.get("deletionGracePeriodSeconds") == 0 or (has_ended(pod) and not _running(pod))
    )


def _unfinished(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    node = world.node_of(pod)
    if not text(spec(pod), "nodeName"):
        yield _never_scheduled(world, pod)
    elif world.is_node_gone(pod):
        yield _node_gone(world, pod)
    elif node is None:
        yield _unknown_node(pod)
    elif not is_ready(node):
        yield _node_down(world, pod, node)
    elif world.is_silent(node):
        yield silent(world, pod, node)
    elif world.seconds_since(grace_ends_at(pod)) < 0:
        yield _within_grace(world, pod)
    elif world.seconds_since(grace_ends_at(pod)) > _AFTER_GRACE_SECONDS:
        yield _not_ended(pod)


def _never_scheduled(world: ClusterSnapshot, pod: Object) -> Cause:
    remedy = Remedy(commands.delete(pod, 0), "None: nothing of it has ever run.")
    said = "deleted before it had a node: no agent will end it"
    return Cause("never-scheduled", said, deleted_at(pod), (remedy,), collecting(world, pod))


def _node_gone(world: ClusterSnapshot, pod: Object) -> Cause:
    name = text(spec(pod), "nodeName")
    remedy = Remedy(commands.delete(pod, 0), f"None if the machine of {name} is gone for good. {FORCED}")
    said = f"its node {name} does not exist any more: no agent will end it"
    return Cause("node-gone", said, deleted_at(pod), (remedy,), collecting(world, pod))


def _unknown_node(pod: Object) -> Cause:
    name = text(spec(pod), "nodeName")
    said = f"node {name} could not be read: whether its agent is there to end the pod is not known"
    return Cause("node-unread", said, deleted_at(pod), (Remedy(commands.delete(pod, 0), FORCED),))


def _node_down(world: ClusterSnapshot, pod: Object, node: Object) -> Cause:
    name, down = text(metadata(node), "name"), describe_unready(world, node)
    force = Remedy(commands.delete(pod, 0), FORCED)
    # Two things had to come together: the later of them began it.
    began = (condition_since(node, "Ready"), deleted_at(pod))
    since = max((each for each in began if each is not None), default=None)
    if is_out_of_service(node):
        said = f"{down}, and out of service: nobody has collected its pods yet"
        return Cause("out-of-service", said, since, (force,), collecting(world, pod))
    said = f"{down}: nobody there says that the pod has ended, and no taint says that the machine is off"
    remedies = (Remedy(commands.out_of_service(name), TAINTED), force)
    wait = UpcomingAction("the node's agent", "ends the pod, when it is back")
    return Cause("taint-missing", said, since, remedies, (wait,))


def _within_grace(world: ClusterSnapshot, pod: Object) -> Cause:
    ends_at, running = grace_ends_at(pod), _running(pod)
    hooks = [name for name in running if _pre_stop(container_spec(pod, name))]
    grace = metadata(pod).get("deletionGracePeriodSeconds")
    what = (
        f"its preStop hook or what comes after it runs ({', '.join(hooks)})"
        if hooks
        else f"{', '.join(running) or 'its containers'} may still end without being killed"
    )
    kill = UpcomingAction("the node's agent", "kills what still runs", ends_at)
    remedy = Remedy(
        commands.delete(pod, 1), "What runs is killed a second from now, in the middle of what it does."
    )
    name = "pre-stop" if hooks else "grace"
    said = f"inside its grace of {grace} s: {what}"
    return Cause(name, said, deleted_at(pod), (remedy,), (kill,), is_stuck=False)


def _pre_stop(container: Object) -> bool:
    return bool((container.get("lifecycle") or {}).get("preStop"))


def _not_ended(pod: Object) -> Cause:
    running = _running(pod)
    what = f"{', '.join(running)} still counts as running" if running else "nothing of it runs any more"
    node = text(spec(pod), "nodeName")
    said = f"its grace is over, node {node} is ready and its agent is heard, and still it has not ended it: {what}"
    look = "; look at the agent's log and for volumes that cannot be unmounted"
    return Cause(
        "agent-does-not-end-it", said + look, grace_ends_at(pod), (Remedy(commands.delete(pod, 0), FORCED),)
    )


def _running(pod: Object) -> list[str]:
    return [text(each, "name") for each, _ in all_statuses(pod) if (each.get("state") or {}).get("running")]
