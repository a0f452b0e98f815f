"""Maintains the status of PodDisruptionBudgets, and resets stale DisruptionTarget conditions of pods.

A status is written only to the budget it was computed from, by UID and resourceVersion: the API server lowers
`disruptionsAllowed` with every eviction, and overwriting that would allow one eviction too many. After a conflict the
status is computed again. If the counts cannot be determined, no eviction is allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from podlife.api.views import controller_of
from podlife.client import POD_DISRUPTION_BUDGETS, PODS
from podlife.controller import Again, Controller, ControlPlane, Enqueue, OwnWrites
from podlife.errors import ApiError, ConflictError, NotFoundError, PodlifeError, UnreachableError
from podlife.informer.indexes import Key
from podlife.podcontrol import BY_NAMESPACE, POD_INDEXERS, InvalidInputError, is_ready, owner_of
from podlife.workloads.disruption.scale_finder import NoScaleError, ScaleFinder
from podlife.workloads.disruption.stale_conditions import reset_patch, time_until_stale
from podlife.workloads.disruption.status import (
    Disrupted,
    Expected,
    count_healthy,
    disrupted_of,
    expected_of,
    failed_status,
    needs_scale,
    new_status,
    patch_of,
    selector_text,
)
from podlife.workloads.disruption.views import Budget
from podlife.workloads.pod_event_handler import OWNER_INDEXERS, key_of
from podlife.workloads.status import CATCH_UP_SECONDS, patch_status
from podlife.workloads.views import Status, WorkloadPod
from podlife.workqueue import RateLimitedQueue

# The component name of kube-controller-manager's events.
_COMPONENT = "controllermanager"


class DisruptionController:
    name = "disruption-controller"

    def __init__(self, plane: ControlPlane) -> None:
        self._client = plane.client
        self._clock = plane.clock
        self._recorder = plane.recorder(_COMPONENT)
        self._budgets = plane.informer(POD_DISRUPTION_BUDGETS, view=Budget, indexers=OWNER_INDEXERS)
        self._pods = plane.informer(PODS, view=WorkloadPod, indexers=POD_INDEXERS)
        self._scales = ScaleFinder(plane)
        self._writes = OwnWrites({POD_DISRUPTION_BUDGETS: self._budgets})
        self.queue: RateLimitedQueue[Key] = RateLimitedQueue("disruption")
        self.stale_queue: RateLimitedQueue[Key] = RateLimitedQueue("stale_pod_disruption")
        self.controller = Controller(self.name, self.queue, self.reconcile)
        self.stale_controller = Controller("stale-pod-disruption", self.stale_queue, self.reset_stale)
        self._budgets.add_handler(Enqueue(self.queue, self._writes.forget))
        self._pods.add_handler(self)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run(), name="budgets")
            group.create_task(self.stale_controller.run(), name="stale conditions")

    # The handler of the informer of pods

    def on_add(self, pod: WorkloadPod) -> None:
        budgets = self._budgets_of(pod)
        for each in budgets:
            self.queue.add(key_of(each))
        if len(budgets) > 1:
            self._warn_of_several(pod, budgets[0])
        self._watch_condition(pod)

    def on_update(self, old: WorkloadPod, new: WorkloadPod) -> None:
        if old.metadata.uid != new.metadata.uid or old.metadata.labels != new.metadata.labels:
            # Budgets that covered it before count one fewer.
            self.on_delete(old)
            self.on_add(new)
            return
        if _relevant_fields(old) != _relevant_fields(new):
            for each in self._budgets_of(new):
                self.queue.add(key_of(each))
        self._watch_condition(new)

    def on_delete(self, pod: WorkloadPod) -> None:
        for each in self._budgets_of(pod):
            self.queue.add(key_of(each))

    def _budgets_of(self, pod: WorkloadPod) -> list[Budget]:
        found = (
            each
            for each in self._budgets.cache.by_index(BY_NAMESPACE, pod.metadata.namespace)
            if _selects(each, pod)
        )
        return sorted(found, key=key_of)

    def _watch_condition(self, pod: WorkloadPod) -> None:
        if (left := time_until_stale(pod, self._clock.now())) is not None:
            self.stale_queue.add_after(key_of(pod), max(0.0, left.total_seconds()))

    def _warn_of_several(self, pod: WorkloadPod, chosen: Budget) -> None:
        """The API server evicts no pod that several budgets cover."""
        name = f'"{pod.metadata.namespace}"/"{pod.metadata.name}"'
        message = (
            f'Pod {name} matches multiple PodDisruptionBudgets.  Chose "{chosen.metadata.name}" arbitrarily.'
        )
        about = owner_of(pod, PODS).object_reference()
        self._recorder.event(about, "Warning", "MultiplePodDisruptionBudgets", message)

    # Budgets

    async def reconcile(self, key: Key) -> Again | None:
        """Raises ConflictError after a concurrent write, and the server's other errors."""
        budget = self._budgets.cache.get(*key)
        if budget is None:
            self._writes.forget(key)
            return None
        is_live = self._budgets.is_live and self._pods.is_live and self._scales.is_live
        if not (is_live and self._writes.is_seen(key)):
            return Again(CATCH_UP_SECONDS)
        try:
            pods = self._select_pods(budget)
            expected = await self._expect(budget, pods)
        except (NoScaleError, InvalidInputError, ApiError, UnreachableError) as error:
            await self._write(key, budget, failed_status(budget, str(error), self._clock.now()))
            if isinstance(error, (ApiError, UnreachableError)):
                raise
            # A retry cannot succeed before a change, which has its own event.
            return None
        return await self._write_status(key, budget, pods, expected)

    def _select_pods(self, budget: Budget) -> Sequence[WorkloadPod]:
        """Raises NoScaleError for an invalid selector."""
        namespace = budget.metadata.namespace
        try:
            selector = budget.selector
        except ValueError as error:
            self._event(budget, "Warning", "NoPods", f"Failed to get pods: {error}")
            raise NoScaleError(str(error)) from None
        pods = [
            pod
            for pod in self._pods.cache.by_index(BY_NAMESPACE, namespace)
            if selector.matches(pod.metadata.labels)
        ]
        if not pods:
            self._event(budget, "Normal", "NoPods", "No matching pods found")
        return pods

    async def _expect(self, budget: Budget, pods: Sequence[WorkloadPod]) -> Expected:
        if not needs_scale(budget.spec):
            return expected_of(budget.spec, len(pods))
        try:
            expected = expected_of(budget.spec, *await self._scales.expected_pods(pods))
        except PodlifeError as error:
            message = f"Failed to calculate the number of expected pods: {error}"
            self._event(budget, "Warning", "CalculateExpectedPodCountFailed", message)
            raise
        if expected.unmanaged:
            self._event(budget, "Warning", "UnmanagedPods", _UNMANAGED.format(selector_text(budget)))
        return expected

    async def _write_status(
        self, key: Key, budget: Budget, pods: Sequence[WorkloadPod], expected: Expected
    ) -> Again | None:
        now = self._clock.now()
        disrupted = disrupted_of(budget, pods, now)
        self._warn_of_overdue(budget, disrupted)
        healthy = count_healthy(pods, disrupted)
        await self._write(key, budget, new_status(budget, expected, healthy, disrupted, now))
        if disrupted.expires is None:
            return None
        return Again.by_clock(max(0.0, (disrupted.expires - now).total_seconds()))

    def _warn_of_overdue(self, budget: Budget, disrupted: Disrupted) -> None:
        metadata = budget.metadata
        message = f"Pod was expected by PDB {metadata.namespace}/{metadata.name} to be deleted but it wasn't"
        for pod in disrupted.overdue:
            self._recorder.event(owner_of(pod, PODS).object_reference(), "Warning", "NotDeleted", message)

    async def _write(self, key: Key, budget: Budget, status: Status) -> None:
        patch = patch_of(budget.status, status)
        if not patch:
            return
        try:
            written = await patch_status(self._client, POD_DISRUPTION_BUDGETS, budget.metadata, patch)
        except NotFoundError:
            return
        self._writes.note(key, POD_DISRUPTION_BUDGETS, written)

    def _event(self, budget: Budget, type_: str, reason: str, message: str) -> None:
        about = owner_of(budget, POD_DISRUPTION_BUDGETS).object_reference()
        self._recorder.event(about, type_, reason, message)

    # Stale DisruptionTarget conditions

    async def reset_stale(self, key: Key) -> Again | None:
        """Read the pod from the server: its condition may have changed."""
        pod = self._pods.cache.get(*key)
        left = None if pod is None else time_until_stale(pod, self._clock.now())
        if left is None:
            return None
        if left.total_seconds() > 0:
            return Again.by_clock(left.total_seconds())
        namespace, name = key
        try:
            patch = reset_patch(await self._client.get(PODS, name, namespace), self._clock.now())
            if patch is not None:
                await self._client.patch(PODS, name, patch, namespace, subresource="status")
        except (NotFoundError, ConflictError):
            # It has changed: the event enqueues the key again.
            return None
        return None


_UNMANAGED = (
    "Pods selected by this PodDisruptionBudget (selector: {}) were found to be unmanaged. As a result, the status of "
    "the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please "
    'set ".spec.minAvailable" field of the PDB to an integer value.'
)


def _selects(budget: Budget, pod: WorkloadPod) -> bool:
    try:
        return budget.selector.matches(pod.metadata.labels)
    except ValueError:
        return False


def _relevant_fields(pod: WorkloadPod) -> tuple[bool, bool, str]:
    """The fields of a pod that affect a budget, except labels."""
    owner = controller_of(pod.metadata)
    return is_ready(pod), pod.metadata.deletion_timestamp is not None, owner.uid if owner else ""
