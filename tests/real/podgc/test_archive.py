"""Archiving on a kube-apiserver with RBAC: what a pod really said is kept, and each right that `deploy/gc/archive` adds
is needed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from podlife.client import EVENTS, PODS, Client, DeleteOptions, ListOptions, Ref
from podlife.clock import SystemClock
from podlife.podgc import Action, Reason, Victim
from podlife.podgc.archive import ArchiveStep, FolderArchive
from podlife.podgc.views import Pod
from tests.component.cli.commands import Result, podlife
from tests.kit.agent_process import AgentProcess
from tests.kit.gc_states import States
from tests.kit.real_parts import Server, run_kubectl
from tests.kit.wait import until
from tests.real.podgc.cluster import ACCOUNT, SYSTEM, install

Object = dict[str, Any]
NODE = "node-a"
CLUSTER_ROLES = Ref("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False)
ROLE = "podlife-gc:archive"
SWEEP = ("gc", "sweep", "--yes", "--terminated-pod-gc-threshold", "1", "--quarantine", "0s")


pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(scope="module")
def installed(gc_kube: Server, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The manifests as a user applies them, with the component switched on as the page tells."""
    install(gc_kube, tmp_path_factory.mktemp("deploy") / "gc", "archive")
    shown = run_kubectl(
        "get", "deployment", ACCOUNT, "-n", SYSTEM, "-o", "json", kubeconfig=gc_kube.kubeconfig
    )
    spec = json.loads(shown.stdout)["spec"]
    assert (spec["replicas"], spec["strategy"]["type"]) == (1, "Recreate")
    assert spec["template"]["spec"]["containers"][0]["args"][-1] == "--archive=/archive/pods"
    return gc_kube


@pytest.fixture
def agent(installed: Server, tmp_path: Path) -> Iterator[AgentProcess]:
    """A node that runs processes; the server reaches its logs."""
    one = AgentProcess(tmp_path / "agent", installed.kubeconfig_for(NODE), name=NODE)
    one.start()
    try:
        yield one
    finally:
        one.stop()
        run_kubectl("delete", "node", NODE, kubeconfig=installed.kubeconfig)


def container(name: str, script: str) -> dict[str, Any]:
    return {"name": name, "image": "none:1", "command": ["sh", "-c", script]}


async def made(
    client: Client, namespace: str, name: str, script: str, *, phase: str, restarts: int
) -> Object:
    """A pod that has come so far, and whose events are told."""
    spec = {
        "nodeName": NODE,
        "restartPolicy": "OnFailure" if restarts else "Never",
        "initContainers": [container("setup", "echo ready")],
        "containers": [container("main", script)],
    }
    await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, namespace)

    async def is_there() -> bool:
        pod = await client.get(PODS, name, namespace)
        options = ListOptions(field_selector=f"involvedObject.uid={pod['metadata']['uid']}")
        told = {each["reason"] for each in (await client.list(EVENTS, namespace, options=options)).items}
        statuses = pod["status"].get("containerStatuses") or [{}]
        has_restarted = statuses[0].get("restartCount", 0) >= restarts
        return pod["status"].get("phase") == phase and has_restarted and "Started" in told

    await until(is_there, seconds=120)
    return dict(await client.get(PODS, name, namespace))


def texts(logs: Iterable[Mapping[str, Any]]) -> list[tuple[str, bool, str]]:
    assert [each.get("problem", "") for each in logs if each.get("problem")] == []
    return [(each["container"], each.get("isPrevious", False), each["text"]) for each in logs]


async def shown(folder: Path, *arguments: str) -> Any:
    result = await podlife("archive", "show", *arguments, "-o", "json", "--archive", str(folder))
    assert (result.code, result.err) == (0, "")
    return json.loads(result.out)


async def test_the_service_account_keeps_manifest_events_and_logs_of_pods_that_ran(
    client: Client, states: States, account: list[str], agent: AgentProcess, tmp_path: Path
) -> None:
    before = await made(client, states.namespace, "job", "seq 1 300; exit 7", phase="Failed", restarts=0)
    await states.terminated("young")
    result = await podlife(*SWEEP, "--archive", str(tmp_path / "kept"), "--archive-log-lines", "3", *account)
    assert (result.code, result.err) == (0, ""), result
    assert await states.names() == {"young"}
    pod = await shown(tmp_path / "kept", "job")
    assert (pod["metadata"]["uid"], pod["spec"]) == (before["metadata"]["uid"], before["spec"])
    [status] = pod["status"]["containerStatuses"]
    assert (pod["status"]["phase"], status["state"]["terminated"]["exitCode"]) == ("Failed", 7)
    assert pod["status"]["conditions"]
    logs = texts(await shown(tmp_path / "kept", "job", "--logs"))
    assert logs == [("setup", False, "ready\n"), ("main", False, "298\n299\n300\n")]
    events = await shown(tmp_path / "kept", "job", "--events")
    assert {each["involvedObject"]["uid"] for each in events} == {before["metadata"]["uid"]}
    assert "Started" in {each["reason"] for each in events}


async def test_the_instance_before_a_restart_is_kept_with_the_one_that_runs(
    client: Client, states: States, agent: AgentProcess, tmp_path: Path
) -> None:
    flag = tmp_path / "flag"
    script = f"if [ -e {flag} ]; then echo second; exec sleep 1000; fi; touch {flag}; echo first; exit 7"
    await made(client, states.namespace, "crash", script, phase="Running", restarts=1)
    archive = FolderArchive(tmp_path / "kept", clock=SystemClock())
    archive.open()
    step = ArchiveStep(client, archive, SystemClock())
    pod = await client.get(PODS, "crash", states.namespace, view=Pod)
    victim = Victim(pod, Reason.ORPHANED, Action.MARK_AND_DELETE, "for the test")

    async def has_said() -> bool:
        """The process is there before its first line is."""
        assert await step(victim) == ""
        logs = await shown(tmp_path / "kept", "crash", "--logs")
        return texts(logs)[-1] == ("main", False, "second\n")

    await until(has_said)
    assert texts(await shown(tmp_path / "kept", "crash", "--logs")) == [
        ("setup", False, "ready\n"),
        ("main", True, "first\n"),
        ("main", False, "second\n"),
    ]
    await step.close()
    await client.delete(PODS, "crash", states.namespace, options=DeleteOptions(grace_period_seconds=1))

    async def is_gone() -> bool:
        return "crash" not in await states.names()

    await until(is_gone)


async def test_what_has_no_node_any_more_is_kept_with_the_reason_why_its_logs_are_not(
    states: States, account: list[str], tmp_path: Path
) -> None:
    await states.orphaned("orphan")
    await states.out_of_service("stuck")
    result = await podlife(*SWEEP, "--archive", str(tmp_path / "kept"), *account)
    assert (result.code, result.err) == (0, ""), result
    assert await states.names() == set()
    for name in ("orphan", "stuck"):
        [log] = await shown(tmp_path / "kept", name, "--logs")
        assert log["problem"]


@pytest.mark.parametrize(
    ("number", "missing"),
    [(0, 'get resource "pods"'), (1, 'list resource "events"'), (2, 'get resource "pods/log"')],
)
async def test_without_any_single_right_of_the_component_the_pod_stays(
    states: States, client: Client, account: list[str], tmp_path: Path, number: int, missing: str
) -> None:
    await states.out_of_service("stuck")
    role = await client.get(CLUSTER_ROLES, ROLE)
    rules = [rule for place, rule in enumerate(role["rules"]) if place != number]
    await client.patch(CLUSTER_ROLES, ROLE, {"rules": rules})
    results: list[Result] = []

    async def is_refused() -> bool:
        """Roles take a moment to be known everywhere; until then a sweep would simply work."""
        resource, _, subresource = missing.split('"')[1].partition("/")
        attributes = {"verb": missing.partition(" ")[0], "resource": resource, "subresource": subresource}
        attributes["namespace"] = states.namespace
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": f"system:serviceaccount:{SYSTEM}:{ACCOUNT}", "resourceAttributes": attributes},
        }
        reply = await client.request(
            "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body=review
        )
        return not yaml.safe_load(reply.body)["status"]["allowed"]

    try:
        await until(is_refused)
        results.append(await podlife(*SWEEP, "--archive", str(tmp_path / "kept"), *account))
    finally:
        await client.patch(CLUSTER_ROLES, ROLE, {"rules": role["rules"]})
    [result] = results
    assert result.code == 1
    assert f"cannot {missing}" in result.err
    assert '"stuck"' not in result.err, "what is the same for all pods is told once"
    assert "see deploy/gc/archive/rbac.yaml" in result.err
    assert await states.names() == {"stuck"}
