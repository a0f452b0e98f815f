"""Ended pods by rule and group, in order of removal, with the time from which each may be removed.

Adding and discarding a pod costs O(log n), and the pods that are due are at the front of one list. A pod that its rule
keeps has no due time. A pod that is being deleted is not among those that `keep` retains, because it would take the
place of a pod that stays, and `keep` does not speed up its removal either. Reads no clock.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator

from sortedcontainers import SortedList

from podlife.podgc.policy.engine.facts import PolicyPod
from podlife.podgc.policy.model import KeepOrder, Per, Rule

Due = tuple[float, str, str, str]
"""A time in seconds since 1970, and the pod: its name (to break ties), UID and namespace."""

_LONG_AGO = 1e15
"""Subtracted from the end of a pod that is due at any time, so that such pods sort by their end before all others."""

# There may be many thousands of small groups: only a large one pays for a SortedList.
_LARGE = 1000

_Group = list[Due] | SortedList[Due]


class Groups:
    """`find` returns a pod by namespace and UID."""

    def __init__(self, rules: tuple[Rule, ...], find: Callable[[str, str], PolicyPod]) -> None:
        self._rules = rules
        self._find = find
        self._groups: tuple[dict[str, _Group], ...] = tuple({} for _ in rules)
        self.due: SortedList[Due] = SortedList()

    def add(self, place: int, pod: PolicyPod) -> None:
        """Add an ended pod to the groups of the rule with this index."""
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
            # The oldest pod that was kept so far goes in its place.
            self._move(rule, group[surplus - 1], is_surplus=True)

    def discard(self, place: int, pod: PolicyPod) -> None:
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

    def size_of(self, place: int, pod: PolicyPod) -> int:
        return len(self._groups[place].get(_group_key(self._rules[place], pod), ()))

    def is_surplus(self, place: int, pod: PolicyPod) -> bool:
        rule = self._rules[place]
        if rule.keep is None or pod.is_terminating:
            return False
        group = self._groups[place].get(_group_key(rule, pod), [])
        return _position(group, _order_entry(rule, pod)) < len(group) - rule.keep.count

    def due_time_of(self, place: int, pod: PolicyPod) -> float | None:
        """From when on the pod, which has been added, may go; None while its rule keeps it."""
        rule = self._rules[place]
        return due_time(rule, pod, is_surplus=self.is_surplus(place, pod))

    def _move(self, rule: Rule, entry: Due, *, is_surplus: bool) -> None:
        _, _, uid, namespace = entry
        pod = self._find(namespace, uid)
        self._take(rule, pod, is_surplus=not is_surplus)
        self._put(rule, pod, is_surplus=is_surplus)

    def _put(self, rule: Rule, pod: PolicyPod, *, is_surplus: bool) -> None:
        time = due_time(rule, pod, is_surplus=is_surplus)
        if time is not None:
            self.due.add(entry_of(time, pod))

    def _take(self, rule: Rule, pod: PolicyPod, *, is_surplus: bool) -> None:
        time = due_time(rule, pod, is_surplus=is_surplus)
        if time is not None:
            self.due.discard(entry_of(time, pod))


def is_always(time: float) -> bool:
    """Whether a pod with this due time may go at any time."""
    return time < 0


def until(entries: SortedList[Due], time: float) -> Iterator[Due]:
    """Entries that are due."""
    for entry in entries:
        if entry[0] > time:
            return
        yield entry


def after(entries: SortedList[Due], time: float) -> Iterator[Due]:
    """Entries that are not due yet, the next first."""
    return entries.irange((math.nextafter(time, math.inf), "", "", ""))


def due_time(rule: Rule, pod: PolicyPod, *, is_surplus: bool) -> float | None:
    if rule.keep is not None and is_surplus and (rule.ttl_seconds is None or rule.is_either):
        return pod.completed_at - _LONG_AGO
    if rule.ttl_seconds is None:
        return None
    if rule.keep is not None and not is_surplus and not rule.is_either:
        return None
    return pod.completed_at + rule.ttl_seconds


def entry_of(time: float, pod: PolicyPod) -> Due:
    return (time, pod.metadata.name, pod.metadata.uid, pod.metadata.namespace)


def _order_entry(rule: Rule, pod: PolicyPod) -> Due:
    is_by_creation = rule.keep is not None and rule.keep.order_by is KeepOrder.CREATION
    return entry_of(pod.created_at if is_by_creation else pod.completed_at, pod)


def _group_key(rule: Rule, pod: PolicyPod) -> str:
    if rule.keep is None or rule.keep.per is Per.CLUSTER:
        return ""
    if rule.keep.per is Per.NODE:
        return pod.spec.node_name
    # The slash separates pods without an owner from every owner's UID.
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
