"""The catalogue: situations in which a pod is stuck or slow, each made in a cluster, with the cause that is to be found
and what has to become true once the command that is printed has been typed in.
"""

from __future__ import annotations

from podlife.client import PODS
from podlife.testing import Cluster
from tests.component.explain.deleted_pods import DELETED_PODS
from tests.component.explain.policy_pods import POLICY_PODS
from tests.component.explain.running_pods import RUNNING_PODS
from tests.component.explain.situation import Situation
from tests.component.explain.waiting_pods import WAITING_PODS

CATALOGUE: tuple[Situation, ...] = (*DELETED_PODS, *WAITING_PODS, *RUNNING_PODS, *POLICY_PODS)


async def name_of(cluster: Cluster, situation: Situation) -> str:
    if not situation.pod.endswith("*"):
        return situation.pod
    pods = (await cluster.client.list(PODS, "default")).items
    prefix = situation.pod.removesuffix("*")
    return next(str(each["metadata"]["name"]) for each in pods if each["metadata"]["name"].startswith(prefix))
