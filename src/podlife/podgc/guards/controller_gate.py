"""Where the guards stand in a collector that runs: between what is decided and what is done.

What an event-driven collector can know: every pod that is to go now, and every pod whose node is missing, so that the
loss of many nodes is seen before the first quarantine ends. A pass is a period; shares are judged when it begins and
whenever something has become collectable, at most once a second, more rarely the more are wanted (each is looked at,
and a mass that is stopped stays wanted), and nothing new is handed to the workers in between.
What comes after a judgement and in the same pass is counted one by one: the share is never exceeded, but up to it pods
may be gone by the time that the mass is seen.

It guarantees that nobody goes without `admit`, and that whoever is held is looked at again when that may have changed:
with the next pass, when a window opens, when the minute has room, when somebody marks a namespace. Nothing is polled.
It tells people once of what holds, and of each mass failure with the command that lifts it. A stop is kept in memory:
whoever takes over judges anew.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Iterable

from podlife.clock import Clock
from podlife.errors import ApiError, PodlifeError
from podlife.events import Recorder
from podlife.podgc import planner as policy
from podlife.podgc.guards.annotations import (
    EVERYWHERE,
    FORCE_UNTIL,
    force_command,
    marks_of,
)
from podlife.podgc.guards.budget import (
    Guard,
    GuardBook,
    MassStop,
    Moment,
    Refusal,
)
from podlife.podgc.guards.plan_filter import admitted
from podlife.podgc.index import PodIndex
from podlife.podgc.metrics import Metrics
from podlife.podgc.planner import Victim
from podlife.podgc.removal import Removal, regarding_pod
from podlife.podgc.settings import Settings

__all__ = ["GuardPost", "is_for_all", "may_be_deleted"]

log = logging.getLogger(__name__)

# The least time between two judgements: what comes together is judged together.
_JUDGE_SECONDS = 1.0
# So many are looked at in a second at most, on the average: other work has to go on.
_JUDGED_PER_SECOND = 5000
# The two clocks need not agree to the last digit.
_LEAST_SECONDS = 0.01


def may_be_deleted(result: Removal | PodlifeError) -> bool:
    """Whether it counts. A server that did not answer, or failed, may have done it all the same; one that refused has
    not."""
    if isinstance(result, Removal):
        return result.outcome.is_deletion
    return not (isinstance(result, ApiError) and result.code < 500)


class GuardPost:
    """Without guards it lets everybody through, and costs nothing."""

    def __init__(self, settings: Settings, clock: Clock, metrics: Metrics, recorder: Recorder | None) -> None:
        self._clock = clock
        self._metrics = metrics
        self._recorder = recorder
        self._book: GuardBook | None = None
        # Held pods that need not be looked at again before something changes; and those that were only observed.
        self._parked: set[str] = set()
        self._observed: set[str] = set()
        self._has_new_marks = True
        self._judged_at = self._lifts_at = -math.inf
        self._judge_seconds = _JUDGE_SECONDS
        self._told_stops: dict[str, MassStop] = {}
        self._held: set[tuple[Guard, str]] = set()
        self._held_before: set[tuple[Guard, str]] = set()
        self.put_in_force(settings)

    def put_in_force(self, settings: Settings) -> None:
        if settings.guards is None:
            self._book = None
        elif self._book is None:
            self._book = GuardBook(settings.guards, is_forced=settings.is_forced)
        else:
            self._book.replace(settings.guards, is_forced=settings.is_forced)
        self._has_new_marks = True

    def note_marks(self) -> None:
        """A namespace has changed."""
        self._has_new_marks = True

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._parked.discard(uid)
        self._observed.discard(uid)

    # Deciding

    def lift(self, index: PodIndex, *, is_pass: bool) -> Iterable[str]:
        """At the beginning of a look: who was held and is to be looked at again."""
        book = self._book
        if book is None:
            return ()
        is_due = is_pass or self._has_new_marks or self._moment().at >= self._lifts_at
        if is_pass:
            book.begin_pass(index.counts)
            self._tell_ends()
        if self._has_new_marks:
            self._read_marks(book, index)
            self._judged_at = -math.inf
        if not is_due:
            return ()
        self._lifts_at = math.inf
        lifted, self._parked = self._parked, set()
        return lifted

    def is_ready(self, index: PodIndex, settings: Settings, *, is_pass: bool, is_more: bool) -> bool:
        """Whether victims may be handed out in this look; `is_more` when it only goes on with what was judged."""
        book = self._book
        if book is None or not book.guards.has_shares:
            return True
        moment = self._moment()
        if is_pass or moment.at >= self._judged_at + self._judge_seconds:
            wanted = Counter(
                pod.metadata.namespace
                for pod in policy.wanted(index, settings)
                if not book.has_let_go(pod.metadata.uid)
            )
            book.judge(wanted, moment)
            self._judged_at = moment.at
            self._judge_seconds = max(_JUDGE_SECONDS, wanted.total() / _JUDGED_PER_SECOND)
            self._tell_stops(book)
            return True
        if not is_more:
            self._lifts_at = min(self._lifts_at, self._judged_at + self._judge_seconds)
        return is_more

    def holds(self, victim: Victim) -> Refusal | None:
        """Why the victim is not handed out now; `is_for_all` says whether anybody else would be."""
        book = self._book
        if book is None:
            return None
        moment = self._moment()
        refusal = book.refusal_of(victim.pod.metadata.namespace, moment)
        if refusal is not None:
            self._note_refusal(book, victim, refusal, moment)
            if not is_for_all(refusal):
                self._parked.add(victim.pod.metadata.uid)
        return refusal

    def room(self) -> float:
        """How many may be handed out."""
        return math.inf if self._book is None else self._book.room(self._moment())

    @property
    def wake_at(self) -> float:
        """When held pods may go by time alone, in the loop's seconds."""
        return math.inf if self._book is None else self._lifts_at

    # Acting

    def admit(self, victim: Victim) -> Refusal | None:
        """Just before the victim is touched; `note` is to be called after None."""
        book = self._book
        if book is None:
            return None
        moment = self._moment()
        refusal = admitted(book, victim, moment)
        if refusal is not None:
            self._note_refusal(book, victim, refusal, moment)
        return refusal

    async def last_word(self, victim: Victim) -> str:
        """A step, the last of them: those before it may take long, and a window may have closed meanwhile."""
        if self._book is None:
            return ""
        refusal = self._book.objection(victim.pod.metadata.namespace, self._moment())
        return "" if refusal is None else refusal.why

    def note(self, victim: Victim, result: Removal | PodlifeError) -> bool:
        """What came of it; says whether others may go in its place."""
        book, uid = self._book, victim.pod.metadata.uid
        if book is None:
            return False
        is_deleted = may_be_deleted(result)
        if is_deleted:
            book.note_deleted(uid, self._moment())
        else:
            book.note_not_deleted(uid)
        return not is_deleted

    # Telling

    def _note_refusal(self, book: GuardBook, victim: Victim, refusal: Refusal, moment: Moment) -> None:
        if refusal.guard is Guard.OBSERVING:
            self._observe(victim)
        if refusal.guard is Guard.PER_MINUTE:
            self._lifts_at = min(self._lifts_at, book.next_room_at(moment))
        elif refusal.until is not None:
            seconds = (refusal.until - moment.now).total_seconds()
            self._lifts_at = min(self._lifts_at, moment.at + max(_LEAST_SECONDS, seconds))
        self._tell_stops(book)
        key = (refusal.guard, refusal.place)
        if key not in self._held:
            if key not in self._held_before and refusal.place not in book.stops:
                told = {"guard": str(refusal.guard), "namespace": refusal.place}
                log.info("pods are held back: %s; lifted by %s", refusal.why, refusal.remedy, extra=told)
            self._held.add(key)
            self._metrics.held_back.add(key)

    def _observe(self, victim: Victim) -> None:
        metadata = victim.pod.metadata
        if metadata.uid in self._observed:
            return
        self._observed.add(metadata.uid)
        self._metrics.observed[metadata.namespace, victim.reason] += 1
        told = {"pod": victim.pod.key, "uid": metadata.uid, "reason": str(victim.reason), "rule": victim.rule}
        log.info("observed: %s would be deleted: %s", victim.pod.key, victim.why, extra=told)
        if self._recorder is not None:
            message = f"podlife-gc would delete it ({victim.reason}), but only observes: {victim.why}"
            self._recorder.event(regarding_pod(victim), "Normal", "PodWouldBeCollected", message)

    def _tell_stops(self, book: GuardBook) -> None:
        if self._told_stops == book.stops:
            return
        for place, stop in book.stops.items():
            if place not in self._told_stops:
                self._tell_stop(stop)
        for place in self._told_stops.keys() - book.stops.keys():
            log.info("the stop of %s is over", f"namespace {place}" if place else "the cluster")
        self._told_stops = dict(book.stops)
        self._metrics.stops = set(book.stops)

    def _tell_stop(self, stop: MassStop) -> None:
        command = force_command(stop.place, self._clock.now())
        message = f"{stop.why}. If that is right: {command}"
        self._metrics.mass_stops += 1
        log.warning("%s", message, extra={"guard": str(stop.guard), "namespace": stop.place})
        if self._recorder is not None:
            name = stop.place or EVERYWHERE
            namespace = {"apiVersion": "v1", "kind": "Namespace", "name": name, "namespace": name}
            self._recorder.event(namespace, "Warning", "PodGCStopped", f"podlife-gc: {message}")

    def _tell_ends(self) -> None:
        for guard, place in sorted(self._held_before - self._held):
            log.info("%s holds nobody back%s any more", guard, f" in namespace {place}" if place else "")
        self._held_before, self._held = self._held, set()
        self._metrics.held_back = set(self._held_before)

    def _read_marks(self, book: GuardBook, index: PodIndex) -> None:
        self._has_new_marks = False
        marks = marks_of({name: each.metadata.annotations for name, each in index.namespaces.items()})
        for namespace, text in marks.unreadable.items():
            log.warning(
                "namespace %s: %s is %r, which is no time as in 2030-01-01T00:00:00Z: it forces nothing",
                namespace,
                FORCE_UNTIL,
                text,
            )
        book.mark(marks)

    def _moment(self) -> Moment:
        return Moment(asyncio.get_running_loop().time(), self._clock.now())


def is_for_all(refusal: Refusal) -> bool:
    """Whether it holds back everybody: then nobody else need be asked about. Observed pods are told one by one."""
    if refusal.guard is Guard.STOP:
        return refusal.place == EVERYWHERE
    return refusal.guard not in (Guard.OBSERVING, Guard.NAMESPACE_SHARE)
