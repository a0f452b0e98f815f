"""Removal of one victim: marked Failed if necessary, then deleted.

Every request carries the pod's UID, and the status patch the resource version that was evaluated. So a pod created
again under the same name survives, and an answer that says so is not a failure (404, 409, and 422 for another UID).
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
from podlife.podgc.plan import Action, Victim
from podlife.podgc.pre_delete import PreDeleteStep, reason_to_stay
from podlife.podgc.settings import FeatureGates
from podlife.podgc.status_patch import marking_patch
from podlife.podgc.views import Deleted


class Outcome(StrEnum):
    DELETED = "deleted"
    # The server accepted the deletion; finalizers still hold the pod.
    HELD = "held"
    MARKED = "marked"
    # Deleted by someone else.
    GONE = "gone"
    REPLACED = "replaced"
    CHANGED = "changed"
    # A pre-delete step kept it; `why` gives the reason.
    KEPT = "kept"

    @property
    def is_deletion(self) -> bool:
        return self in (Outcome.DELETED, Outcome.HELD)


@dataclass(frozen=True, slots=True)
class Removal:
    outcome: Outcome
    # The pod's owner and remaining finalizers, from the server's answer.
    owner: OwnerReference | None = None
    finalizers: tuple[str, ...] = ()
    # Why it was kept.
    why: str = ""


async def remove(
    client: Client, victim: Victim, gates: FeatureGates, clock: Clock, steps: Sequence[PreDeleteStep] = ()
) -> Removal:
    """Remove the victim if every step allows it. Raises ApiError or UnreachableError; if a step or the status patch
    failed, the pod was not deleted (GC-93)."""
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
        # The server's answer when the pod of this name has another UID (GC-92).
        if any(cause.get("field") == "metadata.uid" for cause in error.details.get("causes") or ()):
            return Outcome.REPLACED
        raise
    return Outcome.MARKED


async def _delete(client: Client, victim: Victim) -> Removal:
    pod = victim.pod.metadata
    # A rule's decision holds for the version that was evaluated: labels may have changed since. A pod that was marked
    # has a newer version, which the patch was conditional on.
    version = pod.resource_version if victim.rule and victim.action is Action.DELETE else ""
    # Grace 0, as upstream; the UID precondition is podlife's (GC-94).
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
    """Decodes nothing of the answer."""


def event_about(victim: Victim, removal: Removal) -> tuple[Mapping[str, str], str] | None:
    """The object and message of the event about a deletion: the pod's owner, or else its namespace."""
    if not removal.outcome.is_deletion:
        return None
    metadata = victim.pod.metadata
    # Upstream rules are named for their reason.
    is_own = bool(victim.rule) and not victim.rule.startswith("upstream/")
    rule = f", rule {victim.rule}" if is_own else ""
    message = f"podlife-gc deleted pod {metadata.name} ({victim.reason}{rule}): {victim.why}"
    if removal.outcome is Outcome.HELD:
        message = f"{message}; held by {', '.join(removal.finalizers)}"
    return owner_or_namespace(removal.owner, metadata.namespace), message


def owner_or_namespace(owner: OwnerReference | None, namespace: str) -> Mapping[str, str]:
    """The object of an event about a pod that is gone, or about to go."""
    if owner is None:
        return {"apiVersion": "v1", "kind": "Namespace", "name": namespace, "namespace": namespace}
    regarding = {"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid}
    return {**regarding, "namespace": namespace}


def regarding_pod(victim: Victim) -> Mapping[str, str]:
    """The object of an event about a pod that stays."""
    metadata = victim.pod.metadata
    named = {"name": metadata.name, "namespace": metadata.namespace, "uid": metadata.uid}
    return {"apiVersion": "v1", "kind": "Pod", **named}
