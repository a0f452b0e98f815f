"""Adoption and release: an owner adopts orphans that match its selector and releases its objects that no longer
match.

Guarantees:
* Nothing is taken from another owner.
* Every patch carries the UID of its object.
* An owner that is being deleted neither adopts nor releases. Before the first adoption it is read from the server:
  one that is being deleted, or was created again under the same name, adopts nothing.

Create a new manager for every reconcile: it caches the owner it has read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from podlife.api.codec import Object, format_time
from podlife.api.selectors import LabelSelector
from podlife.api.views import MetadataOnly, controller_of
from podlife.client import Client, Ref
from podlife.errors import InvalidError, NotFoundError, PodlifeError
from podlife.podcontrol.errors import AdoptionRefusedError, ClaimError
from podlife.podcontrol.owner import ControllerRef, Owner
from podlife.podcontrol.views import OwnedPodMetadata


class Ownable(Protocol):
    """An object that can be owned and selected: pods, ReplicaSets, ControllerRevisions."""

    @property
    def metadata(self) -> OwnedPodMetadata: ...


T = TypeVar("T", bound=Ownable)

Patch = Callable[[str, str, Object], Awaitable[object]]
"""Patches the object of this namespace and name; `PodControl.patch_pod` for pods."""

Check = Callable[[], Awaitable[None]]
"""Raises PodlifeError if the owner may not adopt."""


@dataclass(frozen=True, slots=True)
class ClaimResult(Generic[T]):
    """The owned objects, as passed in: a just adopted one does not have its reference yet (CR-15)."""

    claimed: list[T]
    errors: tuple[PodlifeError, ...] = ()

    def raise_errors(self) -> None:
        """Raises the error, or ClaimError for more than one."""
        if len(self.errors) == 1:
            raise self.errors[0]
        if self.errors:
            raise ClaimError(self.errors)


@dataclass(frozen=True, slots=True)
class ClaimSettings:
    # Kind of the objects, for messages.
    kind: str = "Pod"
    # Added when an object is adopted, removed when it is released.
    finalizers: tuple[str, ...] = ()


class ControllerRefManager(Generic[T]):
    def __init__(
        self,
        owner: Owner,
        selector: LabelSelector,
        patch: Patch,
        *,
        can_adopt: Check | None = None,
        settings: ClaimSettings | None = None,
    ) -> None:
        """`can_adopt` is awaited once, before the first adoption: see `recheck_owner`. Raises InvalidOwnerError."""
        self._ref = owner.controller_ref()
        self._owner = owner
        self._selector = selector
        self._patch = patch
        self._can_adopt = can_adopt
        self._settings = settings or ClaimSettings()
        self._was_asked = False
        self._refusal: PodlifeError | None = None

    async def claim(self, objects: Iterable[T], *filters: Callable[[T], bool]) -> ClaimResult[T]:
        """Adopt and release objects, and return those owned afterwards. Objects that the selector matches must also
        pass all filters. One object that fails does not keep the others from being claimed."""
        claimed: list[T] = []
        errors: list[PodlifeError] = []
        for obj in objects:
            try:
                if await self._claim(obj, filters):
                    claimed.append(obj)
            except NotFoundError:
                # Gone or replaced meanwhile: nothing to own, and an event follows (CR-12).
                continue
            except PodlifeError as error:
                errors.append(error)
        return ClaimResult(claimed, tuple(errors))

    async def claim_all(self, objects: Iterable[T], *filters: Callable[[T], bool]) -> list[T]:
        """As `claim`; raises the errors after all objects were tried."""
        result = await self.claim(objects, *filters)
        result.raise_errors()
        return result.claimed

    async def adopt(self, obj: T) -> None:
        """Become the object's controller. Raises AdoptionRefusedError and the server's errors."""
        metadata = obj.metadata
        await self._ask()
        if self._refusal is not None:
            what = f"{self._settings.kind} {metadata.namespace}/{metadata.name} ({metadata.uid})"
            raise AdoptionRefusedError(f"can't adopt {what}: {self._refusal}") from self._refusal
        patch = adoption_patch(self._ref, metadata.uid, self._settings.finalizers)
        await self._patch(metadata.namespace, metadata.name, patch)

    async def release(self, obj: T) -> None:
        """Stop being the object's owner. Ignores objects that are gone, replaced or not owned (CR-12, CR-13)."""
        metadata = obj.metadata
        patch = release_patch(metadata.uid, [self._owner.uid], self._settings.finalizers)
        try:
            await self._patch(metadata.namespace, metadata.name, patch)
        except (NotFoundError, InvalidError):
            return

    async def _claim(self, obj: T, filters: Sequence[Callable[[T], bool]]) -> bool:
        metadata = obj.metadata
        controller = controller_of(metadata)
        if controller is not None and controller.uid != self._owner.uid:
            return False
        is_match = self._selector.matches(metadata.labels) and all(wants(obj) for wants in filters)
        if controller is not None:
            if not is_match and not self._owner.is_deleting:
                await self.release(obj)
            return is_match
        if not is_match or self._owner.is_deleting or metadata.deletion_timestamp is not None:
            return False
        if self._owner.namespace not in ("", metadata.namespace):
            return False
        await self.adopt(obj)
        return True

    async def _ask(self) -> None:
        if self._was_asked or self._can_adopt is None:
            return
        try:
            await self._can_adopt()
        except PodlifeError as error:
            self._refusal = error
        # Only now: a cancelled request has no result.
        self._was_asked = True


def recheck_owner(client: Client, ref: Ref, owner: Owner) -> Check:
    """A check that reads the owner from the server: it must exist with the same UID and not be deleting (CR-11)."""

    async def check() -> None:
        try:
            fresh = await client.get(ref, owner.name, owner.namespace, view=MetadataOnly)
        except PodlifeError as error:
            raise AdoptionRefusedError(f"can't recheck DeletionTimestamp: {error}") from error
        metadata = fresh.metadata
        name = f"{owner.namespace}/{owner.name}"
        if metadata.uid != owner.uid:
            gone = f"original {owner.kind} {name} is gone: got uid {metadata.uid}, wanted {owner.uid}"
            raise AdoptionRefusedError(f"can't recheck DeletionTimestamp: {gone}")
        if metadata.deletion_timestamp is not None:
            deleted_at = format_time(metadata.deletion_timestamp)
            raise AdoptionRefusedError(f"{name} has just been deleted at {deleted_at}")

    return check


def adoption_patch(ref: ControllerRef, uid: str, finalizers: Sequence[str] = ()) -> Object:
    """Makes the owner the controller of the object with this UID. Servers reject a second controller (CR-16)."""
    metadata: Object = {"uid": uid, "ownerReferences": [ref.to_object()]}
    if finalizers:
        metadata["finalizers"] = list(finalizers)
    return {"metadata": metadata}


def release_patch(uid: str, owner_uids: Iterable[str], finalizers: Sequence[str] = ()) -> Object:
    """Removes these owners and finalizers from the object with this UID (CR-17 to CR-20)."""
    metadata: Object = {
        "uid": uid,
        "ownerReferences": [{"$patch": "delete", "uid": owner} for owner in owner_uids],
    }
    if finalizers:
        metadata["$deleteFromPrimitiveList/finalizers"] = list(finalizers)
    return {"metadata": metadata}
