"""Reports the result for each pod: a log line, metrics and an event."""

from __future__ import annotations

import logging

from podlife.errors import PodlifeError
from podlife.events import Recorder
from podlife.podgc.metrics import Metrics
from podlife.podgc.plan import Victim
from podlife.podgc.removal import Removal, event_about, regarding_pod

# Log under the collector's name.
log = logging.getLogger("podlife.podgc.collector")


class Reporter:
    """Without a recorder, no events are sent."""

    def __init__(self, metrics: Metrics, recorder: Recorder | None) -> None:
        self._metrics = metrics
        self._recorder = recorder

    def done(self, victim: Victim, removal: Removal) -> None:
        log.info("%s: %s", removal.outcome, victim.pod.key, extra={**_told(victim), "why": victim.why})
        if removal.outcome.is_deletion:
            self._metrics.deleted[victim.pod.metadata.namespace, victim.reason] += 1
            if victim.rule:
                self._metrics.deleted_by_rule[victim.rule] += 1
        if self._recorder is not None and (event := event_about(victim, removal)) is not None:
            regarding, message = event
            self._recorder.event(regarding, "Normal", "PodGarbageCollected", message)

    def kept(self, victim: Victim, why: str) -> None:
        log.warning("pod %s kept: %s", victim.pod.key, why, extra=_told(victim))
        if self._recorder is not None:
            self._recorder.event(regarding_pod(victim), "Warning", "PodNotCollected", f"podlife-gc: {why}")

    def failed(self, victim: Victim, error: PodlifeError) -> None:
        self._metrics.errors[victim.pod.metadata.namespace, victim.reason] += 1
        log.warning("failed to delete pod %s: %s", victim.pod.key, error, extra=_told(victim))


def _told(victim: Victim) -> dict[str, str]:
    rule = {"rule": victim.rule} if victim.rule else {}
    return {"pod": victim.pod.key, "uid": victim.pod.metadata.uid, "reason": str(victim.reason), **rule}
