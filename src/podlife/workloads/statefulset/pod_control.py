"""Executes the steps of a plan: creates, patches and deletes pods and claims, and records events on the set.

Pods go through `podcontrol`; only the event messages are specific to StatefulSets. A delete of a pod that is gone
succeeds; a name that is taken is left to the next reconcile; no events are recorded in a terminating namespace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from podlife.api.codec import Object
from podlife.client import PERSISTENT_VOLUME_CLAIMS, Client, PatchType
from podlife.errors import AlreadyExistsError, NotFoundError, PodlifeError
from podlife.podcontrol import (
    EventRecorder,
    NamespaceTerminatingError,
    Owner,
    PodControl,
    PodDeleteError,
    WriteHook,
    slow_start,
)
from podlife.podcontrol.errors import as_namespace_terminating
from podlife.workloads.statefulset.plan import (
    CreatePod,
    DeletePod,
    RepairClaims,
    RepairPod,
    StatefulSetPlan,
    Step,
)
from podlife.workloads.statefulset.volume_claims import ClaimWork
from podlife.workloads.views import WorkloadPod


class _NoEvents:
    """Discards pod control's events, whose messages are those of other workloads."""

    def event(self, regarding: dict[str, str], type_: str, reason: str, message: str, /) -> None:
        return


class StatefulPodControl:
    """`on_pod` and `on_claim` are called with each written object."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        *,
        on_pod: WriteHook,
        on_claim: Callable[[Owner, Object], None],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self.control = PodControl(client, _NoEvents(), on_write=on_pod)
        self._on_claim = on_claim

    async def take(self, plan: StatefulSetPlan, owner: Owner, *, is_ordered: bool) -> None:
        """Execute the steps up to the first failure, which is raised."""
        for stage in plan.stages:
            if is_ordered:
                for step in stage:
                    await self._take(step, owner)
            else:
                await self._take_together(stage, owner)

    async def _take_together(self, stage: Sequence[Step], owner: Owner) -> None:
        steps = iter(stage)
        done = await slow_start(len(stage), lambda: self._take(next(steps), owner))
        done.raise_error()

    async def _take(self, step: Step, owner: Owner) -> None:
        match step:
            case CreatePod():
                await self._create(step, owner)
            case DeletePod(pod):
                await self._delete(pod, owner)
            case RepairPod():
                await self._repair(step, owner)
            case RepairClaims(pod_name, claims):
                await self._make_claims(claims, pod_name, owner)
                await self._with_event("Update", pod_name, owner, lambda: self._change_claims(claims, owner))

    async def _create(self, step: CreatePod, owner: Owner) -> None:
        async def create() -> None:
            await self._make_claims(step.claims, step.name, owner)
            await self.control.create_pod(owner.namespace, step.pod, owner, owner.controller_ref())

        await self._with_event("Create", step.name, owner, create)
        await self._with_event("Update", step.name, owner, lambda: self._change_claims(step.claims, owner))
        self._record_pod_event(owner, "Create", step.name)

    async def _delete(self, pod: WorkloadPod, owner: Owner) -> None:
        name, uid = pod.metadata.name, pod.metadata.uid
        try:
            await self.control.delete_pod(owner.namespace, name, owner, uid=uid)
        except NotFoundError:
            # Already deleted: recorded as success.
            pass
        except PodlifeError as error:
            self._record_pod_event(
                owner, "Delete", name, error.cause if isinstance(error, PodDeleteError) else error
            )
            raise
        self._record_pod_event(owner, "Delete", name)

    async def _repair(self, step: RepairPod, owner: Owner) -> None:
        async def repair() -> None:
            await self._make_claims(step.claims, step.name, owner)
            await self._change_claims(step.claims, owner)
            if step.patch is not None:
                await self.control.patch_pod(owner.namespace, step.name, step.patch)

        await self._with_event("Update", step.name, owner, repair)
        self._record_pod_event(owner, "Update", step.name)

    # Claims

    async def _make_claims(self, work: ClaimWork, pod_name: str, owner: Owner) -> None:
        """Create all claims, then raise the first error."""
        errors = [
            error
            for claim in work.create
            if (error := await self._make_claim(claim, pod_name, owner)) is not None
        ]
        for error in errors:
            raise error
        for name in work.going:
            raise PodlifeError(f"pvc {name} is being deleted")

    async def _make_claim(self, claim: Object, pod_name: str, owner: Owner) -> PodlifeError | None:
        name = claim["metadata"]["name"]
        try:
            written = await self._client.create(PERSISTENT_VOLUME_CLAIMS, claim, owner.namespace)
        except PodlifeError as error:
            if (terminating := as_namespace_terminating(error)) is not None:
                return terminating
            if not isinstance(error, AlreadyExistsError):
                message = f"Create Claim {name} for Pod {pod_name} in StatefulSet {owner.name} failed error: {error}"
                self._event(owner, "Warning", "FailedCreate", message)
            return PodlifeError(f"failed to create PVC {name}: {error}")
        self._on_claim(owner, written)
        message = f"Create Claim {name} Pod {pod_name} in StatefulSet {owner.name} success"
        self._event(owner, "Normal", "SuccessfulCreate", message)
        return None

    async def _change_claims(self, work: ClaimWork, owner: Owner) -> None:
        for name in work.conflicting:
            message = (
                f"PersistentVolumeClaim {name} has a conflicting OwnerReference that acts as a manging controller, "
                "the retention policy is ignored for this claim"
            )
            self._event(owner, "Warning", "ConflictingController", message)
        for change in work.changes:
            name = change.claim.metadata.name
            try:
                written = await self._client.patch(
                    PERSISTENT_VOLUME_CLAIMS, name, change.patch(), owner.namespace, type=PatchType.STRATEGIC
                )
            except NotFoundError:
                continue
            except PodlifeError as error:
                message = f"could not update claim {name} for delete policy ownerRefs: {error}"
                raise PodlifeError(message) from error
            self._on_claim(owner, written)

    # Events

    async def _with_event(
        self, verb: str, pod_name: str, owner: Owner, act: Callable[[], Awaitable[None]]
    ) -> None:
        try:
            await act()
        except (NamespaceTerminatingError, AlreadyExistsError):
            raise
        except PodlifeError as error:
            self._record_pod_event(owner, verb, pod_name, error)
            raise

    def _record_pod_event(
        self, owner: Owner, verb: str, name: str, error: PodlifeError | None = None
    ) -> None:
        what = f"{verb} Pod {name} in StatefulSet {owner.name}"
        if error is None:
            self._event(owner, "Normal", f"Successful{verb}", f"{what} successful")
        else:
            self._event(owner, "Warning", f"Failed{verb}", f"{what} failed error: {error}")

    def _event(self, owner: Owner, type_: str, reason: str, message: str) -> None:
        self._recorder.event(owner.object_reference(), type_, reason, message)
