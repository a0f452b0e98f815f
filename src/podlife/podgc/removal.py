"""One victim from beginning to end: marked if need be, deleted, and what came of it.

Every call states whom it means: the UID, and for the marking the version it was decided on. So a pod that was made
anew under its name lives, and an answer that says so is no failure (404, 409, and the 422 of another UID).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from podlife.api.views import OwnerReference, controller_of
from podlife.client import PODS, Client, DeleteOptions, PatchType
from podlife.clock import Clock
from podlife.errors import ConflictError, InvalidError, NotFoundError
from podlife.podgc.planner import Action, Victim
from podlife.podgc.settings import FeatureGates
from podlife.podgc.status_patch import marking_patch
from podlife.podgc.steps import Step, reason_to_stay
from podlife.podgc.views import Deleted

__all__ = ["Outcome", "Removal", "event_about", "regarding_pod", "remove"]


class Outcome(StrEnum):
    DELETED = "deleted"
    # The server has taken the deletion; the pod goes when its finalizers do.
    HELD = "held"
    MARKED = "marked"
    # Somebody else was faster.
    GONE = "gone"
    REPLACED = "replaced"
    CHANGED = "changed"
    # A step before the deletion did not let it go; the removal says why.
    KEPT = "kept"

    @property
    def is_deletion(self) -> bool:
        return self in (Outcome.DELETED, Outcome.HELD)


@dataclass(frozen=True, slots=True)
class Removal:
    outcome: Outcome
    # Whose pod it was and what still holds it, where the server has told.
    owner: OwnerReference | None = None
    finalizers: tuple[str, ...] = ()
    # Why it was kept.
    why: str = ""


async def remove(
    client: Client, victim: Victim, gates: FeatureGates, clock: Clock, steps: Sequence[Step] = ()
) -> Removal:
    """Carry out what is planned for the victim, if every step lets it go. Raises ApiError or UnreachableError when it
    failed; then, if a step or the marking failed, the pod was not deleted (GC-93)."""
    if why := await reason_to_stay(steps, victim):
        return Removal(Outcome.KEPT, why=why)
    if victim.action is not Action.DELETE:
        marked = await _mark(client, victim, gates, clock)
        if marked is not Outcome.MARKED or victim.action is Action.MARK:
            return Removal(marked)
    return await _delete(client, victim)


async def _mark(client: Client, victim: Victim, gates: FeatureGates, clock: Clock) -> Outcome:
    metadata = victim.pod.metadata
    patch = marking_patch(victim.pod, victim.reason, gates, clock.now())
    if patch is None:
        return Outcome.MARKED
    try:
        await client.patch(
            PODS,
            metadata.name,
            patch,
            metadata.namespace,
            type=PatchType.STRATEGIC,
            subresource="status",
            view=_Nothing,
        )
    except NotFoundError:
        return Outcome.GONE
    except ConflictError:
        return Outcome.CHANGED
    except InvalidError as error:
        # How a server says that the pod of this name has another UID (GC-92).
        if any(cause.get("field") == "metadata.uid" for cause in error.details.get("causes") or ()):
            return Outcome.REPLACED
        raise
    return Outcome.MARKED


async def _delete(client: Client, victim: Victim) -> Removal:
    pod = victim.pod.metadata
    # What a policy decides by, a person may have changed just now: it is deleted as it was decided about, or not at
    # all. One that was marked was so by that version, and has another since.
    version = pod.resource_version if victim.rule and victim.action is Action.DELETE else ""
    # Grace 0, as upstream; the UID is ours (GC-94).
    options = DeleteOptions(grace_period_seconds=0, uid=pod.uid, resource_version=version)
    try:
        answer = await client.delete(
            PODS, pod.name, pod.namespace, options=options, view=Deleted, metadata_only=True
        )
    except NotFoundError:
        return Removal(Outcome.GONE)
    except ConflictError:
        return Removal(Outcome.CHANGED if version else Outcome.REPLACED)
    metadata = answer.metadata
    outcome = Outcome.HELD if metadata.finalizers else Outcome.DELETED
    return Removal(outcome, controller_of(metadata), metadata.finalizers)


class _Nothing(msgspec.Struct):
    """Nothing of the answer is needed."""


def event_about(victim: Victim, removal: Removal) -> tuple[Mapping[str, str], str] | None:
    """Whom to tell what was done, and in which words: the pod's owner, or else its namespace."""
    if not removal.outcome.is_deletion:
        return None
    metadata = victim.pod.metadata
    # Upstream's have the reason itself as their name.
    is_own = bool(victim.rule) and not victim.rule.startswith("upstream/")
    rule = f", rule {victim.rule}" if is_own else ""
    message = f"podlife-gc deleted pod {metadata.name} ({victim.reason}{rule}): {victim.why}"
    if removal.outcome is Outcome.HELD:
        message = f"{message}; it is held by {', '.join(removal.finalizers)}"
    if removal.owner is None:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "name": metadata.namespace}
        return {**namespace, "namespace": metadata.namespace}, message
    owner = removal.owner
    regarding = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {**regarding, "namespace": metadata.namespace}, message


def regarding_pod(victim: Victim) -> Mapping[str, str]:
    """For an event about the pod itself, which stays."""
    metadata = victim.pod.metadata
    named = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    return {"apiVersion": "v1", "kind": "Pod", **named}
