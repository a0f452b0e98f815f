"""Status conditions of a namespace that is being deleted, in the words of upstream's namespace controller. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from podlife.api.codec import Object, format_time

# Each condition with its reason and message while nothing is wrong.
_WELL = {
    "NamespaceDeletionDiscoveryFailure": ("ResourcesDiscovered", "All resources successfully discovered"),
    "NamespaceDeletionGroupVersionParsingFailure": (
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    "NamespaceDeletionContentFailure": (
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    "NamespaceContentRemaining": ("ContentRemoved", "All content successfully removed"),
    "NamespaceFinalizersRemaining": ("ContentRemoved", "All content successfully removed"),
}


@dataclass(slots=True)
class NamespaceContents:
    """What one pass left in a namespace: objects by resource (`pods.`), their finalizers, and failed deletes."""

    objects: Counter[str] = field(default_factory=Counter)
    finalizers: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.objects and not self.errors


def conditions_of(contents: NamespaceContents, old: Sequence[Object], now: datetime) -> list[Object]:
    """Return the namespace's conditions after a pass. Unchanged conditions keep their transition time; conditions set
    by others are kept."""
    known = {each.get("type"): each for each in old}
    trouble = {type_: (reason, message) for type_, reason, message in _trouble(contents)}
    for type_, well in _WELL.items():
        status = "True" if type_ in trouble else "False"
        reason, message = trouble.get(type_, well)
        before = known.get(type_, {})
        since = before.get("lastTransitionTime") if before.get("status") == status else None
        known[type_] = {
            "type": type_,
            "status": status,
            "lastTransitionTime": since or format_time(now),
            "reason": reason,
            "message": message,
        }
    return list(known.values())


def _trouble(contents: NamespaceContents) -> Iterator[tuple[str, str, str]]:
    if contents.errors:
        told = f"{len(contents.errors)} remaining: {', '.join(sorted(contents.errors))}"
        yield (
            "NamespaceDeletionContentFailure",
            "ContentDeletionFailed",
            f"Failed to delete all resource types, {told}",
        )
    if contents.objects:
        left = sorted(f"{name} has {count} resource instances" for name, count in contents.objects.items())
        told = f"Some resources are remaining: {', '.join(left)}"
        yield "NamespaceContentRemaining", "SomeResourcesRemain", told
    if contents.finalizers:
        left = sorted(f"{name} in {count} resource instances" for name, count in contents.finalizers.items())
        told = f"Some finalizers are remaining: {', '.join(left)}"
        yield "NamespaceFinalizersRemaining", "SomeFinalizerRemain", told
