"""What a policy lets go, by a look at every pod: written straight from what the file promises, and slow.

It works on objects as a server gives them and keeps nothing: every answer is worked out anew, for a given time.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

from podlife.podgc.keep_until import KEEP_UNTIL
from podlife.podgc.policy import Policy
from podlife.podgc.policy.model import KeepOrder, Per, Rule, Selector

Object = dict[str, Any]


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def named(patterns: tuple[str, ...], name: str) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def controller(pod: Object) -> Object:
    owners = pod["metadata"].get("ownerReferences", [])
    return next((owner for owner in owners if owner.get("controller")), {"kind": "none", "uid": ""})


def ends(pod: Object) -> list[Object]:
    """How each container ended its last time."""
    status = pod["status"]
    found = []
    for container in [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]:
        states = (container.get("state") or {}, container.get("lastState") or {})
        found += [state["terminated"] for state in states if "terminated" in state][:1]
    return found


def completion(pod: Object) -> float:
    moments = [seconds(end["finishedAt"]) for end in ends(pod) if end.get("finishedAt")]
    moments += [
        seconds(condition["lastTransitionTime"])
        for condition in pod["status"].get("conditions", [])
        if condition["type"] in ("Ready", "ContainersReady", "DisruptionTarget")
    ]
    metadata = pod["metadata"]
    if not moments and "deletionTimestamp" in metadata:
        moments.append(seconds(metadata["deletionTimestamp"]))
    return max(*moments, seconds(metadata["creationTimestamp"]), 0.0)


def has_ended(pod: Object) -> bool:
    return pod["status"]["phase"] in ("Succeeded", "Failed")


@dataclass
class PolicyOracle:
    policy: Policy
    pods: dict[str, Object] = field(default_factory=dict)
    # Labels of those that are known.
    namespaces: dict[str, dict[str, str]] = field(default_factory=dict)
    now: float = 0.0
    # Being removed for another reason: their end is the collector's own doing.
    leaving: set[str] = field(default_factory=set)

    def is_settled(self, pod: Object) -> bool:
        metadata = pod["metadata"]
        return (
            "deletionTimestamp" in metadata
            and metadata.get("deletionGracePeriodSeconds") == 0
            and bool(metadata.get("finalizers"))
            and has_ended(pod)
        )

    def is_spared(self, pod: Object) -> bool:
        metadata, protection = pod["metadata"], self.policy.protection
        labels, annotations = metadata.get("labels", {}), metadata.get("annotations", {})
        if metadata["namespace"] not in self.namespaces:
            return True
        if protection.namespaces and named(protection.namespaces, metadata["namespace"]):
            return True
        if any(selector.matches(labels) for selector in protection.labels):
            return True
        if any(
            name in annotations and (value is None or annotations[name] == value)
            for name, value in protection.annotations
        ):
            return True
        if KEEP_UNTIL not in annotations:
            return False
        try:
            until = seconds(annotations[KEEP_UNTIL])
        except ValueError:
            until = float("inf")
        most = protection.max_keep_until_seconds
        if most == 0:
            return False
        if most is not None:
            until = min(until, completion(pod) + most)
        return until > self.now

    def takes(self, selector: Selector, pod: Object) -> bool:
        metadata, status = pod["metadata"], pod["status"]
        namespace = metadata["namespace"]
        return (
            named(selector.namespaces, namespace)
            and (
                selector.namespace_labels is None
                or selector.namespace_labels.matches(self.namespaces[namespace])
            )
            and (selector.labels is None or selector.labels.matches(metadata.get("labels", {})))
            and named(selector.owner_kinds, controller(pod)["kind"])
            and named(selector.nodes, pod["spec"].get("nodeName", ""))
            and (not selector.phases or status["phase"] in selector.phases)
            and named(selector.reasons, status.get("reason", ""))
            and (
                not selector.exit_codes or bool(selector.exit_codes & {end["exitCode"] for end in ends(pod)})
            )
        )

    def rule_of(self, pod: Object) -> Rule | None:
        if pod["metadata"]["namespace"] not in self.namespaces:
            return None
        return next(
            (rule for rule in self.policy.rules if rule.is_on and self.takes(rule.selector, pod)), None
        )

    def is_excluded(self, rule: Rule, pod: Object) -> bool:
        return any(self.takes(selector, pod) for selector in rule.exclude)

    def group_of(self, rule: Rule, pod: Object) -> object:
        assert rule.keep is not None
        match rule.keep.per:
            case Per.CLUSTER:
                return ()
            case Per.NAMESPACE:
                return pod["metadata"]["namespace"]
            case Per.NODE:
                return pod["spec"].get("nodeName", "")
            case _:
                return controller(pod)["uid"] or ("nobody's", pod["metadata"]["namespace"])

    def is_surplus(self, rule: Rule, pod: Object) -> bool:
        assert rule.keep is not None
        if "deletionTimestamp" in pod["metadata"]:
            return False
        group = [
            other
            for uid, other in self.pods.items()
            if has_ended(other)
            and "deletionTimestamp" not in other["metadata"]
            and not self.is_settled(other)
            and uid not in self.leaving
            and not self.is_spared(other)
            and self.rule_of(other) is rule
            and not self.is_excluded(rule, other)
            and self.group_of(rule, other) == self.group_of(rule, pod)
        ]
        by_creation = rule.keep.order_by is KeepOrder.CREATION

        def order(each: Object) -> tuple[float, str, str]:
            metadata = each["metadata"]
            moment = seconds(metadata["creationTimestamp"]) if by_creation else completion(each)
            return (moment, metadata["name"], metadata["uid"])

        kept = sorted(group, key=order)[max(0, len(group) - rule.keep.count) :]
        return all(pod is not other for other in kept)

    def is_let_go(self, uid: str) -> str:
        """The rule that lets the pod go now, or ""."""
        pod = self.pods[uid]
        if self.is_settled(pod) or self.is_spared(pod) or self.now == float("-inf"):
            return ""
        rule = self.rule_of(pod)
        if rule is None or self.is_excluded(rule, pod):
            return ""
        deleted = pod["metadata"].get("deletionTimestamp")
        limit = rule.max_terminating_seconds
        if limit is not None and deleted and self.now >= seconds(deleted) + limit:
            return rule.name
        if not has_ended(pod) or uid in self.leaving:
            return ""
        beyond = []
        if rule.keep is not None:
            beyond.append(self.is_surplus(rule, pod))
        if rule.ttl_seconds is not None:
            beyond.append(self.now >= completion(pod) + rule.ttl_seconds)
        if not beyond:
            return ""
        return rule.name if (any(beyond) if rule.is_either else all(beyond)) else ""

    def let_go(self) -> dict[str, str]:
        return {uid: rule for uid in self.pods if (rule := self.is_let_go(uid))}

    def counted(self) -> set[str]:
        """Whom upstream's threshold counts."""
        return {
            uid
            for uid, pod in self.pods.items()
            if pod["status"]["phase"] not in ("Pending", "Running", "Unknown")
            and not self.is_settled(pod)
            and uid not in self.leaving
            and not self.is_spared(pod)
            and self.rule_of(pod) is None
        }
