"""Explanations on kube-apiserver, and the commands they print, run by kubectl as they stand."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime, timedelta
from typing import Any

import pytest

from podlife.client import (
    DEPLOYMENTS,
    EVENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PODS,
    REPLICA_SETS,
    Client,
    DeleteOptions,
    Ref,
    WriteOptions,
)
from podlife.clock import SystemClock
from podlife.diagnosis import find_stuck, look_at_pod
from podlife.explain import Explanation
from tests.component.explain.kubectl_words import filled
from tests.kit.real_parts import Server, part
from tests.real.explain.states import OLD, STATES, State, is_gone, node

Object = dict[str, Any]
ATTACHMENTS = Ref("storage.k8s.io", "v1", "volumeattachments", namespaced=False)
BY_HAND = WriteOptions(field_manager="backup-operator")


class Later:
    """What was made just now has been so for a while."""

    def now(self) -> datetime:
        return SystemClock().now() + timedelta(minutes=10)


async def run_typed(server: Server, command: str) -> str:
    path = f"{part('kubectl').parent}{os.pathsep}{os.environ['PATH']}"
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-euo",
        "pipefail",
        "-c",
        command,
        env={**os.environ, "PATH": path, "KUBECONFIG": str(server.kubeconfig)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    async with asyncio.timeout(180):
        said, _ = await process.communicate()
    assert process.returncode == 0, f"{command}\n{said.decode()}"
    return said.decode()


async def make(client: Client, state: State) -> None:
    name = state.name
    if state.node is not None:
        metadata = {**(state.node.get("metadata") or {}), "name": name}
        await client.create(NODES, {**state.node, "metadata": metadata})
        # The server taints every new node; whoever watches over nodes takes that off once it is ready.
        taints = state.node["spec"].get("taints")
        await client.patch(NODES, name, {"spec": {"taints": taints}})
    if state.cause == "claim-unbound":
        storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await client.create(
            PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": storage}, "default"
        )
    spec = {"containers": [{"name": "main", "image": "bad"}], **state.spec}
    if state.node is not None and state.cause != "no-scheduler":
        spec.setdefault("nodeName", name)
    metadata = {**state.metadata, "name": name, "labels": {"app": name}}
    if state.is_deployed:
        metadata["ownerReferences"] = [await owner(client, name, spec)]
    await client.create(PODS, {"metadata": metadata, "spec": spec}, "default", options=BY_HAND)
    if state.status:
        await client.patch(PODS, name, {"status": state.status}, "default", subresource="status")
    if state.is_deleted:
        await client.delete(PODS, name, "default")


async def owner(client: Client, name: str, spec: Object) -> Object:
    """A Deployment and its ReplicaSet, as their controllers leave them."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {**spec, "nodeName": ""}}
    common = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    deployment = await client.create(DEPLOYMENTS, common, "default")
    owned = {**common, "metadata": {"name": name, "ownerReferences": [_reference(deployment, "Deployment")]}}
    return _reference(await client.create(REPLICA_SETS, owned, "default"), "ReplicaSet")


def _reference(obj: Object, kind: str) -> Object:
    found = obj["metadata"]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "name": found["name"],
        "uid": found["uid"],
        "controller": True,
    }


@pytest.mark.parametrize("state", STATES, ids=[each.name for each in STATES])
@pytest.mark.usefixtures("cleared")
async def test_kubectl_runs_what_is_printed_and_it_unblocks(
    state: State, client: Client, explain_kube: Server
) -> None:
    await make(client, state)
    clock = SystemClock() if state.cause == "grace" else Later()
    found: Explanation = await look_at_pod(client, clock, "default", state.name)
    assert [each.name for each in found.causes][:1] == [state.cause], found
    assert found.unread == ()
    await run_typed(explain_kube, filled(found.causes[0].remedies[0].command, state.values))
    assert await state.has_become(client, state.name), state.name


@pytest.mark.usefixtures("cleared")
async def test_a_volume_that_a_dead_node_still_has_leads_to_that_node(
    client: Client, explain_kube: Server
) -> None:
    storage = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumeName": "pv-1",
    }
    await client.create(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "moved"}, "spec": storage}, "default")
    await client.patch(
        PERSISTENT_VOLUME_CLAIMS, "moved", {"status": {"phase": "Bound"}}, "default", subresource="status"
    )
    await client.create(NODES, {**node("Unknown"), "metadata": {"name": "old-node"}})
    source = {
        "source": {"persistentVolumeName": "pv-1"},
        "attacher": "csi.example.com",
        "nodeName": "old-node",
    }
    await client.create(ATTACHMENTS, {"metadata": {"name": "moved"}, "spec": source})
    state = State(
        "moved",
        "",
        is_gone,
        node=node(),
        status={"phase": "Pending", "startTime": OLD},
        spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "moved"}}]},
    )
    await make(client, state)
    pod = await client.get(PODS, "moved", "default")
    about = {"kind": "Pod", "namespace": "default", "name": "moved", "uid": pod["metadata"]["uid"]}
    told = {
        "reason": "FailedAttachVolume",
        "message": "Multi-Attach error",
        "type": "Warning",
        "lastTimestamp": OLD,
    }
    await client.create(EVENTS, {"metadata": {"name": "moved"}, "involvedObject": about, **told}, "default")
    for found in (
        await look_at_pod(client, Later(), "default", "moved"),
        next(each for each in (await find_stuck(client, Later(), "default"))[1] if each.name == "moved"),
    ):
        assert found.causes[0].name == "volume-attached-elsewhere", found
        assert "node old-node (not ready)" in found.causes[0].text
    await run_typed(explain_kube, found.causes[0].remedies[0].command)
    taints = (await client.get(NODES, "old-node"))["spec"]["taints"]
    assert "node.kubernetes.io/out-of-service" in [each["key"] for each in taints]


async def test_who_set_a_finalizer_and_when_is_told_from_managed_fields(client: Client) -> None:
    metadata = {"name": "managed", "finalizers": ["example.com/backup"]}
    spec = {"containers": [{"name": "main", "image": "i"}]}
    before = SystemClock().now()
    await client.create(PODS, {"metadata": metadata, "spec": spec}, "default", options=BY_HAND)
    await client.delete(PODS, "managed", "default")
    found = await look_at_pod(client, SystemClock(), "default", "managed")
    assert "set by backup-operator" in found.causes[0].text
    # It may be midnight between the two.
    days = (before, SystemClock().now())
    assert any(f"({day:%Y-%m-%d} " in found.causes[0].text for day in days)


async def test_a_pod_made_again_under_the_name_is_not_deleted_by_a_command_printed_before(
    client: Client, explain_kube: Server
) -> None:
    spec = {"containers": [{"name": "main", "image": "i"}], "nodeName": "nowhere"}
    obj = {"metadata": {"name": "again"}, "spec": spec}
    await client.create(PODS, obj, "default")
    found = await look_at_pod(client, SystemClock(), "default", "again")
    await client.delete(PODS, "again", "default", options=DeleteOptions(grace_period_seconds=0))
    second = await client.create(PODS, obj, "default")
    with pytest.raises(AssertionError, match="the UID in the precondition"):
        await run_typed(explain_kube, found.causes[0].remedies[0].command)
    assert (await client.get(PODS, "again", "default"))["metadata"]["uid"] == second["metadata"]["uid"]
