"""Decides whether one selector matches every pod that another one matches.

True is certain, False may be wrong: a policy is only refused for overlap that is certain.
"""

from __future__ import annotations

from collections.abc import Collection

from podlife.api.selectors import LabelRequirement, LabelSelector
from podlife.podgc.policy.model import Selector

_PHASES = frozenset(("Pending", "Running", "Succeeded", "Failed", "Unknown"))
_ONE_OF = ("=", "==", "in")
_NONE_OF = ("!=", "notin")


def covers(wide: Selector, narrow: Selector) -> bool:
    # Every namespace has a name, so * matches all; not every pod has a node, an owner or a reason.
    namespaces = () if "*" in wide.namespaces else wide.namespaces
    phases = frozenset() if set(wide.phases) >= _PHASES else frozenset(wide.phases)
    return (
        _names_cover(namespaces, narrow.namespaces)
        and _labels_cover(wide.namespace_labels, narrow.namespace_labels)
        and _labels_cover(wide.labels, narrow.labels)
        and _names_cover(wide.owner_kinds, narrow.owner_kinds)
        and _names_cover(wide.nodes, narrow.nodes)
        and _names_cover(wide.reasons, narrow.reasons)
        and _set_covers(phases, narrow.phases)
        and _set_covers(wide.exit_codes, narrow.exit_codes)
    )


def pattern_covers(wide: str, narrow: str) -> bool:
    """Whether every name that matches `narrow` matches `wide`.

    Wildcards in `narrow` are treated as characters that only wildcards match: * only by *, ? by both.
    """
    # Possible positions in `wide` after each character of `narrow`.
    positions = _after_stars(wide, {0})
    for character in narrow:
        following = set()
        for position in positions:
            if position == len(wide):
                continue
            if wide[position] == "*":
                following.add(position)
            elif character != "*" and wide[position] in ("?", character):
                following.add(position + 1)
        positions = _after_stars(wide, following)
    return len(wide) in positions


def _after_stars(pattern: str, positions: set[int]) -> set[int]:
    reachable = set()
    for start in positions:
        position = start
        reachable.add(position)
        while position < len(pattern) and pattern[position] == "*":
            position += 1
            reachable.add(position)
    return reachable


def _names_cover(wide: Collection[str], narrow: Collection[str]) -> bool:
    if not wide:
        return True
    # There are many names and few patterns: only patterns are tried one by one.
    names, patterns = set(wide), [each for each in wide if "*" in each or "?" in each]
    return bool(narrow) and all(
        name in names or any(pattern_covers(each, name) for each in patterns) for name in narrow
    )


def _set_covers(wide: Collection[object], narrow: Collection[object]) -> bool:
    return not wide or (bool(narrow) and set(narrow) <= set(wide))


def _labels_cover(wide: LabelSelector | None, narrow: LabelSelector | None) -> bool:
    if wide is None:
        return True
    if narrow is None:
        return False
    return all(
        any(_implies(given, wanted) for given in narrow.requirements if given.key == wanted.key)
        for wanted in wide.requirements
    )


def _implies(given: LabelRequirement, wanted: LabelRequirement) -> bool:
    """Whether a label that meets `given` also meets `wanted`; both have the same key."""
    if given == wanted:
        return True
    values, others = set(given.values), set(wanted.values)
    if wanted.operator == "exists":
        return given.operator not in ("!", *_NONE_OF)
    if wanted.operator in _ONE_OF:
        return given.operator in _ONE_OF and values <= others
    if wanted.operator in _NONE_OF:
        if given.operator in _ONE_OF:
            return not values & others
        return given.operator == "!" or (given.operator in _NONE_OF and others <= values)
    return False
