"""StatefulSet controller: pods with stable names, created and updated in order, with volumes that outlive them.

It decides only from caches that contain its own writes; nothing is decided while the caches are stale. Decisions are
pure (`plan`, `revisions`, `status`); this module reads, executes and records events.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podlife.api.codec import Object
from podlife.api.selectors import LabelSelector
from podlife.client import CONTROLLER_REVISIONS, PERSISTENT_VOLUME_CLAIMS, PODS, STATEFUL_SETS, Ref
from podlife.controller import Again, Controller, ControlPlane, Enqueue, OwnWrites
from podlife.errors import PodlifeError
from podlife.informer import Informer
from podlife.informer.indexes import Key
from podlife.podcontrol import (
    POD_INDEXERS,
    ControllerRefManager,
    NamespaceTerminatingError,
    Owner,
    UidTrackedExpectations,
    owner_of,
    pods_of_owner,
    recheck_owner,
    validate_selector,
)
from podlife.workloads.controller_revisions import (
    REVISION_INDEXERS,
    ControllerRevision,
    History,
    next_number,
    surplus,
)
from podlife.workloads.pod_event_handler import OWNER_INDEXERS, PodEventHandler, note_pods
from podlife.workloads.statefulset.identity import is_member, revision_of
from podlife.workloads.statefulset.plan import StatefulSetPlan, StatefulSetState, make_plan
from podlife.workloads.statefulset.pod_control import StatefulPodControl
from podlife.workloads.statefulset.revisions import (
    as_revision,
    current_revision,
    draft_revision,
    find_revision,
)
from podlife.workloads.statefulset.status import RevisionNames, known_revisions, new_status
from podlife.workloads.statefulset.views import StatefulSet, VolumeClaim
from podlife.workloads.status import CATCH_UP_SECONDS, StatusWriter, again_when_available
from podlife.workloads.views import WorkloadPod
from podlife.workqueue import RateLimitedQueue


class StatefulSetController:
    name = "statefulset-controller"

    def __init__(self, plane: ControlPlane, *, workers: int = 5) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._sets = plane.informer(STATEFUL_SETS, view=StatefulSet, indexers=OWNER_INDEXERS)
        self._pods = plane.informer(PODS, view=WorkloadPod, indexers=POD_INDEXERS)
        self._claims = plane.informer(PERSISTENT_VOLUME_CLAIMS, view=VolumeClaim)
        self._revisions = plane.informer(
            CONTROLLER_REVISIONS, view=ControllerRevision, indexers=REVISION_INDEXERS
        )
        self._informers: dict[Ref, Informer[Any]] = {
            STATEFUL_SETS: self._sets,
            PODS: self._pods,
            PERSISTENT_VOLUME_CLAIMS: self._claims,
            CONTROLLER_REVISIONS: self._revisions,
        }
        self._own_writes = OwnWrites(self._informers)
        self._status = StatusWriter(plane.client, STATEFUL_SETS, self._own_writes)
        self._deletions = UidTrackedExpectations()
        self._history = History(
            plane.client, self._revisions.cache, STATEFUL_SETS, on_write=self._note(CONTROLLER_REVISIONS)
        )
        self._steps = StatefulPodControl(
            plane.client,
            plane.recorder(self.name),
            on_pod=note_pods(self._own_writes, STATEFUL_SETS),
            on_claim=self._note(PERSISTENT_VOLUME_CLAIMS),
        )
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("statefulset")
        self.controller = Controller(self.name, self.queue, self.reconcile, workers=workers)
        self._sets.add_handler(Enqueue(self.queue, self._forget))
        self._pods.add_handler(PodEventHandler(STATEFUL_SETS, self._sets.cache, self.queue, self._deletions))
        self._waiting: set[Key] = set()
        self._claims.add_handler(self)
        self._revisions.add_handler(self)

    async def run(self) -> None:
        await self.controller.run()

    async def reconcile(self, key: Key) -> Again | None:
        stateful_set = self._sets.cache.get(*key)
        if stateful_set is None:
            self._forget(key)
            return None
        if not all(informer.is_live for informer in self._informers.values()):
            return Again(CATCH_UP_SECONDS)
        if not (self._own_writes.is_seen(key) and self._deletions.is_satisfied(key)):
            self._waiting.add(key)
            return Again(CATCH_UP_SECONDS)
        owner = owner_of(stateful_set, STATEFUL_SETS)
        selector = stateful_set.valid_selector(f"the selector of StatefulSet {'/'.join(key)} cannot be used")
        pods = await self._claim(stateful_set, owner, selector)
        if owner.is_deleting:
            # The garbage collector deletes its pods and revisions.
            status = new_status(stateful_set, pods, known_revisions(stateful_set), self._clock.now())
            await self._status.write(stateful_set, status)
            return None
        return await self._manage(key, stateful_set, owner, selector, pods)

    def _forget(self, key: Key) -> None:
        self._own_writes.forget(key)
        self._deletions.forget(key)
        self._waiting.discard(key)

    async def _claim(
        self, stateful_set: StatefulSet, owner: Owner, selector: LabelSelector
    ) -> list[WorkloadPod]:
        """Its pods, after adopting and releasing."""
        can_adopt = recheck_owner(self._client, STATEFUL_SETS, owner)
        references = ControllerRefManager[WorkloadPod](
            owner, selector, self._steps.control.patch_pod, can_adopt=can_adopt
        )
        pods = pods_of_owner(self._pods.cache, owner, with_orphans=True)
        return await references.claim_all(pods, lambda pod: is_member(stateful_set, pod))

    async def _manage(
        self,
        key: Key,
        stateful_set: StatefulSet,
        owner: Owner,
        selector: LabelSelector,
        pods: list[WorkloadPod],
    ) -> Again | None:
        revisions = await self._history.claim(owner, selector)
        update, collisions = await self._update_revision(stateful_set, owner, revisions)
        current = current_revision(stateful_set, revisions, update)
        now = self._clock.now()
        state = StatefulSetState(
            stateful_set,
            owner,
            pods,
            as_revision(current, stateful_set),
            as_revision(update, stateful_set),
            lambda name: self._claims.cache.get(owner.namespace, name),
            now,
        )
        plan = make_plan(state)
        failure = await self._take(key, plan, state, selector)
        names = RevisionNames(current.metadata.name, update.metadata.name, collisions)
        updated = plan.updated if failure is None else None
        status = new_status(stateful_set, pods, names, now, updated=updated)
        await self._status.write(stateful_set, status)
        live = {names.current, names.update, *map(revision_of, pods)}
        for old in surplus(revisions, live, stateful_set.spec.revision_history_limit):
            await self._history.delete(old)
        # In a terminating namespace retries cannot succeed.
        if failure is not None and not isinstance(failure, NamespaceTerminatingError):
            raise failure
        return again_when_available(pods, stateful_set.spec.min_ready_seconds, status, now, self._clock)

    async def _update_revision(
        self, stateful_set: StatefulSet, owner: Owner, revisions: list[ControllerRevision]
    ) -> tuple[ControllerRevision, int]:
        """The revision of the set's template, created or renumbered if needed, and the number of name collisions."""
        collisions: int = stateful_set.status.get("collisionCount", 0)
        found = find_revision(stateful_set, revisions)
        if found is None:
            draft = draft_revision(stateful_set, revisions)
            return await self._history.create(owner, draft, collisions)
        if found is not revisions[-1]:
            # The template was rolled back: reuse its revision.
            found = await self._history.renumber(owner, found, next_number(revisions))
        return found, collisions

    async def _take(
        self, key: Key, plan: StatefulSetPlan, state: StatefulSetState, selector: LabelSelector
    ) -> PodlifeError | None:
        """Execute the plan and return the error, if any."""
        going = [pod.metadata for pod in plan.deletions()]
        self._deletions.expect_deletions(key, [metadata.uid for metadata in going])
        try:
            if plan.creates:
                # The set would not recognize such pods as its own, and create them in a loop.
                validate_selector(selector, state.update.template)
            await self._steps.take(plan, state.owner, is_ordered=state.stateful_set.is_ordered)
        except PodlifeError as error:
            # Requests that were not sent are not expected; a repeated delete carries the UID.
            self._deletions.forget(key)
            return error
        for metadata in going:
            known = self._pods.cache.get(metadata.namespace, metadata.name)
            if known is None or known.metadata.uid != metadata.uid or known.metadata.deletion_timestamp:
                # Another client was faster: its event may have arrived before the expectation was set.
                self._deletions.observe_deletion(key, metadata.uid)
        return None

    def _note(self, ref: Ref) -> Callable[[Owner, Object], None]:
        return lambda owner, written: self._own_writes.note((owner.namespace, owner.name), ref, written)

    # The handler of the informers of claims and revisions: keys may have waited for these caches.

    def on_add(self, obj: object) -> None:
        for key in self._waiting:
            self.queue.add(key)
        self._waiting.clear()

    def on_update(self, old: object, new: object) -> None:
        self.on_add(new)

    def on_delete(self, obj: object) -> None:
        self.on_add(obj)
