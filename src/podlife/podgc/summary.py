"""Progress and results of a session. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field

from podlife.api.views import OwnerReference
from podlife.errors import PodlifeError
from podlife.podgc.plan import HeldBack, HeldPod, Victim, WaitingVictim
from podlife.podgc.removal import Outcome


@dataclass(frozen=True, slots=True)
class Failure:
    victim: Victim
    error: PodlifeError


@dataclass(frozen=True, slots=True)
class Progress:
    """`total` grows when a node's quarantine ends; until then `waiting_seconds` is the remaining time and
    `waiting_pods` the number of pods that wait. The same holds while perMinute leaves no room."""

    total: int = 0
    done: int = 0
    failed: int = 0
    waiting_seconds: float = 0.0
    waiting_pods: int = 0
    # Whether they wait for perMinute.
    is_minute: bool = False
    is_stopping: bool = False


@dataclass(frozen=True, slots=True)
class FinalizerRemoval:
    """The result for a pod: the finalizers removed and those left, or why none was removed.

    `is_gone` if the pod no longer exists."""

    namespace: str
    name: str
    node: str
    taken: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    why: str = ""
    is_gone: bool = False
    owner: OwnerReference | None = None

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(slots=True)
class FinalizerSummary:
    done: list[FinalizerRemoval] = field(default_factory=list)
    kept: list[FinalizerRemoval] = field(default_factory=list)
    failures: list[tuple[HeldPod, PodlifeError]] = field(default_factory=list)
    # Number of pods not handled because of `stop`.
    left: int = 0
    # Why the held pods could not be listed.
    error: PodlifeError | None = None

    @property
    def is_complete(self) -> bool:
        return not (self.kept or self.failures or self.left or self.error)


@dataclass(slots=True)
class Summary:
    """The results of a session. Pods that are `gone` or `replaced` were deleted by someone else."""

    outcomes: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    failures: list[Failure] = field(default_factory=list)
    # Nodes that could not be read: their pods were kept.
    unknown_nodes: dict[str, PodlifeError] = field(default_factory=dict)
    # Number of pods that were not handled because the sweep was stopped.
    left: int = 0
    # Pods that guards hold back, in the plan or since.
    held_back: list[HeldBack] = field(default_factory=list)
    # Pods that wait for their owner; they do not make a sweep incomplete.
    waiting: tuple[WaitingVictim, ...] = ()
    # Whether it waited for a quarantine; if so, its duration says nothing about its speed.
    has_waited: bool = False
    # Number of terminated pods that the threshold counts.
    terminated: int = 0
    # Whether anything may have been deleted.
    has_begun: bool = False
    finalizers: FinalizerSummary = field(default_factory=FinalizerSummary)

    @property
    def is_complete(self) -> bool:
        kept = self.outcomes[Outcome.KEPT]
        is_open = self.failures or self.unknown_nodes or self.left or kept or self.held_back
        return not is_open and self.finalizers.is_complete
