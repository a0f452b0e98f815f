"""DaemonSet controller: one pod of a template on every matching node.

It decides only from caches that contain its own writes: expectations hold a key back until created and deleted pods
have been observed, own writes until status and history have been. Nothing is decided while the caches are stale. A
node gets its pod before an update continues.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from podlife.client import CONTROLLER_REVISIONS, DAEMON_SETS, NODES, PODS
from podlife.controller import Again, Controller, ControlPlane, Enqueue, OwnWrites
from podlife.errors import ConflictError, PodlifeError
from podlife.informer.indexes import Key
from podlife.podcontrol import (
    POD_INDEXERS,
    ControllerRefManager,
    Owner,
    PodControl,
    UncertainCreates,
    owner_of,
    pods_of_owner,
    recheck_owner,
    seconds_to_next_check,
    validate_selector,
)
from podlife.workloads.controller_revisions import REVISION_INDEXERS, ControllerRevision
from podlife.workloads.daemonset.placement import NodeEventHandler, NodeFit, Placements, all_fits
from podlife.workloads.daemonset.plan import DaemonRevision, by_node, has_changed, plan_nodes
from podlife.workloads.daemonset.pod_control import DaemonPodControl, FailedPodsBackoff
from podlife.workloads.daemonset.pod_template import daemon_template
from podlife.workloads.daemonset.revisions import DaemonSetHistory, DaemonSetRevisions
from podlife.workloads.daemonset.rolling_update import allows_surge, limits_of, replace_next
from podlife.workloads.daemonset.status import new_status
from podlife.workloads.daemonset.views import ROLLING_UPDATE, DaemonNode, DaemonSet, template_generation
from podlife.workloads.pod_event_handler import OWNER_INDEXERS, PodEventHandler
from podlife.workloads.status import CATCH_UP_SECONDS, StatusWriter
from podlife.workloads.views import WorkloadPod
from podlife.workqueue import RateLimitedQueue

# Maximum number of creations and of deletions per reconcile.
_BURST = 250


@dataclass(frozen=True, slots=True)
class _Situation:
    """A DaemonSet with its nodes and pods, as of one reconcile."""

    daemon_set: DaemonSet
    owner: Owner
    claimed: Sequence[WorkloadPod]
    revisions: DaemonSetRevisions
    revision: DaemonRevision
    # By node.
    pods: Mapping[str, Sequence[WorkloadPod]]
    fits: Mapping[str, NodeFit]
    # The same time for all decisions of a reconcile.
    now: datetime


class DaemonSetController:
    name = "daemonset-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = 2, burst: int = _BURST) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._daemon_sets = plane.informer(DAEMON_SETS, view=DaemonSet, indexers=OWNER_INDEXERS)
        self._pods = plane.informer(PODS, view=WorkloadPod, indexers=POD_INDEXERS)
        self._nodes = plane.informer(NODES, view=DaemonNode)
        self._revisions = plane.informer(
            CONTROLLER_REVISIONS, view=ControllerRevision, indexers=REVISION_INDEXERS
        )
        self._recorder = plane.recorder(self.name)
        self._control = PodControl(plane.client, self._recorder)
        self._own_writes = OwnWrites({DAEMON_SETS: self._daemon_sets, CONTROLLER_REVISIONS: self._revisions})
        self._status = StatusWriter(plane.client, DAEMON_SETS, self._own_writes)
        self._history = DaemonSetHistory(plane.client, self._revisions.cache, self._control, self._own_writes)
        self._daemon_pods = DaemonPodControl(self._control, burst)
        self._expectations = self._daemon_pods.expectations
        self._uncertain = UncertainCreates(plane.client, self._pods.cache, self._expectations)
        self._daemon_pods.on_failures = self._uncertain.note
        self._failed_pods = FailedPodsBackoff()
        self._placements = Placements()
        # UID of the DaemonSet whose expectations a key has.
        self._uids: dict[Key, str] = {}
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("daemonset")
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)
        self._add_handlers()

    def _add_handlers(self) -> None:
        owners = self._daemon_sets.cache
        self._daemon_sets.add_handler(Enqueue(self.queue, self._forget))
        self._pods.add_handler(
            PodEventHandler(DAEMON_SETS, owners, self.queue, self._expectations, matters=has_changed)
        )
        self._revisions.add_handler(PodEventHandler(DAEMON_SETS, owners, self.queue))
        self._nodes.add_handler(
            NodeEventHandler(self._nodes, owners, self._pods.cache, self._placements, self.queue)
        )

    async def run(self) -> None:
        await self.controller.run()

    async def reconcile(self, key: Key) -> Again | None:
        daemon_set = self._daemon_sets.cache.get(*key)
        if daemon_set is None:
            self._forget(key)
            return None
        if self._uids.get(key) != daemon_set.metadata.uid:
            # Recreated under the same name: the old expectations do not apply.
            self._forget(key)
            self._uids[key] = daemon_set.metadata.uid
        if not self._is_up_to_date(key):
            return Again(CATCH_UP_SECONDS)
        owner = owner_of(daemon_set, DAEMON_SETS)
        if daemon_set.spec.selector == {}:
            message = "This daemon set is selecting all pods. A non-empty selector is required."
            self._recorder.event(owner.object_reference(), "Warning", "SelectingAll", message)
            return None
        if owner.is_deleting:
            # Its history may be deleted before its pods.
            return None
        await self._uncertain.settle(key, owner)
        # Checked before the caches are read: later changes are not in the state that was read.
        may_act = self._expectations.is_satisfied(key)
        found = await self._read(key, daemon_set, owner)
        return await self._sync(found, may_act=may_act)

    def _is_up_to_date(self, key: Key) -> bool:
        followed = (self._daemon_sets, self._pods, self._nodes, self._revisions)
        return all(informer.is_live for informer in followed) and self._own_writes.is_seen(key)

    def _forget(self, key: Key) -> None:
        self._expectations.forget(key)
        self._uncertain.forget(key)
        self._own_writes.forget(key)
        self._placements.forget(key)
        self._uids.pop(key, None)

    # Reading

    async def _read(self, key: Key, daemon_set: DaemonSet, owner: Owner) -> _Situation:
        """The current state, after adoption and release, with an up-to-date history."""
        selector = daemon_set.valid_selector(f"the selector of DaemonSet {'/'.join(key)} cannot be")
        validate_selector(selector, daemon_set.spec.template)
        can_adopt = recheck_owner(self._client, DAEMON_SETS, owner)
        references = ControllerRefManager[WorkloadPod](
            owner, selector, self._control.patch_pod, can_adopt=can_adopt
        )
        claimed = await references.claim_all(pods_of_owner(self._pods.cache, owner, with_orphans=True))
        revisions = await self._history.bring_up_to_date(daemon_set, owner, selector, claimed)
        revision = DaemonRevision(
            revisions.hash,
            template_generation(daemon_set),
            daemon_set.spec.min_ready_seconds,
            is_surging=allows_surge(daemon_set),
        )
        fits = await all_fits(self._placements.of(daemon_set), self._nodes.cache.list())
        now = self._clock.now()
        return _Situation(daemon_set, owner, claimed, revisions, revision, by_node(claimed), fits, now)

    # Acting

    async def _sync(self, found: _Situation, *, may_act: bool) -> Again | None:
        daemon_set, waits = found.daemon_set, []
        failure: PodlifeError | None = None
        if may_act:
            try:
                waits.append(await self._act(found))
            except PodlifeError as error:
                failure = error
        status = new_status(daemon_set, found.pods, found.fits, found.revision, found.now)
        if may_act:
            status["observedGeneration"] = daemon_set.metadata.generation
        await self._status.write(daemon_set, status)
        if failure is not None:
            raise failure
        if not found.revisions.is_own:
            name = found.revisions.current.metadata.name
            raise ConflictError(f"ControllerRevision {name} is of another DaemonSet, which is gone")
        if min_ready := found.revision.min_ready_seconds:
            waits.append(seconds_to_next_check(found.claimed, min_ready, found.now, self._clock))
        soonest = min((wait for wait in waits if wait is not None), default=None)
        return None if soonest is None else Again.by_clock(soonest)

    async def _act(self, found: _Situation) -> float | None:
        """Act on the state; returns the seconds until the next check, if known."""
        daemon_set = found.daemon_set
        plan = plan_nodes(found.pods, found.fits, found.revision, found.now)
        ended, wait = self._end_of_pods(found, plan.failed, plan.succeeded)
        create_on, delete = plan.create_on, ended + plan.delete
        if not (create_on or delete) and daemon_set.spec.update_strategy.type == ROLLING_UPDATE:
            desired = sum(1 for fit in found.fits.values() if fit is NodeFit.SHOULD_RUN)
            limits = limits_of(daemon_set, desired)
            replacement = replace_next(found.pods, found.fits, found.revision, limits, found.now)
            create_on, delete = replacement.create_on, replacement.delete
        template = daemon_template(daemon_set.spec.template, found.revision.generation, found.revision.hash)
        await self._daemon_pods.change(found.owner, template, create_on, delete)
        await self._history.clean_up(daemon_set, found.revisions, found.claimed)
        return wait

    def _end_of_pods(
        self,
        found: _Situation,
        failed: Sequence[tuple[str, WorkloadPod]],
        succeeded: Sequence[tuple[str, WorkloadPod]],
    ) -> tuple[list[WorkloadPod], float | None]:
        """The failed pods to delete now, and when the next is due; each is recorded as an event."""
        about, namespace = found.owner.object_reference(), found.owner.namespace
        now = asyncio.get_running_loop().time()
        ended, waits = [], []
        for node, pod in failed:
            key = (found.owner.uid, found.daemon_set.status.get("observedGeneration"), node)
            if wait := self._failed_pods.seconds_left(key, now):
                waits.append(wait)
                continue
            self._failed_pods.note(key, now)
            what = f"Found failed daemon pod {namespace}/{pod.metadata.name} on node {node}"
            self._recorder.event(about, "Warning", "FailedDaemonPod", f"{what}, will try to kill it")
            ended.append(pod)
        for node, pod in succeeded:
            what = f"Found succeeded daemon pod {namespace}/{pod.metadata.name} on node {node}"
            self._recorder.event(about, "Normal", "SucceededDaemonPod", f"{what}, will try to delete it")
            ended.append(pod)
        return ended, min(waits, default=None)
