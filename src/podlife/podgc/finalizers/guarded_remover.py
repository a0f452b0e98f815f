"""Taking finalizers off under a policy: what it protects is left alone, and its guards hold this back too.

Of the guards those that say when hold: stops, maintenance windows and observe-only. Those that count do not: what is
taken off belongs to a pod whose deletion was asked for before, and counted then if it was ours.
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
from podlife.podgc.guards.annotations import Marks
from podlife.podgc.guards.windows import is_open
from podlife.podgc.policy.model import STOP
from podlife.podgc.settings import Settings
from podlife.podgc.steps import Step

__all__ = ["remover_under"]


def remover_under(
    settings: Callable[[], Settings],
    client: Client,
    clock: Clock,
    allowed: frozenset[str],
    steps: Sequence[Step] = (),
    marks: Callable[[], Marks] = Marks,
    *,
    is_dry: bool = False,
) -> FinalizerRemover:
    """`settings` gives those in force, `marks` what is written on namespaces."""

    def protection(pod: Object, now: datetime) -> str:
        in_force = settings()
        if in_force.guards is not None and (stop := marks().stop_of(pod["metadata"]["namespace"])):
            return f"the annotation {STOP} of namespace {stop[0]}: {stop[1] or 'no reason given'}"
        return protection_of(in_force, msgspec.convert(pod, pod_view(in_force)), now)

    def hold() -> str:
        guards = settings().guards
        if guards is None:
            return ""
        if guards.is_observing:
            return "the policy is only observed"
        return "" if is_open(guards.windows, clock.now()) else "no maintenance window is open"

    return FinalizerRemover(
        client, clock, allowed, steps=steps, protection=protection, hold=hold, is_dry=is_dry
    )
