"""Which victims of a plan wait for their owner, for whoever reads the plan. Reads owners, and changes nothing."""

from __future__ import annotations

from dataclasses import replace

from podlife.client import Client
from podlife.clock import Clock
from podlife.podgc.owner_wait.step import OwnerStep
from podlife.podgc.planner import Plan, Waits
from podlife.podgc.settings import Settings

__all__ = ["set_waiting_apart"]


async def set_waiting_apart(plan: Plan, client: Client, settings: Settings, clock: Clock) -> Plan:
    """The plan without those victims; they are told with what they wait for. Raises ApiError or UnreachableError."""
    step = OwnerStep(client, lambda: settings.policy, clock)
    waiting = await step.waiting(plan.victims)
    if not waiting:
        return plan
    waits = (
        Waits(victim, waiting[uid].what, waiting[uid].until)
        for victim in plan.victims
        if (uid := victim.pod.metadata.uid) in waiting
    )
    goes = (victim for victim in plan.victims if victim.pod.metadata.uid not in waiting)
    return replace(plan, victims=tuple(goes), waiting=tuple(waits))
