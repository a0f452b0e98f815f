"""The rules of pod GC and taint eviction for `podlife explain`: their own code, so that predictions match what they do.

The threshold of terminated pods depends on the whole cluster, which is not read for one pod: about those nothing is
predicted here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from podlife.api.codec import Object
from podlife.api.views import Node
from podlife.explain import ActionRules, CollectorRule, PolicyStatus
from podlife.nodehealth.taints import evicting_taints, seconds_to_bear
from podlife.nodehealth.views import NodeTaint, Toleration
from podlife.podgc import PodIndex, Settings
from podlife.podgc.classifier import UpstreamClassifier
from podlife.podgc.planner import plan
from podlife.podgc.reasons import Reason
from podlife.podgc.views import Pod


def acting_rules(
    settings: Settings | None = None, standing: Callable[[Object], PolicyStatus | None] = lambda pod: None
) -> ActionRules:
    """`standing` is the verdict of the policy of the settings, if there is one."""
    found = settings or Settings()
    # One pod alone is never over a threshold; and a threshold of 0 or less collects no ended pods.
    # What rules of a policy do is in the standing: this is about upstream's reasons.
    alone = replace(found, collect=found.collect - {Reason.TERMINATED}, policy=None)

    def collect(pod: Object, node: Object | None) -> CollectorRule | None:
        known = standing(pod)
        return None if known is not None and known.protected_by else _collecting(alone, pod, node)

    return ActionRules(collect, _bears, standing)


def _collecting(settings: Settings, pod: Object, node: Object | None) -> CollectorRule | None:
    index = PodIndex(UpstreamClassifier())
    if node is not None:
        index.put_node(_as(node, Node))
    index.add_pod(_as(pod, Pod), 0.0)
    found = plan(index, settings, 0.0)
    # Decided at an event or at the next pass, whichever comes first.
    for victim in found.victims:
        return CollectorRule(str(victim.reason), victim.why, settings.period_seconds)
    for later in found.later:
        return CollectorRule(str(later.reason), later.why, later.seconds + settings.period_seconds)
    return None


def _bears(pod: Object, node: Object) -> float | None:
    taints = [_as(each, NodeTaint) for each in (node.get("spec") or {}).get("taints") or ()]
    tolerations = [_as(each, Toleration) for each in (pod.get("spec") or {}).get("tolerations") or ()]
    return seconds_to_bear(evicting_taints(taints), tolerations)


def _as(obj: Object, view: Any) -> Any:
    return msgspec.convert(obj, view)
