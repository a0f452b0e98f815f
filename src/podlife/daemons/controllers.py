"""Kubernetes' own controllers as a daemon, all on one control plane."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from podlife.client import Client
from podlife.clock import Clock
from podlife.controller import Controller, ControlPlane
from podlife.daemons.catalog import ROOT_CA_PUBLISHER, TOKENS_CONTROLLER, CatalogEntry, choose
from podlife.daemons.event_loop import Shutdown, never_stopped
from podlife.daemons.service import ElectionSettings, Service, ServiceSettings, run_service
from podlife.events import Recorder
from podlife.workqueue import Queue

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

NAME = "podlife-controllers"
# How long in-flight work may take on shutdown, and how long sending events may take after that.
_STOP_SECONDS = 10.0
_FLUSH_SECONDS = 3.0
# One lease for every set of controllers: with one per set, two sets that overlap would both work.
_STANDBY = (
    "standing by, even if the holder runs other controllers: sets without a common controller may run at the same time "
    "if each has its own --leader-elect-resource-name"
)


@dataclass(frozen=True, slots=True)
class ControllersSettings:
    service: ServiceSettings
    # Names, `*` and `-name`, as `catalog.choose` reads them.
    controllers: Sequence[str] = ("*",)
    # Keyword arguments of controllers, by full name.
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # How long in-flight work may take on shutdown; None: as long as the lease allows.
    stop_seconds: float | None = None


async def run(
    settings: ControllersSettings,
    *,
    on_ready: Callable[[], None] | None = None,
    shutdown: Shutdown = never_stopped,
) -> None:
    """Run controllers until `shutdown` or cancellation. Raises PodlifeError if they cannot work or lose the lease."""
    entries = choose(settings.controllers)
    seconds = settings.stop_seconds
    if seconds is None:
        seconds = stop_seconds(settings.service.election)

    options = options_of(settings)

    def make(client: Client, clock: Clock, recorder: Recorder) -> ControllerSet:
        plane = ControlPlane(client, clock=clock, flush_seconds=min(_FLUSH_SECONDS, seconds / 2))
        return ControllerSet(plane, entries, options, stop_seconds=seconds)

    log_fields = {"controllers": ",".join(each.name for each in entries)}
    service = Service(NAME, "deploy/controllers/rbac.yaml", make, log_fields, _STANDBY)
    await run_service(service, settings.service, on_ready=on_ready, shutdown=shutdown)


def options_of(settings: ControllersSettings) -> dict[str, Mapping[str, Any]]:
    """The keyword arguments of controllers. As upstream without --root-ca-file, the CA that is published is the one by
    which the server itself is verified."""
    root_ca = settings.service.connection.certificate_authority.decode()
    published = (ROOT_CA_PUBLISHER, TOKENS_CONTROLLER)
    added = {name: {"root_ca": root_ca, **settings.options.get(name, {})} for name in published}
    return {**settings.options, **added}


def stop_seconds(election: ElectionSettings | None) -> float:
    """How long in-flight work may take on shutdown. A process that has lost the lease must be done, with its events
    sent, before another may begin."""
    if election is None:
        return _STOP_SECONDS
    return min(_STOP_SECONDS, (election.lease_seconds - election.renew_seconds) / 2)


class ControllerSet:
    """Controllers of the catalog on one control plane, with their metrics."""

    def __init__(
        self,
        plane: ControlPlane,
        entries: Iterable[CatalogEntry],
        options: Mapping[str, Mapping[str, Any]],
        *,
        stop_seconds: float,
    ) -> None:
        self._plane = plane
        self._entries = tuple(entries)
        self._controllers = [
            each.make(plane.speaking_as(each.name), **options.get(each.name, {})) for each in self._entries
        ]
        for controller in self._controllers:
            plane.add(controller)
        for loop in self._loops():
            loop.stop_seconds = stop_seconds

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

        export_queues(registry, *self._found(Queue))
        export_controllers(registry, *self._loops())
        export_informers(registry, self._plane)
        for entry, controller in zip(self._entries, self._controllers, strict=True):
            if entry.export is not None:
                entry.export(registry, controller)

    def _loops(self) -> list[Controller[Any]]:
        return self._found(Controller)

    def _found(self, kind: type[Any]) -> list[Any]:
        """Attributes of this kind: most controllers have one, some several."""
        parts = [part for each in self._controllers for part in vars(each).values()]
        return [part for part in parts if isinstance(part, kind)]
