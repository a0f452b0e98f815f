"""`podlife controllers run`: controllers on one control plane as the work of a process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from podlife.client import Client
from podlife.clock import Clock
from podlife.controller import Controller, ControlPlane
from podlife.daemons.catalog import Known
from podlife.daemons.election import ElectionOptions
from podlife.daemons.service import Options, Service, run_service
from podlife.events import Recorder
from podlife.workqueue import Queue

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

__all__ = ["Controlling", "add_controllers", "run_controllers", "stop_seconds"]

NAME = "podlife-controllers"
# How long what is under way may take when a signal comes.
_STOP_SECONDS = 10.0
# And how long the events that were told by then.
_FLUSH_SECONDS = 3.0
# One lease for every set of controllers: with one for each set, two that overlap would work beside each other.
_BESIDE = (
    "nothing is done here meanwhile, also if the holder runs other controllers: sets that have none in common may run "
    "beside each other, each with a --leader-elect-resource-name of its own"
)


def run_controllers(
    options: Options, chosen: Sequence[Known], options_of: Callable[[str], Mapping[str, Any]]
) -> None:
    """Run them until a signal comes, each made with what `options_of` its name gives. Raises PodlifeError when they
    cannot, or may not any more."""

    def make(client: Client, clock: Clock, recorder: Recorder) -> Controlling:
        seconds = stop_seconds(options.election)
        plane = ControlPlane(client, clock=clock, flush_seconds=min(_FLUSH_SECONDS, seconds / 2))
        add_controllers(plane, chosen, options_of)
        return Controlling(plane, seconds)

    told = {"controllers": ",".join(known.name for known in chosen)}
    run_service(Service(NAME, "deploy/controllers/rbac.yaml", make, told, _BESIDE), options)


def add_controllers(
    plane: ControlPlane, chosen: Sequence[Known], options_of: Callable[[str], Mapping[str, Any]]
) -> None:
    for known in chosen:
        plane.add(known.make(plane.speaking_as(known.name), **options_of(known.name)))


def stop_seconds(election: ElectionOptions) -> float:
    """How long what is under way may take at the end. Whoever has lost the lease must have ended before somebody else
    may begin, with its events sent."""
    if not election.leader_elect:
        return _STOP_SECONDS
    spare = election.leader_elect_lease_duration - election.leader_elect_renew_deadline
    return min(_STOP_SECONDS, spare / 2)


@runtime_checkable
class Exporting(Protocol):
    """A controller that has more to show than its queues."""

    def export_own(self, registry: CollectorRegistry) -> None: ...


class Controlling:
    """The work: all controllers of a control plane."""

    def __init__(self, plane: ControlPlane, seconds: float) -> None:
        self._plane = plane
        for loop in self._loops():
            loop.stop_seconds = seconds

    @property
    def complaint(self) -> str:
        return self._plane.complaint

    @property
    def recorders(self) -> Sequence[Recorder]:
        return self._plane.recorders

    async def run(self) -> None:
        await self._plane.run()

    def export(self, registry: CollectorRegistry) -> None:
        from podlife.controller import export_controllers, export_informers, export_queues

        plane = self._plane
        export_queues(registry, *self._queues())
        export_controllers(registry, *self._loops())
        export_informers(registry, plane)
        for each in plane.controllers:
            if isinstance(each, Exporting):
                each.export_own(registry)

    def _loops(self) -> list[Controller[Any]]:
        return _found(self._plane, Controller)

    def _queues(self) -> list[Queue[Any]]:
        return _found(self._plane, Queue)


def _found(plane: ControlPlane, kind: type[Any]) -> list[Any]:
    """What the controllers have of this kind: most have one, some several."""
    parts = [part for each in plane.controllers for part in vars(each).values()]
    return [part for part in parts if isinstance(part, kind)]
