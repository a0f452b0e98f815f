"""The deletion budget: guards are never exceeded, whatever the rules decide.

Callers ask `admit` before a deletion and report its result afterwards. In any 60 seconds, and in any pass, no more
deletions happen than are allowed: a deletion counts from its admission until a minute after its answer, in every pass
that it overlaps; one that did not happen (`note_not_deleted`) is not counted.

Shares are judged on what a pass would delete: `judge` receives the number of wanted pods per namespace, besides those
already admitted. Too many is a mass failure, and from then on nothing is deleted there, not even up to the share, until
a person forces it or no pod is wanted there. `admit` also counts pods that were not passed to `judge`, so the
share holds even then; the mass failure is only noticed later.

Pure: the time is passed in.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from podlife.api.codec import format_time
from podlife.podgc.guards.windows import is_open, opens_at
from podlife.podgc.namespace_annotations import GuardAnnotations, force_command, unstop_command
from podlife.podgc.plan import CLUSTER, Guard, Refusal
from podlife.podgc.policy.model import Guards
from podlife.podgc.views import Pod

_MINUTE = 60.0
# 29 % of 100 pods is 29, despite floating point.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Moment:
    """`at` is the event loop's time, for durations; `now` is the time of day."""

    at: float
    now: datetime


@dataclass(frozen=True, slots=True)
class MassStop:
    """A pass would have deleted more than the allowed share of a place."""

    place: str
    wanted: int
    most: int
    pods: int

    @property
    def guard(self) -> Guard:
        return Guard.NAMESPACE_SHARE if self.place else Guard.CLUSTER_SHARE

    @property
    def why(self) -> str:
        where = f"of namespace {self.place}" if self.place else "of the cluster"
        wanted = f"a pass would take {self.wanted} of the {self.pods} pods {where}"
        return f"{wanted}, at most {self.most} may go ({self.guard}): a mass failure takes none"


class DeletionBudget:
    def __init__(self, guards: Guards, *, is_forced: bool = False) -> None:
        """`is_forced` lifts all share guards, for the lifetime of the budget."""
        self.guards = guards
        self._is_forced = is_forced
        self._annotations = GuardAnnotations()
        self._pods: Mapping[str, int] = {}
        self._total = 0
        self._under_way: dict[str, str] = {}
        # The times at which deletions of the last minute were answered, oldest first.
        self._answered: deque[float] = deque()
        # UID to namespace: pods admitted in this pass or in flight when it began, and the same of the previous pass.
        self._charged: dict[str, str] = {}
        self._charged_before: dict[str, str] = {}
        self._charges: Counter[str] = Counter()
        # Current mass failures, by place.
        self.stops: dict[str, MassStop] = {}
        self._closed: tuple[datetime, datetime | None] | None = None

    # State

    @property
    def under_way(self) -> int:
        return len(self._under_way)

    def has_admitted(self, uid: str) -> bool:
        """Whether the pod was admitted in this pass or the previous one: it may still exist, but is not wanted
        again."""
        return uid in self._charged or uid in self._charged_before

    # Updates

    def replace(self, guards: Guards, *, is_forced: bool = False) -> None:
        """Switch to other guards; earlier deletions count for them too."""
        self.guards = guards
        self._is_forced = is_forced
        self._closed = None
        for place in [place for place in self.stops if self._most(place) == math.inf]:
            del self.stops[place]

    def set_annotations(self, annotations: GuardAnnotations) -> None:
        self._annotations = annotations

    def begin_pass(self, pods: Mapping[str, int]) -> None:
        """`pods` is the number of pods by namespace, the base of shares until the next pass."""
        self._pods = dict(pods)
        self._total = sum(pods.values())
        self._charged_before = self._charged
        self._charged = dict(self._under_way)
        self._charges = Counter(self._charged.values())

    def judge(self, wanted: Mapping[str, int], moment: Moment) -> None:
        """Update `stops` from the number of wanted pods by namespace, besides those already admitted. Namespaces that a
        person has stopped do not count, because nothing is deleted there."""
        if not is_open(self.guards.windows, moment.now):
            return
        counts = {
            place: number for place, number in wanted.items() if self._annotations.stop_of(place) is None
        }
        counts[CLUSTER] = sum(counts.values())
        for place in [place for place in self.stops if not counts.get(place, 0)]:
            del self.stops[place]
        for place, number in counts.items():
            self._judge(place, number, moment.now)

    def _judge(self, place: str, wanted: int, now: datetime) -> None:
        if self._is_lifted(place, now):
            self.stops.pop(place, None)
            return
        charged = self._charges[place] if place else len(self._charged)
        if wanted and charged + wanted > self._most(place):
            self._stop(place, charged + wanted)

    def note_deleted(self, uid: str, moment: Moment) -> None:
        """The server accepted the deletion, or may have."""
        if self._under_way.pop(uid, None) is not None:
            # Needed here too: without perMinute nothing else calls it.
            self._forget_minutes(moment.at)
            self._answered.append(moment.at)

    def note_not_deleted(self, uid: str) -> None:
        """It failed, the pod was gone, or nothing was sent."""
        if (place := self._under_way.pop(uid, None)) is None:
            return
        if self._charged.pop(uid, None) is not None:
            self._charges[place] -= 1
        self._charged_before.pop(uid, None)

    # Decisions

    def admit(self, pod: Pod, moment: Moment, *, is_deletion: bool = True) -> Refusal | None:
        """None admits the pod: its deletion is in flight until one of the `note_…` methods is called. A pod that is
        only marked is not counted."""
        uid, place = pod.metadata.uid, pod.metadata.namespace
        if uid in self._under_way:
            return None
        refusal = self.refusal_of(place, moment)
        if refusal is not None or not is_deletion:
            return refusal
        self._under_way[uid] = place
        # A retry in the same pass counts once.
        if uid not in self._charged:
            self._charged[uid] = place
            self._charges[place] += 1
        return None

    def refusal_of(self, place: str, moment: Moment) -> Refusal | None:
        """Why no more pods of this namespace may be deleted now; settings by a person come before counts."""
        return (
            self._stopped(place)
            or self._outside(moment.now)
            or self._mass_failure(place, moment.now)
            or self._pass_is_full()
            or self._observing()
            or self._minute_is_full(moment)
        )

    def objection(self, place: str, moment: Moment) -> Refusal | None:
        """Why an admitted pod must stay after all; counting guards do not apply again."""
        return (
            self._stopped(place)
            or self._outside(moment.now)
            or self._found_mass(place, moment.now)
            or self._observing()
        )

    def room(self, moment: Moment) -> float:
        """How many pods perMinute admits now."""
        if self.guards.per_minute is None:
            return math.inf
        self._forget_minutes(moment.at)
        return max(0, self.guards.per_minute - len(self._under_way) - len(self._answered))

    def next_room_at(self, moment: Moment) -> float:
        """When perMinute has room again, in the loop's time; while all are in flight, the earliest possible time."""
        if self.room(moment) > 0:
            return moment.at
        over = len(self._under_way) + len(self._answered) - (self.guards.per_minute or 0)
        return self._answered[over] + _MINUTE if over < len(self._answered) else moment.at + _MINUTE

    def closed_until(self, now: datetime) -> datetime | None:
        """When the next window opens; None while one is open, and if none ever opens."""
        known = self._closed
        # Cached, because it is slow to compute; invalid if the clock was set back.
        if known is not None and known[1] is not None and known[0] <= now < known[1]:
            return known[1]
        if is_open(self.guards.windows, now):
            return None
        self._closed = now, opens_at(self.guards.windows, now)
        return self._closed[1]

    # Guard by guard

    def _stopped(self, place: str) -> Refusal | None:
        found = self._annotations.stop_of(place)
        if found is None:
            return None
        where, why = found
        text = f"namespace {where} has annotation podlife.dev/gc-stop: {why or 'no reason given'}"
        return Refusal(Guard.STOP, text, where, lifted_by=unstop_command(where))

    def _outside(self, now: datetime) -> Refusal | None:
        if not self.guards.windows or is_open(self.guards.windows, now):
            return None
        until = self.closed_until(now)
        when = f"the next one opens at {format_time(until)}" if until else "none ever opens"
        return Refusal(Guard.WINDOW, f"outside the deletion windows; {when}", until=until)

    def _mass_failure(self, place: str, now: datetime) -> Refusal | None:
        for where, charged in ((CLUSTER, len(self._charged)), (place, self._charges[place])):
            if not self._is_lifted(where, now) and charged + 1 > self._most(where):
                self._stop(where, charged + 1)
        return self._found_mass(place, now)

    def _found_mass(self, place: str, now: datetime) -> Refusal | None:
        for where in (CLUSTER, place):
            stop = self.stops.get(where)
            if stop is not None and not self._is_lifted(where, now):
                return Refusal(stop.guard, stop.why, where, lifted_by=force_command(where, now))
        return None

    def _pass_is_full(self) -> Refusal | None:
        most = self.guards.per_pass
        if most is None or len(self._charged) < most:
            return None
        return Refusal(Guard.PER_PASS, f"at most {most} pods go in one pass")

    def _observing(self) -> Refusal | None:
        if not self.guards.is_observing:
            return None
        text = "observe-only: nothing is changed"
        return Refusal(Guard.OBSERVING, text)

    def _minute_is_full(self, moment: Moment) -> Refusal | None:
        if self.room(moment) > 0:
            return None
        until = moment.now + timedelta(seconds=self.next_room_at(moment) - moment.at)
        most = self.guards.per_minute
        return Refusal(Guard.PER_MINUTE, f"at most {most} pods go in a minute", until=until)

    def _forget_minutes(self, at: float) -> None:
        while self._answered and self._answered[0] + _MINUTE <= at:
            self._answered.popleft()

    # Shares

    def _most(self, place: str) -> float:
        guards = self.guards
        share = guards.share_of_namespace if place else guards.share_of_cluster
        if share is None:
            return math.inf
        return max(guards.share_at_least, math.floor(share * self._count(place) + _ROUNDING))

    def _count(self, place: str) -> int:
        return self._pods.get(place, 0) if place else self._total

    def _is_lifted(self, place: str, now: datetime) -> bool:
        return self._is_forced or self._annotations.is_forced(place, now)

    def _stop(self, place: str, wanted: int) -> MassStop:
        # Keep the first finding, so that its message does not change with every pod.
        found = MassStop(place, wanted, int(self._most(place)), self._count(place))
        return self.stops.setdefault(place, found)
