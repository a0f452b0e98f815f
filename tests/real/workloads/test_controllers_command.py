"""`podlife controllers run` with the rights of `deploy/controllers`, on a kube-apiserver with RBAC.

As the ServiceAccount of the manifests it does all that its scenarios ask for, and without any single right something is
refused. The server also asks who may set blockOwnerDeletion and owners of objects, as strict clusters do. For every
controller `tests/component/workloads/test_rights.py` holds the rights against what it asks for; here they are taken
away one by one from the one that the others are like.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from podlife.api.codec import Object
from podlife.client import LEASES, NAMESPACES, PODS, REPLICA_SETS, Client, Connection, TokenAuth
from podlife.errors import NotFoundError
from tests.component.cli.commands import started
from tests.endpoints.scenarios import SCENARIOS as SERVICE_SCENARIOS
from tests.endpoints.stage import Stage, create_nodes
from tests.kit.real_parts import ROOT, Server, Settings, kube_apiserver, run_kubectl
from tests.kit.wait import until
from tests.real.conftest import require
from tests.real.podgc.test_rbac import CLUSTER_ROLES, ROLES, may
from tests.workloads.runs import KubeQuota, connect, observing, play_all
from tests.workloads.scenario import all_scenarios, golden
from tests.workloads.snapshot import difference

MANIFESTS = ROOT / "deploy" / "controllers"
NAMESPACE, ACCOUNT = "podlife-system", "podlife-controllers"
ROLE = f"{ACCOUNT}:replicaset-controller"
ELECTION = [
    # What a pod finds in the folder of its service account.
    f"--leader-elect-resource-namespace={NAMESPACE}",
    "--leader-elect-lease-duration=30s",
    "--leader-elect-renew-deadline=20s",
    "--leader-elect-retry-period=300ms",
]
# Among them the ones that adopt, release, keep history and make claims: together they use every right there is.
SCENARIOS = [
    "daemonset-pod_adopted",
    "daemonset-template_changed",
    "deployment-deleted_with_orphans",
    "deployment-replica_set_of_its_template_adopted",
    "deployment-rolled_back_by_annotation",
    "deployment-template_changed_with_surge",
    "job-deleted_by_time_to_live",
    "job-indexed_completes",
    "job-pod_adopted",
    "ownergc-foreground_through_a_chain",
    "ownergc-orphan",
    "replicaset-deleted_in_the_foreground",
    "replicaset-pod_released",
    "replicaset-pods_adopted",
    "replicaset-scale_down",
    "statefulset-claims_go_when_scaled_down",
    "statefulset-claims_go_with_the_set",
    "statefulset-history_is_kept_to_its_limit",
    "statefulset-pod_adopted_and_kept",
    "statefulset-template_changed",
]
TEMPLATE: Object = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def installed(parts_folder: Path) -> Iterator[Server]:
    """The manifests as a user applies them."""
    require("etcd", "kube-apiserver", "kubectl")
    strict = Settings(
        flags=["--enable-admission-plugins=NodeRestriction,OwnerReferencesPermissionEnforcement"]
    )
    with kube_apiserver(parts_folder / "controllers-command", strict) as server:
        result = run_kubectl("apply", "-k", str(MANIFESTS), kubeconfig=server.kubeconfig)
        assert result.returncode == 0, result.stderr
        assert "would violate" not in result.stderr
        yield server


@pytest.fixture
async def client(installed: Server) -> AsyncIterator[Client]:
    async with connect(installed.kubeconfig) as connected:
        yield connected


async def token_of(client: Client, account: str) -> str:
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{account}/token"
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    reply = await client.request("POST", path, body=request)
    issued: str = yaml.safe_load(reply.body)["status"]["token"]
    return issued


def flags_of(server: Server, token: str) -> list[str]:
    return ["--server", server.url, "--certificate-authority", str(server.ca_file), "--token", token]


async def test_with_these_rights_and_no_others_everything_comes_out_as_it_should(
    installed: Server, client: Client
) -> None:
    scenarios = [each for each in all_scenarios() if str(each) in SCENARIOS]
    assert len(scenarios) == len(SCENARIOS)
    expected = {str(each): golden(each) for each in scenarios}
    account = flags_of(installed, await token_of(client, ACCOUNT))
    # The nodes of the scenarios are not there, and the pod collector would notice; nobody bound claims when the
    # outcomes were recorded.
    which = "--controllers=*,-podgc,-persistentvolume-binder"
    async with started("controllers", "run", which, *ELECTION, *account) as run:
        await run.wait_for("running: ")
        async with observing(client, KubeQuota(client)) as cluster:
            outcomes = await play_all(cluster, scenarios, expected)
        await play_endpoints(client)
        result = await run.end()
    assert result.code == 0, result.err
    assert "forbidden" not in result.err
    for name, outcome in outcomes.items():
        assert outcome.error is None, (name, outcome.error)
        assert outcome.snapshot is not None
        assert not difference(expected[name], outcome.snapshot), name
    lease = await client.get(LEASES, ACCOUNT, NAMESPACE)
    assert not lease["spec"].get("holderIdentity"), "the lease is given back"


async def play_endpoints(client: Client) -> None:
    """Endpoints in both forms and mirrored ones, whose owners block deletion; `tests/real/endpoints` compares them."""
    await create_nodes(client)
    for name in ("named-ports", "own-endpoints-mirrored", "service-deleted-and-created-again"):
        stage = Stage(client, name)
        await stage.open()
        async for _ in SERVICE_SCENARIOS[name](stage):
            await until(stage.is_quiet)
        seen = await stage.seen()
        assert bool(seen["slices"]) == (name != "own-endpoints-mirrored"), name


@dataclass(frozen=True)
class Right:
    """One verb of one rule of one role."""

    kind: str
    role: str
    rule: int
    verb: str
    resource: str
    group: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def _rights() -> list[Right]:
    """All that the ReplicaSet controller has. A list is for servers that do not stream it."""
    rights = []
    for document in yaml.safe_load_all((MANIFESTS / "rbac.yaml").read_text()):
        name = document["metadata"]["name"]
        for number, rule in enumerate(document.get("rules", ()) if name in (ACCOUNT, ROLE) else ()):
            [resource], [group] = rule["resources"], rule["apiGroups"]
            verbs = [verb for verb in rule["verbs"] if verb != "list"]
            rights += [Right(document["kind"], name, number, verb, resource, group) for verb in verbs]
    return rights


@pytest.fixture(scope="module")
def bound(installed: Server) -> Server:
    """An account that is bound to the roles of one controller alone."""
    documents: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "one", "namespace": NAMESPACE}}
    ]
    for each in yaml.safe_load_all((MANIFESTS / "rbac.yaml").read_text()):
        if each["kind"].endswith("Binding") and each["metadata"]["name"] in (ACCOUNT, ROLE):
            metadata = {**each["metadata"], "name": f"one-{each['metadata']['name'].rpartition(':')[2]}"}
            subject = {"kind": "ServiceAccount", "name": "one", "namespace": NAMESPACE}
            documents.append({**each, "metadata": metadata, "subjects": [subject]})
    text = yaml.safe_dump_all(documents)
    result = run_kubectl("apply", "-f", "-", kubeconfig=installed.kubeconfig, stdin=text)
    assert result.returncode == 0, result.stderr
    return installed


@pytest.mark.parametrize("right", _rights(), ids=str)
async def test_without_any_single_right_something_is_refused(
    bound: Server, client: Client, right: Right
) -> None:
    token = await token_of(client, "one")
    namespace = f"without-{next(_NUMBERS)}"
    await client.create(NAMESPACES, {"metadata": {"name": namespace}})
    with suppress(NotFoundError):
        await client.delete(LEASES, ACCOUNT, NAMESPACE)
    async with AsyncExitStack() as stack:
        await taken_away(bound, client, token, right, stack)
        flags = ["--controllers=replicaset", *ELECTION, *flags_of(bound, token)]
        run = await stack.enter_async_context(started("controllers", "run", *flags))
        group = await stack.enter_async_context(asyncio.TaskGroup())
        work = group.create_task(work_as_far_as_it_goes(client, namespace))
        await run.wait_for(*refusals(right))
        work.cancel()
    await client.delete(REPLICA_SETS, "web", namespace)


def refusals(right: Right) -> list[str]:
    if right.resource.endswith("/finalizers"):
        return [
            "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on"
        ]
    if right.verb == "delete":
        # The first thing is to adopt one, and who may not delete it may not give it an owner either.
        return ["cannot set an ownerRef on a resource you can't delete"]
    group = f".{right.group}" if right.group else ""
    # In a record of the log the quotes are escaped.
    return [
        f"may not {right.verb} {right.resource}{group} ",
        f'cannot {right.verb} resource \\"{right.resource}\\"',
    ]


async def taken_away(server: Server, client: Client, token: str, right: Right, stack: AsyncExitStack) -> None:
    """Without the verb until the stack is left."""
    ref, namespace = (ROLES, NAMESPACE) if right.kind == "Role" else (CLUSTER_ROLES, "")
    role = await client.get(ref, right.role, namespace)
    rules = yaml.safe_load(yaml.safe_dump(role["rules"]))

    async def give_back() -> None:
        await client.patch(ref, right.role, {"rules": role["rules"]}, namespace)

    stack.push_async_callback(give_back)
    rules[right.rule]["verbs"].remove(right.verb)
    if not rules[right.rule]["verbs"]:
        del rules[right.rule]
    await client.patch(ref, right.role, {"rules": rules}, namespace)
    authority = server.ca_file.read_bytes()
    connection = Connection(server.url, auth=TokenAuth(token), certificate_authority=authority)
    name = ACCOUNT if right.resource == "leases" and right.verb != "create" else ""
    where = NAMESPACE if right.kind == "Role" else "default"
    async with Client.connect(connection) as reviewer:

        async def is_refused() -> bool:
            return not await may(
                reviewer, right.verb, right.resource, group=right.group, namespace=where, name=name
            )

        await until(is_refused)


async def work_as_far_as_it_goes(client: Client, namespace: str) -> None:
    """A pod is adopted, others are made and deleted, and a quota refuses again and again."""
    orphan = {"metadata": {"name": "orphan", **TEMPLATE["metadata"]}, "spec": TEMPLATE["spec"]}
    await client.create(PODS, orphan, namespace)
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    await client.create(REPLICA_SETS, {"metadata": {"name": "web"}, "spec": spec}, namespace)

    async def has_pods(count: int) -> bool:
        return len((await client.list(PODS, namespace)).items) == count

    await until(lambda: has_pods(3))
    await client.scale(REPLICA_SETS, "web", namespace, 1)
    await until(lambda: has_pods(1))
    await KubeQuota(client).refuse(namespace, 0)
    await client.scale(REPLICA_SETS, "web", namespace, 5)


@pytest.mark.parametrize(
    ("verb", "resource", "where"),
    [
        ("get", "pods", {}),
        ("update", "pods", {}),
        ("deletecollection", "pods", {}),
        ("create", "pods/exec", {}),
        ("create", "pods/eviction", {}),
        ("patch", "pods/status", {}),
        ("list", "secrets", {}),
        ("get", "secrets", {}),
        ("list", "nodes", {}),
        ("list", "configmaps", {}),
        ("delete", "namespaces", {}),
        ("list", "events", {}),
        ("patch", "replicasets", {"group": "apps"}),
        ("update", "replicasets", {"group": "apps"}),
        ("delete", "replicasets", {"group": "apps"}),
        ("list", "deployments", {"group": "apps"}),
        ("create", "serviceaccounts/token", {}),
        ("create", "clusterrolebindings", {"group": "rbac.authorization.k8s.io"}),
        ("get", "leases", {"group": "coordination.k8s.io", "namespace": NAMESPACE, "name": "another"}),
        ("create", "leases", {"group": "coordination.k8s.io", "namespace": "kube-system"}),
    ],
)
async def test_nothing_else_is_allowed_to_who_runs_one_controller(
    bound: Server, client: Client, verb: str, resource: str, where: dict[str, str]
) -> None:
    authority = bound.ca_file.read_bytes()
    auth = TokenAuth(await token_of(client, "one"))
    async with Client.connect(Connection(bound.url, auth=auth, certificate_authority=authority)) as reviewer:
        assert not await may(reviewer, verb, resource, **where)
