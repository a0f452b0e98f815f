"""What differs between one resource and the next.

The registry owns the verbs (what happens when an object is created, updated, deleted); a strategy answers
the questions the verbs ask about one kind of object. All methods are synchronous and have no I/O. Objects
are plain dictionaries that belong to the caller for the length of the call: they are changed in place.

The order of a create is: `default`, admission, `prepare_create`, generic metadata checks, `validate`.
The order of an update is: `default`, admission, `prepare_update`, generic metadata checks,
`validate` and `validate_update`.
"""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError

__all__ = ["MOST_WARNINGS", "Strategy"]

MOST_WARNINGS = 50
"""How many warnings an answer carries. Clients refuse answers of more than a hundred headers."""


class Strategy:
    """The plain case: stored as it comes. Subclasses override what their kind does differently."""

    # A spec change bumps metadata.generation, and it starts at 1. Kinds without a spec have none.
    has_generation = False
    # Create and update of the whole object leave `status` alone; only the status subresource writes it.
    has_status = False
    # PUT on a name that does not exist creates it.
    creates_on_update = False
    # An update without a resourceVersion is accepted and means "whatever is there".
    unconditional_update = True
    # A delete answers with the object instead of a Status.
    returns_deleted_object = False
    # Without a propagation policy the dependents are orphaned (ReplicationController and Job).
    orphans_by_default = False
    # What to tell who deletes without a propagation policy.
    deletion_warning = ""

    def validate_name(self, name: str, *, prefix: bool) -> list[str]:
        """What is wrong with the name (or, with `prefix`, with a generateName), in upstream's words."""
        from podlife.api.names import check_dns_subdomain

        return check_dns_subdomain(name, prefix=prefix)

    def default(self, obj: Object) -> None:
        """Fill in what the user left out, as the versioned defaults of upstream do."""

    def prepare_create(self, obj: Object) -> None:
        """Reset what a creator may not set. `metadata.uid` and `creationTimestamp` are already filled in."""
        if self.has_status:
            obj.pop("status", None)

    def validate(self, obj: Object) -> list[FieldError]:
        """What is wrong with a new object. Its metadata is checked by the registry."""
        return []

    def prepare_update(self, new: Object, old: Object) -> None:
        """Reset what an update may not change."""
        if self.has_status:
            if "status" in old:
                new["status"] = old["status"]
            else:
                new.pop("status", None)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        """What this change may not do. Called in addition to `validate`, which looks at `new` alone."""
        return []

    def prepare_status_update(self, new: Object, old: Object) -> None:
        """Of an update to the status subresource keep only the status. Metadata is handled by the registry."""
        for field in new.keys() | old.keys():
            if field not in ("status", "metadata", "kind", "apiVersion"):
                if field in old:
                    new[field] = old[field]
                else:
                    new.pop(field, None)

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        return []

    def warnings(self, obj: Object) -> list[str]:
        """What to tell the user beside the answer, as `Warning` headers."""
        return []

    def first_grace_seconds(self, obj: Object, requested: int | None) -> int | None:
        """The grace of a first delete; None for kinds that are deleted at once."""
        return None
