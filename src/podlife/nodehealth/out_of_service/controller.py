"""Out-of-service controller: examines all nodes at a fixed interval, runs fence checks, and acts on the decisions.

    plane.add(OutOfServiceController(plane, checks=[CommandCheck(["is-off"], seconds=10)]))

Nothing is decided while a cache is unsynced or stale, and that time counts against no node. A failed action is
repeated in the next pass. Releasing what is on a node is left to the taint eviction controller, the pod garbage
collector and the attach-detach controller.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence

from podlife.client import LEASES, NODES
from podlife.controller import ControlPlane
from podlife.errors import ConfigError, PodlifeError
from podlife.nodehealth.metrics import OutOfServiceMetrics
from podlife.nodehealth.node_health import ClockReading
from podlife.nodehealth.out_of_service.check_runner import CheckRunner
from podlife.nodehealth.out_of_service.decision import (
    NodeContents,
    NodeDecision,
    OutOfServiceAction,
    OutOfServiceFacts,
    RefusalReason,
    decide,
)
from podlife.nodehealth.out_of_service.fence_checks import FenceCheck, FenceSubject
from podlife.nodehealth.out_of_service.node_contents import attachments_by_node, count_freed_pods
from podlife.nodehealth.out_of_service.node_events import NodeEventRecorder
from podlife.nodehealth.out_of_service.node_writer import NodeWriter
from podlife.nodehealth.out_of_service.observation import NodeObservation, observe
from podlife.nodehealth.out_of_service.record import BY, TaintOwner, read_record, taint_owner
from podlife.nodehealth.out_of_service.settings import OutOfServiceSettings
from podlife.nodehealth.out_of_service.views import ANNOTATION, FencedNode
from podlife.nodehealth.unknown_status import LEASE_NAMESPACE
from podlife.nodehealth.views import Lease

_Act = Callable[[OutOfServiceFacts, NodeDecision], Awaitable[None]]

# Request timeout: a request that hangs does not delay others for long.
_REQUEST_SECONDS = 10.0
# Nodes read or written concurrently.
_AT_ONCE = 8


class OutOfServiceController:
    """Raises ConfigError without a fence check, or if more are required than are configured."""

    name = "out-of-service"

    def __init__(
        self,
        plane: ControlPlane,
        *,
        checks: Sequence[FenceCheck],
        settings: OutOfServiceSettings | None = None,
    ) -> None:
        self.settings = settings or OutOfServiceSettings()
        if not checks:
            raise ConfigError("out-of-service requires at least one fence check")
        require = self.settings.require
        if require is not None and not 1 <= require <= len(checks):
            raise ConfigError(f"{require} fence checks are required, there are {len(checks)}")
        self.metrics = OutOfServiceMetrics()
        self._nodes = plane.informer(NODES, view=FencedNode)
        self._leases = plane.informer(LEASES, view=Lease, namespace=LEASE_NAMESPACE)
        self._client = plane.client.with_timeout(_REQUEST_SECONDS)
        self._clock = plane.clock
        self._writer = NodeWriter(self._client, plane.clock)
        self._check_runner = CheckRunner(checks, self.metrics)
        self._node_events = NodeEventRecorder(
            plane.recorder(BY), self.metrics, is_dry_run=self.settings.is_dry_run
        )
        self._observed: dict[str, NodeObservation] = {}
        # Contents of a node, and when they were read.
        self._contents: dict[str, tuple[float, NodeContents | None]] = {}
        # Start of the last pass with live caches.
        self._last_pass_at: float | None = None
        self._were_live = True
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def run(self) -> None:
        """Run passes until cancelled; the interval starts at the end of a pass."""
        while True:
            if self._are_caches_live():
                await self.run_pass()
            else:
                self._were_live = False
            await asyncio.sleep(self.settings.period_seconds)

    async def run_pass(self) -> None:
        """Examine all nodes. Taints are removed first, since that needs no check."""
        self._skip_gap()
        self._watch()
        await self._read_contents()
        await self._act(
            {
                OutOfServiceAction.REMOVE: self._remove,
                OutOfServiceAction.NOTE: self._note_return,
                OutOfServiceAction.FORGET: self._forget,
            }
        )
        await self._ask()
        # The checks may have taken long: observe again.
        if self._are_caches_live():
            self._watch()
            await self._act({OutOfServiceAction.SET: self._set})
            self._report()

    # Observations

    def _are_caches_live(self) -> bool:
        return all(each.has_synced and each.is_live for each in (self._nodes, self._leases))

    def _watch(self) -> None:
        now = self._now().loop
        self._last_pass_at = now
        nodes = {node.metadata.name: node for node in self._nodes.cache.list()}
        for name in self._observed.keys() - nodes.keys():
            self._node_events.forget(name)
        self._observed = {
            name: observe(self._observed.get(name), node, self._lease_of(name), now)
            for name, node in nodes.items()
        }
        away = {name for name, each in self._observed.items() if each.not_ready_at is not None}
        self._check_runner.keep_only(away)
        self._contents = {name: each for name, each in self._contents.items() if name in away}

    def _skip_gap(self) -> None:
        """Time during which the caches were stale counts against no node."""
        if self._were_live or self._last_pass_at is None:
            self._were_live = True
            return
        self._were_live = True
        now = self._now().loop
        gap = now - self._last_pass_at
        self._observed = {name: each.without(gap, now) for name, each in self._observed.items()}

    def _lease_of(self, name: str) -> Lease | None:
        return self._leases.cache.get(LEASE_NAMESPACE, name)

    def _facts(self) -> list[OutOfServiceFacts]:
        now = self._now().loop
        nodes = (self._nodes.cache.get("", name) for name in self._observed)
        found = [node for node in nodes if node is not None and self._is_observed(node)]
        return [self._facts_of(node, self._observed[node.metadata.name], now) for node in found]

    def _is_observed(self, node: FencedNode) -> bool:
        return self._observed[node.metadata.name].uid == node.metadata.uid

    def _facts_of(self, node: FencedNode, watched: NodeObservation, now: float) -> OutOfServiceFacts:
        name, uid = node.metadata.name, node.metadata.uid
        record = read_record(node.metadata.annotations.get(ANNOTATION), uid)
        at, held = self._contents.get(name, (now, None))
        return OutOfServiceFacts(
            name=name,
            uid=uid,
            is_ready=node.is_ready,
            not_ready_seconds=0.0 if watched.not_ready_at is None else now - watched.not_ready_at,
            silent_seconds=now - watched.last_report_at,
            lease_seconds=watched.lease_seconds,
            is_control_plane=node.is_control_plane,
            taint=taint_owner(node.spec.taints, record),
            record=record,
            held=held if now - at < self.settings.look_seconds else None,
            verdict=self._check_runner.verdict(name, uid),
        )

    def _now(self) -> ClockReading:
        return ClockReading(self._clock.now(), asyncio.get_running_loop().time())

    # Actions

    def _decided_for(self, *steps: OutOfServiceAction) -> list[tuple[OutOfServiceFacts, NodeDecision]]:
        facts = self._facts()
        decided = decide(facts, self.settings, self._now())
        return [(each, decided[each.name]) for each in facts if decided[each.name].step in steps]

    async def _act(self, acts: Mapping[OutOfServiceAction, _Act]) -> None:
        meant = self._decided_for(*acts)
        await asyncio.gather(*(self._try(acts[decision.step], node, decision) for node, decision in meant))

    async def _try(self, act: _Act, node: OutOfServiceFacts, decision: NodeDecision) -> None:
        """The next pass decides again after a failure."""
        async with self._turns:
            try:
                await act(node, decision)
            except PodlifeError as error:
                self._node_events.failed(node.name, decision.step, error)
            else:
                self._node_events.succeeded(node.name, decision.step)

    async def _read_contents(self) -> None:
        meant = self._decided_for(OutOfServiceAction.LOOK)
        if not meant:
            return
        try:
            attachments = await attachments_by_node(self._client)
        except PodlifeError as error:
            for node, _ in meant:
                self._node_events.failed(node.name, OutOfServiceAction.LOOK, error)
            return

        async def look_at(node: OutOfServiceFacts, _: NodeDecision) -> None:
            pods = await count_freed_pods(self._client, node.name)
            self._contents[node.name] = self._now().loop, NodeContents(pods, attachments[node.name])

        await asyncio.gather(*(self._try(look_at, node, decision) for node, decision in meant))

    async def _ask(self) -> None:
        subjects = [self._subject(node) for node, _ in self._decided_for(OutOfServiceAction.CHECK)]
        await self._check_runner.ask([each for each in subjects if each is not None])

    def _subject(self, facts: OutOfServiceFacts) -> FenceSubject | None:
        node = self._nodes.cache.get("", facts.name)
        if node is None:
            return None
        return FenceSubject(
            facts.name, facts.uid, node.spec.provider_id, node.internal_ips, facts.not_ready_seconds
        )

    async def _set(self, node: OutOfServiceFacts, decision: NodeDecision) -> None:
        watched = self._observed[node.name]

        def is_silent(fresh: FencedNode, lease: Lease | None) -> bool:
            return not watched.has_reported(fresh, lease)

        if self.settings.is_dry_run or await self._writer.set(node.name, node.uid, is_silent):
            self._node_events.tainted(node.name, node.uid, decision)

    async def _remove(self, node: OutOfServiceFacts, decision: NodeDecision) -> None:
        reason = decision.reason
        assert reason is not None
        only_if_ready = reason is RefusalReason.READY
        if self.settings.is_dry_run or await self._writer.remove(
            node.name, node.uid, only_if_ready=only_if_ready
        ):
            self._node_events.removed(node.name, node.uid, reason, decision.message)

    async def _note_return(self, node: OutOfServiceFacts, _: NodeDecision) -> None:
        if not self.settings.is_dry_run:
            await self._writer.note_return(node.name, node.uid)

    async def _forget(self, node: OutOfServiceFacts, _: NodeDecision) -> None:
        if not self.settings.is_dry_run:
            await self._writer.forget(node.name, node.uid)

    def _report(self) -> None:
        facts = self._facts()
        decided = decide(facts, self.settings, self._now())
        for node in facts:
            self._node_events.decided(node.name, node.uid, decided[node.name])
        self.metrics.nodes = Counter(node.taint for node in facts if node.taint is not TaintOwner.NONE)
