"""Waiting for the owner: a finished pod stays until its Job, workflow or other owner has seen the end.

A step before the deletion, for victims of rules with `waitForOwner`. It guarantees that such a pod is let go only when
the owner has said so, has counted it, has ended or is gone, or when the bound after the pod's completion is over;
whatever cannot be read means "not yet", and is told. It only reads. What counts as seen is in `owner_seen`.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from podlife.api.codec import format_time
from podlife.client import PODS, Client, ListOptions
from podlife.clock import Clock, add_seconds
from podlife.podgc.owner_wait.reader import OwnerReader
from podlife.podgc.owner_wait.status import (
    EndedPod,
    ended_at,
    is_told,
    owner_to_ask,
    pending_on,
    still_waiting,
)
from podlife.podgc.planner import Victim
from podlife.podgc.policy.model import OwnerWait, Policy
from podlife.podgc.steps import Stay

__all__ = ["OwnerStep", "Waiting", "waiting_for_owner"]

_PAGE = 500
_MOST_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Waiting:
    """What the owner has not done yet, and until when the pod stays for it at the latest."""

    what: str
    until: datetime

    def __str__(self) -> str:
        # Always the same words for a pod, so that events about it are counted and not piled up.
        return f"waits for its owner: {self.what}; goes at {format_time(self.until)} at the latest"


class OwnerStep:
    """`policy` gives the one in force: rules are looked up by their names when a victim comes."""

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
        # As a list of one: whoever may sweep may list, and needs no right to get besides.
        options = ListOptions(field_selector=f"metadata.name={metadata.name}")
        page = await self._client.list(PODS, metadata.namespace, options=options, view=EndedPod)
        pod = next((each for each in page.items if each.metadata.uid == metadata.uid), None)
        # Gone, or another by now: the deletion finds that out by itself.
        found = None if pod is None else await self._look(pod, wait, _now())
        return "" if found is None else Stay(str(found), found.until)

    async def waiting(self, victims: Sequence[Victim]) -> dict[str, Waiting]:
        """Which of the victims wait for their owner now, by UID: for who only wants to know."""
        waits = {victim.pod.metadata.uid: self._wait_of(victim) for victim in victims if victim.pod.has_ended}
        wanted = {uid: wait for uid, wait in waits.items() if wait is not None}
        namespaces = {v.pod.metadata.namespace for v in victims if v.pod.metadata.uid in wanted}
        found: dict[str, Waiting] = {}
        for namespace in sorted(namespaces):
            async for page in self._client.pages(
                PODS, namespace, options=ListOptions(limit=_PAGE), view=EndedPod
            ):
                ours = [each for each in page.items if each.metadata.uid in wanted]
                found |= await self._look_at_all(ours, wanted, _now())
        return found

    async def _look_at_all(
        self, pods: Iterable[EndedPod], waits: dict[str, OwnerWait], read_at: float
    ) -> dict[str, Waiting]:
        places = asyncio.Semaphore(_MOST_AT_ONCE)
        found: dict[str, Waiting] = {}

        async def look(pod: EndedPod) -> None:
            uid = pod.metadata.uid
            async with places:
                if (waiting := await self._look(pod, waits[uid], read_at)) is not None:
                    found[uid] = waiting

        async with asyncio.TaskGroup() as group:
            for pod in pods:
                group.create_task(look(pod))
        return found

    def _wait_of(self, victim: Victim) -> OwnerWait | None:
        policy = self._policy()
        if policy is None or not victim.rule:
            return None
        rule = next((each for each in policy.rules if each.name == victim.rule), None)
        return None if rule is None else rule.wait_for_owner

    async def _look(self, pod: EndedPod, wait: OwnerWait, read_at: float) -> Waiting | None:
        return await waiting_for_owner(self._reader, pod, wait, self._clock.now(), read_at)


def _now() -> float:
    return asyncio.get_running_loop().time()


async def waiting_for_owner(
    reader: OwnerReader, pod: EndedPod, wait: OwnerWait, now: datetime, read_at: float
) -> Waiting | None:
    """None when the pod may go: its owner has seen the end, or had its time. `read_at` is when the pod was read."""
    until = add_seconds(ended_at(pod), wait.at_most_seconds)
    if until <= now or is_told(pod):
        return None
    what = pending_on(pod) or await _asked(reader, pod, read_at)
    return Waiting(what, until) if what else None


async def _asked(reader: OwnerReader, pod: EndedPod, read_at: float) -> str:
    owner = owner_to_ask(pod)
    if owner is None:
        return ""
    # What keeps a pod may be a moment old. What lets it go must not be from before its end, unless it cannot come
    # undone.
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
