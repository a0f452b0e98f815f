"""Graceful deletion as pure functions: the GD- rules (upstream's `rest.BeforeDelete`).

`before_delete` takes an object, the delete options and the time and decides what happens to the object: nothing (a
grace period is already running), marked (it stays, with a deletion timestamp) or removed. It turns the object, which
the caller owns, into what must be written. Storage and HTTP are unknown here.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import Any

from podlife.api.codec import Object, format_time, parse_time
from podlife.api.field_errors import FieldError, bad_value, invalid, not_supported
from podlife.apiserver.strategies.strategy import Strategy
from podlife.clock import LAST_MOMENT, add_seconds
from podlife.errors import ConflictError

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_POLICIES = ("Foreground", "Background", "Orphan")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """Options of a delete. Absent is not the same as zero."""

    grace_seconds: int | None = None
    uid: str | None = None
    resource_version: str | None = None
    orphan_dependents: bool | None = None
    propagation: str | None = None
    dry_run: tuple[str, ...] = ()
    ignore_store_errors: bool = False

    @classmethod
    def from_object(cls, body: Object) -> DeleteOptions:
        conditions = body.get("preconditions") or {}
        return cls(
            grace_seconds=body.get("gracePeriodSeconds"),
            uid=conditions.get("uid"),
            resource_version=conditions.get("resourceVersion"),
            orphan_dependents=body.get("orphanDependents"),
            propagation=body.get("propagationPolicy"),
            dry_run=tuple(body.get("dryRun") or ()),
            ignore_store_errors=bool(body.get("ignoreStoreReadErrorWithClusterBreakingPotential")),
        )

    def to_object(self) -> Object:
        """As webhooks see it: without what is absent, and without its type."""
        preconditions = {"uid": self.uid, "resourceVersion": self.resource_version}
        found: Object = {
            "gracePeriodSeconds": self.grace_seconds,
            "preconditions": {key: value for key, value in preconditions.items() if value is not None}
            or None,
            "orphanDependents": self.orphan_dependents,
            "propagationPolicy": self.propagation,
            "dryRun": list(self.dry_run) or None,
        }
        return {key: value for key, value in found.items() if value is not None}

    @property
    def is_dry_run(self) -> bool:
        return bool(self.dry_run)


class DeleteOutcome(Enum):
    PENDING = auto()  # a grace period is already running and unchanged: no write (GD-11, GD-12, GD-54)
    MARKED = auto()  # written with its deletion timestamp; a kubelet or controller finishes it (GD-51, GD-55)
    MARKED_AND_REMOVED = auto()  # grace 0: one write, then the removal (GD-52)
    REMOVED = auto()  # removed as it is


def before_delete(
    obj: Object, options: DeleteOptions, strategy: Strategy, now: datetime, *, kind: str, group: str = ""
) -> DeleteOutcome:
    """Apply a delete to the object. Raises InvalidError or ConflictError in the order of GD-45."""
    meta = obj["metadata"]
    check_options(options)
    check_preconditions(meta, options, kind=kind, group=group)
    graceful = _apply_grace(obj, options, strategy, now)
    if graceful is None:
        return DeleteOutcome.PENDING
    _apply_propagation(meta, options, strategy)
    has_finalizers = bool(meta.get("finalizers"))
    if graceful:
        is_last = meta["deletionGracePeriodSeconds"] == 0 and not has_finalizers
        return DeleteOutcome.MARKED_AND_REMOVED if is_last else DeleteOutcome.MARKED
    if has_finalizers:
        mark_deleted(meta, now)
        return DeleteOutcome.MARKED
    return DeleteOutcome.REMOVED


def check_preconditions(meta: Object, options: DeleteOptions, *, kind: str, group: str = "") -> None:
    """GD-40, GD-41: check the preconditions UID and resourceVersion. As upstream, an error names the kind."""
    for what, meant, found, hint in (
        ("UID", options.uid, meta["uid"], "deleted and then recreated"),
        ("ResourceVersion", options.resource_version, meta["resourceVersion"], "modified"),
    ):
        if meant is not None and meant != found:
            resource = f"{kind}.{group}" if group else kind
            details: dict[str, Any] = {"name": meta["name"], "group": group, "kind": kind}
            raise ConflictError(
                f'Operation cannot be fulfilled on {resource} "{meta["name"]}": the {what} in the precondition '
                f"({meant}) does not match the {what} in record ({found}). The object might have been {hint}",
                details={key: value for key, value in details.items() if value},
            )


def check_options(options: DeleteOptions) -> None:
    """GD-44: reject invalid or conflicting delete options."""
    errors: list[FieldError] = []
    if options.propagation is not None and options.orphan_dependents is not None:
        text = "orphanDependents and deletionPropagation cannot be both set"
        errors.append(bad_value("propagationPolicy", options.propagation, text))
    if options.propagation is not None and options.propagation not in _POLICIES:
        # Upstream does not sort these values, unlike those of other fields.
        known = ", ".join(f'"{policy}"' for policy in (*_POLICIES, "nil"))
        given = json.dumps(options.propagation, ensure_ascii=False)
        text = f"Unsupported value: {given}: supported values: {known}"
        errors.append(FieldError("propagationPolicy", "FieldValueNotSupported", text))
    errors += [not_supported("dryRun", [value], ["All"]) for value in options.dry_run if value != "All"][:1]
    if errors:
        raise invalid("DeleteOptions", "meta.k8s.io", "", errors)


def _apply_grace(obj: Object, options: DeleteOptions, strategy: Strategy, now: datetime) -> bool | None:
    """Return True if the object was marked with its grace period, False if it has none, None if one is running."""
    meta = obj["metadata"]
    requested = options.grace_seconds
    if requested is not None and requested < 0:
        requested = 1  # GD-04: negative means 1 s
    if meta.get("deletionGracePeriodSeconds", 0) < 0:
        meta["deletionGracePeriodSeconds"] = 1  # GD-15: negative means 1 s
    grace = strategy.first_grace_seconds(obj, requested)
    if grace is None:
        return False
    if "deletionTimestamp" in meta:
        return _shorten_grace(meta, requested, now)
    meta["deletionTimestamp"] = format_time(add_seconds(now, grace))
    meta["deletionGracePeriodSeconds"] = grace
    _bump_generation(meta)
    return True


def _shorten_grace(meta: Object, requested: int | None, now: datetime) -> bool | None:
    """GD-10 to GD-14: a running grace period can only be shortened, counted from the first request."""
    running = meta.get("deletionGracePeriodSeconds")
    if not running:
        return False
    if requested is None or requested >= running:
        return None
    ended = parse_time(meta["deletionTimestamp"])
    # The start of a grace period that ends after the largest representable time is unknown.
    ends = add_seconds(now, requested) if ended >= LAST_MOMENT else add_seconds(ended, requested - running)
    if ends < now:
        # The requested period is over. Unless it is zero, the kubelet must still observe it and finish the deletion.
        ends = now
        requested = min(requested, 1)
    meta["deletionTimestamp"] = format_time(ends)
    meta["deletionGracePeriodSeconds"] = requested
    return True


def mark_deleted(meta: Object, now: datetime) -> None:
    """GD-59, GD-60: mark an object that has finalizers but no grace period."""
    if "deletionTimestamp" not in meta:
        _bump_generation(meta)
    if "deletionTimestamp" not in meta or parse_time(meta["deletionTimestamp"]) > now:
        meta["deletionTimestamp"] = format_time(now)
    meta["deletionGracePeriodSeconds"] = 0


def _bump_generation(meta: Object) -> None:
    if meta.get("generation", 0) > 0:
        meta["generation"] += 1


def _apply_propagation(meta: Object, options: DeleteOptions, strategy: Strategy) -> None:
    """GD-61: record the propagation policy as a finalizer, which the garbage collector removes when it is done."""
    before = meta.get("finalizers", [])
    wanted = _propagation_finalizer(before, options, strategy)
    after = [name for name in before if name not in (ORPHAN, FOREGROUND)] + ([wanted] if wanted else [])
    if sorted(after) == sorted(before):
        return
    if after:
        meta["finalizers"] = after
    else:
        meta.pop("finalizers", None)


def _propagation_finalizer(before: list[str], options: DeleteOptions, strategy: Strategy) -> str | None:
    if options.orphan_dependents is not None:
        return ORPHAN if options.orphan_dependents else None
    if options.propagation is not None:
        return {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(options.propagation)
    if ORPHAN in before:
        return ORPHAN
    if FOREGROUND in before:
        return FOREGROUND
    return ORPHAN if strategy.orphans_by_default else None


def is_finished_by_update(new: Object, old: Object) -> bool:
    """GD-56, GD-58: return whether the update removes the last finalizer of an object whose grace period is over."""
    if new["metadata"].get("finalizers"):
        return False
    meta = old["metadata"]
    return "deletionTimestamp" in meta and not meta.get("deletionGracePeriodSeconds")
