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
# Maximum length of an event's message.
_MOST = 1000
# Pending, or reported when done.
_ON_THE_WAY = frozenset(OutOfServiceAction) - {OutOfServiceAction.NOTHING, OutOfServiceAction.REFUSE}
_UNDONE = {
    OutOfServiceAction.LOOK: "its pods and VolumeAttachments cannot be read, so it is left unchanged",
    OutOfServiceAction.SET: "the out-of-service taint could not be set",
    OutOfServiceAction.REMOVE: "the out-of-service taint could not be removed",
}


class NodeEventRecorder:
    def __init__(self, recorder: Recorder, metrics: OutOfServiceMetrics, *, is_dry_run: bool) -> None:
        self._recorder = recorder
        self._metrics = metrics
        self._is_dry_run = is_dry_run
        # By node: the last reported refusal and failure.
        self._reported: dict[str, tuple[object, ...]] = {}
        self._failures: dict[tuple[str, OutOfServiceAction], str] = {}

    def decided(self, name: str, uid: str, decision: NodeDecision) -> None:
        """Record the decision about a node on which no action was taken."""
        if decision.step in _ON_THE_WAY:
            return
        if decision.step is OutOfServiceAction.NOTHING:
            self._reported.pop(name, None)
            return
        assert decision.reason is not None
        if self._is_new(name, uid, decision.key):
            self._metrics.refused[decision.reason] += 1
            self._event(name, uid, "Warning", REFUSED, f"Not set out of service: {decision.message}")

    def tainted(self, name: str, uid: str, decision: NodeDecision) -> None:
        if self._is_dry_run:
            if self._is_new(name, uid, decision.key):
                message = f"Dry run: would be set out of service, {decision.message}"
                self._event(name, uid, "Warning", TAINTED, message)
            return
        self._reported.pop(name, None)
        self._metrics.tainted += 1
        self._event(name, uid, "Warning", TAINTED, f"Set out of service: {decision.message}")

    def removed(self, name: str, uid: str, reason: RefusalReason, message: str) -> None:
        if self._is_dry_run:
            if self._is_new(name, uid, (OutOfServiceAction.REMOVE, reason)):
                self._event(name, uid, "Normal", REMOVED, f"Dry run: would remove the taint: {message}")
            return
        self._reported.pop(name, None)
        self._metrics.removed[reason] += 1
        self._event(name, uid, "Normal", REMOVED, f"Removed the out-of-service taint: {message}")

    def failed(self, name: str, step: OutOfServiceAction, error: PodlifeError) -> None:
        """The action is repeated in the next pass; a different failure is reported again."""
        message = f"{_UNDONE.get(step, 'its annotation could not be written')}: {error}"
        if self._failures.get((name, step)) != message:
            self._failures[name, step] = message
            log.warning("node %s: %s", name, message)

    def succeeded(self, name: str, step: OutOfServiceAction) -> None:
        self._failures.pop((name, step), None)

    def forget(self, name: str) -> None:
        self._reported.pop(name, None)
        for step in OutOfServiceAction:
            self._failures.pop((name, step), None)

    def _is_new(self, name: str, uid: str, key: tuple[object, ...]) -> bool:
        is_new = self._reported.get(name) != (uid, *key)
        self._reported[name] = (uid, *key)
        return is_new

    def _event(self, name: str, uid: str, type_: str, reason: str, message: str) -> None:
        self._recorder.event(node_reference(name, uid), type_, reason, message[:_MOST])
