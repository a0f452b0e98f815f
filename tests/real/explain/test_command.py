"""`podlife explain` and `podlife stuck` as people run them, against kube-apiserver, with many rights and with few."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.aio import cancel_and_wait
from podlife.client import PODS, STATEFUL_SETS, Client, DeleteOptions, Ref
from podlife.clock import SystemClock
from podlife.controller import ControlPlane
from podlife.diagnosis import look_at_pod
from podlife.explain import Explanation
from podlife.workloads import CONTROLLERS
from tests.component.cli.commands import assert_one_line, podlife
from tests.component.explain.kubectl_words import filled
from tests.component.explain.test_pages import FAIL_OVER, WHO, typed
from tests.component.stories.objects import workload
from tests.kit.real_parts import Server
from tests.real.explain.test_states import run_typed
from tests.real.podgc.cluster import make_namespace, make_node, make_pod, until
from tests.workloads.runs import KubeQuota

QUOTAS = Ref("", "v1", "resourcequotas")
ROLES = Ref("rbac.authorization.k8s.io", "v1", "roles")
ROLE_BINDINGS = Ref("rbac.authorization.k8s.io", "v1", "rolebindings")
Object = dict[str, Any]


@pytest.fixture
def admin(explain_kube: Server) -> list[str]:
    return ["--kubeconfig", str(explain_kube.kubeconfig)]


@pytest.fixture
def nobody(explain_kube: Server) -> list[str]:
    return ["--kubeconfig", str(explain_kube.kubeconfig_for("nobody"))]


async def a_stuck_pod(client: Client, namespace: str, name: str = "web") -> None:
    await make_namespace(client, namespace)
    await make_pod(client, name, namespace, node="lost", is_held=True, deleted_with_grace=0)


async def test_a_stuck_pod_is_explained_to_people_and_to_programs(client: Client, admin: list[str]) -> None:
    await a_stuck_pod(client, "told")
    told = await podlife("explain", "pod", "web", "-n", "told", *admin)
    assert (told.code, told.err) == (0, "")
    assert told.out.startswith("Pod told/web: deleted, held by finalizers\n")
    assert "STUCK, finalizer" in told.out
    result = await podlife("explain", "pod", "pod/web", "-n", "told", "-o", "json", *admin)
    found = json.loads(result.out)
    [cause] = found["causes"]
    assert (found["stuck"], cause["cause"], found["unread"]) == (True, "finalizer", [])
    assert cause["commands"][0]["command"] in told.out


async def test_stuck_lists_one_namespace_or_all(client: Client, admin: list[str]) -> None:
    await a_stuck_pod(client, "here", "one")
    await a_stuck_pod(client, "there", "two")
    here = await podlife("stuck", "-n", "here", *admin)
    assert (here.code, "one" in here.out, "two" in here.out) == (0, True, False)
    everywhere = json.loads((await podlife("stuck", "-A", "-o", "json", *admin)).out)
    names = {(each["namespace"], each["name"]) for each in everywhere["stuck"]}
    assert {("here", "one"), ("there", "two")} <= names
    nothing = await podlife("stuck", "-n", "kube-public", *admin)
    assert nothing.out.startswith("No pod is stuck in ")


async def test_it_is_a_plug_in_of_kubectls(client: Client, explain_kube: Server) -> None:
    await a_stuck_pod(client, "plugged")
    command = f"kubectl podlife explain pod web -n plugged --kubeconfig {explain_kube.kubeconfig}"
    programs = Path(sys.executable).parent
    told = await run_typed(explain_kube, f"PATH={programs}{os.pathsep}$PATH; {command}")
    assert "STUCK, finalizer" in told


@pytest.mark.usefixtures("cleared")
async def test_every_podlife_command_of_the_pages_runs(client: Client, explain_kube: Server) -> None:
    await make_node(client, "n1")
    for name in ("db-0", "web-0"):
        await make_pod(client, name, "default", node="n1")
    programs = Path(sys.executable).parent
    lines = [line for page in (FAIL_OVER, WHO) for line in typed(page) if line.startswith("podlife ")]
    assert len(lines) == 8
    for line in dict.fromkeys(lines):
        assert await run_typed(explain_kube, f"PATH={programs}{os.pathsep}$PATH; {line}")


async def test_what_may_not_be_read_is_said_and_the_rest_explained(
    client: Client, admin: list[str], nobody: list[str]
) -> None:
    await make_namespace(client, "narrow")
    await make_pod(client, "web", "narrow", node="lost", deleted_with_grace=30)
    refused = await podlife("explain", "pod", "web", "-n", "narrow", *nobody)
    assert_one_line(refused, "user nobody may not get pods in namespace narrow (403)")
    rules = [{"apiGroups": [""], "resources": ["pods", "events"], "verbs": ["get", "list"]}]
    await client.create(ROLES, {"metadata": {"name": "look"}, "rules": rules}, "narrow")
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "look"}
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "nobody"}]
    binding = {"metadata": {"name": "look"}, "roleRef": role, "subjects": subjects}
    await client.create(ROLE_BINDINGS, binding, "narrow")

    async def look() -> str:
        result = await podlife("explain", "pod", "web", "-n", "narrow", *nobody)
        return result.out

    # Rights take a moment to be known.
    told = await until(look, bool)
    assert "node lost could not be read" in told
    assert "does not exist" not in told
    assert "nodes (403 Forbidden)" in told
    listed = await podlife("stuck", "-n", "narrow", *nobody)
    assert listed.code == 0
    assert "node-unread" in listed.out
    assert "Could not be read, and may matter: nodes (403 Forbidden)" in listed.out
    # With all rights it is another story.
    assert "STUCK, node-gone" in (await podlife("explain", "pod", "web", "-n", "narrow", *admin)).out


async def test_of_what_nothing_is_known_that_is_said_and_the_exit_code_is_1(admin: list[str]) -> None:
    unknown = await podlife("explain", "pod", "never-was", *admin)
    assert (unknown.code, unknown.err) == (1, "")
    assert "not there, and no event tells of it" in unknown.out
    nowhere = await podlife("explain", "node", "never-was", *admin)
    assert (nowhere.code, nowhere.out) == (
        1,
        "Node never-was: not there\n\nNothing is known to hold it up.\n",
    )


@asynccontextmanager
async def statefulsets(client: Client) -> AsyncIterator[None]:
    plane = ControlPlane(client, clock=SystemClock())
    plane.add(CONTROLLERS["statefulset-controller"](plane))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(plane.run())
        yield
        await cancel_and_wait(task)


async def test_a_quota_that_keeps_a_pod_from_being_made_is_found_and_raised(
    client: Client, explain_kube: Server
) -> None:
    await make_namespace(client, "small")
    await client.create(QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}}, "small")

    async def count(pods: str) -> None:
        """What the quota controller would do."""
        counted = {"status": {"hard": {"pods": pods}, "used": {"pods": "0"}}}
        await client.patch(QUOTAS, "few", counted, "small", subresource="status")

    async def look() -> Explanation:
        return await look_at_pod(client, SystemClock(), "small", "db-0")

    await count("0")
    await KubeQuota(client).until_known("small", is_refused=True)
    async with statefulsets(client):
        await client.create(STATEFUL_SETS, workload("db", 1, serviceName="db"), "small")
        found = await until(look, lambda found: bool(found.causes))
        assert found.causes[0].name == "quota", found
        await run_typed(explain_kube, filled(found.causes[0].remedies[0].command, {"AMOUNT": "5"}))
        quota = await client.get(QUOTAS, "few", "small")
        assert quota["spec"]["hard"]["pods"] == "5"
        await count("5")
        made = await until(look, lambda found: bool(found.uid))
    assert made.stage == "waiting for a node"
    await client.delete(PODS, "db-0", "small", options=DeleteOptions(uid=made.uid))
