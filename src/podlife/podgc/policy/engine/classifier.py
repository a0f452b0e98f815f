"""The index of pods under a policy: who has which rule, who is due when, whom nothing touches.

It guarantees what the plain index does, and that a pod which is protected, excluded, or in a namespace that is not
known yet counts nowhere and is nobody's victim. A pod has a place only once it has ended or is being deleted; its
place follows from its facts, its namespace and its node, and all of these change by events alone, the time included.
The policy stays the same for as long as the index lives.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from datetime import datetime
from typing import cast

from sortedcontainers import SortedList

from podlife.api.codec import format_time
from podlife.podgc.index import PodIndex, Verdict
from podlife.podgc.keep_until import told
from podlife.podgc.policy.engine.facts import GovernedPod, protection_by
from podlife.podgc.policy.engine.groups import (
    Due,
    Groups,
    after,
    entry_of,
    is_always,
    until,
)
from podlife.podgc.policy.engine.matching import Fit, Matcher
from podlife.podgc.policy.model import Per, Rule
from podlife.podgc.settings import RuleReason
from podlife.podgc.views import Namespace, Pod

__all__ = ["GovernedIndex"]

_OF = {
    Per.CLUSTER: "in the cluster",
    Per.NAMESPACE: "in its namespace",
    Per.OWNER: "of its owner",
    Per.NODE: "on its node",
}


class GovernedIndex(PodIndex):
    def __init__(self, matcher: Matcher, *, marks_failed: bool = True) -> None:
        super().__init__(marks_failed=marks_failed)
        self._matcher = matcher
        # Nobody has told yet: nothing is due by the time of day, and every moment is still to come.
        self._now = -math.inf
        self._fits: dict[str, Fit] = {}
        # By namespace those that have or may get a place, where that may change with their namespace.
        self._members: dict[str, dict[str, GovernedPod]] = {}
        self._groups = Groups(matcher.rules, lambda node, uid: cast(GovernedPod, self._pods[node][uid]))
        self._stuck: SortedList[Due] = SortedList()
        # Those that an annotation protects for a time, until when.
        self._until: SortedList[Due] = SortedList()

    # Events

    def pass_time(self, now: datetime) -> None:
        """Also back: then what had been let go by the time alone is protected again."""
        moment = now.timestamp()
        low, high = sorted((self._now, moment))
        turned = [
            cast(GovernedPod, self._pods[node][uid])
            for _, _, uid, node in self._until.irange(_just_after(low), _just_after(high))
        ]
        for pod in turned:
            self._displace(pod)
        self._now = moment
        for pod in turned:
            self._place(pod)

    def put_namespace(self, namespace: Namespace) -> bool:
        super().put_namespace(namespace)
        name = namespace.metadata.name
        fit, known = self._matcher.fit_of(name, namespace.metadata.labels), self._fits.get(name)
        if known is not None and known.bits == fit.bits:
            return True
        self._refit(name, fit, list(self._members.get(name, {}).values()))
        if not self._matcher.asks_namespace_labels:
            self._members.pop(name, None)
        return True

    def remove_namespace(self, namespace: Namespace) -> None:
        super().remove_namespace(namespace)
        name = namespace.metadata.name
        # It goes last, so that there is nobody left in it but for what other events have not told yet.
        left = [
            cast(GovernedPod, pod)
            for pods in (self._pods.values() if self.counts.get(name) else ())
            for pod in pods.values()
            if pod.metadata.namespace == name and _is_candidate(pod)
        ]
        self._refit(name, None, left)
        if left:
            self._members[name] = {pod.metadata.uid: pod for pod in left}

    def _refit(self, name: str, fit: Fit | None, pods: list[GovernedPod]) -> None:
        for pod in pods:
            self._displace(pod)
        if fit is None:
            self._fits.pop(name, None)
        else:
            self._fits[name] = fit
        for pod in pods:
            self._place(pod)

    # Questions

    def is_spared(self, pod: Pod) -> bool:
        return bool(self.protection_of(pod))

    def protection_of(self, pod: Pod) -> str:
        """What protects it, or ""."""
        governed = cast(GovernedPod, pod)
        fit = self._fits.get(pod.metadata.namespace)
        if fit is None:
            return f"namespace {pod.metadata.namespace} is not known yet"
        return protection_by(fit, governed, self._now)

    def is_among_first(self, pod: Pod, count: int) -> bool:
        # Asked about one that is not counted, the order alone would say yes.
        if count <= 0 or self.is_spared(pod) or self._place_of(cast(GovernedPod, pod))[0] >= 0:
            return False
        return super().is_among_first(pod, count)

    def rule_of(self, pod: Pod) -> tuple[str, str]:
        place, exclude = self._place_of(cast(GovernedPod, pod))
        if place < 0:
            return "", ""
        name = self._matcher.rules[place].name
        return name, f"exclude {exclude + 1} of rule {name}" if exclude >= 0 else ""

    @property
    def told_at(self) -> float:
        return self._now

    def verdicts(self, skip: Container[str] = ()) -> Iterator[Verdict]:
        for entries in (self._groups.due, self._stuck):
            for _, _, uid, node in until(entries, self._now):
                verdict = None if uid in skip else self.verdict_on(self._pods[node][uid])
                if verdict is not None and self._list_of(verdict) is entries:
                    yield verdict

    def verdict_on(self, pod: Pod) -> Verdict | None:
        verdict = self.verdict_to_come(pod)
        return verdict if verdict is not None and verdict.due_at <= self._now else None

    def verdict_to_come(self, pod: Pod) -> Verdict | None:
        """What its rule will say of it if nothing changes; None for never."""
        governed = cast(GovernedPod, pod)
        place, exclude = self._place_of(governed)
        if place < 0 or exclude >= 0 or self.is_spared(pod):
            return None
        found = [self._ended(place, governed), self._terminating_too_long(place, governed)]
        coming = (each for each in found if each is not None and each.due_at < math.inf)
        return min(coming, key=lambda each: each.due_at, default=None)

    def verdicts_to_come(self) -> Iterator[Verdict]:
        for entries in (self._groups.due, self._stuck):
            for _, _, uid, node in after(entries, self._now):
                verdict = self.verdict_to_come(self._pods[node][uid])
                if verdict is not None and self._list_of(verdict) is entries:
                    yield verdict

    def _list_of(self, verdict: Verdict) -> SortedList[Due]:
        """One that is due for two reasons is told of where it stands for the first of them."""
        return self._stuck if verdict.reason is RuleReason.STUCK_TERMINATING else self._groups.due

    @property
    def next_due_at(self) -> float:
        """When time alone changes something next."""
        lists = (self._groups.due, self._stuck, self._until)
        return min((next(after(each, self._now), (math.inf,))[0] for each in lists), default=math.inf)

    def _ended(self, place: int, pod: GovernedPod) -> Verdict | None:
        if not pod.has_ended or pod.metadata.uid in self._leaving:
            return None
        moment = self._groups.moment_of(place, pod)
        if moment is None:
            return None
        rule = self._matcher.rules[place]
        reason = RuleReason.SURPLUS if is_always(moment) else RuleReason.EXPIRED
        return Verdict(pod, rule.name, reason, moment, self._why(place, pod, reason))

    def _terminating_too_long(self, place: int, pod: GovernedPod) -> Verdict | None:
        rule = self._matcher.rules[place]
        moment = _stuck_moment(rule, pod)
        if moment is None or pod.metadata.deletion_timestamp is None:
            return None
        why = f"its grace ended at {format_time(pod.metadata.deletion_timestamp)}, and it is still there"
        return Verdict(pod, rule.name, RuleReason.STUCK_TERMINATING, moment, why)

    def _why(self, place: int, pod: GovernedPod, reason: RuleReason) -> str:
        rule = self._matcher.rules[place]
        parts = []
        if reason is RuleReason.EXPIRED:
            parts.append(f"ended at {told(pod.completed_at)}, may stay {_span(rule.ttl_seconds or 0)}")
        if rule.keep is not None and self._groups.is_surplus(place, pod):
            size = self._groups.size_of(place, pod)
            parts.append(f"{size} ended pods {_OF[rule.keep.per]}, {rule.keep.count} may stay")
        return "; ".join(parts)

    # Keeping it

    def _place_of(self, pod: GovernedPod) -> tuple[int, int]:
        fit = self._fits.get(pod.metadata.namespace)
        if fit is None:
            return -1, -1
        return self._matcher.place_of(pod.facts, fit, pod.spec.node_name)

    def _count_in(self, pod: Pod) -> None:
        if not _is_candidate(pod):
            return
        governed, namespace = cast(GovernedPod, pod), pod.metadata.namespace
        if self._matcher.asks_namespace_labels or namespace not in self._fits:
            self._members.setdefault(namespace, {})[pod.metadata.uid] = governed
        if governed.keep_until:
            self._until.add(entry_of(governed.keep_until, governed))
        self._place(governed)

    def _uncount(self, pod: Pod) -> None:
        if not _is_candidate(pod):
            return
        governed, namespace = cast(GovernedPod, pod), pod.metadata.namespace
        if (members := self._members.get(namespace)) is not None:
            members.pop(pod.metadata.uid, None)
            if not members:
                del self._members[namespace]
        if governed.keep_until:
            self._until.discard(entry_of(governed.keep_until, governed))
        self._displace(governed)

    def _place(self, pod: GovernedPod) -> None:
        if self.is_spared(pod):
            return
        place, exclude = self._place_of(pod)
        if place < 0:
            super()._count_in(pod)
            return
        if exclude >= 0:
            return
        if pod.has_ended and pod.metadata.uid not in self._leaving:
            self._groups.add(place, pod)
        moment = _stuck_moment(self._matcher.rules[place], pod)
        if moment is not None:
            self._stuck.add(entry_of(moment, pod))

    def _displace(self, pod: GovernedPod) -> None:
        if self.is_spared(pod):
            return
        place, exclude = self._place_of(pod)
        if place < 0:
            super()._uncount(pod)
            return
        if exclude >= 0:
            return
        if pod.has_ended:
            self._groups.discard(place, pod)
        moment = _stuck_moment(self._matcher.rules[place], pod)
        if moment is not None:
            self._stuck.discard(entry_of(moment, pod))


def _span(seconds: float) -> str:
    for unit, letter in ((3600, "h"), (60, "m")):
        if seconds >= unit and seconds % unit == 0:
            return f"{seconds / unit:g}{letter}"
    return f"{seconds:g}s"


def _is_candidate(pod: Pod) -> bool:
    return pod.is_terminating or pod.is_terminated


def _stuck_moment(rule: Rule, pod: GovernedPod) -> float | None:
    """A deletion's time is the one at which its grace ends."""
    deleted = pod.metadata.deletion_timestamp
    if rule.max_terminating_seconds is None or deleted is None:
        return None
    return deleted.timestamp() + rule.max_terminating_seconds


def _just_after(moment: float) -> Due:
    return (math.nextafter(moment, math.inf), "", "", "")
