"""`podlife controllers run` as a process: what it keeps, what it says, how it ends."""

from __future__ import annotations

import json
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from podlife.client import EVENTS, LEASES, PODS, REPLICA_SETS, Client
from tests.component.cli.commands import LONG_LEASE, SHORT_LEASE, Running, last_words, podlife, started
from tests.component.cli.conftest import Server
from tests.component.cli.test_gc_run import fetch
from tests.kit.real_parts import free_port
from tests.kit.wait import until

ONE = ["--controllers=replicaset"]
ALONE = [*ONE, "--leader-elect=false"]
ELECTION = [*ONE, *LONG_LEASE]
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


@asynccontextmanager
async def controlling(*flags: str) -> AsyncIterator[Running]:
    async with started("controllers", "run", *flags) as running:
        await running.wait_for("watching over")
        yield running


async def make_replica_set(client: Client, replicas: int, name: str = "web") -> None:
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}
    await client.create(REPLICA_SETS, {"metadata": {"name": name}, "spec": spec}, "default")


def has_pods(client: Client, count: int) -> Any:
    async def has() -> bool:
        return len((await client.list_all(PODS, "default")).items) == count

    return has


def has_status(client: Client, count: int) -> Any:
    async def has() -> bool:
        status = (await client.get(REPLICA_SETS, "web", "default")).get("status") or {}
        return bool(status.get("replicas", 0) == count)

    return has


async def is_told(client: Client, *, created: int, deleted: int) -> bool:
    reasons = [event["reason"] for event in (await client.list_all(EVENTS, "default")).items]
    return (reasons.count("SuccessfulCreate"), reasons.count("SuccessfulDelete")) == (created, deleted)


async def test_it_keeps_pods_tells_its_numbers_and_gives_the_lease_back(
    server: Server, client: Client
) -> None:
    port = free_port()
    async with controlling(*ELECTION, "--listen", f"127.0.0.1:{port}", *server.admin) as run:
        await run.wait_for("became leader of lease kube-system/podlife-controllers")
        await make_replica_set(client, 5)
        await until(has_status(client, 5))
        await client.scale(REPLICA_SETS, "web", "default", 2)
        await until(has_status(client, 2))
        await until(lambda: is_told(client, created=5, deleted=3))
        metrics = ""

        async def is_idle() -> bool:
            """What the last change of a status has put there is still to be looked at."""
            nonlocal metrics
            _, metrics = await fetch(port, "metrics")
            return 'workqueue_depth{name="replicaset"} 0.0' in metrics

        await until(is_idle)
        ready, health = [await fetch(port, path) for path in ("readyz", "healthz")]
        result = await run.end()
    assert (result.code, result.out) == (0, "")
    assert (ready, health) == ((200, "ok"), (200, "ok"))
    for line in (
        'leader_election_master_status{name="podlife-controllers"} 1.0',
        'podlife_controller_reconcile_total{controller="replicaset-controller",result="success"}',
        'podlife_informer_live{resource="replicasets.apps"',
        'podlife_informer_objects{resource="pods",view="podlife.workloads.views.WorkloadPod"}',
        "podlife_client_limit ",
    ):
        assert line in metrics
    lease = await client.get(LEASES, "podlife-controllers", "kube-system")
    assert not lease["spec"].get("holderIdentity"), "the lease is given back"
    assert await is_told(client, created=5, deleted=3), "and no more"
    records = [json.loads(line) for line in result.err.splitlines()]
    assert {"running: replicaset-controller", "shutting down: finishing in-flight requests"} <= {
        record["message"] for record in records
    }
    assert records[-1]["message"] == "ended, lease kube-system/podlife-controllers released"
    created = sum(record["message"].count("pods created") for record in records)
    assert 1 <= created <= 3, "what was done is told, in one line for many"


async def test_a_signal_in_the_middle_finishes_what_is_under_way_and_a_restart_goes_on_from_there(
    server: Server, client: Client
) -> None:
    await make_replica_set(client, 100)
    async with controlling(*ALONE, *server.admin) as run:

        async def has_begun() -> bool:
            return bool((await client.list_all(PODS, "default")).items)

        await until(has_begun)
        result = await run.end()
    assert result.code == 0, result.err
    assert await has_pods(client, 100)(), "what was under way is finished"
    await client.scale(REPLICA_SETS, "web", "default", 110)
    async with controlling(*ALONE, *server.admin) as run:
        await until(has_status(client, 110))
        assert (await run.end()).code == 0
    assert await has_pods(client, 110)()


async def test_one_of_two_works_and_the_other_takes_over_when_it_is_killed(
    server: Server, client: Client
) -> None:
    flags = [*ELECTION, *SHORT_LEASE, *server.admin]
    async with controlling("--leader-elect-identity=first", *flags) as first:
        await first.wait_for("first became leader of lease")
        async with controlling("--leader-elect-identity=second", *flags) as second:
            await second.wait_for(
                "second waiting for lease kube-system/podlife-controllers: held by first since 20"
            )
            await second.wait_for("if each has its own --leader-elect-resource-name")
            await first.end(signal.SIGKILL)
            await make_replica_set(client, 3)
            await second.wait_for("second became leader of lease")
            await until(has_status(client, 3))
            assert (await second.end()).code == 0


async def test_a_right_that_is_missing_is_one_line_that_says_where_it_stands(server: Server) -> None:
    result = await podlife("controllers", "run", *ALONE, *server.nobody)
    assert result.code == 1
    assert "user nobody may not" in last_words(result)
    assert "deploy/controllers/rbac.yaml has all that is needed" in last_words(result)


async def test_without_an_election_there_is_no_lease(server: Server, client: Client) -> None:
    async with controlling(*ALONE, *server.admin) as run:
        await run.wait_for("running: replicaset-controller")
        assert not (await client.list_all(LEASES, "kube-system")).items
        assert (await run.end(signal.SIGINT)).code == 0
