"""The heartbeat of a node: its Lease in kube-node-lease, renewed every few seconds for as long as the agent lives.

A renewal is one request, built on the lease as it was last written. It stands in a line of its own and has a deadline
shorter than the lease, so neither a busy agent nor a server that has stalled goes unnoticed. What fails is tried again
soon, then less and less often. Without a node there is no lease: it belongs to the node, and goes with it.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable

from podlife.api.codec import Object, format_micro_time
from podlife.client import LEASES, Client
from podlife.clock import Clock
from podlife.errors import AlreadyExistsError, ConflictError, NotFoundError, PodlifeError
from podlife.kubelet.node.settings import NodeSettings

__all__ = ["NAMESPACE", "NodeLease"]

log = logging.getLogger(__name__)

NAMESPACE = "kube-node-lease"
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 0.2, 7.0
# As upstream: enough that nodes which start together do not stay together.
_JITTER = 0.04


class NodeLease:
    """`node_uid` tells which node it is for, "" while there is none."""

    def __init__(
        self, client: Client, settings: NodeSettings, clock: Clock, node_uid: Callable[[], str]
    ) -> None:
        self._client = client
        self._name = settings.name
        self._lease_seconds = settings.lease_seconds
        self._renew_seconds = settings.renew_seconds
        self._clock = clock
        self._node_uid = node_uid
        self._latest: Object | None = None
        self._failures = 0
        # Why the last renewal failed; "" when it did not.
        self.complaint = ""

    async def run(self) -> None:
        while True:
            try:
                await self._renew()
            except PodlifeError as error:
                await asyncio.sleep(self._note_failure(error))
                continue
            self._note_success()
            await asyncio.sleep(self._renew_seconds * (1 + _JITTER * random.random()))  # noqa: S311 - spreads load

    async def _renew(self) -> None:
        uid = self._node_uid()
        if not uid:
            self._latest = None
            return
        try:
            if self._latest is not None:
                self._latest = await self._client.update(LEASES, self._renewed(self._latest, uid))
                return
        except (ConflictError, NotFoundError) as error:
            log.debug("the lease of node %s is not as it was: %s", self._name, error)
        self._latest = None
        self._latest = await self._take(uid)

    async def _take(self, uid: str) -> Object:
        """The lease may be there from an agent before, or from nobody."""
        try:
            existing: Object = await self._client.get(LEASES, self._name, NAMESPACE)
        except NotFoundError:
            try:
                return await self._client.create(LEASES, self._renewed(self._new(), uid))
            except AlreadyExistsError:
                existing = await self._client.get(LEASES, self._name, NAMESPACE)
        return await self._client.update(LEASES, self._renewed(existing, uid))

    def _new(self) -> Object:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": NAMESPACE},
            "spec": {"holderIdentity": self._name},
        }

    def _renewed(self, lease: Object, uid: str) -> Object:
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._name, "uid": uid}
        spec = {
            **(lease.get("spec") or {}),
            "leaseDurationSeconds": self._lease_seconds,
            "renewTime": format_micro_time(self._clock.now()),
        }
        # A node that was made anew is another owner: with the old one's UID the collector would take the lease away.
        return {**lease, "metadata": {**lease["metadata"], "ownerReferences": [owner]}, "spec": spec}

    def _note_failure(self, error: PodlifeError) -> float:
        if not self._failures:
            log.warning("the lease of node %s could not be renewed: %s", self._name, error)
        self.complaint = str(error)
        delay = min(_LAST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2.0 ** min(self._failures, 10))
        self._failures += 1
        return delay

    def _note_success(self) -> None:
        if self._failures:
            log.info("the lease of node %s is renewed again", self._name)
        self._failures = 0
        self.complaint = ""
