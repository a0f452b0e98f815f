"""Requests about single objects: metadata only, and never about another object of the same name.

An object is gone if the server has no object of its name, or one with another UID. A 404 that names no object means
that the resource is not served at the moment, and decides nothing. A strategic merge patch carries only the change;
for resources without it (custom resources) a merge patch of the fresh state is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podlife.api.codec import Object
from podlife.client import Client, DeleteOptions, PatchType, Ref
from podlife.client.options import METADATA_ONLY
from podlife.client.views import decode
from podlife.errors import ApiError, ConflictError, NotFoundError, PodlifeError, TerminalError
from podlife.ownergc.views import ObjectIdentity, Partial, PartialMetadata

# Attempts of a write after conflicts.
_TRIES = 4
_UNSUPPORTED_MEDIA_TYPE = 415

# Characters that are invalid in a path segment.
_INVALID_CHARACTERS = frozenset("/%")

References = list[dict[str, Any]]


class RestMappingError(PodlifeError):
    """The server does not have the kind, or not yet: objects that refer to it are left alone."""


class ObjectOperations:
    """`kinds` maps apiVersion and kind to a resource."""

    def __init__(self, client: Client, kinds: Callable[[], Mapping[tuple[str, str], Ref]]) -> None:
        self._client = client
        self._kinds = kinds

    def ref(self, identity: ObjectIdentity) -> Ref:
        """Raises RestMappingError, and TerminalError for a namespaced kind without a namespace: a cluster-scoped object
        refers to a namespaced owner."""
        ref = self._kinds().get((identity.api_version, identity.kind))
        if ref is None:
            raise RestMappingError(f"cannot look up {identity}: unknown kind")
        if ref.namespaced and not identity.namespace:
            raise TerminalError(f"a cluster-scoped object has a namespaced owner: {identity}")
        if (
            not identity.name
            or not _INVALID_CHARACTERS.isdisjoint(identity.name)
            or identity.name in (".", "..")
        ):
            # An empty name would request the whole collection, and the response would look like "not found".
            raise TerminalError(f"invalid object name: {identity}")
        return ref

    def located(self, identity: ObjectIdentity) -> ObjectIdentity:
        """The identity without a namespace if its kind is cluster-scoped: references do not tell. Raises
        RestMappingError."""
        return identity if self.ref(identity).namespaced else identity._replace(namespace="")

    async def get(self, identity: ObjectIdentity) -> PartialMetadata | None:
        """The current object; None if it is gone."""
        ref = self.ref(identity)
        path = ref.path(_namespace(ref, identity), identity.name)
        try:
            reply = await self._client.request("GET", path, headers={"Accept": METADATA_ONLY})
        except NotFoundError as error:
            _check_gone(error, identity)
            return None
        metadata = decode(reply.body, Partial, f"GET {path}").metadata
        return metadata if metadata.uid == identity.uid else None

    async def delete(self, identity: ObjectIdentity, policy: str, resource_version: str = "") -> bool:
        """Return whether the object existed. Raises ConflictError if it has changed since `resource_version`."""
        ref = self.ref(identity)
        options = DeleteOptions(
            uid=identity.uid, resource_version=resource_version, propagation_policy=policy
        )
        try:
            await self._client.delete(
                ref, identity.name, _namespace(ref, identity), options=options, metadata_only=True
            )
        except NotFoundError as error:
            _check_gone(error, identity)
            return False
        return True

    async def drop_references(
        self, identity: ObjectIdentity, uids: tuple[str, ...], resource_version: str = ""
    ) -> bool:
        """Remove these owners from the object's references; returns whether the object exists. Raises ConflictError if
        it has changed since `resource_version`: a reference with the same UID may be another one by now."""
        strategic = [{"$patch": "delete", "uid": uid} for uid in uids]
        return await self._patch_references(
            identity,
            strategic,
            lambda references: [each for each in references if each.get("uid") not in uids],
            resource_version,
        )

    async def unblock_owners(self, identity: ObjectIdentity, uids: tuple[str, ...]) -> bool:
        """Clear blockOwnerDeletion for these owners; returns whether the object exists."""
        strategic: References = [{"uid": uid, "blockOwnerDeletion": False} for uid in uids]
        return await self._patch_references(
            identity,
            strategic,
            lambda references: [
                {**each, "blockOwnerDeletion": False} if each.get("uid") in uids else each
                for each in references
            ],
        )

    async def remove_finalizer(
        self, identity: ObjectIdentity, finalizer: str, seen: PartialMetadata | None
    ) -> None:
        """Starts from the known state; if that is stale, from a fresh one."""
        for _ in range(_TRIES):
            latest = seen or await self.get(identity)
            if latest is None or finalizer not in latest.finalizers:
                return
            left = [each for each in latest.finalizers if each != finalizer]
            about = {"uid": identity.uid, "resourceVersion": latest.resource_version}
            try:
                await self._patch(identity, {**about, "finalizers": left or None}, PatchType.MERGE)
            except NotFoundError as error:
                _check_gone(error, identity)
                return
            except ConflictError:
                seen = None
                continue
            return
        raise ConflictError(f"the finalizer {finalizer} of {identity} was overtaken {_TRIES} times")

    async def _patch_references(
        self,
        identity: ObjectIdentity,
        strategic: References,
        change: Callable[[References], References],
        resource_version: str = "",
    ) -> bool:
        about: Object = {"uid": identity.uid, "ownerReferences": strategic}
        if resource_version:
            about["resourceVersion"] = resource_version
        try:
            await self._patch(identity, about, PatchType.STRATEGIC)
        except NotFoundError as error:
            _check_gone(error, identity)
            return False
        except ConflictError:
            if await self.get(identity) is None:
                return False
            raise
        except ApiError as error:
            if error.code != _UNSUPPORTED_MEDIA_TYPE:
                raise
            return await self._replace_references(identity, change, resource_version)
        return True

    async def _replace_references(
        self, identity: ObjectIdentity, change: Callable[[References], References], resource_version: str
    ) -> bool:
        ref = self.ref(identity)
        for _ in range(_TRIES):
            try:
                latest: Object = await self._client.get(ref, identity.name, _namespace(ref, identity))
                metadata = latest["metadata"]
                if metadata["uid"] != identity.uid:
                    return False
                if resource_version and metadata["resourceVersion"] != resource_version:
                    raise ConflictError(f"{identity} has changed")
                references = metadata.get("ownerReferences") or []
                changed = change(references)
                if changed == references:
                    return True
                about = {"uid": identity.uid, "resourceVersion": metadata["resourceVersion"]}
                await self._patch(identity, {**about, "ownerReferences": changed or None}, PatchType.MERGE)
            except NotFoundError as error:
                _check_gone(error, identity)
                return False
            except ConflictError:
                if resource_version:
                    raise
                continue
            return True
        raise ConflictError(f"the owners of {identity} were overtaken {_TRIES} times")

    async def _patch(self, identity: ObjectIdentity, metadata: Object, type_: PatchType) -> None:
        ref = self.ref(identity)
        await self._client.request(
            "PATCH",
            ref.path(_namespace(ref, identity), identity.name),
            body={"metadata": metadata},
            headers={"Content-Type": type_.value, "Accept": METADATA_ONLY},
        )


def _check_gone(error: NotFoundError, identity: ObjectIdentity) -> None:
    """Raises RestMappingError if the 404 is about the resource, not about this object."""
    if error.details.get("name") != identity.name:
        raise RestMappingError(
            f"the server does not serve {identity.kind} of {identity.api_version}: {error}"
        )


def _namespace(ref: Ref, identity: ObjectIdentity) -> str:
    # An unobserved owner has its dependent's namespace, even if its kind is cluster-scoped.
    return identity.namespace if ref.namespaced else ""
