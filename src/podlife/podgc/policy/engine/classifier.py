"""Classification of pods under a policy: which rule a pod has, when it is due, what protects it.

A pod that is protected, excluded, or in a namespace that is not known yet is counted nowhere and never a victim. Pods
that no rule selects are left to `UpstreamClassifier`. Only pods that have ended or are being deleted are placed: where
follows from their facts, namespace and node, and changes by events alone, including the passing of time. The policy
stays the same for the lifetime of the classifier.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from datetime import datetime

from sortedcontainers import SortedList

from podlife.api.codec import format_time
from podlife.api.durations import format_exact
from podlife.podgc.classifier import RuleVerdict, UpstreamClassifier, VictimOrder
from podlife.podgc.keep_until import format_timestamp
from podlife.podgc.policy.engine.facts import PolicyPod, as_policy_pod, protection_by
from podlife.podgc.policy.engine.groups import Due, Groups, after, entry_of, is_always, until
from podlife.podgc.policy.engine.matching import Matcher, SelectorBits
from podlife.podgc.policy.model import Per, Rule
from podlife.podgc.reasons import RuleReason
from podlife.podgc.views import Namespace, Pod

_SCOPES = {
    Per.CLUSTER: "in the cluster",
    Per.NAMESPACE: "in its namespace",
    Per.OWNER: "of its owner",
    Per.NODE: "on its node",
}


class PolicyClassifier:
    """Takes pods of the view that was made for this matcher; raises TypeError for others."""

    def __init__(self, matcher: Matcher) -> None:
        self._matcher = matcher
        self._upstream = UpstreamClassifier()
        # Before the first `pass_time` nothing is due and every keep-until is in the future.
        self.now = -math.inf
        self._namespaces: dict[str, SelectorBits] = {}
        # Pods that have ended or are being deleted, by namespace and UID.
        self._members: dict[str, dict[str, PolicyPod]] = {}
        self._groups = Groups(matcher.rules, self._member)
        self._stuck: SortedList[Due] = SortedList()
        # Pods with a keep-until annotation, by its time.
        self._keep_until: SortedList[Due] = SortedList()

    @property
    def terminated(self) -> SortedList[VictimOrder]:
        return self._upstream.terminated

    @property
    def leaving(self) -> set[str]:
        return self._upstream.leaving

    # Events

    def pass_time(self, now: datetime) -> None:
        """Time may run backwards: a pod whose protection had expired is then protected again."""
        time = now.timestamp()
        low, high = sorted((self.now, time))
        turned = [
            self._member(namespace, uid)
            for _, _, uid, namespace in self._keep_until.irange(_just_after(low), _just_after(high))
        ]
        for pod in turned:
            self._displace(pod)
        self.now = time
        for pod in turned:
            self._place(pod)

    def put_namespace(self, namespace: Namespace) -> None:
        name = namespace.metadata.name
        bits, known = (
            self._matcher.namespace_bits(name, namespace.metadata.labels),
            self._namespaces.get(name),
        )
        if known is None or known.bits != bits.bits:
            self._replace(name, bits)

    def remove_namespace(self, namespace: Namespace) -> None:
        # Pods whose delete events are still to come are left alone from now on.
        self._replace(namespace.metadata.name, None)

    def _replace(self, name: str, bits: SelectorBits | None) -> None:
        pods = list(self._members.get(name, {}).values())
        for pod in pods:
            self._displace(pod)
        if bits is None:
            self._namespaces.pop(name, None)
        else:
            self._namespaces[name] = bits
        for pod in pods:
            self._place(pod)

    def add(self, pod: Pod) -> None:
        if not pod.is_candidate:
            return
        member = as_policy_pod(pod)
        self._members.setdefault(member.metadata.namespace, {})[member.metadata.uid] = member
        if member.keep_until:
            self._keep_until.add(entry_of(member.keep_until, member))
        self._place(member)

    def discard(self, pod: Pod) -> None:
        if not pod.is_candidate:
            return
        member, namespace = as_policy_pod(pod), pod.metadata.namespace
        if member.keep_until:
            self._keep_until.discard(entry_of(member.keep_until, member))
        self._displace(member)
        members = self._members.get(namespace, {})
        members.pop(member.metadata.uid, None)
        if not members:
            self._members.pop(namespace, None)

    # Queries

    def protection_of(self, pod: Pod) -> str:
        bits = self._namespaces.get(pod.metadata.namespace)
        if bits is None:
            return f"namespace {pod.metadata.namespace} is not known yet"
        return protection_by(bits, as_policy_pod(pod), self.now)

    def counts(self, pod: Pod) -> bool:
        # Asked about a pod that is not counted, the order alone would say yes.
        if self.protection_of(pod) or self._place_of(as_policy_pod(pod))[0] >= 0:
            return False
        return self._upstream.counts(pod)

    def rule_of(self, pod: Pod) -> tuple[str, str]:
        place, exclude = self._place_of(as_policy_pod(pod))
        if place < 0:
            return "", ""
        name = self._matcher.rules[place].name
        return name, f"exclude {exclude + 1} of rule {name}" if exclude >= 0 else ""

    def verdicts(self, skip: Container[str] = ()) -> Iterator[RuleVerdict]:
        for entries in (self._groups.due, self._stuck):
            due = (entry for entry in until(entries, self.now) if entry[2] not in skip)
            yield from self._verdicts_in(entries, due)

    def verdicts_to_come(self) -> Iterator[RuleVerdict]:
        for entries in (self._groups.due, self._stuck):
            yield from self._verdicts_in(entries, after(entries, self.now))

    def _verdicts_in(self, entries: SortedList[Due], chosen: Iterable[Due]) -> Iterator[RuleVerdict]:
        """A pod that is due for two reasons is in both lists; it is returned from that of the first reason."""
        for _, _, uid, namespace in chosen:
            verdict = self.verdict_to_come(self._member(namespace, uid))
            if verdict is None:
                continue
            is_stuck = verdict.reason is RuleReason.STUCK_TERMINATING
            if (self._stuck if is_stuck else self._groups.due) is entries:
                yield verdict

    def verdict_on(self, pod: Pod) -> RuleVerdict | None:
        verdict = self.verdict_to_come(pod)
        return verdict if verdict is not None and verdict.due_at <= self.now else None

    def verdict_to_come(self, pod: Pod) -> RuleVerdict | None:
        member = as_policy_pod(pod)
        place, exclude = self._place_of(member)
        if place < 0 or exclude >= 0 or self.protection_of(pod):
            return None
        found = [self._ended(place, member), self._terminating_too_long(place, member)]
        coming = (each for each in found if each is not None and each.due_at < math.inf)
        return min(coming, key=lambda each: each.due_at, default=None)

    @property
    def next_due_at(self) -> float:
        lists = (self._groups.due, self._stuck, self._keep_until)
        return min((next(after(each, self.now), (math.inf,))[0] for each in lists), default=math.inf)

    def _ended(self, place: int, pod: PolicyPod) -> RuleVerdict | None:
        if not pod.has_ended or pod.metadata.uid in self.leaving:
            return None
        time = self._groups.due_time_of(place, pod)
        if time is None:
            return None
        rule = self._matcher.rules[place]
        reason = RuleReason.SURPLUS if is_always(time) else RuleReason.EXPIRED
        return RuleVerdict(pod, rule.name, reason, time, self._why(place, pod, reason))

    def _terminating_too_long(self, place: int, pod: PolicyPod) -> RuleVerdict | None:
        rule = self._matcher.rules[place]
        time = _stuck_time(rule, pod)
        if time is None or pod.metadata.deletion_timestamp is None:
            return None
        why = f"its grace ended at {format_time(pod.metadata.deletion_timestamp)}, and it is still there"
        return RuleVerdict(pod, rule.name, RuleReason.STUCK_TERMINATING, time, why)

    def _why(self, place: int, pod: PolicyPod, reason: RuleReason) -> str:
        rule = self._matcher.rules[place]
        parts = []
        if reason is RuleReason.EXPIRED:
            ended, ttl = format_timestamp(pod.completed_at), format_exact(rule.ttl_seconds or 0)
            parts.append(f"ended at {ended}, may stay {ttl}")
        if rule.keep is not None and self._groups.is_surplus(place, pod):
            size = self._groups.size_of(place, pod)
            parts.append(f"{size} ended pods {_SCOPES[rule.keep.per]}, {rule.keep.count} may stay")
        return "; ".join(parts)

    # Bookkeeping

    def _member(self, namespace: str, uid: str) -> PolicyPod:
        return self._members[namespace][uid]

    def _place_of(self, pod: PolicyPod) -> tuple[int, int]:
        bits = self._namespaces.get(pod.metadata.namespace)
        if bits is None:
            return -1, -1
        return self._matcher.place_of(pod.facts, bits, pod.spec.node_name)

    def _place(self, pod: PolicyPod) -> None:
        if self.protection_of(pod):
            return
        place, exclude = self._place_of(pod)
        if place < 0:
            self._upstream.add(pod)
            return
        if exclude >= 0:
            return
        if pod.has_ended and pod.metadata.uid not in self.leaving:
            self._groups.add(place, pod)
        time = _stuck_time(self._matcher.rules[place], pod)
        if time is not None:
            self._stuck.add(entry_of(time, pod))

    def _displace(self, pod: PolicyPod) -> None:
        if self.protection_of(pod):
            return
        place, exclude = self._place_of(pod)
        if place < 0:
            self._upstream.discard(pod)
            return
        if exclude >= 0:
            return
        if pod.has_ended:
            self._groups.discard(place, pod)
        time = _stuck_time(self._matcher.rules[place], pod)
        if time is not None:
            self._stuck.discard(entry_of(time, pod))


def _stuck_time(rule: Rule, pod: PolicyPod) -> float | None:
    """The deletion timestamp is the time at which the grace period ends."""
    deleted = pod.metadata.deletion_timestamp
    if rule.max_terminating_seconds is None or deleted is None:
        return None
    return deleted.timestamp() + rule.max_terminating_seconds


def _just_after(time: float) -> Due:
    return (math.nextafter(time, math.inf), "", "", "")
