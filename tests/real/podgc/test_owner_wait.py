"""Waiting for owners on a kube-apiserver: kinds that are defined there, and a Job's own accounts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podlife.client import JOBS, PODS, Client, PatchType, Ref
from podlife.clock import SystemClock
from podlife.errors import NotFoundError
from podlife.podgc import Action, Outcome, Settings, Victim
from podlife.podgc.owner_wait.step import OwnerStep
from podlife.podgc.policy.model import OwnerWait, Policy, Rule, Selector
from podlife.podgc.reasons import Reason
from podlife.podgc.removal import Removal
from podlife.podgc.session import Deletions, GcSession
from podlife.podgc.views import Pod
from tests.component.cli.commands import podlife
from tests.kit.real_parts import Server
from tests.kit.wait import until
from tests.real.podgc.cluster import connect, find_pod, make_namespace, make_node

Object = dict[str, Any]
CRDS = Ref("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
WORKFLOWS = Ref("argoproj.io", "v1alpha1", "workflows", kind="Workflow")
POLICY = Policy(
    rules=(Rule("owned", Selector(namespaces=("owned",)), ttl_seconds=0, wait_for_owner=OwnerWait(3600)),)
)
FILE = """
apiVersion: podlife.dev/v1
kind: PodGCPolicy
rules:
  - {name: owned, select: {namespaces: [owned]}, ttlAfterFinished: 0s, waitForOwner: 1h}
"""
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.fixture
async def client(gc_kube: Server) -> AsyncIterator[Client]:
    async with connect(gc_kube) as connected:
        await make_namespace(connected, "owned")
        yield connected


async def define(client: Client) -> None:
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": ANYTHING},
        "subresources": {},
    }
    names = {"plural": "workflows", "singular": "workflow", "kind": "Workflow"}
    spec = {"group": "argoproj.io", "scope": "Namespaced", "names": names, "versions": [version]}
    await client.create(CRDS, {"metadata": {"name": "workflows.argoproj.io"}, "spec": spec})

    async def is_served() -> bool:
        """Which is a moment after its definition says so."""
        try:
            await client.list(WORKFLOWS, "owned")
        except NotFoundError:
            return False
        return True

    await until(is_served)


def owner(ref: Ref, obj: Object) -> Object:
    named = {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"], "controller": True}
    return {"apiVersion": ref.api_version, "kind": ref.kind, **named}


async def finished(client: Client, name: str, owned_by: Object, **metadata: Any) -> Object:
    made: Object = {"name": name, "ownerReferences": [owned_by], **metadata}
    spec = {"nodeName": "node-a", "containers": [{"name": "c", "image": "i"}]}
    await client.create(PODS, {"metadata": made, "spec": spec}, "owned")
    status = {"status": {"phase": "Succeeded"}}
    return await client.patch(PODS, name, status, "owned", type=PatchType.MERGE, subresource="status")


async def said(client: Client, pod: Object) -> str:
    step = OwnerStep(client, lambda: POLICY, SystemClock())
    return await step(Victim(msgspec.convert(pod, Pod), Reason.TERMINATED, Action.DELETE, "", "owned"))


async def test_a_workflow_is_asked_by_its_own_definition(client: Client) -> None:
    await define(client)
    nodes = {"wf-1": {"phase": "Running"}}
    body = {"metadata": {"name": "wf"}, "status": {"phase": "Running", "nodes": nodes}}
    body |= {"apiVersion": WORKFLOWS.api_version, "kind": WORKFLOWS.kind}
    workflow = await client.create(WORKFLOWS, body, "owned")
    noted = {"workflows.argoproj.io/node-id": "wf-1"}
    pod = await finished(client, "wf-main-1", owner(WORKFLOWS, workflow), annotations=noted)
    assert "Workflow wf has not recorded its end yet" in await said(client, pod)
    ended = {"status": {"nodes": {"wf-1": {"phase": "Succeeded"}}}}
    await client.patch(WORKFLOWS, "wf", ended, "owned")
    assert await said(client, pod) == ""
    # Another of the same name is not its owner; one that is gone is not waited for.
    stranger = await finished(client, "stranger", {**owner(WORKFLOWS, workflow), "uid": "of-another"})
    assert await said(client, stranger) == ""
    await client.delete(WORKFLOWS, "wf", "owned")
    assert await said(client, pod) == ""


async def test_a_jobs_pod_is_swept_only_when_the_job_has_counted_it(
    gc_kube: Server, client: Client, tmp_path: Path
) -> None:
    await make_node(client, "node-a")
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    job = await client.create(JOBS, {"metadata": {"name": "sum"}, "spec": {"template": template}}, "owned")
    # There is no Job controller: this is what it would have done, step by step.
    tracking = "batch.kubernetes.io/job-tracking"
    pod = await finished(client, "sum-1", owner(JOBS, job), finalizers=[tracking])
    kept: list[str] = []

    async def sweep() -> Outcome | None:
        outcomes: list[Outcome] = []

        def report(victim: Victim, removal: Removal) -> None:
            if victim.pod.metadata.name == "sum-1":
                outcomes.append(removal.outcome)

        summary = await GcSession(client, Settings(policy=POLICY), phases=[Deletions(report)]).execute()
        kept.extend(waits.what for waits in summary.waiting if waits.victim.pod.metadata.name == "sum-1")
        return outcomes[0] if outcomes else None

    assert await sweep() is None
    assert "its Job has not counted it yet" in kept[-1]
    file = tmp_path / "policy.yaml"
    file.write_text(FILE)
    flags = ("--policy", str(file), "--kubeconfig", str(gc_kube.kubeconfig))
    planned = await podlife("gc", "plan", "-n", "owned", *flags)
    assert re.search(r"owned/sum-1 +owned +(1h|59m\S*) +its Job has not counted it yet", planned.out), planned
    swept = await podlife("gc", "sweep", "--yes", "-n", "owned", *flags)
    assert swept.code == 0, swept
    assert "1 pod not to go before the owner has seen the end (owned/sum-1)" in swept.out
    uncounted = {"status": {"startTime": "2026-01-01T00:00:00Z", "uncountedTerminatedPods": {}}}
    uncounted["status"]["uncountedTerminatedPods"] = {"succeeded": [pod["metadata"]["uid"]]}
    await client.patch(JOBS, "sum", uncounted, "owned", subresource="status")
    await client.patch(PODS, "sum-1", {"metadata": {"finalizers": None}}, "owned")
    assert await sweep() is None
    assert "Job sum has not counted it yet" in kept[-1]
    counted = {"status": {"succeeded": 1, "uncountedTerminatedPods": {"succeeded": None}}}
    await client.patch(JOBS, "sum", counted, "owned", subresource="status")
    assert await sweep() is Outcome.DELETED
    assert await find_pod(client, "sum-1", "owned") is None
