"""The history of a DaemonSet: its current ControllerRevision and the previous ones.

Guarantees:
* There is one current revision, with the highest number.
* A revision that a pod was created from is not deleted.
* A hash stands for one template: if a name is taken, the collision is counted in the status and the next attempt uses
  another name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from podlife.api.codec import Object
from podlife.api.selectors import LabelSelector
from podlife.api.views import controller_of
from podlife.client import CONTROLLER_REVISIONS, DAEMON_SETS, Client
from podlife.controller import OwnWrites
from podlife.errors import AlreadyExistsError, NotFoundError
from podlife.informer import CacheReader
from podlife.podcontrol import Owner, PodOperations
from podlife.workloads.controller_revisions import (
    ControllerRevision,
    History,
    RevisionDraft,
    in_order,
    is_revision_of,
    next_number,
    template_of,
    template_patch,
)
from podlife.workloads.daemonset.pod_template import HASH_LABEL
from podlife.workloads.daemonset.views import DaemonSet
from podlife.workloads.status import StatusWriter, next_collision_count
from podlife.workloads.views import Template, WorkloadPod


@dataclass(frozen=True, slots=True)
class DaemonSetRevisions:
    """Revisions of one DaemonSet; `old` from oldest to newest."""

    current: ControllerRevision
    old: Sequence[ControllerRevision] = ()
    # False if it belongs to an earlier DaemonSet of the same name and is deleted with it.
    is_own: bool = True

    @property
    def hash(self) -> str:
        return self.current.metadata.labels.get(HASH_LABEL, "")


class DaemonSetHistory:
    """All writes are recorded in `own_writes`."""

    def __init__(
        self,
        client: Client,
        revisions: CacheReader[ControllerRevision],
        pods: PodOperations,
        own_writes: OwnWrites,
    ) -> None:
        self._client = client
        self._pods = pods
        self._own_writes = own_writes
        self._status = StatusWriter(client, DAEMON_SETS, own_writes)
        self._history = History(client, revisions, DAEMON_SETS, on_write=self._note)

    async def bring_up_to_date(
        self, daemon_set: DaemonSet, owner: Owner, selector: LabelSelector, pods: Sequence[WorkloadPod]
    ) -> DaemonSetRevisions:
        """Find or create the revision of the current template and make it the newest; adopts and releases revisions.
        `pods` are all pods of the DaemonSet.

        Raises AlreadyExistsError after a collision was counted, and the server's other errors."""
        known = await self._history.claim(owner, selector)
        labelled = [await self._with_hash(owner, each) for each in known]
        current, old = split(labelled, daemon_set.spec.template)
        number = next_number(old)
        if not current:
            made = await self._create(daemon_set, owner, number)
            reference = controller_of(made.metadata)
            return DaemonSetRevisions(made, old, is_own=reference is not None and reference.uid == owner.uid)
        *others, newest = current
        if others:
            await self._merge(newest, others, pods)
        if newest.revision < number:
            newest = await self._history.renumber(owner, newest, number)
        return DaemonSetRevisions(newest, old)

    async def clean_up(
        self, daemon_set: DaemonSet, revisions: DaemonSetRevisions, pods: Iterable[WorkloadPod]
    ) -> None:
        live = {pod.metadata.labels.get(HASH_LABEL, "") for pod in pods}
        for revision in surplus(revisions.old, live, daemon_set.spec.revision_history_limit):
            await self._history.delete(revision)

    async def _create(self, daemon_set: DaemonSet, owner: Owner, number: int) -> ControllerRevision:
        template = daemon_set.spec.template
        collisions: int = daemon_set.status.get("collisionCount") or 0
        draft = RevisionDraft(
            template_patch(template),
            number,
            (template.get("metadata") or {}).get("labels") or {},
            daemon_set.metadata.annotations,
            HASH_LABEL,
        )
        body = draft.to_object(owner, collisions)
        try:
            written: Object = await self._client.create(CONTROLLER_REVISIONS, body, owner.namespace)
        except AlreadyExistsError:
            found = await self._client.get(
                CONTROLLER_REVISIONS, body["metadata"]["name"], owner.namespace, view=ControllerRevision
            )
            if is_revision_of(found, template):
                return found
            status = {**daemon_set.status, "collisionCount": next_collision_count(collisions)}
            await self._status.write(daemon_set, status)
            raise
        self._note(owner, written)
        return msgspec.convert(written, ControllerRevision)

    async def _with_hash(self, owner: Owner, revision: ControllerRevision) -> ControllerRevision:
        """Add the hash label; old revisions without a hash use their name."""
        metadata = revision.metadata
        if HASH_LABEL in metadata.labels:
            return revision
        patch = {"metadata": {"uid": metadata.uid, "labels": {HASH_LABEL: metadata.name}}}
        written: Object = await self._client.patch(
            CONTROLLER_REVISIONS, metadata.name, patch, metadata.namespace
        )
        self._note(owner, written)
        return msgspec.convert(written, ControllerRevision)

    def _note(self, owner: Owner, written: Object) -> None:
        self._own_writes.note((owner.namespace, owner.name), CONTROLLER_REVISIONS, written)

    async def _merge(
        self, kept: ControllerRevision, others: Sequence[ControllerRevision], pods: Iterable[WorkloadPod]
    ) -> None:
        """Keep one of several equal revisions; pods of the others are relabelled first, or they would be replaced."""
        wanted = kept.metadata.labels.get(HASH_LABEL, "")
        hashes = {each.metadata.labels.get(HASH_LABEL, "") for each in others} - {"", wanted}
        concerned = [pod for pod in pods if pod.metadata.labels.get(HASH_LABEL) in hashes]
        await asyncio.gather(*(self._relabel(pod, wanted) for pod in concerned))
        for revision in others:
            await self._history.delete(revision)

    async def _relabel(self, pod: WorkloadPod, hash_: str) -> None:
        metadata = pod.metadata
        patch = {"metadata": {"uid": metadata.uid, "labels": {HASH_LABEL: hash_}}}
        try:
            await self._pods.patch_pod(metadata.namespace, metadata.name, patch)
        except NotFoundError:
            return


def split(
    revisions: Iterable[ControllerRevision], template: Template
) -> tuple[list[ControllerRevision], list[ControllerRevision]]:
    """Revisions of the template and the others, each from oldest to newest."""
    ordered = in_order(revisions)
    current = [each for each in ordered if template_of(each) == template]
    # Only if none is byte-identical: comparing other encodings is much slower.
    current = current or [each for each in ordered if is_revision_of(each, template)]
    names = {each.metadata.name for each in current}
    return current, [each for each in ordered if each.metadata.name not in names]


def surplus(old: Sequence[ControllerRevision], live: Collection[str], limit: int) -> list[ControllerRevision]:
    """The oldest revisions beyond the limit, except those that pods were created from."""
    unused = [each for each in old if each.metadata.labels.get(HASH_LABEL, "") not in live]
    return unused[: max(0, len(old) - limit)]
