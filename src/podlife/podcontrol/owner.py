"""The owner of pods, and the controller reference to it. Pure.

An `Owner` is built from an API object (a dictionary or a view) or by hand. Events are recorded on it, pods refer to
it, and its pods are found by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from podlife.api.codec import Object
from podlife.api.views import Metadata
from podlife.client import Ref
from podlife.podcontrol.errors import InvalidControllerRefError, InvalidOwnerError


@dataclass(frozen=True, slots=True)
class ControllerRef:
    """An entry of `metadata.ownerReferences`; by default a controller's."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool | None = True
    block_owner_deletion: bool | None = True

    def to_object(self) -> Object:
        reference: Object = {
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": self.name,
            "uid": self.uid,
        }
        if self.controller is not None:
            reference["controller"] = self.controller
        if self.block_owner_deletion is not None:
            reference["blockOwnerDeletion"] = self.block_owner_deletion
        return reference


@dataclass(frozen=True, slots=True)
class Owner:
    """The object on whose behalf pods are managed. Without a namespace it is cluster-scoped."""

    api_version: str
    kind: str
    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    # It has a deletionTimestamp.
    is_deleting: bool = False

    def controller_ref(self) -> ControllerRef:
        """The controller reference to this owner. Raises InvalidOwnerError if a field is missing."""
        for what in ("api_version", "kind", "name", "uid"):
            if not getattr(self, what):
                raise InvalidOwnerError(f"no owner {what.replace('_', ' ')} provided")
        return ControllerRef(self.api_version, self.kind, self.name, self.uid)

    def object_reference(self) -> dict[str, str]:
        """Object reference for events."""
        return {
            "kind": self.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "apiVersion": self.api_version,
            "resourceVersion": self.resource_version,
        }


Parent = Owner | Mapping[str, Any]
"""The acting owner: an `Owner`, or the API object itself."""


class View(Protocol):
    """A view of an API object, as an informer keeps it; see `podlife.api.views`."""

    @property
    def metadata(self) -> Metadata: ...


def owner_of(parent: Parent | View, kind: Ref | ControllerRef | None = None) -> Owner:
    """`kind` is for views and list items, which lack it. Raises InvalidOwnerError without metadata."""
    if isinstance(parent, Owner):
        return parent
    if isinstance(seen := getattr(parent, "metadata", None), Metadata):
        return Owner(
            api_version=kind.api_version if kind else "",
            kind=kind.kind if kind else "",
            name=seen.name,
            uid=seen.uid,
            namespace=seen.namespace,
            resource_version=seen.resource_version,
            is_deleting=seen.deletion_timestamp is not None,
        )
    # Types are not enforced at runtime: None is not an object either.
    given: Mapping[str, Any] = parent if isinstance(parent, Mapping) else {}
    metadata = given.get("metadata")
    if not isinstance(metadata, Mapping):
        raise InvalidOwnerError("object does not implement the Object interfaces")
    return Owner(
        api_version=given.get("apiVersion") or (kind.api_version if kind else ""),
        kind=given.get("kind") or (kind.kind if kind else ""),
        name=metadata.get("name") or "",
        uid=metadata.get("uid") or "",
        namespace=metadata.get("namespace") or "",
        resource_version=metadata.get("resourceVersion") or "",
        is_deleting=metadata.get("deletionTimestamp") is not None,
    )


def controller_ref_of(obj: Mapping[str, Any]) -> ControllerRef | None:
    """The managing controller of the object, if any."""
    for entry in (obj.get("metadata") or {}).get("ownerReferences") or ():
        if entry.get("controller"):
            return ControllerRef(
                entry.get("apiVersion", ""),
                entry.get("kind", ""),
                entry.get("name", ""),
                entry.get("uid", ""),
                block_owner_deletion=entry.get("blockOwnerDeletion"),
            )
    return None


def validate_controller_ref(ref: ControllerRef | None) -> ControllerRef:
    """Checks PC-01 to PC-05; name and UID are left to the server (PC-06). Raises InvalidControllerRefError."""
    if ref is None:
        raise InvalidControllerRefError("controllerRef is nil")
    if not ref.api_version:
        raise InvalidControllerRefError("controllerRef has empty APIVersion")
    if not ref.kind:
        raise InvalidControllerRefError("controllerRef has empty Kind")
    if not ref.controller:
        raise InvalidControllerRefError("controllerRef.Controller is not set to true")
    if not ref.block_owner_deletion:
        raise InvalidControllerRefError("controllerRef.BlockOwnerDeletion is not set")
    return ref
