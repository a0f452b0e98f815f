"""A `FinalizerRemover` that respects the policy: protections, and guards.

Stops, windows and observe-only apply. Counting guards do not: the deletion of the pod was requested, and counted,
before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from podlife.api.codec import Object
from podlife.client import Client
from podlife.clock import Clock
from podlife.podgc.effective_settings import pod_view, protection_of
from podlife.podgc.finalizers.remover import FinalizerRemover
from podlife.podgc.guards.annotations import GuardAnnotations
from podlife.podgc.guards.windows import is_open
from podlife.podgc.policy.model import STOP
from podlife.podgc.pre_delete import PreDeleteStep
from podlife.podgc.settings import Settings


def remover_under(
    settings: Callable[[], Settings],
    client: Client,
    clock: Clock,
    allowed: frozenset[str],
    steps: Sequence[PreDeleteStep] = (),
    annotations: Callable[[], GuardAnnotations] = GuardAnnotations,
    *,
    is_dry: bool = False,
) -> FinalizerRemover:
    """`settings` and `annotations` return those in force."""

    def protection(pod: Object, now: datetime) -> str:
        in_force = settings()
        if in_force.guards is not None and (stop := annotations().stop_of(pod["metadata"]["namespace"])):
            return f"annotation {STOP} of namespace {stop[0]}: {stop[1] or 'no reason given'}"
        return protection_of(in_force, msgspec.convert(pod, pod_view(in_force)), now)

    def hold() -> str:
        guards = settings().guards
        if guards is None:
            return ""
        if guards.is_observing:
            return "observe-only: nothing is changed"
        return "" if is_open(guards.windows, clock.now()) else "outside the deletion windows"

    return FinalizerRemover(
        client, clock, allowed, steps=steps, protection=protection, hold=hold, is_dry=is_dry
    )
