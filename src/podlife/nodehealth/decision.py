"""What to do about one node after its health was examined. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from podlife.nodehealth.node_health import Examination
from podlife.nodehealth.taints import NOT_READY, UNREACHABLE, TaintKey, has_taint, opposite_of
from podlife.nodehealth.views import MonitoredNode


@dataclass(frozen=True, slots=True)
class NodeAction:
    """Of one node, in this order."""

    # One evicting taint for the other, at once: it was paid for already (NL-52).
    swap: tuple[TaintKey, TaintKey] | None = None
    # It gets its evicting taint in its turn, and `lacks_taint` says that it has none yet (NL-50).
    waits: bool = False
    lacks_taint: bool = False
    # It is well: it waits no longer, and these come off (NL-53).
    is_released: bool = False
    removes: tuple[TaintKey, ...] = ()
    # The node gets one event, and its pods are marked as not ready (NL-40).
    tells: bool = False
    marks_pods: bool = False

    @property
    def asks_server(self) -> bool:
        return self.swap is not None or bool(self.removes) or self.marks_pods


def decide(node: MonitoredNode, seen: Examination, *, owes_marking: bool) -> NodeAction:
    """`owes_marking`: its pods were to be marked before, and not all of them could be (NL-44)."""
    if seen.current is None:
        return NodeAction()
    # One that is shown as silent when it is first seen may have become so while the marking was cut off: its pods are
    # looked at. But not those of one that never said anything (NL-20).
    is_shown_silent = seen.observed == "Unknown" and seen.health.ready is not None and not seen.must_write
    was_missed = seen.is_new and is_shown_silent
    marks_pods = seen.has_failed or (seen.observed != "True" and (owes_marking or was_missed))
    pair = opposite_of(seen.current)
    if pair is None:
        present = tuple(each for each in (UNREACHABLE, NOT_READY) if has_taint(node.spec.taints, each))
        return NodeAction(is_released=True, removes=present, marks_pods=marks_pods)
    wanted, other = pair
    if has_taint(node.spec.taints, other):
        return NodeAction(swap=pair, tells=seen.has_failed, marks_pods=marks_pods)
    lacks = not has_taint(node.spec.taints, wanted)
    return NodeAction(waits=True, lacks_taint=lacks, tells=seen.has_failed, marks_pods=marks_pods)
