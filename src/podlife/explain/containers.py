"""Why a pod on its node does not run, or is not ready. Pure.

Containers are examined in start order, and only the first that blocks the pod is reported: the others wait for it or
fail for the same reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from podlife.api.codec import Object
from podlife.api.durations import parse_go_duration
from podlife.explain import kubectl_commands as commands
from podlife.explain.cluster_snapshot import ClusterSnapshot
from podlife.explain.explanation import Cause, Remedy, UpcomingAction
from podlife.explain.objects import (
    all_statuses,
    condition,
    condition_since,
    container_spec,
    items,
    metadata,
    moment,
    spec,
    status,
    text,
)
from podlife.explain.volumes import attached_elsewhere, claim_causes, missing_object

_IMAGE = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "ImageInspectError",
    "RegistryUnavailable",
    "SignatureValidationFailed",
)
_ERRORS = (
    "CreateContainerError",
    "RunContainerError",
    "StartError",
    "PreCreateHookError",
    "PostStartHookError",
)
# What a runtime says of a container that never ran.
_NOT_STARTED = ("StartError", "ContainerCannotRun")
# What is not there after so long is told of; sooner it may simply be on its way.
_PATIENCE_SECONDS = 30.0
_MOST_BACKOFF = timedelta(minutes=5)
_BACKOFF = re.compile(r"back-off (\S+) restarting ")
# In podlife's own words: its process runtime shows images and does not look into them.
_NO_COMMAND = "has no command"
_NEW_IMAGE = "What runs is replaced by another version of the program."
_ANOTHER = "This pod ends; only with a controller does another one take its place."


def container_causes(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    found = next(_of_containers(world, pod), None)
    if found is not None:
        yield found
        return
    if is_held_before_starting(world, pod):
        yield from _before_starting(world, pod)
    elif text(condition(pod, "Ready"), "status") == "False":
        yield from _not_ready(world, pod)


def _of_containers(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    for each, is_init in all_statuses(pod):
        waiting = (each.get("state") or {}).get("waiting") or {}
        if (cause := _waiting(world, pod, each, waiting, _title(each, is_init))) is not None:
            yield cause
        running = (each.get("state") or {}).get("running") or {}
        if is_init and running and not _is_sidecar(pod, each):
            began = moment(running.get("startedAt"))
            if world.seconds_since(began) > _PATIENCE_SECONDS:
                yield _still_initialising(world, pod, each, began)


def _title(each: Object, is_init: bool) -> str:
    return f"{'init container' if is_init else 'container'} {text(each, 'name')}"


def _is_sidecar(pod: Object, each: Object) -> bool:
    return container_spec(pod, text(each, "name")).get("restartPolicy") == "Always"


def _waiting(world: ClusterSnapshot, pod: Object, each: Object, waiting: Object, title: str) -> Cause | None:
    reason, message = text(waiting, "reason"), text(waiting, "message")
    since = condition_since(pod, "Initialized" if title.startswith("init") else "ContainersReady")
    new_image = _new_image(world, pod, text(each, "name"))
    if reason in _IMAGE:
        said = f"the image {text(each, 'image')} of {title} cannot be had ({reason}): {message}"
        again = (
            UpcomingAction(
                "the node's agent", "tries to pull it again, at most 5 minutes after the last time"
            ),
        )
        return Cause("image", said, since, (new_image,), again)
    if reason == "CreateContainerConfigError":
        remedy = missing_object(pod, message)
        again = (UpcomingAction("the node's agent", "tries again within about a minute"),)
        said = f"{title} cannot be configured: {message}"
        return Cause("configuration", said, since, (remedy,) if remedy else (), again)
    if reason == "CrashLoopBackOff":
        return _crash_loop(world, pod, each, title)
    if reason in _ERRORS:
        remedy = _a_command(world, pod) if _NO_COMMAND in message else new_image
        return Cause("container-error", f"{title} cannot be started ({reason}): {message}", since, (remedy,))
    return None


def _restart(each: Object, ended: datetime | None) -> UpcomingAction:
    """When the kubelet says how long it backs off, then; otherwise the longest that it does."""
    waiting = (each.get("state") or {}).get("waiting") or {}
    said = _BACKOFF.match(text(waiting, "message"))
    seconds = parse_go_duration(said[1]) if said else None
    if seconds is None or not 0 <= seconds <= _MOST_BACKOFF.total_seconds():
        return UpcomingAction(
            "the node's agent", "starts it again, at the latest", ended and ended + _MOST_BACKOFF
        )
    return UpcomingAction("the node's agent", "starts it again", ended and ended + timedelta(seconds=seconds))


def _crash_loop(world: ClusterSnapshot, pod: Object, each: Object, title: str) -> Cause:
    name, last = text(each, "name"), (each.get("lastState") or {}).get("terminated") or {}
    ended = moment(last.get("finishedAt"))
    count, code = each.get("restartCount") or 0, last.get("exitCode")
    again = _restart(each, ended)
    logs = commands.kubectl(
        "logs", text(metadata(pod), "name"), *commands.namespace_flag(pod), "-c", name, "--previous"
    )
    if text(last, "reason") in _NOT_STARTED:
        said = f"{title} cannot be started ({text(last, 'reason')}): {text(last, 'message')}"
        return Cause("container-error", said, ended, (_new_image(world, pod, name),), (again,))
    said = f"{title} ends again and again ({count} restarts), last with exit code {code}"
    if text(last, "reason") == "OOMKilled":
        remedy = Remedy(_more_memory(world, pod, name), "The node has less memory for others.")
        return Cause("out-of-memory", f"{said}: it was killed for want of memory", ended, (remedy,), (again,))
    image = _new_image(world, pod, name)
    hook = next((text(event, "message") for event in _reversed(world, pod, "FailedPostStartHook")), "")
    why = f"; its postStart hook fails: {hook}" if hook else _unhealthy(world, pod)
    return Cause("crash-loop", f"{said}{why}; `{logs}` shows what it said", ended, (image,), (again,))


def _unhealthy(world: ClusterSnapshot, pod: Object) -> str:
    """Whether its node ended it for a probe, and not it itself."""
    told = (text(event, "message") for event in _reversed(world, pod, "Unhealthy"))
    probe = next((message for message in told if message.startswith(("Liveness", "Startup"))), "")
    return f"; its node ends it for a probe: {probe}" if probe else ""


def _new_image(world: ClusterSnapshot, pod: Object, container: str) -> Remedy:
    return Remedy(commands.set_image(pod, container, world.workload_of(pod)), _NEW_IMAGE)


def _a_command(world: ClusterSnapshot, pod: Object) -> Remedy:
    """For a container that has none: no image would give it one."""
    target = commands.workload_target(pod, world.workload_of(pod))
    if target.startswith("pod/"):
        return Remedy(commands.delete(pod), "A pod's command cannot be changed: make it anew, with one.")
    return Remedy(
        commands.kubectl("edit", target, *commands.namespace_flag(pod)),
        "Give the container a command; all pods of it are replaced.",
    )


def _more_memory(world: ClusterSnapshot, pod: Object, container: str) -> str:
    target = commands.workload_target(pod, world.workload_of(pod))
    if not target.startswith("pod/"):
        words = ["set", "resources", target, *commands.namespace_flag(pod), "-c", container]
        return commands.kubectl(*words, "--limits=memory=<AMOUNT>")
    limits = {"limits": {"memory": "<AMOUNT>"}}
    body = {"spec": {"containers": [{"name": container, "resources": limits}]}}
    return commands.patch("pod", pod, body, subresource="resize")


def _still_initialising(world: ClusterSnapshot, pod: Object, each: Object, began: datetime | None) -> Cause:
    name = text(each, "name")
    logs = commands.kubectl("logs", text(metadata(pod), "name"), *commands.namespace_flag(pod), "-c", name)
    said = f"init container {name} has not ended yet, and nothing else starts before; `{logs}` shows what it waits for"
    return Cause("init-container", said, began, (Remedy(commands.delete(pod), _ANOTHER),))


def is_held_before_starting(world: ClusterSnapshot, pod: Object) -> bool:
    started = _got_node_at(pod)
    reasons = {
        text((each.get("state") or {}).get("waiting") or {}, "reason") for each, _ in all_statuses(pod)
    }
    is_waiting = not reasons or bool(reasons & {"ContainerCreating", "PodInitializing"})
    return (
        is_waiting
        and text(status(pod), "phase") == "Pending"
        and world.seconds_since(started) > _PATIENCE_SECONDS
    )


def _before_starting(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    claims = list(claim_causes(world, pod))
    yield from claims
    failed = next(_reversed(world, pod, "FailedMount", "FailedAttachVolume"), None)
    since = moment(status(pod).get("startTime"))
    again = (UpcomingAction("the node's agent", "tries again within about two minutes"),)
    if (elsewhere := attached_elsewhere(world, pod)) is not None:
        yield elsewhere
    elif failed is not None and not claims:
        message = text(failed, "message")
        remedy = missing_object(pod, message) or Remedy(commands.delete(pod), _ANOTHER)
        yield Cause("volume", f"a volume of it cannot be mounted: {message}", since, (remedy,), again)
    sandbox = next(_reversed(world, pod, "FailedCreatePodSandBox", "NetworkNotReady"), None)
    if sandbox is not None:
        said = f"its sandbox cannot be made: {text(sandbox, 'message')}"
        yield Cause("sandbox", said, since, (Remedy(commands.delete(pod), _ANOTHER),), again)
    if not claims and failed is None and sandbox is None:
        yield _not_picked_up(pod, since)


def _not_picked_up(pod: Object, since: datetime | None) -> Cause:
    node = text(spec(pod), "nodeName")
    said = f"it has node {node}, whose agent has not begun to start it"
    return Cause(
        "not-picked-up", said, since or _got_node_at(pod), (Remedy(commands.delete(pod, 0), _ANOTHER),)
    )


def _got_node_at(pod: Object) -> datetime | None:
    """At the latest; who was created with a node has no condition that tells."""
    return (
        moment(status(pod).get("startTime"))
        or condition_since(pod, "PodScheduled")
        or moment(metadata(pod).get("creationTimestamp"))
    )


def _not_ready(world: ClusterSnapshot, pod: Object) -> Iterator[Cause]:
    since = condition_since(pod, "Ready")
    if world.seconds_since(since) <= _PATIENCE_SECONDS:
        return
    for gate in items(spec(pod), "readinessGates"):
        type_ = text(gate, "conditionType")
        if text(condition(pod, type_), "status") != "True":
            yield _gate(pod, type_, since)
    for each in items(status(pod), "containerStatuses"):
        if (each.get("state") or {}).get("running") and not each.get("ready"):
            yield _probe(world, pod, each, since)


def _gate(pod: Object, type_: str, since: datetime | None) -> Cause:
    body = {"status": {"conditions": [{"type": type_, "status": "True"}]}}
    risk = "Traffic comes to the pod before whoever sets the condition has found it fit."
    remedy = Remedy(commands.patch("pod", pod, body, subresource="status"), risk)
    said = f"readiness gate {type_}: nobody has set this condition of the pod to True"
    return Cause("readiness-gate", said, since, (remedy,))


def _probe(world: ClusterSnapshot, pod: Object, each: Object, since: datetime | None) -> Cause:
    name = text(each, "name")
    kind = "startup" if each.get("started") is False else "readiness"
    failed = next((text(event, "message") for event in _reversed(world, pod, "Unhealthy")), "")
    said = f"container {name} runs, and its {kind} probe does not succeed{f': {failed}' if failed else ''}"
    again = (UpcomingAction("the node's agent", "asks again after every period of the probe"),)
    remedies = (
        _new_image(world, pod, name),
        Remedy(commands.delete(pod), _ANOTHER),
    )
    return Cause(f"{kind}-probe", said, since, remedies, again)


def _reversed(world: ClusterSnapshot, pod: Object, *reasons: str) -> Iterator[Object]:
    """The last first."""
    return (event for event in reversed(world.events_of(pod)) if text(event, "reason") in reasons)
