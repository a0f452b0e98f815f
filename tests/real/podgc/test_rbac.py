"""The rights in `deploy/gc` on a kube-apiserver with RBAC: nothing is missing, and nothing is too much.

The collector runs as the ServiceAccount of the manifests. With all of them it does everything it is for without one
refusal; and without any single verb of any rule something it needs is refused.
"""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import yaml

from podlife.client import EVENTS, LEASES, Client, Ref
from podlife.errors import NotFoundError
from tests.component.cli.commands import podlife, started
from tests.component.cli.faulty_proxy import Answer, proxied
from tests.kit.gc_states import States
from tests.kit.real_parts import ROOT, Server
from tests.kit.wait import until
from tests.real.podgc.cluster import ACCOUNT, SYSTEM, install

MANIFESTS = ROOT / "deploy" / "gc"
ROLES = Ref("rbac.authorization.k8s.io", "v1", "roles")
CLUSTER_ROLES = Ref("rbac.authorization.k8s.io", "v1", "clusterroles", namespaced=False)
REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
FLAGS = [
    "--terminated-pod-gc-threshold=1",
    "--quarantine=200ms",
    "--period=500ms",
    # What a pod finds in the folder of its service account.
    f"--leader-elect-resource-namespace={SYSTEM}",
    "--leader-elect-lease-duration=30s",
    "--leader-elect-renew-deadline=20s",
    "--leader-elect-retry-period=300ms",
    "-v=1",
]
_NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Right:
    """One verb of one rule of one role."""

    role: str
    rule: int
    verb: str
    resource: str
    group: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


def _rights() -> list[Right]:
    rights = []
    for document in yaml.safe_load_all((MANIFESTS / "rbac.yaml").read_text()):
        for number, rule in enumerate(document.get("rules", ())):
            [resource], [group] = rule["resources"], rule["apiGroups"]
            rights += [Right(document["kind"], number, verb, resource, group) for verb in rule["verbs"]]
    return rights


pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture(scope="module")
def installed(gc_kube: Server, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The manifests as a user applies them."""
    install(gc_kube, tmp_path_factory.mktemp("deploy") / "gc")
    return gc_kube


@pytest.fixture
async def states(states: States, client: Client) -> AsyncIterator[States]:
    yield states
    with suppress(NotFoundError):
        await client.delete(LEASES, ACCOUNT, SYSTEM)


async def may(
    client: Client, verb: str, resource: str, *, group: str = "", namespace: str = "", name: str = ""
) -> bool:
    resource, _, subresource = resource.partition("/")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": resource,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    reply = await client.request("POST", REVIEWS, body={**body, "spec": {"resourceAttributes": attributes}})
    return bool(yaml.safe_load(reply.body)["status"]["allowed"])


async def put_to_work(states: States) -> None:
    """Every reason once; and one pod that is made and collected twice, so that its event is counted up."""
    await states.pod("alive")
    await states.terminated("done-0", "done-1")
    await states.orphaned("orphan")
    await states.unscheduled("never")
    await states.out_of_service("stuck")
    await until(is_gone(states, "stuck"))
    await states.out_of_service("stuck")


def is_gone(states: States, *names: str) -> Any:
    async def are_gone() -> bool:
        return not set(names) & await states.names()

    return are_gone


async def test_nothing_is_missing(states: States, client: Client, account: list[str]) -> None:
    async with started("gc", "run", *FLAGS, *account) as run:
        await run.wait_for("became leader of lease")
        await put_to_work(states)
        await until(is_gone(states, "stuck", "orphan", "done-0"))

        async def is_counted() -> bool:
            events = (await client.list_all(EVENTS, states.namespace)).items
            return any(event.get("count") == 2 for event in events)

        async def is_marked() -> bool:
            return bool((await states.get("never"))["status"]["phase"] == "Failed")

        await until(is_counted)
        await until(is_marked)
        result = await run.end()
    assert result.code == 0, result.err
    assert "forbidden" not in result.err
    assert await states.names() == {"alive", "done-1", "never"}
    lease = await client.get(LEASES, ACCOUNT, SYSTEM)
    assert not lease["spec"].get("holderIdentity"), "the lease is given back"
    for command in (["plan"], ["sweep", "--yes", "--quarantine=0s"]):
        result = await podlife("gc", *command, *account)
        assert (result.code, result.err) == (0, "")


async def test_a_sweep_that_meets_a_conflict_needs_no_right_besides(
    installed: Server, states: States, token: str
) -> None:
    """What it read has changed before it wrote: it reads again, by a list."""
    await states.out_of_service("stuck")
    conflict = b'{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Conflict","code":409}'
    tls = ssl.create_default_context(cafile=installed.ca_file)
    connector = aiohttp.TCPConnector(ssl=tls)
    async with proxied(lambda: aiohttp.ClientSession(installed.url, connector=connector)) as proxy:
        proxy.fault = lambda seen: (
            Answer(409, conflict)
            if seen.method == "PATCH" and proxy.count("PATCH", ".*/status") == 1
            else None
        )
        result = await podlife("gc", "sweep", "--yes", "--server", proxy.url, "--token", token)
    assert (result.code, result.err) == (0, "")
    assert proxy.count("PATCH", ".*/status") == 2
    assert await states.names() == set()


@pytest.mark.parametrize("right", _rights(), ids=str)
async def test_without_any_single_verb_something_is_refused(
    states: States, client: Client, account_client: Client, account: list[str], right: Right
) -> None:
    async with AsyncExitStack() as stack:
        await taken_away(client, right, stack)
        name = ACCOUNT if right.resource == "leases" and right.verb != "create" else ""
        namespace = SYSTEM if right.role == "Role" else states.namespace

        async def is_refused() -> bool:
            return not await may(
                account_client, right.verb, right.resource, group=right.group, namespace=namespace, name=name
            )

        await until(is_refused)
        said = await watch_it_fail(states, account, right)
    assert f'cannot {right.verb} resource "{right.resource}"' in said or f"may not {right}" in said


async def taken_away(client: Client, right: Right, stack: AsyncExitStack) -> None:
    """Without the verb until the stack is left."""
    ref, namespace = (ROLES, SYSTEM) if right.role == "Role" else (CLUSTER_ROLES, "")
    role = await client.get(ref, ACCOUNT, namespace)
    rules = yaml.safe_load(yaml.safe_dump(role["rules"]))

    async def give_back() -> None:
        await client.patch(ref, ACCOUNT, {"rules": role["rules"]}, namespace)

    stack.push_async_callback(give_back)
    rules[right.rule]["verbs"].remove(right.verb)
    if not rules[right.rule]["verbs"]:
        del rules[right.rule]
    await client.patch(ref, ACCOUNT, {"rules": rules}, namespace)


async def watch_it_fail(states: States, account: list[str], right: Right) -> str:
    """What the commands say until one of them has said what is missing."""
    if right.verb == "list":
        return (await podlife("gc", "plan", *account)).err
    async with started("gc", "run", *FLAGS, *account) as run, asyncio.TaskGroup() as group:
        work = group.create_task(work_as_far_as_it_goes(states, right))
        # In a record of the log the quotes are escaped.
        await run.wait_for(f"may not {right}", f'cannot {right.verb} resource \\"{right.resource}\\"')
        work.cancel()
        return run.log.replace("\\", "")


async def work_as_far_as_it_goes(states: States, right: Right) -> None:
    await states.unscheduled("never")
    await states.orphaned("orphan")
    for _ in range(2):
        await states.out_of_service("stuck")
        if right.resource == "events":
            await until(is_gone(states, "stuck"))
        else:
            return


@pytest.mark.parametrize(
    ("verb", "resource", "where"),
    [
        ("get", "pods", {}),
        ("create", "pods", {}),
        ("update", "pods", {}),
        ("patch", "pods", {}),
        ("deletecollection", "pods", {}),
        ("create", "pods/exec", {}),
        ("create", "pods/eviction", {}),
        ("get", "pods/log", {}),
        ("update", "pods/status", {}),
        ("delete", "nodes", {}),
        ("patch", "nodes", {}),
        ("patch", "nodes/status", {}),
        ("get", "secrets", {}),
        ("list", "secrets", {}),
        ("list", "configmaps", {}),
        ("list", "namespaces", {}),
        ("delete", "namespaces", {}),
        ("create", "serviceaccounts/token", {}),
        ("list", "events", {}),
        ("delete", "events", {}),
        ("get", "leases", {"group": "coordination.k8s.io", "namespace": "kube-system", "name": ACCOUNT}),
        ("get", "leases", {"group": "coordination.k8s.io", "namespace": SYSTEM, "name": "another"}),
        ("update", "leases", {"group": "coordination.k8s.io", "namespace": SYSTEM, "name": "another"}),
        ("delete", "leases", {"group": "coordination.k8s.io", "namespace": SYSTEM, "name": ACCOUNT}),
        ("create", "leases", {"group": "coordination.k8s.io", "namespace": "kube-system"}),
        ("delete", "deployments", {"group": "apps"}),
        ("create", "clusterrolebindings", {"group": "rbac.authorization.k8s.io"}),
    ],
)
async def test_nothing_else_is_allowed(
    account_client: Client, verb: str, resource: str, where: dict[str, str]
) -> None:
    assert not await may(account_client, verb, resource, **where)


def test_every_verb_of_the_manifests_is_one_of_these() -> None:
    """So that whoever adds one sees that it is to be proven needed above."""
    assert sorted(map(str, _rights())) == [
        "create events",
        "create leases",
        "delete pods",
        "get leases",
        "get nodes",
        "list nodes",
        "list pods",
        "patch events",
        "patch pods/status",
        "update leases",
        "watch nodes",
        "watch pods",
    ]
