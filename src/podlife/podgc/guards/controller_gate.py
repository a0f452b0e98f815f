"""Guards of the running collector: between planning and execution.

Shares are judged on every pod to collect now and every pod on a missing node, so that the loss of many nodes is noticed
before the first quarantine ends. They are judged when a pass begins and when pods become collectable, at most once a
second, and less often the more pods are wanted; nothing new is queued in between. Pods that become collectable after a
judgement are counted one by one: the share is never exceeded, but pods up to the share may be gone before the mass
failure is noticed.

Nothing is deleted without `admit`. Held pods are evaluated again when that may help: with the next pass, when a window
opens, when perMinute has room, when an annotation changes. Nothing is polled. Each guard that holds pods, and each mass
failure with the command that lifts it, is reported once. Stops are kept in memory: a new leader judges again.
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
from podlife.podgc import planner
from podlife.podgc.guards.budget import DeletionBudget, MassStop, Moment
from podlife.podgc.guards.plan_filter import admitted
from podlife.podgc.index import PodIndex
from podlife.podgc.metrics import Metrics
from podlife.podgc.namespace_annotations import EVERYWHERE, FORCE_UNTIL, annotations_of, force_command
from podlife.podgc.plan import Guard, Refusal, Victim
from podlife.podgc.removal import Removal, owner_or_namespace, regarding_pod
from podlife.podgc.settings import Settings

log = logging.getLogger(__name__)

# Minimum time between two judgements, so that simultaneous changes are judged together.
_JUDGE_SECONDS = 1.0
# Maximum number of pods judged per second on average, to leave time for other work.
_JUDGED_PER_SECOND = 5000
# Minimum wait: the two clocks may differ slightly.
_LEAST_SECONDS = 0.01


def may_be_deleted(result: Removal | PodlifeError) -> bool:
    """Whether the deletion counts. After a timeout or a server error the pod may be deleted; after a refusal it is
    not."""
    if isinstance(result, Removal):
        return result.outcome.is_deletion
    return not (isinstance(result, ApiError) and result.code < 500)


class ControllerGate:
    """Without guards it admits everything."""

    def __init__(self, settings: Settings, clock: Clock, metrics: Metrics, recorder: Recorder | None) -> None:
        self._clock = clock
        self._metrics = metrics
        self._recorder = recorder
        self._budget: DeletionBudget | None = None
        # UIDs of held pods that need no evaluation before something changes, and of pods that were only observed.
        self._parked: set[str] = set()
        self._observed: set[str] = set()
        self._has_new_annotations = True
        self._judged_at = self._lifts_at = -math.inf
        self._judge_seconds = _JUDGE_SECONDS
        self._reported_stops: dict[str, MassStop] = {}
        self._held: set[tuple[Guard, str]] = set()
        self._held_before: set[tuple[Guard, str]] = set()
        self.put_in_force(settings)

    def put_in_force(self, settings: Settings) -> None:
        if settings.guards is None:
            self._budget = None
        elif self._budget is None:
            self._budget = DeletionBudget(settings.guards, is_forced=settings.is_forced)
        else:
            self._budget.replace(settings.guards, is_forced=settings.is_forced)
        self._has_new_annotations = True

    def note_annotations(self) -> None:
        """A namespace has changed."""
        self._has_new_annotations = True

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        self._parked.discard(uid)
        self._observed.discard(uid)

    # Planning

    def lift(self, index: PodIndex, *, is_pass: bool) -> Iterable[str]:
        """Called when planning begins: UIDs of held pods to evaluate again."""
        budget = self._budget
        if budget is None:
            return ()
        is_due = is_pass or self._has_new_annotations or self._moment().at >= self._lifts_at
        if is_pass:
            budget.begin_pass(index.counts)
            self._report_ends()
        if self._has_new_annotations:
            self._read_annotations(budget, index)
            self._judged_at = -math.inf
        if not is_due:
            return ()
        self._lifts_at = math.inf
        lifted, self._parked = self._parked, set()
        return lifted

    def is_ready(self, index: PodIndex, settings: Settings, *, is_pass: bool, is_more: bool) -> bool:
        """Whether victims may be queued now; `is_more` if planning only continues with what was judged."""
        budget = self._budget
        if budget is None or not budget.guards.has_shares:
            return True
        moment = self._moment()
        if is_pass or moment.at >= self._judged_at + self._judge_seconds:
            wanted = Counter(
                pod.metadata.namespace
                for pod in planner.wanted(index, settings)
                if not budget.has_admitted(pod.metadata.uid)
            )
            budget.judge(wanted, moment)
            self._judged_at = moment.at
            self._judge_seconds = max(_JUDGE_SECONDS, wanted.total() / _JUDGED_PER_SECOND)
            self._report_stops(budget)
            return True
        if not is_more:
            self._lifts_at = min(self._lifts_at, self._judged_at + self._judge_seconds)
        return is_more

    def holds(self, victim: Victim) -> Refusal | None:
        """Why the victim is not queued now; `is_for_all` says whether the same holds for all others."""
        budget = self._budget
        if budget is None:
            return None
        moment = self._moment()
        refusal = budget.refusal_of(victim.pod.metadata.namespace, moment)
        if refusal is not None:
            self._note_refusal(budget, victim, refusal, moment)
            if not is_for_all(refusal):
                self._parked.add(victim.pod.metadata.uid)
        return refusal

    def room(self) -> float:
        """How many pods may be queued."""
        return math.inf if self._budget is None else self._budget.room(self._moment())

    @property
    def wake_at(self) -> float:
        """When held pods may go by time alone, in the event loop's seconds."""
        return math.inf if self._budget is None else self._lifts_at

    # Execution

    def admit(self, victim: Victim) -> Refusal | None:
        """Called immediately before the removal; if it returns None, call `note` afterwards."""
        budget = self._budget
        if budget is None:
            return None
        moment = self._moment()
        refusal = admitted(budget, victim, moment)
        if refusal is not None:
            self._note_refusal(budget, victim, refusal, moment)
        return refusal

    async def recheck(self, victim: Victim) -> str:
        """A late pre-delete step: earlier ones may take long, and a window may have closed meanwhile."""
        if self._budget is None:
            return ""
        refusal = self._budget.objection(victim.pod.metadata.namespace, self._moment())
        return "" if refusal is None else refusal.why

    def note(self, victim: Victim, result: Removal | PodlifeError) -> bool:
        """Record the result; returns whether another pod may go instead."""
        budget, uid = self._budget, victim.pod.metadata.uid
        if budget is None:
            return False
        is_deleted = may_be_deleted(result)
        if is_deleted:
            budget.note_deleted(uid, self._moment())
        else:
            budget.note_not_deleted(uid)
        return not is_deleted

    # Reports

    def _note_refusal(self, budget: DeletionBudget, victim: Victim, refusal: Refusal, moment: Moment) -> None:
        if refusal.guard is Guard.OBSERVING:
            self._observe(victim)
        if refusal.guard is Guard.PER_MINUTE:
            self._lifts_at = min(self._lifts_at, budget.next_room_at(moment))
        elif refusal.until is not None:
            seconds = (refusal.until - moment.now).total_seconds()
            self._lifts_at = min(self._lifts_at, moment.at + max(_LEAST_SECONDS, seconds))
        self._report_stops(budget)
        key = (refusal.guard, refusal.place)
        if key not in self._held:
            if key not in self._held_before and refusal.place not in budget.stops:
                fields = {"guard": str(refusal.guard), "namespace": refusal.place}
                log.info("pods held back: %s; lifted by %s", refusal.why, refusal.remedy, extra=fields)
            self._held.add(key)
            self._metrics.held_back.add(key)

    def _observe(self, victim: Victim) -> None:
        metadata = victim.pod.metadata
        if metadata.uid in self._observed:
            return
        self._observed.add(metadata.uid)
        self._metrics.observed[metadata.namespace, victim.reason] += 1
        fields = {
            "pod": victim.pod.key,
            "uid": metadata.uid,
            "reason": str(victim.reason),
            "rule": victim.rule,
        }
        log.info("observed: %s would be deleted: %s", victim.pod.key, victim.why, extra=fields)
        if self._recorder is not None:
            message = f"podlife-gc would delete it ({victim.reason}), but only observes: {victim.why}"
            self._recorder.event(regarding_pod(victim), "Normal", "PodWouldBeCollected", message)

    def _report_stops(self, budget: DeletionBudget) -> None:
        if self._reported_stops == budget.stops:
            return
        for place, stop in budget.stops.items():
            if place not in self._reported_stops:
                self._report_stop(stop)
        for place in self._reported_stops.keys() - budget.stops.keys():
            log.info("stop of %s lifted", f"namespace {place}" if place else "the cluster")
        self._reported_stops = dict(budget.stops)
        self._metrics.stops = set(budget.stops)

    def _report_stop(self, stop: MassStop) -> None:
        command = force_command(stop.place, self._clock.now())
        message = f"{stop.why}. If that is right: {command}"
        self._metrics.mass_stops += 1
        log.warning("%s", message, extra={"guard": str(stop.guard), "namespace": stop.place})
        if self._recorder is not None:
            namespace = owner_or_namespace(None, stop.place or EVERYWHERE)
            self._recorder.event(namespace, "Warning", "PodGCStopped", f"podlife-gc: {message}")

    def _report_ends(self) -> None:
        for guard, place in sorted(self._held_before - self._held):
            log.info("guard %s holds no pods%s any more", guard, f" in namespace {place}" if place else "")
        self._held_before, self._held = self._held, set()
        self._metrics.held_back = set(self._held_before)

    def _read_annotations(self, budget: DeletionBudget, index: PodIndex) -> None:
        self._has_new_annotations = False
        annotations = annotations_of(index.namespaces.values())
        for namespace, text in annotations.unreadable.items():
            log.warning(
                "namespace %s: ignoring annotation %s: invalid time %r, expected RFC 3339",
                namespace,
                FORCE_UNTIL,
                text,
            )
        budget.set_annotations(annotations)

    def _moment(self) -> Moment:
        return Moment(asyncio.get_running_loop().time(), self._clock.now())


def is_for_all(refusal: Refusal) -> bool:
    """Whether it holds back all pods, so that no other need be evaluated. Observed pods are reported one by one."""
    if refusal.guard is Guard.STOP:
        return refusal.place == EVERYWHERE
    return refusal.guard not in (Guard.OBSERVING, Guard.NAMESPACE_SHARE)
