"""A pod that does not exist: what its events say, and whether its owner fails to create it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from podlife.api.codec import Object
from podlife.explain import kubectl_commands as commands
from podlife.explain.audit_deletion import PodIdentity, find_deletion
from podlife.explain.audit_text import sentence
from podlife.explain.cluster_snapshot import ClusterSnapshot
from podlife.explain.deleted_by import (
    AUDIT_HINT,
    events_of_last,
    last_uid,
    why_gone,
)
from podlife.explain.explanation import (
    Cause,
    Explanation,
    Remedy,
    UpcomingAction,
)
from podlife.explain.objects import text, updated
from podlife.explain.timeline import told_by, told_by_audit

_QUOTA = re.compile(
    r"exceeded quota: (?P<quota>[^,\s]+), requested: (?P<requested>\S+), used: \S+, limited: (?P<limited>\S+)"
)
_ORDINAL = re.compile(r"-\d+$")


def explain_absent(
    world: ClusterSnapshot,
    namespace: str,
    name: str,
    events: Sequence[Object],
    known: PodIdentity | None = None,
) -> Explanation:
    """`events` are all of its namespace. `known` is which pod of this name is meant; otherwise it is the last one."""
    ours = events_of_last(events, name, "" if known is None else known.uid)
    node = next((found for each in ours if (found := _node_in(each))), "")
    fields = {"spec.nodeName": node} if node else {}
    pod = known or PodIdentity(namespace, name, last_uid(ours, name), fields=fields)
    audited = find_deletion(world.audited, pod) if world.audited else None
    refused = [each for each in ours if text(each, "reason") == "FailedCreate"]
    refused = refused or [each for each in events if _is_owner_refused(each, name)]
    causes = tuple(_refused(namespace, max(refused, key=_time))) if refused else ()
    deletion = "" if refused else why_gone(ours)
    if audited is not None and not refused:
        deletion = sentence(audited)
    killed = any(text(each, "reason") == "Killing" for each in ours)
    if not deletion and not causes and killed:
        deletion = f"by its node, at the request of a user or program that left no trace here: {AUDIT_HINT}"
    told = (*told_by(ours), *told_by_audit(world.audited, pod))
    timeline = tuple(sorted(told, key=lambda each: each.at))
    if causes:
        stage = "not there, and cannot be made"
    else:
        stage = (
            "gone"
            if ours or audited is not None
            else "not there, and no event tells of it (they are kept for an hour)"
        )
    return Explanation(
        "Pod",
        name,
        namespace,
        stage=stage,
        deletion=deletion,
        causes=causes,
        timeline=timeline,
        unread=world.unread,
    )


def _node_in(event: Object) -> str:
    """The node that it tells of: who wrote it, or where the scheduler sent the pod."""
    if text(event, "reason") == "Scheduled":
        return text(event, "message").rpartition(" to ")[2]
    return text(event.get("source") or {}, "host")


def _time(event: Object) -> float:
    at = updated(event)
    return 0.0 if at is None else at.timestamp()


def _is_owner_refused(event: Object, name: str) -> bool:
    """A StatefulSet's pod is its name and a number; a ReplicaSet's is not known before it is made."""
    about = event.get("involvedObject") or {}
    owner = text(about, "name")
    is_its = name == owner or _ORDINAL.sub("", name) == owner or name.startswith(f"{owner}-")
    return text(event, "reason") == "FailedCreate" and bool(owner) and is_its


def _refused(namespace: str, event: Object) -> Iterator[Cause]:
    message, about = " ".join(text(event, "message").split()), event.get("involvedObject") or {}
    who = f"{text(about, 'kind')} {text(about, 'name')}"
    again = (UpcomingAction(who, "tries again, at growing intervals of up to about 16 minutes"),)
    if (match := _QUOTA.search(message)) is None:
        yield Cause("creation-refused", f"{who} cannot make it: {message}", updated(event), (), again)
        return
    quota: Object = {"metadata": {"namespace": namespace, "name": match["quota"]}}
    resource = match["limited"].partition("=")[0]
    body = {"spec": {"hard": {resource: "<AMOUNT>"}}}
    command = commands.patch("resourcequota", quota, body, type_="merge")
    risk = "The namespace may take more of the cluster than it was given."
    allows = f"quota {match['quota']} allows {match['limited']}, and {match['requested']} more is asked for"
    said = f"{who} cannot make it: {allows}"
    yield Cause("quota", said, updated(event), (Remedy(command, risk),), again)
