"""Takes chosen finalizers off pods whose node is gone, and nothing else off anybody.

A finalizer is somebody's word that something is still to be done. It is taken off only if it is on the list that a
person gave, the pod was deleted and its grace is over, its node was missing for a quarantine and the server, asked by
name just before, does not know it. The Job controller's own finalizer goes only when the Job is gone: before that the
Job would never count the pod. The patch names the UID, the version and the finalizer in its place, so it fits nothing
else. What comes before (an archive) are steps; whatever is in doubt leaves the pod as it is, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.views import MetadataOnly, OwnerReference, controller_of
from podlife.client import NAMESPACES, NODES, PODS, Client, ListOptions, PatchType
from podlife.clock import Clock
from podlife.errors import ConflictError, InvalidError, NotFoundError, PodlifeError
from podlife.podgc.finalizers.held_pods import HeldPod, held_pod
from podlife.podgc.guards.annotations import marks_of, unstop_command
from podlife.podgc.keep_until import KEEP_UNTIL, kept_by, seconds_of
from podlife.podgc.owner_wait.reader import OwnerReader
from podlife.podgc.owner_wait.status import TRACKING
from podlife.podgc.planner import Action, Victim
from podlife.podgc.settings import Reason
from podlife.podgc.steps import Step, reason_to_stay
from podlife.podgc.views import Deleted, Pod

__all__ = ["FinalizerRemover", "Taken", "event_of", "patch_for"]

_MOST_TRIES = 3


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of a pod: the finalizers that were taken off and those that are left, or why none was.

    `is_gone` where somebody else was faster: there is no such pod any more."""

    namespace: str
    name: str
    node: str
    taken: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    why: str = ""
    is_gone: bool = False
    owner: OwnerReference | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def kept_until(pod: Object, now: datetime) -> str:
    """What its own annotation protects it by, or ""."""
    noted = (pod["metadata"].get("annotations") or {}).get(KEEP_UNTIL)
    return "" if noted is None else kept_by(seconds_of(noted), now.timestamp())


class FinalizerRemover:
    """`allowed` are finalizers by their whole names. `protection` says what protects a pod; `hold` why nothing is done
    now. `is_dry` does all but the last: no step, no patch."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        allowed: frozenset[str],
        *,
        steps: Sequence[Step] = (),
        protection: Callable[[Object, datetime], str] = kept_until,
        hold: Callable[[], str] = lambda: "",
        is_dry: bool = False,
    ) -> None:
        self.allowed = allowed
        self._client = client
        self._clock = clock
        self._steps = steps
        self._protection = protection
        self._hold = hold
        self._is_dry = is_dry
        self._owners = OwnerReader(client)

    async def take_off(self, pod: HeldPod) -> Taken:
        """For a pod whose node has been missing for the quarantine. Raises PodlifeError when the server could not be
        asked; then nothing was changed, or it is not known."""
        for _ in range(_MOST_TRIES):
            found = await self._read(pod)
            if found is None:
                return self._told(pod, is_gone=True)
            if why := await self._reason_to_stay(pod, found):
                return self._told(pod, why=why)
            chosen = self._chosen(found)
            if self._is_dry:
                return self._told(pod, taken=chosen, left=_others(found, chosen))
            if why := await reason_to_stay(self._steps, _victim(pod, found)):
                return self._told(pod, why=why)
            # That may have taken its time: a node may be back, a window closed, and somebody may have said stop.
            if why := await self._reason_to_stay(pod, found):
                return self._told(pod, why=why)
            try:
                answer = await self._patch(found, chosen)
            except NotFoundError:
                return self._told(pod, is_gone=True)
            except (ConflictError, InvalidError):
                # It has changed since it was read: decided once more on what it is now.
                continue
            metadata = answer.metadata
            return self._told(pod, taken=chosen, left=_others(found, chosen), owner=controller_of(metadata))
        return self._told(pod, why="it changes all the time: try again")

    def _told(self, pod: HeldPod, **what: Any) -> Taken:
        return Taken(pod.namespace, pod.name, pod.node, **what)

    def _chosen(self, pod: Object) -> tuple[str, ...]:
        return tuple(each for each in _finalizers(pod) if each in self.allowed)

    async def _read(self, pod: HeldPod) -> Object | None:
        # As a list of one: whoever may sweep may list, and needs no right to get besides.
        options = ListOptions(field_selector=f"metadata.name={pod.name}")
        page = await self._client.list(PODS, pod.namespace, options=options)
        found: list[Object] = page.items
        return next((each for each in found if each["metadata"].get("uid") == pod.uid), None)

    async def _reason_to_stay(self, pod: HeldPod, found: Object) -> str:
        held = held_pod(found, self._clock.now())
        if held is None:
            return "it is not held by a finalizer alone: it was not deleted, or its grace is not over"
        if not self._chosen(found):
            return f"none of its finalizers ({', '.join(_finalizers(found))}) is allowed to be taken off"
        if protection := self._protection(found, self._clock.now()):
            return f"it is protected by {protection}"
        if held_back := self._hold():
            return held_back
        return (
            await self._stopped(pod.namespace)
            or await self._node_is_there(held.node)
            or await self._job_counts(found)
        )

    async def _stopped(self, namespace: str) -> str:
        """A namespace that is marked to be left alone is left alone in this, too."""
        annotations = {}
        for name in ("kube-system", namespace):
            found = await self._client.get(NAMESPACES, name, view=_Marked)
            annotations[name] = found.metadata.annotations or {}
        stop = marks_of(annotations).stop_of(namespace)
        if stop is None:
            return ""
        return f"namespace {stop[0]} is marked to be left alone ({stop[1]}); `{unstop_command(stop[0])}` lifts it"

    async def _node_is_there(self, node: str) -> str:
        if not node:
            return "it never had a node that could be gone"
        try:
            await self._client.get(NODES, node, view=MetadataOnly)
        except PodlifeError as error:
            is_gone = isinstance(error, NotFoundError) and error.is_about(node)
            return "" if is_gone else f"node {node} could not be looked for: {error}"
        return f"its node {node} exists: what set the finalizer may still do its work"

    async def _job_counts(self, found: Object) -> str:
        if TRACKING not in self._chosen(found):
            return ""
        owner = controller_of(msgspec.convert(found, MetadataOnly).metadata)
        if owner is None or owner.kind != "Job":
            return ""
        now = asyncio.get_running_loop().time()
        answer = await self._owners.ask(owner, found["metadata"]["namespace"], after=now)
        if answer.is_gone:
            return ""
        known = answer.trouble or "it is there"
        lost = "without the finalizer it would never count this pod, and could run its work again"
        return f"{TRACKING} belongs to Job {owner.name} ({known}): {lost}"

    async def _patch(self, found: Object, chosen: Sequence[str]) -> Deleted:
        metadata = found["metadata"]
        return await self._client.patch(
            PODS,
            metadata["name"],
            patch_for(found, chosen),
            metadata["namespace"],
            type=PatchType.JSON,
            view=Deleted,
        )


def patch_for(pod: Object, chosen: Sequence[str]) -> list[Object]:
    """The last first: what is taken off leaves those before it in their places."""
    metadata = pod["metadata"]
    steps: list[Object] = [
        {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]},
        {"op": "test", "path": "/metadata/resourceVersion", "value": metadata["resourceVersion"]},
    ]
    for place, finalizer in reversed(list(enumerate(metadata["finalizers"]))):
        if finalizer in chosen:
            path = f"/metadata/finalizers/{place}"
            steps += [{"op": "test", "path": path, "value": finalizer}, {"op": "remove", "path": path}]
    return steps


def event_of(taken: Taken) -> tuple[Mapping[str, str], str]:
    """Whom to tell what was taken off: the pod's owner, or else its namespace; the pod itself is about to go."""
    rest = f"; still held by {', '.join(taken.left)}" if taken.left else ""
    message = (
        f"podlife-gc took {', '.join(taken.taken)} off pod {taken.name}: it was deleted, and node {taken.node} no "
        f"longer exists{rest}"
    )
    if taken.owner is None:
        named = {"apiVersion": "v1", "kind": "Namespace", "name": taken.namespace}
    else:
        owner = taken.owner
        named = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {**named, "namespace": taken.namespace}, message


class _MarkedMetadata(msgspec.Struct):
    annotations: dict[str, str] | None = None


class _Marked(msgspec.Struct):
    metadata: _MarkedMetadata


def _finalizers(pod: Object) -> tuple[str, ...]:
    return tuple(pod["metadata"].get("finalizers") or ())


def _others(pod: Object, chosen: Sequence[str]) -> tuple[str, ...]:
    return tuple(each for each in _finalizers(pod) if each not in chosen)


def _victim(pod: HeldPod, found: Object) -> Victim:
    why = f"finalizers are taken off: node {pod.node} no longer exists"
    return Victim(msgspec.convert(found, Pod), Reason.ORPHANED, Action.DELETE, why)
