"""The metadata that every object has, and who may set which part of it.

The server alone gives out uid, creationTimestamp, resourceVersion, generation and the deletion marks. Who
sends them with a create is not told off, they are simply replaced; who changes them in an update is refused
where it could hide a mistake (another UID) and ignored where it could not, as the real server does.
"""

from __future__ import annotations

import random
import uuid
from datetime import datetime

from podlife.api.codec import Object, format_time
from podlife.api.field_errors import FieldError, invalid
from podlife.api.names import generate_name
from podlife.apiserver.registry.request_body import bad_request
from podlife.apiserver.registry.request_scope import Scope
from podlife.apiserver.strategies.object_meta import validate_metadata, validate_metadata_update

__all__ = [
    "adopt_namespace",
    "carry_over",
    "check_created",
    "check_updated",
    "clean_for_create",
    "give_identity",
]

# Left out on purpose (see docs/parity.md): who owns which field is not tracked.
_UNTRACKED = ("managedFields", "selfLink")
_SYSTEM = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")


def adopt_namespace(scope: Scope, meta: Object) -> None:
    """The namespace of the address holds; an object that names another one was sent to the wrong place."""
    if scope.resource.namespaced:
        if meta.setdefault("namespace", scope.namespace) != scope.namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
    elif meta.pop("namespace", ""):
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def clean_for_create(meta: Object) -> None:
    for field in (*_SYSTEM, *_UNTRACKED):
        meta.pop(field, None)


def give_identity(meta: Object, now: datetime, chance: random.Random) -> None:
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = generate_name(meta["generateName"], chance)
    meta["uid"] = str(uuid.UUID(int=chance.getrandbits(128), version=4))
    meta["creationTimestamp"] = format_time(now)
    for field in ("name", "generateName"):
        if meta.get(field) == "":
            del meta[field]


def check_created(scope: Scope, obj: Object) -> None:
    """Raises the 422 of an object that may not come into being."""
    strategy = scope.strategy
    meta = obj["metadata"]
    errors = validate_metadata(meta, scope.resource.namespaced, strategy.validate_name)
    _refuse(scope, meta.get("name", ""), errors + strategy.validate(obj))


def carry_over(new: Object, old: Object) -> None:
    """What an update can not change, it keeps (GD-66 among it)."""
    for field in _UNTRACKED:
        new.pop(field, None)
    for field in ("creationTimestamp", "deletionTimestamp"):
        if field in old:
            new[field] = old[field]
    new.pop("generation", None)
    if "generation" in old:
        new["generation"] = old["generation"]
    for field in ("uid", "deletionGracePeriodSeconds"):
        if field in old and new.get(field) in (None, ""):
            new[field] = old[field]


def check_updated(scope: Scope, new: Object, old: Object, *, status: bool = False) -> None:
    """Raises the 422 of a change that may not be made."""
    strategy = scope.strategy
    errors = validate_metadata(new["metadata"], scope.resource.namespaced, _any_name)
    errors += validate_metadata_update(new["metadata"], old["metadata"])
    errors += errors  # upstream asks twice, for all kinds and for each, and tells both answers
    if status:
        errors += strategy.validate_status_update(new, old)
    else:
        errors += strategy.validate(new) + strategy.validate_update(new, old)
    _refuse(scope, new["metadata"]["name"], errors)


def _any_name(name: str, *, prefix: bool) -> list[str]:
    """An update can not change the name, which was checked when it was given."""
    return []


def _refuse(scope: Scope, name: str, errors: list[FieldError]) -> None:
    if errors:
        raise invalid(scope.resource.kind, scope.resource.group, name, errors)
