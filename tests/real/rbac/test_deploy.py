"""`deploy/gc` and `deploy/controllers` on podlife's own server: with exactly the rights of their manifests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from podlife.api.codec import Object, decode_object
from podlife.client import DEPLOYMENTS, PODS, Client, Flags, load
from podlife.errors import NotFoundError
from tests.component.cli.commands import started
from tests.kit.real_parts import ROOT, Server, run_kubectl
from tests.kit.wait import until
from tests.real.podgc.cluster import connect, make_namespace, make_pod

SYSTEM = "podlife-system"
RULES = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"
ELECTION = (
    f"--leader-elect-resource-namespace={SYSTEM}",
    "--leader-elect-lease-duration=30s",
    "--leader-elect-renew-deadline=20s",
    "--leader-elect-retry-period=300ms",
)


def account(server: Server, name: str) -> list[str]:
    """Flags that connect as a service account."""
    user = f"system:serviceaccount:{SYSTEM}:{name}"
    groups = f"system:serviceaccounts,system:serviceaccounts:{SYSTEM}"
    file = server.folder / "data" / "tokens.csv"
    if user not in file.read_text():
        with file.open("a") as tokens:
            tokens.write(f'{name}-token,{user},{user},"{groups}"\n')
    return [
        "--server",
        server.url,
        "--certificate-authority",
        str(server.ca_file),
        "--token",
        f"{name}-token",
    ]


def apply(server: Server, folder: Path) -> None:
    run = run_kubectl("apply", "-k", str(folder), kubeconfig=server.kubeconfig)
    assert run.returncode == 0, run.stderr


@pytest.fixture
async def client(podlife_server: Server) -> AsyncIterator[Client]:
    async with connect(podlife_server) as client:
        await make_namespace(client, "deployed")
        yield client


def granted(folder: Path) -> list[Object]:
    """The rules of the manifests, as a user's rules are shown."""
    documents = [each for file in folder.glob("rbac*.yaml") for each in yaml.safe_load_all(file.read_text())]
    return [rule for each in documents for rule in each.get("rules", ())]


async def rules_of(server: Server, name: str) -> list[Object]:
    flags = account(server, name)
    connection = load(Flags(server=flags[1], certificate_authority=flags[3], token=flags[5]), {})
    async with Client.connect(connection) as client:
        kind = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview"}
        reply = await client.request("POST", RULES, body={**kind, "spec": {"namespace": SYSTEM}})
        rules: list[Object] = decode_object(reply.body)["status"]["resourceRules"]
    # What every user has.
    return [rule for rule in rules if not rule["resources"][0].startswith("selfsubject")]


def in_order(rules: list[Object]) -> list[str]:
    return sorted(str({key: sorted(values) for key, values in sorted(rule.items())}) for rule in rules)


async def test_the_collector_runs_with_exactly_its_rights(podlife_server: Server, client: Client) -> None:
    apply(podlife_server, ROOT / "deploy" / "gc")
    flags = account(podlife_server, "podlife-gc")
    assert in_order(await rules_of(podlife_server, "podlife-gc")) == in_order(granted(ROOT / "deploy" / "gc"))
    async with started("gc", "run", "--quarantine=200ms", "--period=500ms", *ELECTION, *flags) as run:
        await run.wait_for("became leader of lease")
        await make_pod(client, "orphan", "deployed", node="node-that-is-gone")

        async def is_gone() -> bool:
            try:
                await client.get(PODS, "orphan", "deployed")
            except NotFoundError:
                return True
            return False

        await until(is_gone)
        result = await run.end()
    assert (result.code, "forbidden" in result.err) == (0, False), result.err


async def test_the_controllers_run_with_exactly_their_rights(podlife_server: Server, client: Client) -> None:
    folder = ROOT / "deploy" / "controllers"
    apply(podlife_server, folder)
    flags = account(podlife_server, "podlife-controllers")
    held, wanted = in_order(await rules_of(podlife_server, "podlife-controllers")), in_order(granted(folder))
    assert held == wanted
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"a": "b"}}, "template": pod}
    async with started("controllers", "run", "--controllers=*,-podgc", *ELECTION, *flags) as run:
        await run.wait_for("became leader of lease")
        await client.create(DEPLOYMENTS, {"metadata": {"name": "web", "namespace": "deployed"}, "spec": spec})

        async def count() -> int:
            return len((await client.list_all(PODS, "deployed")).items)

        async def has_two() -> bool:
            return await count() == 2

        async def has_none() -> bool:
            return await count() == 0

        await until(has_two)
        await client.delete(DEPLOYMENTS, "web", "deployed")
        await until(has_none)
        result = await run.end()
    assert (result.code, "forbidden" in result.err) == (0, False), result.err
