"""Pods that were started and are not well, and pods that have ended or are to be moved."""

from __future__ import annotations

from typing import Any

from podlife.client import JOBS, NODES, POD_DISRUPTION_BUDGETS, PODS
from podlife.testing import Behaviour, Cluster, ExecResult
from tests.component.explain.situation import (
    Make,
    Object,
    Situation,
    create,
    created,
    found,
    is_gone,
    is_ready,
    runs,
    with_metadata,
    with_spec,
)
from tests.component.stories.objects import pod

GOOD = {"IMAGE": "good"}


def init_container(behaviour: Behaviour) -> Make:
    obj = with_spec(pod(), initContainers=[{"name": "init", "image": "bad"}])

    async def make(cluster: Cluster) -> None:
        cluster.behave(behaviour, image="bad")
        cluster.behave(Behaviour(run_seconds=1), image="good")
        await cluster.client.create(PODS, obj, "default")
        await cluster.advance(minutes=3)

    return make


async def memory_short(cluster: Cluster) -> None:
    cluster.behave(Behaviour(run_seconds=2, exit_code=137, out_of_memory=True), image="bad")
    resources = {"limits": {"memory": "64Mi"}, "requests": {"memory": "32Mi"}}
    await cluster.client.create(PODS, pod(image="bad", resources=resources), "default")
    await cluster.advance(minutes=3)
    # The next start has the memory that it needs.
    cluster.behave(Behaviour(), image="bad")


def probed(kind: str, period: int = 5) -> Make:
    probe = {"exec": {"command": ["check"]}, "periodSeconds": period, "failureThreshold": 1000}
    container: Object = {"image": "bad", kind: probe}
    bad, good = ExecResult(1, b"", b""), ExecResult(0, b"", b"")

    async def make(cluster: Cluster) -> None:
        cluster.behave(Behaviour(exec=lambda _: bad), image="bad")
        cluster.behave(Behaviour(exec=lambda _: good), image="good")
        await cluster.client.create(PODS, pod(**container), "default")
        await cluster.advance(minutes=2)

    return make


def gated(**status: Any) -> Object:
    return with_spec(pod(), readinessGates=[{"conditionType": "example.com/lb"}])


async def job_not_counted(cluster: Cluster) -> None:
    cluster.behave(Behaviour(run_seconds=20))
    template = {"spec": {**pod(node="")["spec"], "restartPolicy": "Never"}}
    await cluster.client.create(
        JOBS, {"metadata": {"name": "once"}, "spec": {"template": template}}, "default"
    )
    await cluster.advance(seconds=10)
    await cluster.controllers.kill("job")
    await cluster.advance(minutes=2)


async def nothing_holds_it(cluster: Cluster) -> bool:
    pods = (await cluster.client.list(PODS, "default")).items
    return not any(each["metadata"].get("finalizers") for each in pods)


async def kept_until(cluster: Cluster) -> None:
    noted = {"podlife.dev/keep-until": "2031-01-01T00:00:00Z"}
    cluster.behave(Behaviour(run_seconds=1))
    await create(cluster, with_metadata(with_spec(pod(), restartPolicy="Never"), annotations=noted))


async def is_not_kept(cluster: Cluster) -> bool:
    obj = await found(cluster)
    return obj is not None and "podlife.dev/keep-until" not in (obj["metadata"].get("annotations") or {})


async def budget_allows_nobody(cluster: Cluster) -> None:
    await create(cluster, with_metadata(pod(), labels={"app": "web"}))
    budget = {
        "metadata": {"name": "all"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    await cluster.client.create(POD_DISRUPTION_BUDGETS, budget, "default")
    # No controller of ours counts for budgets: this is what it would have counted.
    counted = {
        "status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    }
    await cluster.client.patch(POD_DISRUPTION_BUDGETS, "all", counted, "default", subresource="status")
    await cluster.client.patch(NODES, "n1", {"spec": {"unschedulable": True}})
    await cluster.advance(minutes=1)


RUNNING_PODS = (
    # Started, and not well.
    Situation(
        "ends again and again", "crash-loop",
        created(pod(image="bad"), Behaviour(run_seconds=1, exit_code=3), seconds=180), is_ready, values=GOOD,
        acts="the node's agent",
    ),
    Situation(
        "init container ends again and again", "crash-loop", init_container(Behaviour(run_seconds=1, exit_code=3)),
        runs, values=GOOD,
    ),
    Situation("init container does not end", "init-container", init_container(Behaviour()), is_gone),
    Situation("out of memory", "out-of-memory", memory_short, is_ready, values={"AMOUNT": "128Mi"}),
    Situation("readiness gate", "readiness-gate", created(gated()), is_ready),
    Situation("readiness probe fails", "readiness-probe", probed("readinessProbe"), is_ready, values=GOOD),
    Situation("startup probe fails", "startup-probe", probed("startupProbe"), is_ready, values=GOOD),
    # Ended, and still there; or to be moved and may not.
    Situation(
        "refused by its node", "left-behind", created(with_spec(pod(), nodeSelector={"disk": "ssd"})), is_gone,
        acts="pod GC",
    ),
    Situation(
        "a Job that does not count", "job-not-counted", job_not_counted, nothing_holds_it, ("scheduler", "job"),
        pod="once-*",
    ),
    Situation("kept by a note", "protected", kept_until, is_not_kept, is_stuck=False),
    Situation("a budget that allows nobody", "disruption-budget", budget_allows_nobody, is_gone),
)  # fmt: skip
