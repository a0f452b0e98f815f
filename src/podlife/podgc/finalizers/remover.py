"""Removes allowed finalizers from pods whose node no longer exists.

A finalizer is removed only if the user allowed it by name, the pod was deleted and its grace period is over, its node
was missing for a quarantine, and the server, asked immediately before, does not know the node. The Job controller's
finalizer is removed only when the Job is gone, because the Job would never count the pod otherwise. The patch tests
UID, resource version and the finalizer at its index. Pre-delete steps (an archive) run first. If in doubt, the pod
stays as it is, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.views import MetadataOnly, controller_of
from podlife.client import NAMESPACES, NODES, PODS, Client, PatchType
from podlife.clock import Clock
from podlife.errors import ConflictError, InvalidError, NotFoundError, PodlifeError
from podlife.podgc.effective_settings import pod_view, protection_of
from podlife.podgc.finalizers.held_pods import held_pod
from podlife.podgc.guards.windows import is_open
from podlife.podgc.namespace_annotations import EVERYWHERE, GuardAnnotations, annotations_of, unstop_command
from podlife.podgc.owner_wait.reader import OwnerReader
from podlife.podgc.owner_wait.status import TRACKING
from podlife.podgc.plan import Action, HeldPod, Victim
from podlife.podgc.policy.model import STOP
from podlife.podgc.reasons import Reason
from podlife.podgc.removal import PreDeleteStep, owner_or_namespace, reason_to_stay
from podlife.podgc.settings import Settings
from podlife.podgc.snapshot import find_pod
from podlife.podgc.summary import FinalizerRemoval
from podlife.podgc.views import Deleted, Namespace, Pod

_MOST_TRIES = 3


class FinalizerRemover:
    """`allowed` are full names of finalizers. `settings` and `annotations` return those in force. With `is_dry`, no
    steps run and nothing is patched.

    Protections, stops, windows and observe-only apply. Counting guards do not: the deletion of the pod was requested,
    and counted, before."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        allowed: frozenset[str],
        settings: Callable[[], Settings] = Settings,
        *,
        steps: Sequence[PreDeleteStep] = (),
        annotations: Callable[[], GuardAnnotations] = GuardAnnotations,
        is_dry: bool = False,
    ) -> None:
        self.allowed = allowed
        self._client = client
        self._clock = clock
        self._settings = settings
        self._steps = steps
        self._annotations = annotations
        self._is_dry = is_dry
        self._owners = OwnerReader(client)

    async def remove(self, pod: HeldPod) -> FinalizerRemoval:
        """For a pod whose node has been missing for the quarantine. Raises PodlifeError if a request failed; the pod
        may have been changed then."""
        for _ in range(_MOST_TRIES):
            found: Object | None = await find_pod(self._client, pod.namespace, pod.name)
            if found is None or found["metadata"].get("uid") != pod.uid:
                return self._result(pod, is_gone=True)
            if why := await self._reason_to_stay(pod, found):
                return self._result(pod, why=why)
            chosen = self._chosen(found)
            if self._is_dry:
                return self._result(pod, taken=chosen, left=_others(found, chosen))
            reason = f"finalizers are removed: node {pod.node} no longer exists"
            victim = Victim(msgspec.convert(found, Pod), Reason.ORPHANED, Action.DELETE, reason)
            if why := await reason_to_stay(self._steps, victim):
                return self._result(pod, why=why)
            # Steps may take long: the node may be back, a window closed, or a stop annotation set.
            if why := await self._reason_to_stay(pod, found):
                return self._result(pod, why=why)
            try:
                answer = await self._patch(found, chosen)
            except NotFoundError:
                return self._result(pod, is_gone=True)
            except (ConflictError, InvalidError):
                # The pod has changed since it was read: evaluate it again.
                continue
            metadata = answer.metadata
            return self._result(pod, taken=chosen, left=_others(found, chosen), owner=controller_of(metadata))
        return self._result(pod, why="the pod keeps changing: try again")

    def _result(self, pod: HeldPod, **what: Any) -> FinalizerRemoval:
        return FinalizerRemoval(pod.namespace, pod.name, pod.node, **what)

    def _chosen(self, pod: Object) -> tuple[str, ...]:
        return tuple(each for each in _finalizers(pod) if each in self.allowed)

    async def _reason_to_stay(self, pod: HeldPod, found: Object) -> str:
        held = held_pod(found, self._clock.now())
        if held is None:
            return "not held by finalizers alone: not deleted, or its grace period is not over"
        if not self._chosen(found):
            return f"none of its finalizers ({', '.join(_finalizers(found))}) is allowed to be removed"
        if protection := self.protection_of(found):
            return f"protected by {protection}"
        if held_back := self._held_back():
            return held_back
        return (
            await self._stopped(pod.namespace)
            or await self._node_is_there(held.node)
            or await self._job_counts(found)
        )

    def protection_of(self, pod: Object) -> str:
        """What protects the pod, or ""."""
        settings = self._settings()
        if settings.guards is not None and (
            stop := self._annotations().stop_of(pod["metadata"]["namespace"])
        ):
            return f"annotation {STOP} of namespace {stop[0]}: {stop[1] or 'no reason given'}"
        return protection_of(settings, msgspec.convert(pod, pod_view(settings)), self._clock.now())

    def _held_back(self) -> str:
        guards = self._settings().guards
        if guards is None:
            return ""
        if guards.is_observing:
            return "observe-only: nothing is changed"
        return "" if is_open(guards.windows, self._clock.now()) else "outside the deletion windows"

    async def _stopped(self, namespace: str) -> str:
        """A stop annotation applies to finalizers too."""
        names = (EVERYWHERE, namespace)
        found = [await self._client.get(NAMESPACES, name, view=Namespace) for name in names]
        stop = annotations_of(found).stop_of(namespace)
        if stop is None:
            return ""
        return f"namespace {stop[0]} is marked to be left alone ({stop[1]}); `{unstop_command(stop[0])}` lifts it"

    async def _node_is_there(self, node: str) -> str:
        if not node:
            return "the pod was never scheduled"
        try:
            await self._client.get(NODES, node, view=MetadataOnly)
        except PodlifeError as error:
            is_gone = isinstance(error, NotFoundError) and error.is_about(node)
            return "" if is_gone else f"cannot get node {node}: {error}"
        return f"node {node} exists: the owner of the finalizer may still be working"

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
        known = answer.trouble or "it exists"
        lost = "without the finalizer the Job would never count this pod, and could run it again"
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
    """A JSON patch, last finalizer first, so that earlier indexes stay valid."""
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


def event_of(taken: FinalizerRemoval) -> tuple[Mapping[str, str], str]:
    """The object and message of the event: the pod's owner, or else its namespace, because the pod is about to go."""
    rest = f"; still held by {', '.join(taken.left)}" if taken.left else ""
    message = (
        f"podlife-gc removed {', '.join(taken.taken)} from pod {taken.name}: it was deleted, and node {taken.node} no "
        f"longer exists{rest}"
    )
    return owner_or_namespace(taken.owner, taken.namespace), message


def _finalizers(pod: Object) -> tuple[str, ...]:
    return tuple(pod["metadata"].get("finalizers") or ())


def _others(pod: Object, chosen: Sequence[str]) -> tuple[str, ...]:
    return tuple(each for each in _finalizers(pod) if each not in chosen)
