"""The rules of those who act by themselves, handed to the diagnosis: the collector's and taint eviction's own code.

So what is told is what they will do. Of ended pods the collector's threshold decides over the whole cluster, which is
not read for one pod: about those nothing is foretold here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Node
from podlife.explain import Collecting, Rules, Standing
from podlife.nodehealth.tolerations import evicting_taints, seconds_to_bear
from podlife.nodehealth.views import Taint, Toleration
from podlife.podgc import PodIndex, Settings
from podlife.podgc.classifier import UpstreamClassifier
from podlife.podgc.planner import plan
from podlife.podgc.reasons import Reason
from podlife.podgc.views import Pod

__all__ = ["acting_rules"]


def acting_rules(
    settings: Settings | None = None, standing: Callable[[Object], Standing | None] = lambda pod: None
) -> Rules:
    """`standing` is how pods stand with the policy of the settings, where there is one."""
    found = settings or Settings()
    # One pod alone is never over a threshold; and a threshold of 0 or less collects no ended pods.
    # What rules of a policy do is in the standing: this is about upstream's reasons.
    alone = replace(found, collect=found.collect - {Reason.TERMINATED}, policy=None)

    def collect(pod: Object, node: Object | None) -> Collecting | None:
        known = standing(pod)
        return None if known is not None and known.protected_by else _collecting(alone, pod, node)

    return Rules(collect, _bears, standing)


def _collecting(settings: Settings, pod: Object, node: Object | None) -> Collecting | None:
    index = PodIndex(UpstreamClassifier())
    if node is not None:
        index.put_node(_as(node, Node))
    index.add_pod(_as(pod, Pod), 0.0)
    found = plan(index, settings, 0.0)
    # Decided at an event or at the next pass, whichever comes first.
    for victim in found.victims:
        return Collecting(str(victim.reason), victim.why, settings.period_seconds)
    for later in found.later:
        return Collecting(str(later.reason), later.why, later.seconds + settings.period_seconds)
    return None


def _bears(pod: Object, node: Object) -> float | None:
    taints = [_as(each, Taint) for each in (node.get("spec") or {}).get("taints") or ()]
    tolerations = [_as(each, Toleration) for each in (pod.get("spec") or {}).get("tolerations") or ()]
    return seconds_to_bear(evicting_taints(taints), tolerations)


def _as(obj: Object, view: Any) -> Any:
    return msgspec.convert(obj, view)
