"""A policy as text: as a complete file, and in words. Pure.

`as_document` includes defaults and parses to the same policy. Values that upstream's flags can set are those of the
flags if the policy does not set them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
from podlife.podgc.policy.parse.document import API_VERSION, KIND, PROTECTION, UPSTREAM
from podlife.podgc.policy.parse.guards import DAYS, GUARDS, write_window
from podlife.podgc.policy.parse.numbers import format_share
from podlife.podgc.policy.parse.rules import RULE
from podlife.podgc.policy.parse.values import write_fields
from podlife.podgc.reasons import Reason
from podlife.podgc.settings import Settings


def as_document(policy: Policy, settings: Settings | None = None) -> dict[str, Any]:
    """The complete policy file; limits that are not set are omitted."""
    lists: dict[str, Any] = {"namespaces": [], "labels": [], "annotations": []}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "upstream": _upstream(policy, settings or Settings()),
        "protect": lists | write_fields(PROTECTION, policy.protection),
        "rules": [_rule(rule) for rule in policy.rules],
        "guards": write_fields(GUARDS, policy.guards),
    }


def _upstream(policy: Policy, settings: Settings) -> dict[str, Any]:
    values = {
        "threshold": max(0, _threshold(policy, settings)),
        "quarantine_seconds": _quarantine(policy, settings),
    }
    found = {}
    for key, (reason, _, fields) in UPSTREAM.items():
        given = {**values, "enabled": _is_on(policy, settings, reason)}
        found[key] = {name: field.type.write(given[field.attribute]) for name, field in fields.items()}
    return found


def _is_on(policy: Policy, settings: Settings, reason: Reason) -> bool:
    return settings.does_collect(reason) and (policy.collect is None or reason in policy.collect)


def _threshold(policy: Policy, settings: Settings) -> int:
    return settings.threshold if policy.threshold is None else policy.threshold


def _quarantine(policy: Policy, settings: Settings) -> float:
    return settings.quarantine_seconds if policy.quarantine_seconds is None else policy.quarantine_seconds


def _rule(rule: Rule) -> dict[str, Any]:
    # Name and switch first, for the reader.
    found = {"name": rule.name, "enabled": rule.is_on, **write_fields(RULE, rule)}
    if rule.keep is None or rule.ttl_seconds is None:
        del found["collectWhen"]
    return found


# In words


def in_words(policy: Policy | None, settings: Settings | None = None) -> list[str]:
    """The policy as sentences, one per line, in order of evaluation; None if there is no policy file."""
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
    sentences = [f"protected: pods {each}" for each in who]
    most, noted = protection.max_keep_until_seconds, "annotation podlife.dev/keep-until"
    if most == 0:
        return [*sentences, f"not protected: pods with {noted}, which is ignored"]
    bound = "" if most is None else f", but no longer than {format_exact(most)} after their end"
    return [*sentences, f"protected: pods with {noted}, until then{bound}"]


def rule_in_words(rule: Rule) -> str:
    sentences = []
    if rule.keep is not None or rule.ttl_seconds is not None:
        sentences.append(f"{_who(rule, 'ended pods')} {_limits(rule)}")
    if rule.max_terminating_seconds is not None:
        long = format_exact(rule.max_terminating_seconds)
        # Not only ended pods.
        who = _who(rule, "pods")
        sentences.append(f"{who} go when they were deleted and are still there {long} after their grace")
    off = "" if rule.is_on else " (off)"
    return f"rule {rule.name}{off}: {'; '.join(sentences)}"


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
    return " or ".join([*words, *(["without a controller"] if "none" in kinds else [])])


def _limits(rule: Rule) -> str:
    long = None if rule.ttl_seconds is None else format_exact(rule.ttl_seconds)
    is_none_kept = rule.keep is not None and rule.keep.count == 0
    if rule.keep is None or (is_none_kept and long is not None and not rule.is_either):
        text = f"go {long} after their end"
    elif is_none_kept:
        text = "go at once"
    elif long is None:
        text = f"go, but {_kept(rule.keep)}"
    elif rule.is_either:
        text = f"go {long} after their end, and before that {_kept(rule.keep)}, and the others go at once"
    else:
        text = f"go {long} after their end, but {_kept(rule.keep)} for as long as they are that"
    if rule.wait_for_owner is not None:
        wait = format_exact(rule.wait_for_owner.at_most_seconds)
        text += f"; each waits until its owner has seen the end, at most {wait} after it"
    return text


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
    texts = {
        Reason.TERMINATED: f"ended pods{spared} go, but {threshold} of them stay, the youngest",
        Reason.OUT_OF_SERVICE: "terminating pods go whose node is not ready and out of service",
        Reason.ORPHANED: f"pods go whose node has been gone for {quarantine}",
        Reason.UNSCHEDULED: "terminating pods go that were never scheduled",
    }
    off = {reason for reason in texts if not _is_on(policy, settings, reason)}
    if threshold <= 0:
        off.add(Reason.TERMINATED)
    return [f"upstream/{reason}: {'off' if reason in off else text}" for reason, text in texts.items()]


def _guards_in_words(guards: Guards) -> list[str]:
    sentences = []
    if guards.is_observing:
        sentences.append("nothing is changed: actions are only reported")
    if guards.per_minute is not None:
        sentences.append(f"at most {guards.per_minute} pods go in any minute")
    if guards.per_pass is not None:
        sentences.append(f"at most {guards.per_pass} pods go in one pass")
    shares = (("a namespace", guards.share_of_namespace), ("the cluster", guards.share_of_cluster))
    for where, share in shares:
        if share is not None:
            sentences.append(
                f"where one pass would take more than {format_share(share)} of the pods of {where}, "
                f"and more than {guards.share_at_least}, none goes until a person says so"
            )
    if guards.windows:
        sentences.append(f"pods go only {', or '.join(map(_window_in_words, guards.windows))}")
    return [f"guard: {each}" for each in sentences]


def _window_in_words(window: Window) -> str:
    fields = write_window(window)
    days = "every day" if len(window.days) == len(DAYS) else f"on {', '.join(fields['days'])}"
    return f"{days} from {fields['from']} to {fields['to']} ({window.zone})"


def _either(words: Iterable[str]) -> str:
    found = list(words)
    return found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"
