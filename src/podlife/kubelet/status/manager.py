"""The status manager: reports the statuses of a node's pods to the API server (SM-01 to SM-51).

A status is sent as soon as possible: several changes become one patch, a terminal phase waits until no container of the
pod can run, and only the last step of a pod allows its final deletion.

Guarantees:
- A pod of the same name with another UID is neither written nor deleted.
- Conditions of other writers are preserved.
- A failed update is retried with the next pass over all pods.

`generate` computes the statuses.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from podlife.api.codec import Object, format_time
from podlife.client import PODS, Client, DeleteOptions, PatchType
from podlife.clock import Clock
from podlife.errors import NotFoundError, PodlifeError
from podlife.kubelet.constants import STATUS_SYNC_SECONDS
from podlife.kubelet.pod_fields import Pod, bare_id, is_deleting, is_mirror, is_static, is_terminal_phase
from podlife.kubelet.status.conditions import containers_ready, ready, with_condition
from podlife.kubelet.status.normalize import is_same_by_kubelet, normalized, with_transition_times
from podlife.kubelet.status.patch import merged_status, status_patch
from podlife.kubelet.status.terminated import illegal_transition, newly_terminated, terminated_status

log = logging.getLogger(__name__)

# Maximum number of concurrent status updates.
_MAX_CONCURRENT = 16


class PodStatusClient(Protocol):
    """The part of the API used here. All methods may raise `PodlifeError`."""

    async def get(self, namespace: str, name: str) -> Object: ...

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Object:
        """Apply a strategic merge patch; returns the updated pod."""

    async def delete(self, namespace: str, name: str, *, uid: str) -> None:
        """Delete with grace 0 and a UID precondition."""


class ApiStatusClient:
    def __init__(self, client: Client) -> None:
        self._client = client

    async def get(self, namespace: str, name: str) -> Object:
        pod: Object = await self._client.get(PODS, name, namespace)
        return pod

    async def patch_status(self, namespace: str, name: str, patch: Object) -> Object:
        pod: Object = await self._client.patch(
            PODS, name, patch, namespace, type=PatchType.STRATEGIC, subresource="status"
        )
        return pod

    async def delete(self, namespace: str, name: str, *, uid: str) -> None:
        options = DeleteOptions(grace_period_seconds=0, uid=uid)
        await self._client.delete(PODS, name, namespace, options=options, metadata_only=True)


class PodLookup(Protocol):
    def pod(self, uid: str) -> Pod | None: ...

    def mirror_of(self, pod: Pod) -> Pod | None:
        """The mirror pod of a static pod."""

    def could_have_running_containers(self, uid: str) -> bool: ...


class _Entry(msgspec.Struct, frozen=True):
    status: Object
    version: int
    namespace: str
    name: str
    # Set by the last step of the pod: the final delete may be sent.
    is_finished: bool = False


def _ignore(sort: str, code: int, reason: str) -> None: ...


class StatusManager:
    def __init__(
        self,
        client: PodStatusClient,
        pods: PodLookup,
        clock: Clock,
        *,
        on_terminated: Callable[[str, int, str], None] = _ignore,
        settle_seconds: float = 0.0,
        tells_ends: bool = True,
    ) -> None:
        """`on_terminated` gets the type, exit code and reason of each container that terminated (SM-07). A change
        within a phase is delayed by `settle_seconds`, to be sent together with others. Without `tells_ends` a
        deleted pod is removed without reporting its final status, which no real node should do."""
        self._client = client
        self._pods = pods
        self._clock = clock
        self._on_terminated = on_terminated
        self._settle_seconds = settle_seconds
        self._tells_ends = tells_ends
        self._entries: dict[str, _Entry] = {}
        # By UID at the API server; for a static pod that is its mirror's.
        self._sent_versions: dict[str, int] = {}
        # The pod and status last found to be equal, compared by identity: both are replaced, never modified.
        self._agreed: dict[str, tuple[Pod, _Entry]] = {}
        # UIDs changed since the last sync, and since when, so that a change does not require a pass over all pods.
        self._changed: dict[str, float] = {}
        self._has_changed = asyncio.Event()

    # Statuses

    def status(self, uid: str) -> Object | None:
        """The newest status, sent or not."""
        entry = self._entries.get(uid)
        return None if entry is None else entry.status

    def set_status(self, pod: Pod, status: Mapping[str, Any]) -> bool:
        """Returns whether there is a change to send. The status of a pod being deleted is always sent (SM-02)."""
        reported = dict(status)
        if generation := pod["metadata"].get("generation"):
            reported["observedGeneration"] = generation
        return self._update(pod, reported, is_forced=is_deleting(pod))

    def set_readiness(self, uid: str, container_id: str, is_ready: bool) -> bool:
        """Set the result of a readiness probe and update the pod's conditions (SM-50)."""
        pod, entry = self._pods.pod(uid), self._entries.get(uid)
        if pod is None or entry is None:
            return False
        status = _with_container(entry.status, container_id, "ready", is_ready)
        if status is None:
            return False
        statuses = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
        conditions = status.get("conditions") or []
        phase = status.get("phase") or ""
        for condition in (ready(pod, conditions, statuses, phase), containers_ready(pod, statuses, phase)):
            conditions = with_condition(conditions, condition)
        return self._update(pod, {**status, "conditions": conditions})

    def set_started(self, uid: str, container_id: str, is_started: bool) -> bool:
        """Set the result of a startup probe (SM-51)."""
        pod, entry = self._pods.pod(uid), self._entries.get(uid)
        if pod is None or entry is None:
            return False
        status = _with_container(entry.status, container_id, "started", is_started)
        return status is not None and self._update(pod, status)

    def terminate(self, pod: Pod) -> bool:
        """The last step is done: nothing of the pod runs or is mounted, so it may be deleted (SM-30)."""
        known = self.status(pod["metadata"]["uid"])
        status = terminated_status(pod, known if known is not None else pod.get("status") or {})
        return self._update(pod, status, is_forced=True, is_finished=True)

    def note_mirror(self, uid: str) -> None:
        """A static pod got a new mirror: send its status now instead of with the next full pass."""
        if uid in self._entries:
            self._note_change(uid)

    def forget_all_but(self, uids: Collection[str]) -> None:
        """Drop the statuses of pods that the kubelet no longer has."""
        for uid in [uid for uid in self._entries if uid not in uids]:
            self.forget(uid)

    def forget(self, uid: str) -> None:
        """Also forget the sent version: a pod that returns with this UID starts at version 1."""
        self._sent_versions.pop(self._target(uid), None)
        self._entries.pop(uid, None)
        self._agreed.pop(uid, None)

    def _update(
        self, pod: Pod, status: Object, *, is_forced: bool = False, is_finished: bool = False
    ) -> bool:
        metadata = pod["metadata"]
        uid = metadata["uid"]
        entry = self._entries.get(uid)
        old = self._old_status(pod, entry)
        if error := illegal_transition(pod, old, status):
            log.error("status of pod %s/%s rejected: %s", metadata["namespace"], metadata["name"], error)
            return False
        status = normalized(pod, self._with_times(status, old))
        for ended in newly_terminated(old, status):
            self._on_terminated(*ended)
        if entry is not None and not is_forced and is_same_by_kubelet(entry.status, status):
            return False
        was_finished = entry is not None and entry.is_finished and not is_static(pod)
        self._entries[uid] = _Entry(
            status,
            1 if entry is None else entry.version + 1,
            metadata["namespace"],
            metadata["name"],
            is_finished or was_finished,
        )
        self._note_change(uid)
        return True

    def _note_change(self, uid: str) -> None:
        self._changed.setdefault(uid, asyncio.get_running_loop().time() if self._settle_seconds else 0.0)
        self._has_changed.set()

    def _old_status(self, pod: Pod, entry: _Entry | None) -> Mapping[str, Any]:
        if entry is not None:
            return entry.status
        mirror = self._pods.mirror_of(pod) if is_static(pod) else None
        return (mirror or pod).get("status") or {}

    def _with_times(self, status: Object, old: Mapping[str, Any]) -> Object:
        now = self._clock.now()
        conditions = with_transition_times(status.get("conditions") or (), old, now)
        timed = {**status, "conditions": conditions}
        timed["startTime"] = old.get("startTime") or status.get("startTime") or format_time(now)
        generation = max(old.get("observedGeneration") or 0, status.get("observedGeneration") or 0)
        return {**timed, "observedGeneration": generation} if generation else timed

    # Sending

    async def run(self) -> None:
        """Send changes, and compare all pods every ten seconds. Runs until cancelled."""
        loop = asyncio.get_running_loop()
        due = loop.time() + STATUS_SYNC_SECONDS
        while True:
            if loop.time() >= due:
                due = loop.time() + STATUS_SYNC_SECONDS
                await self.sync_all()
                continue
            # By then the oldest delayed change has settled.
            settled = min(self._changed.values(), default=due) + self._settle_seconds
            try:
                async with asyncio.timeout_at(min(due, settled) if self._settle_seconds else due):
                    await self._has_changed.wait()
            except TimeoutError:
                if loop.time() >= due:
                    continue
            await self.sync_changed()

    async def sync_changed(self) -> None:
        """Send unsent changes (SM-12)."""
        self._has_changed.clear()
        targets = {uid: self._target(uid) for uid in self._changed if uid in self._entries}
        # A static pod waits for its mirror.
        waiting = {uid for uid, target in targets.items() if not target or self._may_change_soon(uid)}
        self._changed = {uid: since for uid, since in self._changed.items() if uid in waiting}
        await self._sync(
            [
                uid
                for uid, target in targets.items()
                if uid not in waiting and self._sent_versions.get(target, 0) < self._entries[uid].version
            ]
        )

    def _may_change_soon(self, uid: str) -> bool:
        """Whether the pod changed recently and its phase equals the API server's."""
        if not self._settle_seconds or self._entries[uid].is_finished:
            return False
        pod = self._pods.pod(uid)
        if pod is None or asyncio.get_running_loop().time() >= self._changed[uid] + self._settle_seconds:
            return False
        is_same = (pod.get("status") or {}).get("phase") == self._entries[uid].status["phase"]
        return is_same or (is_deleting(pod) and not self._tells_ends)

    async def sync_all(self) -> None:
        """Send unsent changes, statuses that differ at the API server, and outstanding deletes (SM-14)."""
        self._has_changed.clear()
        targets = {uid: self._target(uid) for uid in self._entries}
        alive = set(targets.values())
        self._sent_versions = {uid: each for uid, each in self._sent_versions.items() if uid in alive}
        await self._sync(
            [uid for uid, target in targets.items() if target and self._has_to_be_sent(uid, target)]
        )

    def _target(self, uid: str) -> str:
        """The UID at the API server; empty for a static pod without mirror (SM-13)."""
        pod = self._pods.pod(uid)
        if pod is None or not is_static(pod):
            return uid
        mirror = self._pods.mirror_of(pod)
        return "" if mirror is None else str(mirror["metadata"]["uid"])

    def _has_to_be_sent(self, uid: str, target: str) -> bool:
        try:
            return self._is_due(uid, target)
        except Exception:
            # Affects only this pod.
            log.exception("status of pod %s could not be compared with the API server's", uid)
            return False

    def _is_due(self, uid: str, target: str) -> bool:
        entry, pod = self._entries[uid], self._pods.pod(uid)
        if self._sent_versions.get(target, 0) < entry.version:
            return True
        if pod is None:
            return False
        api_pod = self._pods.mirror_of(pod) if is_static(pod) else pod
        if api_pod is None:
            return False
        if _can_be_deleted(api_pod, entry, tells_ends=self._tells_ends):
            return True
        agreed = self._agreed.get(uid)
        if agreed is not None and agreed[0] is api_pod and agreed[1] is entry:
            return False
        is_same = is_same_by_kubelet(normalized(api_pod, api_pod.get("status") or {}), entry.status)
        if is_same:
            self._agreed[uid] = (api_pod, entry)
        return not is_same

    async def _sync(self, uids: Sequence[str]) -> None:
        waiting = iter(uids)

        async def sync_in_turn() -> None:
            for uid in waiting:
                if (entry := self._entries.get(uid)) is not None:
                    await self._sync_pod(uid, entry)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(_MAX_CONCURRENT, len(uids))):
                group.create_task(sync_in_turn())

    async def _sync_pod(self, uid: str, entry: _Entry) -> None:
        """Get, patch, and send the final delete if the pod is finished (SM-10, SM-11, SM-30)."""
        try:
            api_pod = await self._client.get(entry.namespace, entry.name)
            target = api_pod["metadata"]["uid"]
            if target != self._target(uid):
                # Deleted and recreated: the status here belongs to another pod.
                self.forget(uid)
                return
            if self._tells_ends or not (entry.is_finished and is_deleting(api_pod)):
                api_pod = await self._patch(uid, entry, api_pod)
            self._sent_versions[target] = entry.version
            if _can_be_deleted(api_pod, entry, tells_ends=self._tells_ends):
                await self._client.delete(entry.namespace, entry.name, uid=target)
                self.forget(uid)
        except NotFoundError:
            log.debug("pod %s/%s is already gone", entry.namespace, entry.name)
        except PodlifeError as error:
            log.warning(
                "status update for pod %s/%s failed, will retry: %s", entry.namespace, entry.name, error
            )
        except Exception:
            # Affects only this pod.
            log.exception("status update for pod %s/%s failed, will retry", entry.namespace, entry.name)

    async def _patch(self, uid: str, entry: _Entry, api_pod: Object) -> Object:
        old = api_pod.get("status") or {}
        could_run = self._pods.could_have_running_containers(uid)
        merged = merged_status(api_pod, old, entry.status, could_run=could_run, now=self._clock.now())
        patch = status_patch(api_pod["metadata"]["uid"], old, merged)
        if patch is None:
            return api_pod
        return await self._client.patch_status(entry.namespace, entry.name, patch)


def _with_container(status: Object, container_id: str, field: str, value: bool) -> Object | None:
    """The status with one field of one container changed; None if that changes nothing."""
    for key in ("containerStatuses", "initContainerStatuses"):
        for position, each in enumerate(status.get(key) or ()):
            if bare_id(each.get("containerID") or "") == bare_id(container_id):
                if each.get(field) is value:
                    return None
                changed = [*status[key]]
                changed[position] = {**each, field: value}
                return {**status, key: changed}
    return None


def _can_be_deleted(api_pod: Pod, entry: _Entry, *, tells_ends: bool) -> bool:
    """Decided by the phase at the API server, not by the local one (SM-30)."""
    phase = (api_pod.get("status") or {}).get("phase")
    is_reported = is_terminal_phase(phase) or not tells_ends
    return entry.is_finished and is_deleting(api_pod) and not is_mirror(api_pod) and is_reported
