"""Ended pods by the rule they have: in the order in which they go, with the moment from which each may.

It guarantees that a pod which comes or goes costs O(log n), and that those that are due stand at the front of one list.
A pod that its rule keeps has no moment. One that is being deleted ends on its way out, the last of all: it is none of
those that are kept, for it would take the place of another and be gone; nor is a `keep` a reason to hurry it. It knows
no clock: whether a moment has come is for others to say.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

from sortedcontainers import SortedList

from podlife.podgc.policy.engine.facts import GovernedPod
from podlife.podgc.policy.model import Order, Per, Rule

__all__ = ["Due", "Groups", "after", "entry_of", "is_always", "until"]

Due = tuple[float, str, str, str]
"""A moment, in seconds since 1970, and the pod: its name, so that ties are settled, its UID and its node."""

_LONG_AGO = 1e15
"""By so much sooner than it ended may a pod go that may go whatever time it is: those that ended first stand first."""

# Most groups are small and there may be many thousands: only a large one is worth a list of lists.
_LARGE = 1000

_Group = list[Due] | SortedList[Due]


class Groups:
    """`find` gives a pod by its node and UID."""

    def __init__(self, rules: tuple[Rule, ...], find: Callable[[str, str], GovernedPod]) -> None:
        self._rules = rules
        self._find = find
        self._groups: tuple[dict[str, _Group], ...] = tuple({} for _ in rules)
        self.due: SortedList[Due] = SortedList()

    def add(self, place: int, pod: GovernedPod) -> None:
        """The pod has ended and has the rule at this place."""
        rule = self._rules[place]
        if rule.keep is None or pod.is_terminating:
            self._put(rule, pod, is_surplus=False)
            return
        groups, key, entry = self._groups[place], _group_key(rule, pod), _order_entry(rule, pod)
        group = groups[key] = _with(groups.get(key), entry)
        surplus = len(group) - rule.keep.count
        is_surplus = _position(group, entry) < surplus
        self._put(rule, pod, is_surplus=is_surplus)
        if surplus > 0 and not is_surplus:
            # The oldest of those that stayed goes in its place.
            self._move(rule, group[surplus - 1], is_surplus=True)

    def discard(self, place: int, pod: GovernedPod) -> None:
        rule = self._rules[place]
        if rule.keep is None or pod.is_terminating:
            self._take(rule, pod, is_surplus=False)
            return
        groups, key, entry = self._groups[place], _group_key(rule, pod), _order_entry(rule, pod)
        group = groups.get(key)
        if group is None or (at := _position(group, entry)) >= len(group) or group[at] != entry:
            return
        surplus = len(group) - rule.keep.count
        self._take(rule, pod, is_surplus=at < surplus)
        if 0 < surplus <= at:
            self._move(rule, group[surplus - 1], is_surplus=False)
        del group[at]
        if not group:
            del groups[key]

    def size_of(self, place: int, pod: GovernedPod) -> int:
        """How many there are of the pod's group."""
        return len(self._groups[place].get(_group_key(self._rules[place], pod), ()))

    def is_surplus(self, place: int, pod: GovernedPod) -> bool:
        rule = self._rules[place]
        if rule.keep is None or pod.is_terminating:
            return False
        group = self._groups[place].get(_group_key(rule, pod), [])
        return _position(group, _order_entry(rule, pod)) < len(group) - rule.keep.count

    def moment_of(self, place: int, pod: GovernedPod) -> float | None:
        """From when on the pod, which is one of these, may go; None while its rule keeps it."""
        rule = self._rules[place]
        return due_moment(rule, pod, is_surplus=self.is_surplus(place, pod))

    def _move(self, rule: Rule, entry: Due, *, is_surplus: bool) -> None:
        _, _, uid, node = entry
        pod = self._find(node, uid)
        self._take(rule, pod, is_surplus=not is_surplus)
        self._put(rule, pod, is_surplus=is_surplus)

    def _put(self, rule: Rule, pod: GovernedPod, *, is_surplus: bool) -> None:
        moment = due_moment(rule, pod, is_surplus=is_surplus)
        if moment is not None:
            self.due.add(entry_of(moment, pod))

    def _take(self, rule: Rule, pod: GovernedPod, *, is_surplus: bool) -> None:
        moment = due_moment(rule, pod, is_surplus=is_surplus)
        if moment is not None:
            self.due.discard(entry_of(moment, pod))


def is_always(moment: float) -> bool:
    """Whether a pod with this moment may go whatever time it is."""
    return moment < 0


def until(entries: SortedList[Due], moment: float) -> Iterator[Due]:
    """Those whose moment has come."""
    for entry in entries:
        if entry[0] > moment:
            return
        yield entry


def after(entries: SortedList[Due], moment: float) -> Iterator[Due]:
    """Those whose moment is still to come, the next first."""
    return entries.irange((math.nextafter(moment, math.inf), "", "", ""))


def due_moment(rule: Rule, pod: GovernedPod, *, is_surplus: bool) -> float | None:
    if rule.keep is not None and is_surplus and (rule.ttl_seconds is None or rule.is_either):
        return pod.completed_at - _LONG_AGO
    if rule.ttl_seconds is None:
        return None
    if rule.keep is not None and not is_surplus and not rule.is_either:
        return None
    return pod.completed_at + rule.ttl_seconds


def entry_of(moment: float, pod: GovernedPod) -> Due:
    return (moment, pod.metadata.name, pod.metadata.uid, pod.spec.node_name)


def _order_entry(rule: Rule, pod: GovernedPod) -> Due:
    is_by_creation = rule.keep is not None and rule.keep.order_by is Order.CREATION
    return entry_of(pod.created_at if is_by_creation else pod.completed_at, pod)


def _group_key(rule: Rule, pod: GovernedPod) -> str:
    if rule.keep is None or rule.keep.per is Per.CLUSTER:
        return ""
    if rule.keep.per is Per.NODE:
        return pod.spec.node_name
    # No UID has the form of a namespace with a slash: those without an owner are apart from every owner.
    namespace = pod.metadata.namespace
    return pod.owner or f"{namespace}/" if rule.keep.per is Per.OWNER else namespace


def _position(group: _Group, entry: Due) -> int:
    return group.bisect_left(entry) if isinstance(group, SortedList) else bisect_left(group, entry)


def _with(group: _Group | None, entry: Due) -> _Group:
    if group is None:
        return [entry]
    if isinstance(group, SortedList):
        group.add(entry)
        return group
    insort(group, entry)
    return SortedList(group) if len(group) > _LARGE else group
