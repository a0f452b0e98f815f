"""The owner wait: a finished pod stays until its Job, Workflow or other owner has observed its end.

A pre-delete step for victims of rules with `waitForOwner`. Such a pod is released only when its owner has acknowledged
or counted it, has ended or is gone, or when the maximum wait after the pod's completion is over. If something cannot be
read, the pod waits, and the reason is reported. Read-only. What counts as seen is in `status`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from podlife.api.codec import format_time
from podlife.client import PODS, Client, ListOptions
from podlife.clock import Clock, add_seconds
from podlife.podgc.owner_wait.reader import OwnerReader
from podlife.podgc.owner_wait.status import (
    EndedPod,
    ended_at,
    is_acknowledged,
    owner_to_ask,
    pending_on,
    still_waiting,
)
from podlife.podgc.plan import Plan, Victim, WaitingVictim
from podlife.podgc.policy.model import OwnerWait, Policy
from podlife.podgc.removal import Stay
from podlife.podgc.settings import Settings
from podlife.podgc.snapshot import find_pod
from podlife.podgc.worker_pool import for_each

_PAGE = 500
_MOST_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class OwnerWaiting:
    """What the owner has not done yet, and until when the pod stays at most."""

    what: str
    until: datetime

    def __str__(self) -> str:
        # Always the same text for a pod, so that its events are aggregated.
        return f"waiting for its owner: {self.what}; until {format_time(self.until)} at most"


class OwnerStep:
    """`policy` returns the policy in force; rules are looked up by name for each victim."""

    def __init__(self, client: Client, policy: Callable[[], Policy | None], clock: Clock) -> None:
        self._policy = policy
        self._client = client
        self._clock = clock
        self._reader = OwnerReader(client)

    async def __call__(self, victim: Victim) -> str:
        wait = self._wait_of(victim)
        if wait is None or not victim.pod.has_ended:
            return ""
        metadata = victim.pod.metadata
        pod = await find_pod(self._client, metadata.namespace, metadata.name, view=EndedPod)
        if pod is None or pod.metadata.uid != metadata.uid:
            # Gone or replaced: the deletion, which carries the UID, handles that.
            return ""
        found = await self._check(pod, wait, _now())
        return "" if found is None else Stay(str(found), found.until)

    async def waiting(self, victims: Sequence[Victim]) -> dict[str, OwnerWaiting]:
        """The victims that wait for their owner now, by UID."""
        waits = {victim.pod.metadata.uid: self._wait_of(victim) for victim in victims if victim.pod.has_ended}
        wanted = {uid: wait for uid, wait in waits.items() if wait is not None}
        namespaces = {v.pod.metadata.namespace for v in victims if v.pod.metadata.uid in wanted}
        found: dict[str, OwnerWaiting] = {}
        for namespace in sorted(namespaces):
            async for page in self._client.pages(
                PODS, namespace, options=ListOptions(limit=_PAGE), view=EndedPod
            ):
                ours = [each for each in page.items if each.metadata.uid in wanted]
                found |= await self._check_all(ours, wanted, _now())
        return found

    async def _check_all(
        self, pods: Iterable[EndedPod], waits: dict[str, OwnerWait], read_at: float
    ) -> dict[str, OwnerWaiting]:
        found: dict[str, OwnerWaiting] = {}

        async def check(pod: EndedPod) -> None:
            uid = pod.metadata.uid
            if (waiting := await self._check(pod, waits[uid], read_at)) is not None:
                found[uid] = waiting

        await for_each(pods, check, at_once=_MOST_AT_ONCE)
        return found

    def _wait_of(self, victim: Victim) -> OwnerWait | None:
        policy = self._policy()
        if policy is None or not victim.rule:
            return None
        rule = next((each for each in policy.rules if each.name == victim.rule), None)
        return None if rule is None else rule.wait_for_owner

    async def _check(self, pod: EndedPod, wait: OwnerWait, read_at: float) -> OwnerWaiting | None:
        return await waiting_for_owner(self._reader, pod, wait, self._clock.now(), read_at)


async def set_waiting_apart(plan: Plan, client: Client, settings: Settings, clock: Clock) -> Plan:
    """Move victims that wait for their owner to `plan.waiting`. Read-only. Raises ApiError or UnreachableError."""
    step = OwnerStep(client, lambda: settings.policy, clock)
    waiting = await step.waiting(plan.victims)
    if not waiting:
        return plan
    waits = (
        WaitingVictim(victim, waiting[uid].what, waiting[uid].until)
        for victim in plan.victims
        if (uid := victim.pod.metadata.uid) in waiting
    )
    goes = (victim for victim in plan.victims if victim.pod.metadata.uid not in waiting)
    return replace(plan, victims=tuple(goes), waiting=tuple(waits))


def _now() -> float:
    return asyncio.get_running_loop().time()


async def waiting_for_owner(
    reader: OwnerReader, pod: EndedPod, wait: OwnerWait, now: datetime, read_at: float
) -> OwnerWaiting | None:
    """None if the pod may go: its owner has observed its end, or the time is over. `read_at` is when the pod was
    read."""
    until = add_seconds(ended_at(pod), wait.at_most_seconds)
    if until <= now or is_acknowledged(pod):
        return None
    what = pending_on(pod) or await _asked(reader, pod, read_at)
    return OwnerWaiting(what, until) if what else None


async def _asked(reader: OwnerReader, pod: EndedPod, read_at: float) -> str:
    owner = owner_to_ask(pod)
    if owner is None:
        return ""
    # A cached answer may keep the pod. To release it, the answer must be newer than the pod, unless it is final.
    for after in (-math.inf, read_at):
        answer = await reader.ask(owner, pod.metadata.namespace, after=after)
        title = f"{owner.kind} {owner.name}"
        if answer.trouble:
            return f"{title}: {answer.trouble}"
        if answer.is_gone or answer.outlook.end:
            return ""
        if what := still_waiting(answer.outlook, pod):
            return f"{title} {what}"
    return ""
