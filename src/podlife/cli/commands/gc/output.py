"""Formats a plan, for people and programs. Pure: plan and time are arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from podlife.api.codec import format_time
from podlife.api.durations import format_duration
from podlife.cli.output import as_json, counted, printable, table
from podlife.podgc.plan import Guard, HeldBack, Later, Plan, Upcoming, Victim, WaitingVictim
from podlife.podgc.reasons import Reason, RuleReason
from podlife.podgc.settings import Settings
from podlife.podgc.views import Pod


@dataclass(frozen=True, slots=True)
class Shown:
    """The settings behind the plan, and its namespace ("" for all)."""

    settings: Settings = field(default_factory=Settings)
    namespace: str = ""


def format_plan(plan: Plan, output: str, now: datetime, shown: Shown | None = None) -> str:
    """The plan in one of the formats of `-o`, in whole lines."""
    shown = shown or Shown()
    if output == "name":
        return "".join(f"{_name(victim.pod, bool(shown.namespace))}\n" for victim in plan.victims)
    if output == "json":
        return as_json(plan_as_dict(plan))
    if output == "yaml":
        import yaml

        return yaml.safe_dump(plan_as_dict(plan), sort_keys=False)
    is_wide = output == "wide"
    victims = _victims(plan, now, shown, is_wide=is_wide)
    # Upcoming deletions are counted over all pods, regardless of the selection.
    where = " in every namespace" if shown.namespace else ""
    later = _later(plan.later, plan.upcoming, where)
    waiting = _waiting(plan.waiting, now)
    parts = [victims, _held_back(plan.held_back, is_wide=is_wide), waiting, later, _held(plan.held, now)]
    return "\n".join(part for part in parts if part)


def reasons_of(victims: Iterable[Victim]) -> str:
    """The number of victims per reason, in the order in which the collector evaluates reasons."""
    counts = Counter(victim.reason for victim in victims)
    return ", ".join(f"{counts[reason]} {reason}" for reason in (*Reason, *RuleReason) if counts[reason])


def _name(pod: Pod, is_one_namespace: bool) -> str:
    # Within one namespace, kubectl accepts it as an argument; otherwise the name alone would be ambiguous.
    name = f"pod/{pod.metadata.name}"
    return name if is_one_namespace else f"{pod.metadata.namespace}/{name}"


def where_of(namespace: str) -> str:
    """The end of a sentence such as "No pod is stuck …"."""
    return f"in namespace {namespace}" if namespace else "in any namespace"


def below_threshold(terminated: int, settings: Settings) -> str:
    """A hint about terminated pods below the threshold and how to collect them, or ""."""
    is_more = 0 < settings.threshold < terminated
    if not terminated or is_more or Reason.TERMINATED not in settings.collect:
        return ""
    if settings.policy is not None and settings.policy.threshold is not None:
        setting = "upstream.terminated.threshold in the policy"
    else:
        setting = "--terminated-pod-gc-threshold"
    if settings.threshold > 0:
        hint = f"{settings.threshold} may stay: a lower {setting} collects more"
    else:
        hint = f"all of them may stay: a threshold of 0 collects none, {setting} must be 1 or more"
    return f" The cluster has {counted(terminated, 'terminated pod')}, {hint}."


def _victims(plan: Plan, now: datetime, shown: Shown, *, is_wide: bool) -> str:
    # Observed pods are listed as well: seeing them is the purpose of observe-only.
    observed = [victim for each in plan.held_back if _is_observed(each) for victim in each.victims]
    victims = [*plan.victims, *observed]
    if not victims:
        few = below_threshold(plan.terminated, shown.settings)
        return f"Nothing to collect now {where_of(shown.namespace)}.{few}\n"
    has_rules = any(victim.rule for victim in victims)
    wide = ("PHASE", "NODE", "ACTION", "UID") if is_wide else ()
    rows = [("NAMESPACE", "NAME", *(("RULE",) if has_rules else ()), "REASON", "AGE", *wide, "WHY")]
    for victim in victims:
        pod, metadata = victim.pod, victim.pod.metadata
        rule = (victim.rule,) if has_rules else ()
        age = _since(metadata.creation_timestamp, now)
        if is_wide:
            where = pod.spec.node_name or "<none>"
            wide = (pod.status.phase or "<none>", where, str(victim.action), metadata.uid)
        rows.append((metadata.namespace, metadata.name, *rule, str(victim.reason), age, *wide, victim.why))
    what = "would be collected (observe-only)" if observed else "to collect now"
    total = f"{counted(len(victims))} {what}: {reasons_of(victims)}."
    return f"{table(rows)}\n{total}\n"


def _later(later: Sequence[Later], upcoming: Sequence[Upcoming], where: str) -> str:
    if not later and not upcoming:
        return ""
    rows = [["LATER", "PODS", "REASON", "WHY"]]
    for item in later:
        when = f"in {format_duration(item.seconds)}" if item.seconds > 0 else "now due"
        rows.append([when, str(len(item.pods)), str(item.reason), item.why])
    for each in upcoming:
        when = f"in {format_duration(each.seconds)}"
        why = f"by rule {each.rule}{where}, first {each.next[0].pod.key}"
        rows.append([when, str(each.count), str(each.reason), why])
    return table(rows)


def _waiting(waiting: Sequence[WaitingVictim], now: datetime) -> str:
    if not waiting:
        return ""
    rows = [["WAITS FOR ITS OWNER", "RULE", "AT MOST", "WHY"]]
    for each in waiting:
        left = format_duration(max(0.0, (each.until - now).total_seconds()))
        rows.append([each.victim.pod.key, each.victim.rule, left, each.what])
    return table(rows)


def _held(held: Sequence[Pod], now: datetime) -> str:
    if not held:
        return ""
    rows = [["HELD", "FOR", "BY FINALIZER"]]
    for pod in held:
        metadata = pod.metadata
        since = _since(metadata.deletion_timestamp, now)
        rows.append([f"{metadata.namespace}/{metadata.name}", since, ",".join(metadata.finalizers)])
    rest = f"{counted(len(held))} already deleted: the controller that set the finalizer must remove it."
    return f"{table(rows)}\n{rest}\n"


def _held_back(held_back: Sequence[HeldBack], *, is_wide: bool) -> str:
    if not held_back:
        return ""
    lines = ["Held back:"]
    for item in held_back:
        refusal = item.refusal
        until = f", until {format_time(refusal.until)}" if refusal.until else ""
        lines.append(f"  {counted(len(item.victims))} by {refusal.guard}{until}: {refusal.why}")
        lines.append(f"    lifted by {refusal.remedy}")
        # Shows which pods lifting the guard concerns; observed ones are in the table.
        if is_wide and not _is_observed(item):
            lines += [f"    {pod.key}" for pod in item.pods]
    return "\n".join(map(printable, lines)) + "\n"


def _is_observed(item: HeldBack) -> bool:
    return item.refusal.guard is Guard.OBSERVING


def _since(moment: datetime | None, now: datetime) -> str:
    return format_duration((now - moment).total_seconds()) if moment else "<unknown>"


def plan_as_dict(plan: Plan) -> dict[str, Any]:
    """Keys that depend on a policy are only present with one."""
    return {
        "victims": [_victim_as_dict(victim) for victim in plan.victims],
        "later": [
            {
                "node": item.node,
                "reason": str(item.reason),
                "inSeconds": round(item.seconds, 3),
                "why": item.why,
                "pods": [_pod_as_dict(pod) for pod in item.pods],
            }
            for item in plan.later
        ],
        **({"heldBack": [_held_back_as_dict(item) for item in plan.held_back]} if plan.held_back else {}),
        "held": [
            {
                **_pod_as_dict(pod),
                "deletionTimestamp": _time(pod.metadata.deletion_timestamp),
                "finalizers": list(pod.metadata.finalizers),
            }
            for pod in plan.held
        ],
        **({"waiting": [_waits_as_dict(each) for each in plan.waiting]} if plan.waiting else {}),
        **({"upcoming": [_upcoming_as_dict(each) for each in plan.upcoming]} if plan.upcoming else {}),
    }


def _victim_as_dict(victim: Victim) -> dict[str, Any]:
    return {
        **_pod_as_dict(victim.pod),
        **({"rule": victim.rule} if victim.rule else {}),
        "reason": str(victim.reason),
        "action": str(victim.action),
        "why": victim.why,
    }


def _waits_as_dict(waits: WaitingVictim) -> dict[str, Any]:
    victim = waits.victim
    return {
        **_pod_as_dict(victim.pod),
        "rule": victim.rule,
        "reason": str(victim.reason),
        "until": _time(waits.until),
        "why": waits.what,
    }


def _upcoming_as_dict(upcoming: Upcoming) -> dict[str, Any]:
    first = upcoming.next[0].due_at - upcoming.seconds
    return {
        "rule": upcoming.rule,
        "reason": str(upcoming.reason),
        "pods": upcoming.count,
        "inSeconds": round(upcoming.seconds, 3),
        "next": [
            {**_pod_as_dict(each.pod), "inSeconds": round(each.due_at - first, 3), "why": each.why}
            for each in upcoming.next
        ],
    }


def _held_back_as_dict(item: HeldBack) -> dict[str, Any]:
    refusal = item.refusal
    return {
        "guard": str(refusal.guard),
        "namespace": refusal.place,
        "count": len(item.victims),
        "why": refusal.why,
        "until": _time(refusal.until),
        "liftedBy": refusal.lifted_by,
        "pods": [_victim_as_dict(victim) for victim in item.victims],
    }


def _pod_as_dict(pod: Pod) -> dict[str, Any]:
    metadata = pod.metadata
    return {
        "namespace": metadata.namespace,
        "name": metadata.name,
        "uid": metadata.uid,
        "nodeName": pod.spec.node_name,
        "phase": pod.status.phase,
        "creationTimestamp": _time(metadata.creation_timestamp),
    }


def _time(moment: datetime | None) -> str | None:
    return format_time(moment) if moment else None
