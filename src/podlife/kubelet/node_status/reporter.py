"""Maintains the Node object while the kubelet runs: registers it, updates its status, renews its lease.

The status is compared every few seconds, with jitter and without a request; it is sent when it has changed, and
otherwise every few minutes. A failed update is repeated with the next comparison. As upstream, a deleted Node is
created again only when the kubelet restarts, unless the settings say otherwise.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable

from podlife.api.codec import Object, format_time
from podlife.client import NODES, Client, Limiter, PatchType
from podlife.clock import Clock
from podlife.errors import ConfigError, ConflictError, InvalidError, NotFoundError, PodlifeError
from podlife.kubelet.node_status.kubelet_identity import KubeletIdentity
from podlife.kubelet.node_status.lease import NodeLease
from podlife.kubelet.node_status.machine import Machine
from podlife.kubelet.node_status.membership import AnotherClusterError, ClusterMembership
from podlife.kubelet.node_status.node_object import (
    NodeRecord,
    corrected_labels,
    create_or_get,
    follow_node,
    initial_node,
    required_labels,
)
from podlife.kubelet.node_status.observer import Observer, VersionedRuntime
from podlife.kubelet.node_status.settings import NodeSettings
from podlife.kubelet.node_status.status import Observation, is_same_status, node_status, status_patch
from podlife.kubelet.pod_events import EventRecorder

log = logging.getLogger(__name__)

_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 0.1, 7.0
# Attempts to send a status with the server's current node, before the next comparison.
_TRIES = 5
# An unready node is checked more often, so that it becomes ready without delay.
_UNREADY_SECONDS = 1.0


class NodeReporter:
    """One per node. `problems` returns reasons why the node is not ready. `limiter` limits heartbeats; by default they
    have their own. `membership` knows the node's cluster, and `identity` identifies this kubelet; by default both last
    as long as the process."""

    def __init__(  # noqa: PLR0913 - every collaborator is injected explicitly
        self,
        client: Client,
        settings: NodeSettings,
        clock: Clock,
        *,
        machine: Machine,
        runtime: VersionedRuntime,
        recorder: EventRecorder | None = None,
        problems: Callable[[], Iterable[str]] = tuple,
        limiter: Limiter | None = None,
        membership: ClusterMembership | None = None,
        identity: KubeletIdentity | None = None,
    ) -> None:
        self.registered = asyncio.Event()
        self._api = client
        # With its own deadline: a stalled server is noticed before the lease expires.
        self._client = client.with_timeout(settings.renew_seconds, limiter=limiter or Limiter())
        self._settings = settings
        self._clock = clock
        self._machine = machine
        self._recorder = recorder
        self._observer = Observer(settings, machine=machine, runtime=runtime, problems=problems)
        self._record = NodeRecord()
        self._membership = membership or ClusterMembership(client, settings.name)
        # UID of the node that was confirmed to be in the kubelet's cluster.
        self._accepted_uid = ""
        self._is_claimed = False
        self.lease = NodeLease(
            self._client,
            settings,
            clock,
            identity or KubeletIdentity(None),
            node_uid=lambda: self._record.uid if self._record.uid == self._accepted_uid else "",
            confirm=self._membership.check,
        )
        self._due = 0.0
        # The observation and node that last needed no update.
        self._nothing_new: tuple[Observation, Object | None] | None = None
        self._is_ready = False
        self._is_unschedulable = False
        self._logged_error = ""

    def node(self) -> Object:
        """The newest known node; before registration or after deletion, as it would be created."""
        if self._record.node is not None:
            return self._record.node
        seen = Observation(self._machine.facts(), "")
        status, _ = node_status({}, seen, self._settings, self._now())
        return initial_node(self._settings, seen.facts, status)

    @property
    def uid(self) -> str:
        """The UID of the node at the server; "" if there is none."""
        return self._record.uid

    def put(self, node: Object) -> None:
        """The node has changed at the server; called by a shared informer."""
        self._record.put(node)

    def remove(self, uid: str) -> None:
        self._record.remove(uid)

    async def claim(self) -> None:
        """Claim the node before any of its pods is touched. Waits for an unreachable server. Raises `NameInUseError`
        and `AnotherClusterError`."""
        if not self._is_claimed:
            await self._retry("could not be claimed", self._try_claim)
            self._is_claimed = True

    async def run(self) -> None:
        """Register the node, and keep it up to date until cancelled. Raises `ConfigError` if no node can run on the
        machine or another kubelet serves the node."""
        await self.claim()
        self._event("Starting", "Starting kubelet.")
        await self._register()
        async with asyncio.TaskGroup() as group:
            name = self._settings.name
            group.create_task(self.lease.run(), name=f"lease of node {name}")
            group.create_task(self._report_loop(), name=f"status of node {name}")
            if self._settings.watches:
                group.create_task(follow_node(self._api, name, self._record), name=f"watch of node {name}")

    # Registration

    async def _register(self) -> None:
        await self._retry("could not be registered", self._try_register)
        self.registered.set()

    async def _retry(self, what: str, attempt: Callable[[], Awaitable[None]]) -> None:
        """Retry until it succeeds. Errors that the user has to fix are final; another cluster only before the claim."""
        delay = _FIRST_RETRY_SECONDS
        while True:
            try:
                await attempt()
            except Exception as error:
                is_away = self._is_claimed and isinstance(error, AnotherClusterError)
                if isinstance(error, ConfigError) and not is_away:
                    raise
                self._log_once(what, error)
                await asyncio.sleep(delay * (1 + 0.1 * random.random()))  # noqa: S311 - spreads load
                delay = min(_LAST_RETRY_SECONDS, delay * 2)
            else:
                self._logged_error = ""
                return

    async def _try_claim(self) -> None:
        await self._membership.check()
        await self.lease.claim()

    async def _try_register(self) -> None:
        seen = await self._observer.observe()
        status, _ = node_status({}, seen, self._settings, self._now())
        node, is_new = await create_or_get(self._client, initial_node(self._settings, seen.facts, status))
        self._record.put(node)
        await self._accept()
        if is_new:
            self._is_ready = not seen.problem
            self._plan_next_report(is_changed=True)
            log.info("node %s joined the cluster: registered", self._settings.name)
            return
        log.info("node %s joined the cluster: registered before", self._settings.name)
        boot_id = ((node.get("status") or {}).get("nodeInfo") or {}).get("bootID")
        if boot_id and boot_id != seen.facts.boot_id:
            message = f"Node {self._settings.name} has been rebooted, boot id: {seen.facts.boot_id}"
            self._event("Rebooted", message, "Warning")
        await self._send(seen, corrected_labels(node, self._settings, seen.facts), is_forced=True)

    async def _accept(self) -> None:
        """Accept a recreated node only in the cluster that the kubelet has joined."""
        if self._record.uid != self._accepted_uid:
            uid = self._record.uid
            await self._membership.check()
            self._membership.note_node(uid)
            self._accepted_uid = uid

    # Status

    async def _report_loop(self) -> None:
        while True:
            seconds = self._settings.check_seconds if self._is_ready else _UNREADY_SECONDS
            spread = 1 + 0.04 * random.random()  # noqa: S311 - spreads load
            await asyncio.sleep(seconds * spread)
            try:
                await self._report()
            except Exception as error:  # noqa: BLE001 - the next attempt may succeed, and pods do not depend on it
                self._log_once("status update failed", error)
            else:
                self._logged_error = ""

    async def _report(self) -> None:
        if self._record.node is None:
            await self._find_again()
            if self._record.node is None:
                return
        await self._accept()
        seen = await self._observer.observe()
        self._note_schedulable()
        node = self._record.node
        is_forced = asyncio.get_running_loop().time() >= self._due
        # Fast path, because many nodes may share one process.
        known = self._nothing_new
        if not is_forced and known is not None and node is known[1] and seen == known[0]:
            return
        await self._send(seen, required_labels(node, seen.facts), is_forced=is_forced)
        self._nothing_new = (seen, self._record.node)

    async def _find_again(self) -> None:
        """The node was deleted. Only a user may create it again, unless the settings say otherwise."""
        await self._membership.check()
        if self._settings.register_again:
            await self._register()
            return
        try:
            self._record.put(await self._client.get(NODES, self._settings.name))
        except NotFoundError as error:
            self._log_once("is gone; start the agent again to register it", error)
            raise

    async def _send(self, seen: Observation, labels: dict[str, str], *, is_forced: bool) -> None:
        """Raises the client's errors; a missing node is not an error here."""
        for attempt in range(_TRIES):
            node = self._record.node
            if node is None:
                return
            old = node.get("status") or {}
            new, events = node_status(old, seen, self._settings, self._now())
            self._is_ready = not seen.problem
            is_changed = bool(labels) or not is_same_status(old, new)
            if not is_changed and not is_forced:
                return
            metadata = {"uid": node["metadata"]["uid"], **({"labels": labels} if labels else {})}
            patch = {"metadata": metadata, "status": status_patch(old, new)}
            try:
                patched: Object = await self._client.patch(
                    NODES, self._settings.name, patch, type=PatchType.STRATEGIC, subresource="status"
                )
                self._record.put(patched)
            except NotFoundError:
                self._record.remove(metadata["uid"])
                return
            except (ConflictError, InvalidError):
                # Another node of the same name, or a newer version of it: decide again with the current one.
                if attempt == _TRIES - 1:
                    raise
                self._record.node = await self._client.get(NODES, self._settings.name)
                await self._accept()
                continue
            self._plan_next_report(is_changed=is_changed)
            for reason in events:
                self._event(reason, f"Node {self._settings.name} status is now: {reason}")
            return

    def _plan_next_report(self, *, is_changed: bool) -> None:
        """Randomized after a change, so that nodes that changed together do not keep reporting together."""
        spread = random.random() + 0.5 if is_changed else 1.0  # noqa: S311 - spreads load
        self._due = asyncio.get_running_loop().time() + self._settings.report_seconds * spread

    # Events and logs

    def _note_schedulable(self) -> None:
        spec = (self._record.node or {}).get("spec") or {}
        is_unschedulable = bool(spec.get("unschedulable"))
        if is_unschedulable != self._is_unschedulable:
            self._is_unschedulable = is_unschedulable
            reason = "NodeNotSchedulable" if is_unschedulable else "NodeSchedulable"
            self._event(reason, f"Node {self._settings.name} status is now: {reason}")

    def _event(self, reason: str, message: str, type_: str = "Normal") -> None:
        if self._recorder is not None:
            regarding = {"apiVersion": "v1", "kind": "Node", "name": self._settings.name}
            self._recorder.event(regarding, type_, reason, message)

    def _log_once(self, what: str, error: Exception) -> None:
        """Log each reason once: the same is tried every few seconds."""
        if str(error) != self._logged_error:
            defect = None if isinstance(error, PodlifeError) else error
            log.warning("node %s %s: %s", self._settings.name, what, error, exc_info=defect)
        self._logged_error = str(error)

    def _now(self) -> str:
        return format_time(self._clock.now())
