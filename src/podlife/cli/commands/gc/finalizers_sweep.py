"""The part of a sweep that takes finalizers off (`--remove-finalizer`): looked at first, done last.

The quarantine of missing nodes runs while pods are swept. What is agreed to are the pods that were shown, and those
whose deletion was agreed to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podlife.cli.commands.gc.finalizers_remove import RIGHTS, problems_of, told_of
from podlife.cli.commands.gc.output import counted
from podlife.client import NAMESPACES, Client, Connection
from podlife.clock import SystemClock
from podlife.daemons.connection import explained
from podlife.errors import ApiError, PodlifeError
from podlife.events import Recorder
from podlife.podgc import Selection, Settings
from podlife.podgc.finalizers.guarded_remover import remover_under
from podlife.podgc.finalizers.held_pods import HeldPod
from podlife.podgc.finalizers.remover import Taken, event_of
from podlife.podgc.finalizers.round import FinalizerRound, RoundResult
from podlife.podgc.guards.annotations import Marks, marks_of
from podlife.podgc.guards.plan_filter import going
from podlife.podgc.planner import Plan
from podlife.podgc.steps import Step
from podlife.podgc.views import Namespace

__all__ = ["FinalizerPart"]


class FinalizerPart:
    """`agreed` are the UIDs that somebody has said yes to; None is all of them."""

    def __init__(self, allowed: frozenset[str], settings: Settings, selection: Selection) -> None:
        self._allowed = allowed
        self._settings = settings
        self._selection = selection
        self._round: FinalizerRound | None = None
        self._agreed: set[str] | None = None
        self._failure: PodlifeError | None = None
        self.result = RoundResult()

    @property
    def is_complete(self) -> bool:
        return self._failure is None and self.result.is_complete

    async def look(self, client: Client) -> list[HeldPod]:
        """Whose finalizers would be taken off as things are."""
        once = await self._begun(client, ())
        return await once.chosen(self._selection)

    def agree(self, shown: Sequence[HeldPod], plan: Plan) -> None:
        self._agreed = {pod.uid for pod in shown} | {pod.metadata.uid for pod in going(plan)}

    def question(self, shown: Sequence[HeldPod]) -> str:
        return f"take {', '.join(sorted(self._allowed))} off {counted(len(shown))} of nodes that are gone"

    async def begin(self, client: Client, steps: Sequence[Step]) -> None:
        """Before the sweep: which nodes are missing now."""
        self._round = await self._begun(client, steps)

    async def finish(self, recorder: Recorder) -> None:
        """After the sweep. Waits for what is left of the quarantine."""
        if self._round is None:
            return

        def report(taken: Taken) -> None:
            regarding, message = event_of(taken)
            recorder.event(regarding, "Normal", "FinalizerRemoved", message)

        try:
            pods = await self._round.chosen(self._selection)
        except PodlifeError as error:
            # What was swept before is told all the same.
            self._failure = error
            return
        meant = [pod for pod in pods if self._agreed is None or pod.uid in self._agreed]
        self.result = await self._round.run(meant, report)

    def stop(self) -> None:
        if self._round is not None:
            self._round.stop()

    def said(self) -> Iterator[str]:
        return told_of(self.result)

    def problems(self, connection: Connection) -> Iterator[str]:
        if (error := self._failure) is not None:
            why = explained(error, connection, rights=RIGHTS) if isinstance(error, ApiError) else error
            yield f"no finalizer was taken off: {why}"
        yield from problems_of(self.result, connection)

    async def _begun(self, client: Client, steps: Sequence[Step]) -> FinalizerRound:
        clock = SystemClock()
        marks = await self._marks(client)
        remover = remover_under(
            lambda: self._settings, client, clock, self._allowed, steps, marks=lambda: marks
        )
        seconds = self._settings.quarantine_seconds
        once = FinalizerRound(client, clock, remover, quarantine_seconds=seconds)
        await once.begin()
        return once

    async def _marks(self, client: Client) -> Marks:
        if self._settings.guards is None:
            return Marks()
        found = await client.list_all(NAMESPACES, view=Namespace)
        return marks_of({each.metadata.name: each.metadata.annotations for each in found.items})
