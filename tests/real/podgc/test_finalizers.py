"""Finalizers on a kube-apiserver: docs/finalizers.md typed in order, a patch that fits nothing else, and each right of
`deploy/gc/finalizers` needed."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from podlife.client import EVENTS, JOBS, PODS, Client, PatchType, Ref
from podlife.clock import SystemClock
from podlife.errors import ConflictError, ForbiddenError, InvalidError
from podlife.podgc.finalizers.held_pods import held_pods
from podlife.podgc.finalizers.remover import FinalizerRemover, patch_for
from podlife.podgc.plan import HeldPod
from tests.component.cli.commands import Result, podlife
from tests.kit.real_parts import ROOT, Server
from tests.kit.wait import until
from tests.real.podgc.cluster import find_pod, install, make_namespace, make_node

Object = dict[str, Any]
PAGE = (ROOT / "docs" / "finalizers.md").read_text(encoding="utf-8")
BACKUP, TRACKING = "example.com/backup", "batch.kubernetes.io/job-tracking"
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
ROLE = "podlife-gc:finalizers"
CLUSTER_ROLES = Ref("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False)
POLICY = """
apiVersion: podlife.dev/v1
kind: PodGCPolicy
rules:
  - {name: ended, ttlAfterFinished: 1h}
"""


pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(scope="module")
def installed(gc_kube: Server, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The manifests as a user applies them, with the component switched on."""
    install(gc_kube, tmp_path_factory.mktemp("deploy") / "gc", "finalizers", "owners")
    return gc_kube


async def held(
    client: Client,
    name: str,
    namespace: str,
    *finalizers: str,
    node: str = "node-7",
    owner: Object | None = None,
) -> HeldPod:
    await make_namespace(client, namespace)
    metadata: Object = {"name": name, "finalizers": list(finalizers or (BACKUP,))}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    spec = {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}
    await client.create(PODS, {"metadata": metadata, "spec": spec}, namespace)
    await client.patch(PODS, name, {"status": {"phase": "Failed"}}, namespace, subresource="status")
    await client.request(
        "DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", body={"gracePeriodSeconds": 0}
    )
    found = await held_pods(client, SystemClock().now(), namespace)
    return next(pod for pod in found if pod.name == name)


def remover(client: Client, *allowed: str) -> FinalizerRemover:
    return FinalizerRemover(client, SystemClock(), frozenset(allowed or (BACKUP,)))


def typed() -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [line for language, block in found for line in block.splitlines() if not language]


async def test_every_command_of_the_page_does_what_the_page_says(
    installed: Server, client: Client, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    await held(client, "web-0", "shop")
    await held(client, "web-1", "shop")

    async def run(line: str) -> Result:
        here = line.replace("~", str(tmp_path)).replace("policy.yaml", f"{tmp_path}/policy.yaml")
        program, *words = shlex.split(here)
        assert program == "podlife"
        result = await podlife(*words, KUBECONFIG=str(installed.kubeconfig))
        assert result.code == 0, (line, result)
        return result

    shown, as_json, dry, removed, swept, explained, stuck = typed()
    assert "web-0" in (await run(shown)).out
    listed = json.loads((await run(as_json)).out)["pods"]
    assert [(each["name"], each["node"]) for each in listed] == [("web-0", "gone"), ("web-1", "gone")]
    # The server has noted who wrote it, by the name that the client goes by.
    assert all(each["finalizers"][0]["manager"] for each in listed)
    assert all(each["finalizers"][0]["lastWritten"] for each in listed)
    for line in (explained, stuck):
        assert BACKUP in (await run(line)).out
    assert (await run(dry)).out == f"{BACKUP} would be taken off pod shop/web-0\n"
    assert await find_pod(client, "web-0", "shop") is not None
    assert (await run(removed)).out == f"{BACKUP} taken off pod shop/web-0\n"
    assert await find_pod(client, "web-0", "shop") is None
    archived = await podlife("archive", "list", "-o", "json", "--archive", f"{tmp_path}/pods")
    assert "web-0" in archived.out
    assert f"{BACKUP} taken off pod shop/web-1" in (await run(swept)).out
    assert await find_pod(client, "web-1", "shop") is None
    messages = [event["message"] for event in (await client.list(EVENTS, "shop")).items]
    assert any(f"removed {BACKUP} from pod web-0" in message for message in messages)


async def test_the_patch_fits_only_this_pod_in_this_version(client: Client) -> None:
    await held(client, "p", "patches", "example.com/other", BACKUP)
    pod = await client.get(PODS, "p", "patches")
    patch = patch_for(pod, [BACKUP])
    for place, value in ((0, "another-uid"), (1, "1")):
        wrong = [{**step, "value": value} if number == place else step for number, step in enumerate(patch)]
        with pytest.raises((ConflictError, InvalidError)):
            await client.patch(PODS, "p", wrong, "patches", type=PatchType.JSON)
    await client.patch(PODS, "p", {"metadata": {"labels": {"a": "b"}}}, "patches")
    with pytest.raises((ConflictError, InvalidError)):
        await client.patch(PODS, "p", patch, "patches", type=PatchType.JSON)
    [found] = await held_pods(client, SystemClock().now(), "patches")
    assert (await remover(client).remove(found)).left == ("example.com/other",)
    taken = await remover(client, "example.com/other").remove(found)
    assert taken.taken == ("example.com/other",)
    assert await find_pod(client, "p", "patches") is None


async def test_the_node_and_the_job_are_asked_for_at_the_server(client: Client) -> None:
    await make_node(client, "node-here")
    found = await held(client, "p", "asked", node="node-here")
    assert "node node-here exists" in (await remover(client).remove(found)).why
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    job = await client.create(JOBS, {"metadata": {"name": "sum"}, "spec": {"template": template}}, "asked")
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "sum",
        "uid": job["metadata"]["uid"],
        "controller": True,
    }
    found = await held(client, "q", "asked", TRACKING, owner=owner)
    assert "the Job would never count this pod" in (await remover(client, TRACKING).remove(found)).why
    await client.request(
        "DELETE", "/apis/batch/v1/namespaces/asked/jobs/sum", body={"propagationPolicy": "Background"}
    )
    assert (await remover(client, TRACKING).remove(found)).taken == (TRACKING,)


async def until_may(account: Client, rule: Object, *, is_so: bool) -> None:
    """The server learns of roles a moment later."""
    attributes = {"verb": rule["verbs"][0], "group": rule["apiGroups"][0], "resource": rule["resources"][0]}
    spec = {"resourceAttributes": {**attributes, "namespace": "rights"}}
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": spec}

    async def has_learned() -> bool:
        reply = await account.request("POST", REVIEWS, body=body)
        allowed: bool = json.loads(reply.body)["status"]["allowed"]
        return allowed is is_so

    await until(has_learned)


async def test_the_rights_of_the_component_are_enough_and_none_is_too_many(
    client: Client, account_client: Client
) -> None:
    role: Object = await client.get(CLUSTER_ROLES, ROLE)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "gone", "uid": "x", "controller": True}
    # Jobs may be read by the rights for owners too, which are another component.
    await client.patch(CLUSTER_ROLES, "podlife-gc:owners", {"rules": []})
    for number, rule in enumerate(role["rules"]):
        found = await held(client, f"p{number}", "rights", TRACKING, owner=owner)
        rest = [each for each in role["rules"] if each != rule]
        await client.patch(CLUSTER_ROLES, ROLE, {"rules": rest})
        await until_may(account_client, rule, is_so=False)
        assert rule["resources"][0] in await refused(account_client, found)
        assert await find_pod(client, f"p{number}", "rights") is not None
        await client.patch(CLUSTER_ROLES, ROLE, {"rules": role["rules"]})
        await until_may(account_client, rule, is_so=True)
        assert (await remover(account_client, TRACKING).remove(found)).taken == (TRACKING,)


async def refused(account: Client, found: HeldPod) -> str:
    try:
        taken = await remover(account, TRACKING).remove(found)
    except ForbiddenError as error:
        return str(error)
    return "jobs" if "403 Forbidden" in taken.why else ""
