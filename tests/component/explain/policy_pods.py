"""Ended pods that a policy of podlife's collector is to clear away, and that something keeps."""

from __future__ import annotations

from typing import Any

from podlife.api.selectors import parse_label_selector
from podlife.client import JOBS, NAMESPACES, PODS
from podlife.podgc.policy.model import (
    Guards,
    OwnerWait,
    Policy,
    Protection,
    Rule,
    Selector,
)
from podlife.testing import Behaviour, Cluster
from tests.component.explain.situation import Object, Situation, is_gone, with_metadata, with_spec
from tests.component.stories.objects import pod

# Rules that let go what has ended some seconds ago; something keeps it in each of the situations.
ENDED = Rule("ended", ttl_seconds=10)
EXCLUDED = Rule("ended", ttl_seconds=10, exclude=(Selector(labels=parse_label_selector("debug=true")),))
JOBS_PODS = Rule("jobs", Selector(owner_kinds=("Job",)), ttl_seconds=10, wait_for_owner=OwnerWait(86_400))


def once(name: str = "web", **metadata: object) -> Object:
    found = with_spec(pod(name, image="ends"), restartPolicy="Never")
    return with_metadata(found, **metadata)


async def ended(cluster: Cluster, *pods: Object) -> None:
    cluster.behave(Behaviour(run_seconds=5), image="ends")
    # All at once, so that they end at once.
    for each in pods or (once(),):
        await cluster.client.create(PODS, each, "default")
    await cluster.advance(minutes=1)


async def labelled(cluster: Cluster) -> None:
    await ended(cluster, once(labels={"tier": "gold"}))


async def annotated(cluster: Cluster) -> None:
    await ended(cluster, once(annotations={"example.com/hold": "yes"}))


async def noted(cluster: Cluster) -> None:
    await ended(cluster, once(annotations={"podlife.dev/keep-until": "2031-01-01T00:00:00Z"}))


async def in_a_protected_namespace(cluster: Cluster) -> None:
    await ended(cluster)


async def excluded(cluster: Cluster) -> None:
    await ended(cluster, once(labels={"debug": "true"}))


async def stopped(cluster: Cluster) -> None:
    mark = {"metadata": {"annotations": {"podlife.dev/gc-stop": "an audit"}}}
    await cluster.client.patch(NAMESPACES, "default", mark)
    await ended(cluster)


async def stopped_everywhere(cluster: Cluster) -> None:
    mark = {"metadata": {"annotations": {"podlife.dev/gc-stop": "an audit"}}}
    await cluster.client.patch(NAMESPACES, "kube-system", mark)
    await ended(cluster)


async def mass_failure(cluster: Cluster) -> None:
    await ended(cluster, once(), once("b"), once("c"), once("d"))


async def job_away(cluster: Cluster) -> None:
    """Its Job's controller has gone before the pod's end."""
    cluster.behave(Behaviour(run_seconds=60), image="ends")
    template = {"spec": {**once()["spec"]}}
    template["spec"].pop("nodeName", None)
    job = {"metadata": {"name": "once"}, "spec": {"template": template, "backoffLimit": 0}}
    await cluster.client.create(JOBS, job, "default")
    await cluster.settled()
    await cluster.controllers.kill("job")
    await cluster.advance(seconds=80)


async def no_pod_is_left(cluster: Cluster) -> bool:
    pods = (await cluster.client.list(PODS, "default")).items
    return all("deletionTimestamp" in each["metadata"] for each in pods)


def protecting(**protection: Any) -> Policy:
    return Policy(rules=(ENDED,), protection=Protection(**protection))


POLICY_PODS = (
    Situation(
        "protected by a label", "protected", labelled, is_gone, is_stuck=False,
        policy=protecting(labels=(parse_label_selector("tier in (gold)"),)),
    ),
    Situation(
        "protected by an annotation", "protected", annotated, is_gone, is_stuck=False,
        policy=protecting(annotations=(("example.com/hold", None),)),
    ),
    Situation("protected for a time", "protected", noted, is_gone, is_stuck=False, policy=protecting()),
    Situation(
        "protected by its namespace", "protected", in_a_protected_namespace, is_gone, is_stuck=False,
        policy=protecting(namespaces=("def*",)),
    ),
    Situation("excluded by its rule", "excluded", excluded, is_gone, is_stuck=False, policy=Policy(rules=(EXCLUDED,))),
    Situation("namespace stopped", "held-by-guard", stopped, is_gone, policy=Policy(rules=(ENDED,))),
    Situation("everything stopped", "held-by-guard", stopped_everywhere, is_gone, policy=Policy(rules=(ENDED,))),
    Situation(
        "a mass failure", "held-by-guard", mass_failure, is_gone,
        policy=Policy(rules=(ENDED,), guards=Guards(share_of_namespace=0.5, share_at_least=1)),
    ),
    Situation(
        "a Job that has not seen the end", "waits-for-owner", job_away, no_pod_is_left, ("scheduler", "job"),
        is_stuck=False, pod="once-*", policy=Policy(rules=(JOBS_PODS,)),
    ),
)  # fmt: skip
