"""The rules of pod GC, its policy and taint eviction for `podlife explain`: their own code, so that predictions match
what they do.

The threshold of terminated pods depends on the whole cluster, which is not read for one pod: about those nothing is
predicted. A rule of a policy that keeps the youngest pods of a group depends on the others, so all pods are read, as
for a plan. Guards are evaluated as for the next pass. Owners are read only for a pod that is explained by itself.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Node
from podlife.client import Client
from podlife.clock import Clock
from podlife.errors import ApiError
from podlife.explain import ActionRules, CollectorRule, PolicyHold, PolicyStatus
from podlife.nodehealth.taints import evicting_taints, seconds_to_bear
from podlife.nodehealth.views import NodeTaint, Toleration
from podlife.podgc import PodIndex, Settings
from podlife.podgc.classifier import UpstreamClassifier
from podlife.podgc.guards.budget import Moment
from podlife.podgc.guards.plan_filter import budget_for, census_of
from podlife.podgc.owner_wait.reader import OwnerReader
from podlife.podgc.owner_wait.status import EndedPod
from podlife.podgc.owner_wait.step import waiting_for_owner
from podlife.podgc.plan import Guard, Refusal
from podlife.podgc.planner import PolicyStanding, plan, standing_of
from podlife.podgc.policy.model import OwnerWait
from podlife.podgc.reasons import Reason
from podlife.podgc.snapshot import read_index
from podlife.podgc.views import Pod

# Guards that only a person lifts; the others expire.
_FOR_A_PERSON = (Guard.STOP, Guard.CLUSTER_SHARE, Guard.NAMESPACE_SHARE, Guard.OBSERVING)


def acting_rules(
    settings: Settings | None = None, verdict: Callable[[Object], PolicyStatus | None] | None = None
) -> ActionRules:
    """`verdict` is that of the policy of the settings, if there is one."""
    standing = verdict or (lambda pod: None)
    found = settings or Settings()
    # One pod alone is never over a threshold; and a threshold of 0 or less collects no ended pods.
    # What rules of a policy do is in the standing: this is about upstream's reasons.
    alone = replace(found, collect=found.collect - {Reason.TERMINATED}, policy=None)

    def collect(pod: Object, node: Object | None) -> CollectorRule | None:
        known = standing(pod)
        return None if known is not None and known.protected_by else _collecting(alone, pod, node)

    return ActionRules(collect, _bears, standing)


def _collecting(settings: Settings, pod: Object, node: Object | None) -> CollectorRule | None:
    index = PodIndex(UpstreamClassifier())
    if node is not None:
        index.put_node(_as(node, Node))
    index.add_pod(_as(pod, Pod), 0.0)
    found = plan(index, settings, 0.0)
    # Decided at an event or at the next pass, whichever comes first.
    for victim in found.victims:
        return CollectorRule(str(victim.reason), victim.why, settings.period_seconds)
    for later in found.later:
        return CollectorRule(str(later.reason), later.why, later.seconds + settings.period_seconds)
    return None


def _bears(pod: Object, node: Object) -> float | None:
    taints = [_as(each, NodeTaint) for each in (node.get("spec") or {}).get("taints") or ()]
    tolerations = [_as(each, Toleration) for each in (pod.get("spec") or {}).get("tolerations") or ()]
    return seconds_to_bear(evicting_taints(taints), tolerations)


def _as(obj: Object, view: Any) -> Any:
    return msgspec.convert(obj, view)


class PolicyVerdicts:
    """Call `read` first; what could not be read is in `unread`, and then nothing is known."""

    def __init__(self, client: Client, clock: Clock, settings: Settings) -> None:
        self._client = client
        self._clock = clock
        self._settings = settings
        self._owners = OwnerReader(client)
        self._waiting: dict[str, PolicyHold] = {}
        self._of: Callable[[str, str], PolicyStatus | None] = lambda node, uid: None
        self.unread: tuple[str, ...] = ()

    async def read(self) -> None:
        """Raises UnreachableError."""
        try:
            index = await read_index(self._client, self._settings)
        except ApiError as error:
            self.unread = (f"all pods, nodes and namespaces, for the policy ({error.code} {error.reason})",)
            return
        moment = Moment(asyncio.get_running_loop().time(), self._clock.now())
        index.pass_time(moment.now)
        found = replace(plan(index, self._settings, moment.at), census=census_of(index))
        book = budget_for(self._settings, found, moment)

        def of(node: str, uid: str) -> PolicyStatus | None:
            pod = index.pod(node, uid)
            if pod is None:
                return None
            standing = _as_told(standing_of(index, self._settings, pod))
            is_due = standing.due_at is not None and standing.due_at <= moment.now
            refusal = book.refusal_of(pod.metadata.namespace, moment) if book is not None and is_due else None
            waits = self._waits(standing.rule) is not None and pod.has_ended
            return replace(standing, guard=_held(refusal), waits_for_owner=waits and bool(standing.reason))

        self._of = of

    async def ask_owner(self, pod: Object) -> None:
        """Read whether the owner of this pod, if its rule waits for it, has seen the end."""
        found = self(pod)
        if found is None or not found.waits_for_owner:
            return
        now, wait = self._clock.now(), self._waits(found.rule)
        if wait is None or found.due_at is None or found.due_at > now:
            return
        read_at = asyncio.get_running_loop().time()
        ended = msgspec.convert(pod, EndedPod)
        waiting = await waiting_for_owner(self._owners, ended, wait, now, read_at)
        if waiting is not None:
            self._waiting[ended.metadata.uid] = PolicyHold(waiting.what, waiting.until)

    def __call__(self, pod: Object) -> PolicyStatus | None:
        found = msgspec.convert(pod, Pod)
        uid = found.metadata.uid
        standing = self._of(found.spec.node_name, uid)
        return None if standing is None else replace(standing, owner=self._waiting.get(uid))

    def _waits(self, rule: str) -> OwnerWait | None:
        policy = self._settings.policy
        if policy is None:
            return None
        return next((each.wait_for_owner for each in policy.rules if each.name == rule), None)


def _as_told(found: PolicyStanding) -> PolicyStatus:
    due_at = None if found.due_at is None or found.due_at == math.inf else _moment(found.due_at)
    is_upstream = found.reason in tuple(Reason)
    return PolicyStatus(
        "" if is_upstream else found.rule,
        found.protected_by,
        found.excluded_by,
        str(found.reason or ""),
        found.why,
        due_at,
    )


def _moment(seconds: float) -> datetime:
    """A pod that may go at any time has always been due."""
    if seconds < 0:
        return datetime.min.replace(tzinfo=UTC)
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError):
        # A status may contain any time.
        return datetime.max.replace(tzinfo=UTC)


def _held(refusal: Refusal | None) -> PolicyHold | None:
    if refusal is None:
        return None
    command = refusal.lifted_by if refusal.lifted_by.startswith("kubectl ") else ""
    return PolicyHold(refusal.why, refusal.until, command, refusal.guard in _FOR_A_PERSON)
