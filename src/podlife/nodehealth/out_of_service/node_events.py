"""Events on nodes about what was done and what was refused; each is also logged.

A refusal is recorded when it differs from the node's last one; actions are recorded every time.
"""

from __future__ import annotations

import logging

from podlife.errors import PodlifeError
from podlife.events import Recorder
from podlife.nodehealth.metrics import OutOfServiceMetrics
from podlife.nodehealth.out_of_service.decision import NodeDecision, OutOfServiceAction, RefusalReason
from podlife.nodehealth.views import node_reference

log = logging.getLogger(__name__)

TAINTED, REMOVED, REFUSED = "OutOfServiceTainted", "OutOfServiceTaintRemoved", "OutOfServiceRefused"
# What an event may hold.
_MOST = 1000
# Pending or done, which is reported separately.
_ON_THE_WAY = frozenset(OutOfServiceAction) - {OutOfServiceAction.NOTHING, OutOfServiceAction.REFUSE}
_UNDONE = {
    OutOfServiceAction.LOOK: "what is on it cannot be read, so it is left as it is",
    OutOfServiceAction.SET: "the out-of-service taint could not be set",
    OutOfServiceAction.REMOVE: "the out-of-service taint could not be taken off",
}


class NodeEventRecorder:
    def __init__(self, recorder: Recorder, metrics: OutOfServiceMetrics, *, is_dry_run: bool) -> None:
        self._recorder = recorder
        self._metrics = metrics
        self._is_dry_run = is_dry_run
        # By node: the last reported refusal and failure.
        self._told: dict[str, tuple[object, ...]] = {}
        self._troubles: dict[tuple[str, OutOfServiceAction], str] = {}

    def decided(self, name: str, uid: str, decision: NodeDecision) -> None:
        """Of a node to which nothing was done."""
        if decision.step in _ON_THE_WAY:
            return
        if decision.step is OutOfServiceAction.NOTHING:
            self._told.pop(name, None)
            return
        assert decision.reason is not None
        if self._is_new(name, uid, decision.key):
            self._metrics.refused[decision.reason] += 1
            self._tell(name, uid, "Warning", REFUSED, f"Not set out of service: {decision.said}")

    def tainted(self, name: str, uid: str, decision: NodeDecision) -> None:
        if self._is_dry_run:
            if self._is_new(name, uid, decision.key):
                said = f"Dry run: would be set out of service, {decision.said}"
                self._tell(name, uid, "Warning", TAINTED, said)
            return
        self._told.pop(name, None)
        self._metrics.tainted += 1
        self._tell(name, uid, "Warning", TAINTED, f"Set out of service: {decision.said}")

    def removed(self, name: str, uid: str, reason: RefusalReason, said: str) -> None:
        if self._is_dry_run:
            if self._is_new(name, uid, (OutOfServiceAction.REMOVE, reason)):
                self._tell(name, uid, "Normal", REMOVED, f"Dry run: the taint would come off: {said}")
            return
        self._told.pop(name, None)
        self._metrics.removed[reason] += 1
        self._tell(name, uid, "Normal", REMOVED, f"The out-of-service taint was taken off: {said}")

    def trouble(self, name: str, step: OutOfServiceAction, error: PodlifeError) -> None:
        """The action is repeated in the next pass; a different failure is reported again."""
        said = f"{_UNDONE.get(step, 'its annotation could not be written')}: {error}"
        if self._troubles.get((name, step)) != said:
            self._troubles[name, step] = said
            log.warning("node %s: %s", name, said)

    def went_well(self, name: str, step: OutOfServiceAction) -> None:
        self._troubles.pop((name, step), None)

    def forget(self, name: str) -> None:
        self._told.pop(name, None)
        for step in OutOfServiceAction:
            self._troubles.pop((name, step), None)

    def _is_new(self, name: str, uid: str, key: tuple[object, ...]) -> bool:
        is_new = self._told.get(name) != (uid, *key)
        self._told[name] = (uid, *key)
        return is_new

    def _tell(self, name: str, uid: str, type_: str, reason: str, message: str) -> None:
        self._recorder.event(node_reference(name, uid), type_, reason, message[:_MOST])
