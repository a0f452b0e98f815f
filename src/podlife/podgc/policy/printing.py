"""A policy as text: as a complete file, and in words. Pure.

`as_document` includes defaults and parses to the same policy. Values that upstream's flags can set are those of the
flags if the policy does not set them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

from podlife.api.durations import format_exact
from podlife.podgc.policy.model import (
    Guards,
    Keep,
    KeepOrder,
    Per,
    Policy,
    Protection,
    Rule,
    Selector,
    Window,
)
from podlife.podgc.reasons import Reason
from podlife.podgc.settings import Settings

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_KEYS = {
    Reason.TERMINATED: "terminated",
    Reason.OUT_OF_SERVICE: "outOfService",
    Reason.ORPHANED: "orphaned",
    Reason.UNSCHEDULED: "unscheduled",
}


def format_share(share: float) -> str:
    return f"{(Decimal(repr(share)) * 100).normalize():f}%"


# As a file


def as_document(policy: Policy, settings: Settings | None = None) -> dict[str, Any]:
    """The complete policy file; limits that are not set are omitted."""
    document: dict[str, Any] = {
        "apiVersion": "podlife.dev/v1",
        "kind": "PodGCPolicy",
        "upstream": _upstream(policy, settings or Settings()),
        "protect": _protection(policy.protection),
        "rules": [_rule(rule) for rule in policy.rules],
        "guards": _guards(policy.guards),
    }
    return document


def _upstream(policy: Policy, settings: Settings) -> dict[str, Any]:
    found: dict[str, dict[str, Any]] = {
        key: {"enabled": _is_on(policy, settings, reason)} for reason, key in _KEYS.items()
    }
    found["terminated"]["threshold"] = max(0, _threshold(policy, settings))
    found["orphaned"]["quarantine"] = format_exact(_quarantine(policy, settings))
    return found


def _is_on(policy: Policy, settings: Settings, reason: Reason) -> bool:
    return settings.does_collect(reason) and (policy.collect is None or reason in policy.collect)


def _threshold(policy: Policy, settings: Settings) -> int:
    return settings.threshold if policy.threshold is None else policy.threshold


def _quarantine(policy: Policy, settings: Settings) -> float:
    return settings.quarantine_seconds if policy.quarantine_seconds is None else policy.quarantine_seconds


def _protection(protection: Protection) -> dict[str, Any]:
    most = protection.max_keep_until_seconds
    return {
        "namespaces": list(protection.namespaces),
        "labels": [str(each) for each in protection.labels],
        "annotations": [key if value is None else f"{key}={value}" for key, value in protection.annotations],
        **({} if most is None else {"maxKeepUntil": format_exact(most)}),
    }


def _rule(rule: Rule) -> dict[str, Any]:
    found: dict[str, Any] = {"name": rule.name, "enabled": rule.is_on, "select": _selector(rule.selector)}
    if rule.exclude:
        found["exclude"] = [_selector(each) for each in rule.exclude]
    if rule.keep is not None:
        keep = rule.keep
        found["keep"] = {"count": keep.count, "per": str(keep.per), "orderBy": str(keep.order_by)}
    if rule.ttl_seconds is not None:
        found["ttlAfterFinished"] = format_exact(rule.ttl_seconds)
    if rule.keep is not None and rule.ttl_seconds is not None:
        found["collectWhen"] = "any" if rule.is_either else "all"
    if rule.max_terminating_seconds is not None:
        found["maxTerminating"] = format_exact(rule.max_terminating_seconds)
    if rule.wait_for_owner is not None:
        found["waitForOwner"] = format_exact(rule.wait_for_owner.at_most_seconds)
    return found


def _selector(selector: Selector) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if selector.namespace_labels is not None:
        names = {"names": list(selector.namespaces)} if selector.namespaces else {}
        found["namespaces"] = {**names, "labels": str(selector.namespace_labels)}
    elif selector.namespaces:
        found["namespaces"] = list(selector.namespaces)
    if selector.labels is not None:
        found["labels"] = str(selector.labels)
    lists: dict[str, Iterable[Any]] = {
        "ownerKind": selector.owner_kinds,
        "node": selector.nodes,
        "phase": selector.phases,
        "reason": selector.reasons,
        "exitCode": sorted(selector.exit_codes),
    }
    return found | {key: list(values) for key, values in lists.items() if values}


def _guards(guards: Guards) -> dict[str, Any]:
    shares = {"shareOfNamespace": guards.share_of_namespace, "shareOfCluster": guards.share_of_cluster}
    found: dict[str, Any] = {"perMinute": guards.per_minute, "perPass": guards.per_pass}
    found |= {key: None if share is None else format_share(share) for key, share in shares.items()}
    found["shareAtLeast"] = guards.share_at_least
    found["windows"] = [_window(each) for each in guards.windows] or None
    found["observeOnly"] = guards.is_observing
    return {key: value for key, value in found.items() if value is not None}


def _window(window: Window) -> dict[str, Any]:
    return {
        "days": [_DAYS[day] for day in sorted(window.days)],
        "from": f"{window.start:%H:%M}",
        "to": f"{window.end:%H:%M}" if window.end.hour or window.end.minute else "24:00",
        "timezone": window.zone,
    }


# In words


def in_words(policy: Policy | None, settings: Settings | None = None) -> list[str]:
    """The policy as sentences, one per line, in order of evaluation; None is no policy file."""
    flags = settings or Settings()
    if policy is None:
        return _upstream_in_words(Policy(), flags)
    return [
        *_protection_in_words(policy.protection),
        *(rule_in_words(rule) for rule in policy.rules),
        *_upstream_in_words(policy, flags),
        *_guards_in_words(policy.guards),
    ]


def _protection_in_words(protection: Protection) -> list[str]:
    who = [f"of namespace {_either(protection.namespaces)}"] if protection.namespaces else []
    who += [f"with labels {each}" for each in protection.labels]
    who += [
        f"with annotation {key}" + ("" if value is None else f"={value}")
        for key, value in protection.annotations
    ]
    said = [f"protected: pods {each}" for each in who]
    most, noted = protection.max_keep_until_seconds, "annotation podlife.dev/keep-until"
    if most == 0:
        return [*said, f"not protected: pods with {noted}, which is not heeded"]
    bound = "" if most is None else f", but no longer than {format_exact(most)} after their end"
    return [*said, f"protected: pods with {noted}, until then{bound}"]


def rule_in_words(rule: Rule) -> str:
    """The rule as one sentence."""
    said = []
    if rule.keep is not None or rule.ttl_seconds is not None:
        said.append(f"{_who(rule, 'ended pods')} {_limits(rule)}")
    if rule.max_terminating_seconds is not None:
        long = format_exact(rule.max_terminating_seconds)
        # Not only ended pods.
        who = _who(rule, "pods")
        said.append(f"{who} go when they were deleted and are still there {long} after their grace")
    off = "" if rule.is_on else " (off)"
    return f"rule {rule.name}{off}: {'; '.join(said)}"


def selector_in_words(selector: Selector, noun: str = "pods") -> str:
    phases = [each for each in selector.phases if noun != "ended pods" or each in ("Succeeded", "Failed")]
    words = [noun]
    if phases:
        words.append(f"in phase {_either(phases)}")
    if selector.reasons:
        words.append(f"with reason {_either(selector.reasons)}")
    if selector.exit_codes:
        words.append(f"with exit code {_either(map(str, sorted(selector.exit_codes)))}")
    if selector.owner_kinds:
        words.append(_owned(selector.owner_kinds))
    if selector.labels is not None:
        words.append(f"with labels {selector.labels}")
    if selector.nodes:
        words.append(f"on node {_either(selector.nodes)}")
    words.append(_where(selector))
    return " ".join(words)


def _who(rule: Rule, noun: str) -> str:
    who = selector_in_words(rule.selector, noun)
    left_alone = [selector_in_words(each) for each in rule.exclude]
    return f"{who}, but not {', nor '.join(left_alone)}," if left_alone else who


def _where(selector: Selector) -> str:
    if selector.namespaces:
        where = f"in namespace {_either(selector.namespaces)}"
    else:
        where = "in every namespace" if selector.namespace_labels is None else "in namespaces"
    return where if selector.namespace_labels is None else f"{where} with labels {selector.namespace_labels}"


def _owned(kinds: Sequence[str]) -> str:
    named = [f"by a {kind}" for kind in kinds if kind != "none"]
    words = [f"owned {_either(named)}"] if named else []
    return " or ".join([*words, *(["owned by nobody"] if "none" in kinds else [])])


def _limits(rule: Rule) -> str:
    long = None if rule.ttl_seconds is None else format_exact(rule.ttl_seconds)
    is_none_kept = rule.keep is not None and rule.keep.count == 0
    if rule.keep is None or (is_none_kept and long is not None and not rule.is_either):
        said = f"go {long} after their end"
    elif is_none_kept:
        said = "go at once"
    elif long is None:
        said = f"go, but {_kept(rule.keep)}"
    elif rule.is_either:
        said = f"go {long} after their end, and before that {_kept(rule.keep)}, and the others go at once"
    else:
        said = f"go {long} after their end, but {_kept(rule.keep)} for as long as they are that"
    if rule.wait_for_owner is not None:
        wait = format_exact(rule.wait_for_owner.at_most_seconds)
        said += f"; each waits until its owner has seen the end, at most {wait} after it"
    return said


def _kept(keep: Keep) -> str:
    groups = {
        Per.CLUSTER: "in the whole cluster",
        Per.NAMESPACE: "of each namespace",
        Per.OWNER: "of each owner",
        Per.NODE: "of each node",
    }
    last = "that ended last" if keep.order_by is KeepOrder.COMPLETION else "that were created last"
    return f"the {keep.count} {last} {groups[keep.per]} stay{'s' if keep.count == 1 else ''}"


def _upstream_in_words(policy: Policy, settings: Settings) -> list[str]:
    threshold, spared = _threshold(policy, settings), " that no rule has" if policy.rules else ""
    quarantine = format_exact(_quarantine(policy, settings))
    said = {
        Reason.TERMINATED: f"ended pods{spared} go, but {threshold} of them stay, the youngest",
        Reason.OUT_OF_SERVICE: "terminating pods go whose node is not ready and out of service",
        Reason.ORPHANED: f"pods go whose node has been gone for {quarantine}",
        Reason.UNSCHEDULED: "terminating pods go that were never scheduled",
    }
    off = {reason for reason in said if not _is_on(policy, settings, reason)}
    if threshold <= 0:
        off.add(Reason.TERMINATED)
    return [f"upstream/{reason}: {'off' if reason in off else text}" for reason, text in said.items()]


def _guards_in_words(guards: Guards) -> list[str]:
    said = []
    if guards.is_observing:
        said.append("nothing is changed: what would be done is only told")
    if guards.per_minute is not None:
        said.append(f"at most {guards.per_minute} pods go in any minute")
    if guards.per_pass is not None:
        said.append(f"at most {guards.per_pass} pods go in one pass")
    shares = (("a namespace", guards.share_of_namespace), ("the cluster", guards.share_of_cluster))
    for where, share in shares:
        if share is not None:
            said.append(
                f"where one pass would take more than {format_share(share)} of the pods of {where}, "
                f"and more than {guards.share_at_least}, none goes until a person says so"
            )
    if guards.windows:
        said.append(f"pods go only {', or '.join(map(_window_in_words, guards.windows))}")
    return [f"guard: {each}" for each in said]


def _window_in_words(window: Window) -> str:
    said = _window(window)
    days = "every day" if len(window.days) == len(_DAYS) else f"on {', '.join(said['days'])}"
    return f"{days} from {said['from']} to {said['to']} ({window.zone})"


def _either(words: Iterable[str]) -> str:
    found = list(words)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"
