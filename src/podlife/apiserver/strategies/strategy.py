"""Base class of strategies: how one resource differs from the next.

The registry owns the verbs (create, update, delete); a strategy answers the verbs' questions about one kind of
object. All methods are synchronous and perform no I/O. Objects are plain dictionaries, owned by the caller and
changed in place.

The order of a create is: `default` and `set_times`, admission, `prepare_create`, generic metadata checks, `validate`.
The order of an update is: `default` and `set_times`, admission, `prepare_update`, generic metadata checks, `validate`
and `validate_update`.
"""

from __future__ import annotations

from datetime import datetime

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError
from podlife.api.names import check_dns_subdomain

MOST_WARNINGS = 50
"""Maximum number of warnings in a response. Clients reject responses of more than a hundred headers."""


def keep_field(new: Object, old: Object, field: str) -> None:
    """Reset a field to what it was before the update."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


class Strategy:
    """The plain case: stored as is. Subclasses override what their kind does differently."""

    # A spec change increments metadata.generation, which starts at 1. Kinds without a spec have none.
    has_generation = False
    # Create and update of the whole object leave `status` alone; only the status subresource writes it.
    has_status = False
    # PUT on a name that does not exist creates it.
    creates_on_update = False
    # An update without a resourceVersion is accepted and unconditional.
    unconditional_update = True
    # A delete returns the object instead of a Status.
    returns_deleted_object = False
    # Without a propagation policy the dependents are orphaned (ReplicationController and Job).
    orphans_by_default = False
    # An update is validated as a new object is, besides what `validate_update` says of the change.
    validates_updates_in_full = True
    # A finalizer without a domain is an error.
    qualified_finalizers = True
    # Even a small object takes long to check: a worker thread does it.
    is_costly = False
    # The same, unless a member of `system:masters` writes it.
    is_costly_for_users = False
    # Besides the status, what a create or an update has no manager of: paths.
    kept_by_update: tuple[tuple[str, ...], ...] = ()
    # Besides the spec, what a write of the status leaves alone: paths.
    kept_by_status: tuple[tuple[str, ...], ...] = ()
    # Warning for a delete without a propagation policy.
    deletion_warning = ""

    # Checks the name (or, with `prefix`, a generateName); returns problems in upstream's words.
    validate_name = staticmethod(check_dns_subdomain)

    def default(self, obj: Object) -> None:
        """Set defaults, as upstream's versioned defaults do."""

    def set_times(self, new: Object, old: Object | None, now: datetime) -> None:
        """Set times that a client left out."""

    def prepare_create(self, obj: Object) -> None:
        """Reset fields a creator may not set. `metadata.uid` and `creationTimestamp` are already filled in."""
        if self.has_status:
            obj.pop("status", None)

    def validate(self, obj: Object) -> list[FieldError]:
        """Validate a new object. The registry checks its metadata."""
        return []

    def prepare_update(self, new: Object, old: Object) -> None:
        """Reset fields an update may not change."""
        if self.has_status:
            keep_field(new, old, "status")

    def has_changed(self, new: Object, old: Object) -> bool:
        """Whether the update increments metadata.generation."""
        return bool(new.get("spec") != old.get("spec"))

    def canonicalize(self, obj: Object) -> None:
        """Last change of a valid object before it is stored."""

    def prepare_delete(self, obj: Object, now: datetime) -> None:
        """Change an object that is to be deleted, such as by a finalizer. Only its fields and its metadata are its own:
        what is below them must be replaced."""

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """Validate a change. Called in addition to `validate`, which looks at `new` alone."""
        return []

    def prepare_status_update(self, new: Object, old: Object) -> None:
        """Keep only the status of an update to the status subresource. The registry handles metadata, unless the kind
        leaves all of it alone."""
        for field in new.keys() | old.keys():
            if field not in ("status", "metadata", "kind", "apiVersion"):
                keep_field(new, old, field)
        if ("metadata",) in self.kept_by_status:
            meta = new["metadata"]
            new["metadata"] = dict(old["metadata"])
            for field in ("resourceVersion", "managedFields"):
                keep_field(new["metadata"], meta, field)

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        return []

    def warnings(self, obj: Object) -> list[str]:
        """Warnings to send with the response, as `Warning` headers."""
        return []

    def first_grace_seconds(self, obj: Object, requested: int | None) -> int | None:
        """Grace period of a first delete; None for kinds that are deleted at once."""
        return None
