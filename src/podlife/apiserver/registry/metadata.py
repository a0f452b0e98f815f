"""Metadata that every object has, and who may set which part of it.

Only the server assigns uid, creationTimestamp, resourceVersion, generation and the deletion fields. Values sent with
a create are replaced without an error. Values changed by an update are rejected where the change could hide a mistake
(another UID) and ignored otherwise, as kube-apiserver does.
"""

from __future__ import annotations

import random
import uuid
from datetime import datetime

from podlife.api.codec import Object, format_time
from podlife.api.field_errors import FieldError, RatchetedError, invalid
from podlife.api.names import generate_name
from podlife.apiserver.registry.request_body import bad_request
from podlife.apiserver.registry.request_scope import RequestScope
from podlife.apiserver.strategies.object_meta import validate_metadata, validate_metadata_update

_SYSTEM = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)


def adopt_namespace(scope: RequestScope, meta: Object) -> None:
    """The URL's namespace applies; an object that names another one is rejected."""
    if scope.resource.namespaced:
        is_same = meta.setdefault("namespace", scope.namespace) == scope.namespace
    else:
        is_same = not meta.pop("namespace", "")
    if not is_same:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def clean_for_create(meta: Object) -> None:
    for field in _SYSTEM:
        meta.pop(field, None)


def give_identity(meta: Object, now: datetime, chance: random.Random) -> None:
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = generate_name(meta["generateName"], chance)
    meta["uid"] = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    meta["creationTimestamp"] = format_time(now)
    for field in ("name", "generateName"):
        if meta.get(field) == "":
            del meta[field]


def check_created(scope: RequestScope, obj: Object) -> None:
    """Raise 422 if the object may not be created."""
    strategy = scope.strategy
    meta = obj["metadata"]
    qualified = strategy.qualified_finalizers
    errors = validate_metadata(meta, scope.resource.namespaced, strategy.validate_name, qualified=qualified)
    _refuse(scope, meta.get("name", ""), errors + strategy.validate(obj))


def carry_over(new: Object, old: Object) -> None:
    """Copy what an update cannot change from the old object (GD-66)."""
    new.pop("selfLink", None)
    for field in ("creationTimestamp", "deletionTimestamp"):
        if field in old:
            new[field] = old[field]
    new.pop("generation", None)
    if "generation" in old:
        new["generation"] = old["generation"]
    for field in ("uid", "deletionGracePeriodSeconds"):
        if field in old and new.get(field) in (None, ""):
            new[field] = old[field]


def check_updated(scope: RequestScope, new: Object, old: Object, *, status: bool = False) -> None:
    """Raise 422 if the change is not allowed."""
    strategy = scope.strategy
    qualified = strategy.qualified_finalizers
    errors = validate_metadata(new["metadata"], scope.resource.namespaced, _any_name, qualified=qualified)
    errors += validate_metadata_update(new["metadata"], old["metadata"], qualified=qualified)
    errors += errors  # upstream validates twice, generically and by kind, and reports both results
    if status:
        errors += strategy.validate_status_update(new, old)
    else:
        if strategy.validates_updates_in_full:
            errors += strategy.validate(new)
        errors += strategy.validate_update(new, old)
    _refuse(scope, new["metadata"]["name"], errors)


def _any_name(name: str, *, prefix: bool) -> list[str]:
    """An update cannot change the name, which was checked at creation."""
    return []


def _refuse(scope: RequestScope, name: str, errors: list[FieldError]) -> None:
    if errors:
        scope.warnings.extend(str(error) for error in errors if isinstance(error, RatchetedError))
        errors = [error for error in errors if not isinstance(error, RatchetedError)]
    if errors:
        raise invalid(scope.resource.kind, scope.resource.group, name, errors)
