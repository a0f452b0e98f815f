"""The heartbeat of a node: its Lease in kube-node-lease, renewed every few seconds while the kubelet runs.

A renewal is one request, based on the lease last written. It has its own rate limiter and a deadline shorter than the
lease, so that a busy kubelet does not delay it and a stalled server is noticed. Failures are retried with backoff.
The node owns its lease, so the lease is created after the node and deleted with it.

The lease also records which kubelet serves the node (in an annotation, since holderIdentity is the node's name). A
kubelet claims it before it runs anything: a second kubelet with the name of a live one is rejected, and one that was
replaced while unreachable exits. A single write that names another kubelet proves nothing: only a kubelet that keeps
renewing the lease replaces this one; anything else is overwritten, as by upstream's kubelet.

Renewal times come from another machine's clock, so they count only if no plausible clock skew changes the result.
Values that no kubelet writes (no time, a year 9999, a duration of decades) hold a lease no longer than
`_MAX_SECONDS`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from datetime import datetime
from enum import Enum, auto

from podlife.api.codec import Object, format_micro_time, parse_time
from podlife.client import LEASES, NODES, Client
from podlife.clock import Clock
from podlife.errors import AlreadyExistsError, ConfigError, ConflictError, NotFoundError, PodlifeError
from podlife.kubelet.node_status.kubelet_identity import KubeletIdentity
from podlife.kubelet.node_status.settings import NodeSettings

log = logging.getLogger(__name__)

NAMESPACE = "kube-node-lease"
_AGENT = "podlife.dev/agent"
_DEFAULT_SECONDS, _MAX_SECONDS = 40, 3600
# Maximum expected clock skew within a cluster.
_MAX_SKEW_SECONDS = 600.0
_FIRST_RETRY_SECONDS, _LAST_RETRY_SECONDS = 0.2, 7.0
# As upstream: enough to spread nodes that start together.
_JITTER = 0.04
# Reads of a lease that names another kubelet within half of its duration; kubelets renew it after a quarter.
_RIVAL_CHECKS = 10


class LeaseHold(Enum):
    FREE = auto()
    HELD = auto()
    # Expired within the possible clock skew, or renewed in the future: has to be watched.
    UNCLEAR = auto()


class NameInUseError(ConfigError):
    """Another kubelet serves the node with this name."""

    def __init__(self, name: str, lease: Object, now: datetime) -> None:
        renewed = _renew_time(lease)
        ago = "" if renewed is None else f", its lease was renewed {max(0.0, _age(renewed, now)):.0f}s ago"
        super().__init__(
            f"node {name!r} is already served by another agent{ago}: stop that agent and wait until its lease has "
            f"expired ({lease_seconds(lease)}s), use another name, or force it with `podlife node --take-over`"
        )


class NodeLease:
    """`node_uid` returns the node's UID, "" if there is none; `confirm` raises if the server is not that of the node's
    cluster."""

    def __init__(
        self,
        client: Client,
        settings: NodeSettings,
        clock: Clock,
        identity: KubeletIdentity,
        *,
        node_uid: Callable[[], str],
        confirm: Callable[[], Awaitable[None]],
    ) -> None:
        self._client = client
        self._settings = settings
        self._name = settings.name
        self._identity = identity
        self._confirm = confirm
        self._clock = clock
        self._node_uid = node_uid
        self._latest: Object | None = None
        self._failures = 0
        # The error of the last renewal; "" if it succeeded.
        self.complaint = ""

    async def claim(self) -> None:
        """Claim the lease for this kubelet. Raises `NameInUseError` if another kubelet holds it, and the client's
        errors."""
        try:
            # Most nodes are new, and many may start at once.
            self._latest = await self._write(None, self._node_uid())
        except ConflictError:
            lease: Object = await self._client.get(LEASES, self._name, NAMESPACE)
            if not self._settings.takes_over:
                await self._wait_for_release(lease)
            self._latest = await self._write(lease, self._node_uid())

    async def run(self) -> None:
        """Renew the lease until cancelled. Raises `NameInUseError` if another kubelet has taken it."""
        while True:
            try:
                await self._renew()
            except NameInUseError:
                raise
            except Exception as error:
                # Whatever happens, the node must not appear dead while its kubelet runs.
                if not isinstance(error, PodlifeError):
                    log.exception("unexpected failure while renewing the lease of node %s", self._name)
                await asyncio.sleep(self._on_failure(error))
                continue
            self._on_success()
            await asyncio.sleep(self._settings.renew_seconds * (1 + _JITTER * random.random()))  # noqa: S311 - spreads load

    async def _is_orphan(self, lease: Object) -> bool:
        """Its node was deleted, which releases the name: the other kubelet no longer renews it."""
        owners = lease["metadata"].get("ownerReferences") or ()
        uid = next((str(each["uid"]) for each in owners if each["kind"] == "Node"), "")
        if not uid:
            return False
        try:
            node = await self._client.get(NODES, self._name)
        except NotFoundError as error:
            return error.is_about(self._name)
        return str(node["metadata"]["uid"]) != uid

    async def _wait_for_release(self, lease: Object) -> None:
        """If clocks differ, a renewal time proves nothing: watch the lease for its duration."""
        hold = hold_of(lease, self._identity.text, self._clock.now())
        if hold is not LeaseHold.FREE and await self._is_orphan(lease):
            return
        if hold is LeaseHold.UNCLEAR:
            seconds = lease_seconds(lease)
            log.warning(
                "node %s: waiting %gs to see whether another agent still renews its lease",
                self._name,
                seconds,
            )
            await asyncio.sleep(seconds)
            again = await self._find()
            is_renewed = again is not None and _version(again) != _version(lease)
            hold = LeaseHold.HELD if is_renewed else LeaseHold.FREE
        if hold is LeaseHold.HELD:
            raise NameInUseError(self._name, lease, self._clock.now())

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
            log.debug("lease of node %s has changed: %s", self._name, error)
        self._latest = None
        await self._confirm()
        lease = await self._find()
        if lease is not None and _agent_of(lease) not in ("", self._identity.text):
            lease = await self._wait_for_rival(lease)
        self._latest = await self._write(lease, uid)

    async def _wait_for_rival(self, lease: Object) -> Object | None:
        """Returns the lease if the kubelet it names does not renew it; raises `NameInUseError` if it does."""
        if hold_of(lease, self._identity.text, self._clock.now()) is LeaseHold.FREE:
            return lease
        seconds = self._settings.lease_seconds / 2
        log.warning(
            "node %s: its lease names another agent; taking it back unless that agent renews it within %gs",
            self._name,
            seconds,
        )
        for _ in range(_RIVAL_CHECKS):
            await asyncio.sleep(seconds / _RIVAL_CHECKS)
            again = await self._find()
            if again is None or _agent_of(again) in ("", self._identity.text):
                return again
            if _renew_time(again) != _renew_time(lease):
                raise NameInUseError(self._name, again, self._clock.now())
        return again

    async def _find(self) -> Object | None:
        try:
            lease: Object = await self._client.get(LEASES, self._name, NAMESPACE)
        except NotFoundError:
            return None
        return lease

    async def _write(self, lease: Object | None, uid: str) -> Object:
        """Raises `ConflictError` if it has changed meanwhile."""
        if lease is not None:
            return await self._client.update(LEASES, self._renewed(lease, uid))
        try:
            return await self._client.create(LEASES, self._renewed(self._new(), uid))
        except AlreadyExistsError as error:
            raise ConflictError(error.message) from None

    def _new(self) -> Object:
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": NAMESPACE},
            "spec": {"holderIdentity": self._name},
        }

    def _renewed(self, lease: Object, uid: str) -> Object:
        metadata = {
            **lease["metadata"],
            "annotations": {**(lease["metadata"].get("annotations") or {}), _AGENT: self._identity.text},
        }
        if uid:
            # A recreated node is another owner: the GC would delete a lease that refers to the old UID.
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._name, "uid": uid}
            metadata["ownerReferences"] = [owner]
        spec = {
            **(lease.get("spec") or {}),
            "leaseDurationSeconds": self._settings.lease_seconds,
            "renewTime": format_micro_time(self._clock.now()),
        }
        return {**lease, "metadata": metadata, "spec": spec}

    def _on_failure(self, error: Exception) -> float:
        if not self._failures:
            log.warning("lease renewal of node %s failed: %s", self._name, error)
        self.complaint = str(error)
        delay = min(_LAST_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2.0 ** min(self._failures, 10))
        self._failures += 1
        return delay

    def _on_success(self) -> None:
        if self._failures:
            log.info("lease renewal of node %s recovered", self._name)
        self._failures = 0
        self.complaint = ""


def _version(lease: Object) -> object:
    return lease["metadata"].get("resourceVersion")


def _agent_of(lease: Object) -> str:
    return str((lease["metadata"].get("annotations") or {}).get(_AGENT) or "")


def lease_seconds(lease: Object) -> int:
    seconds = (lease.get("spec") or {}).get("leaseDurationSeconds")
    return min(seconds, _MAX_SECONDS) if isinstance(seconds, int) and seconds > 0 else _DEFAULT_SECONDS


def hold_of(lease: Object, agent: str, now: datetime) -> LeaseHold:
    """The state of the lease from the point of view of the kubelet with this identity."""
    renewed = _renew_time(lease)
    if _agent_of(lease) == agent or renewed is None:
        return LeaseHold.FREE
    age, seconds = _age(renewed, now), lease_seconds(lease)
    if abs(age) <= seconds:
        return LeaseHold.HELD
    return LeaseHold.FREE if age > seconds + _MAX_SKEW_SECONDS else LeaseHold.UNCLEAR


def _age(renewed: datetime, now: datetime) -> float:
    return (now - renewed).total_seconds()


def _renew_time(lease: Object) -> datetime | None:
    text = (lease.get("spec") or {}).get("renewTime")
    try:
        return parse_time(text) if isinstance(text, str) else None
    except ValueError:
        return None
