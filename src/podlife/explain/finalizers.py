"""Which component holds an object with a finalizer, since when, and how to remove the finalizer. Pure.

managedFields say who set it, if the server has them; a table names the components that remove well-known finalizers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from podlife.api.codec import Object
from podlife.api.managed_fields import finalizer_setter
from podlife.explain import kubectl_commands as commands
from podlife.explain.explanation import Cause, Remedy
from podlife.explain.objects import deleted_at, items, metadata, moment

_KNOWN = {
    "batch.kubernetes.io/job-tracking": ("the Job controller", "the Job may count this pod wrongly"),
    "foregroundDeletion": ("the garbage collector, after what the object owns", "what it owns may be left"),
    "orphan": (
        "the garbage collector, after it has let go of what the object owns",
        "what it owns may be deleted",
    ),
    "kubernetes.io/pvc-protection": (
        "the PVC protection controller",
        "a volume may be deleted while it is used",
    ),
    "kubernetes.io/pv-protection": (
        "the PV protection controller",
        "a volume may be deleted while it is used",
    ),
}


def owner_of(obj: Object, finalizer: str) -> tuple[str, datetime | None]:
    """The manager that set it and when it last wrote its fields; "" where nobody knows."""
    manager, written_at = finalizer_setter(metadata(obj), finalizer)
    return manager, moment(written_at)


def causes_of_finalizers(kind: str, obj: Object) -> Iterator[Cause]:
    """One for each: every one of them has to go. The last comes first, so that the commands can be typed one after the
    other: what is taken off leaves those before it in their places."""
    for place, finalizer in reversed(list(enumerate(items(metadata(obj), "finalizers")))):
        manager, written_at = owner_of(obj, finalizer)
        remover, risk = _KNOWN.get(
            finalizer, ("", "what it was there to wait for or clean up is left undone")
        )
        who = f", set by {manager}" if manager else ""
        when = f" ({written_at:%Y-%m-%d %H:%M:%SZ})" if manager and written_at is not None else ""
        waits = f"; {remover} takes it off" if remover else f"; {_guess(finalizer)} has to take it off"
        yield Cause(
            "finalizer",
            f"deleted, and held by finalizer {finalizer}{who}{when}{waits}",
            deleted_at(obj),
            (
                Remedy(
                    commands.remove_from_list(kind, obj, "/metadata/finalizers", place, finalizer),
                    f"Only if {remover or 'whoever set it'} will not do it any more: {risk}.",
                ),
            ),
        )


def _guess(finalizer: str) -> str:
    """Finalizers are named after the domain of whoever takes care of them."""
    domain = finalizer.partition("/")[0]
    return f"the controller of {domain}" if re.search(r"\.", domain) else "whoever set it"
