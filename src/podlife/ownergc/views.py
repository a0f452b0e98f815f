"""The metadata of any object: identity, owners, and whether it is being deleted.

One exists per object of the cluster, so only fields that decisions use are kept.
"""

from __future__ import annotations

from sys import intern
from typing import NamedTuple

import msgspec

from podlife.api import views as api

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


class ObjectIdentity(NamedTuple):
    """An object's coordinates and its UID. The order is that in which alternatives are tried: by kind first."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"[{self.api_version}/{self.kind}, namespace: {self.namespace}, name: {self.name}, uid: {self.uid}]"


class PartialOwnerReference(api.OwnerReference):
    block_owner_deletion: bool | None = None

    def identity(self, namespace: str) -> ObjectIdentity:
        return ObjectIdentity(self.kind, self.api_version, namespace, self.name, self.uid)

    def names(self, owner: ObjectIdentity) -> bool:
        """Whether it refers to exactly this object; references have no namespace."""
        return (self.uid, self.name, self.kind, self.api_version) == (
            owner.uid,
            owner.name,
            owner.kind,
            owner.api_version,
        )


class PartialMetadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    # Only its presence matters: it is not parsed.
    deletion_timestamp: str | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[PartialOwnerReference, ...] = ()

    def __post_init__(self) -> None:
        # Owner references repeat the same UIDs and names many times.
        self.namespace, self.uid, self.name = intern(self.namespace), intern(self.uid), intern(self.name)

    @property
    def is_being_deleted(self) -> bool:
        return self.deletion_timestamp is not None

    @property
    def is_deleting_dependents(self) -> bool:
        """Whether it is in foreground deletion, waiting for its dependents."""
        return self.deletion_timestamp is not None and FOREGROUND in self.finalizers

    @property
    def is_orphaning_dependents(self) -> bool:
        return self.deletion_timestamp is not None and ORPHAN in self.finalizers


class Partial(msgspec.Struct, gc=False):
    metadata: PartialMetadata
