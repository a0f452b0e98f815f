"""The test kit itself: a cluster that comes up, time that is turned, parts that come and go."""

from __future__ import annotations

import asyncio
import itertools
import os
import subprocess
import sys
from typing import Any

import pytest

from podlife.client import DEPLOYMENTS, NAMESPACES, NODES, PODS, Client
from podlife.errors import ConfigError, UnreachableError
from podlife.testing import (
    Behaviour,
    Cluster,
    ClusterNodeSpec,
    ExecResult,
    NotSettledError,
    function,
    is_gone,
    virtual_time,
)
from tests.kit import objects

Object = dict[str, Any]
ONCE = {"restartPolicy": "Never"}


def pod(name: str = "web", node: str = "n1", *, spec: Object | None = None, **fields: Any) -> Object:
    bound: Object = {"nodeName": node} if node else {}
    return objects.pod(name, objects.container(**{"image": "app", **fields}), **bound, **(spec or {}))


async def run(cluster: Cluster, *pods: Object) -> None:
    for each in pods or (pod(),):
        await cluster.client.create(PODS, each, "default")
    await cluster.settled()


def deployment(replicas: int, name: str = "web") -> Object:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(node="")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def ready(obj: Object) -> str:
    return next(str(each["status"]) for each in obj["status"]["conditions"] if each["type"] == "Ready")


async def phases(cluster: Cluster) -> dict[str, str]:
    found = (await cluster.client.list(PODS, "default")).items
    return {each["metadata"]["name"]: each["status"].get("phase", "") for each in found}


@virtual_time
async def test_a_deployment_runs_on_all_nodes_and_time_has_hardly_passed() -> None:
    async with Cluster(nodes=3) as cluster:
        await cluster.client.create(DEPLOYMENTS, deployment(6), "default")
        await cluster.settled()
        assert list((await phases(cluster)).values()) == ["Running"] * 6
        assert {len(node.containers) for node in cluster.nodes.values()} == {2}
        assert cluster.time < 10


@virtual_time
async def test_advance_ends_at_its_second_with_everything_done_that_is_due_then() -> None:
    async with Cluster(controllers=()) as cluster:
        cluster.behave(Behaviour(run_seconds=60))
        await cluster.client.create(PODS, pod(spec=ONCE), "default")
        began = cluster.time
        await cluster.advance(seconds=59)
        assert await phases(cluster) == {"web": "Running"}
        await cluster.advance(seconds=1)
        assert cluster.time - began == pytest.approx(60)
        assert await phases(cluster) == {"web": "Succeeded"}


@virtual_time
async def test_the_same_seed_gives_the_same_run_to_the_last_uid() -> None:
    async def play(seed: int) -> list[str]:
        async with Cluster(nodes=3, seed=seed, toleration_seconds=30) as cluster:
            await cluster.client.create(DEPLOYMENTS, deployment(4), "default")
            await cluster.settled()
            await cluster.node("n2").stop()
            await cluster.advance(minutes=3)
            uids = [each["metadata"]["uid"] for each in (await cluster.client.list(PODS)).items]
            began = cluster.audit.entries[0].at
            return [*uids, *(f"{entry.at - began:.6f} {entry.who} {entry.path}" for entry in cluster.audit)]

    first, again, other = await play(7), await play(7), await play(8)
    assert first == again
    assert first[0] != other[0]


def test_outside_of_virtual_time_a_cluster_says_what_to_do() -> None:
    async def use() -> None:
        async with Cluster():
            pass

    with pytest.raises(ConfigError, match="use the fixture podlife_cluster or the decorator @virtual_time"):
        asyncio.run(use())


@virtual_time
async def test_mistakes_of_a_test_are_told_in_one_line() -> None:
    with pytest.raises(ConfigError, match="is not running: use it in `async with Cluster"):
        Cluster().client  # noqa: B018 - asking is the mistake
    with pytest.raises(
        ConfigError, match=r"unknown controller 'replicasets'; choose from .*replicaset-controller"
    ):
        Cluster(controllers=("replicasets",))
    with pytest.raises(ConfigError, match="duplicate node name 'a'"):
        Cluster(nodes=("a", "a"))
    with pytest.raises(ConfigError, match="sockets do not work under virtual time"):
        await Cluster(socket=True).__aenter__()
    async with Cluster(nodes=2, controllers=()) as cluster:
        with pytest.raises(ConfigError, match="unknown node 'n3'; this cluster has n1, n2"):
            cluster.node("n3")
        with pytest.raises(ConfigError, match="advance, not by -1 s"):
            await cluster.advance(seconds=-1)
        with pytest.raises(ConfigError, match="no socket: create it with Cluster"):
            cluster.kubeconfig  # noqa: B018 - asking is the mistake
        with pytest.raises(ConfigError, match="pod web is not running on n1; running: nothing"):
            cluster.node("n1").end_container("web")
        with pytest.raises(ConfigError, match="is already running"):
            await cluster.__aenter__()


@virtual_time
async def test_what_never_settles_is_told_with_its_last_changes() -> None:
    async def restless(client: Client) -> None:
        for number in itertools.count():
            await client.patch(NAMESPACES, "default", {"metadata": {"annotations": {"at": str(number)}}})
            await asyncio.sleep(1)

    async with Cluster(controllers={"restless": function(restless)}) as cluster:
        with pytest.raises(NotSettledError, match=r"not settled after 30 s.*(?s:.)*restless +PATCH"):
            await cluster.settled(within=30)
        with pytest.raises(NotSettledError, match="the moon: not met after 5 s"):
            await cluster.until(lambda: False, within=5, what="the moon")


@virtual_time
async def test_a_controller_that_fails_ends_the_cluster_with_its_reason() -> None:
    async def broken(client: Client) -> None:
        await client.list(PODS)
        raise ZeroDivisionError("of the test's own controller")

    with pytest.raises(ZeroDivisionError, match="own controller"):
        async with Cluster(controllers={"broken": function(broken)}) as cluster:
            await cluster.advance(minutes=1)


@virtual_time
async def test_a_failing_test_fails_with_its_own_error() -> None:
    with pytest.raises(AssertionError, match="mine"):
        async with Cluster():
            raise AssertionError("mine")


@virtual_time
async def test_without_power_nothing_runs_and_a_boot_runs_it_again() -> None:
    async with Cluster(controllers=()) as cluster:
        node = cluster.node("n1")
        await run(cluster)
        await node.power_off()
        assert list(node.containers) == []
        await node.start()
        await cluster.advance(seconds=30)
        assert [each.pod for each in node.containers] == ["web"]


@virtual_time
async def test_containers_follow_the_last_rule_that_fits() -> None:
    async with Cluster(controllers=()) as cluster:
        cluster.behave(Behaviour(run_seconds=1, exit_code=3))
        cluster.behave(Behaviour(), pod="web-*")
        cluster.behave(Behaviour(start_seconds=20), image="slow")
        for each in (pod("job", spec=ONCE), pod("web-1", spec=ONCE), pod("lazy", spec=ONCE, image="slow")):
            await cluster.client.create(PODS, each, "default")
        await cluster.advance(seconds=10)
        assert await phases(cluster) == {"job": "Failed", "web-1": "Running", "lazy": "Pending"}
        await cluster.advance(seconds=20)
        assert (await phases(cluster))["lazy"] == "Running"


@virtual_time
async def test_a_container_ends_when_it_is_told_to_and_is_started_again() -> None:
    async with Cluster(controllers=()) as cluster:
        await run(cluster)
        cluster.node("n1").end_container("web", "main", exit_code=7)
        await cluster.settled()
        [status] = (await cluster.client.get(PODS, "web", "default"))["status"]["containerStatuses"]
        assert status["restartCount"] == 1
        assert status["lastState"]["terminated"]["exitCode"] == 7


@pytest.mark.parametrize("kind", ["httpGet", "tcpSocket", "grpc"])
@virtual_time
async def test_a_probe_over_the_network_is_answered_by_the_script(kind: str) -> None:
    asked: list[str] = []

    def answer(command: Any) -> ExecResult:
        asked.append(command[0])
        return ExecResult(0 if cluster.time > 60 else 1, b"", b"")

    async with Cluster(controllers=()) as cluster:
        cluster.behave(Behaviour(exec=answer))
        probe = {kind: {"port": 8080}, "periodSeconds": 5}
        await cluster.client.create(PODS, pod(readinessProbe=probe), "default")

        async def is_ready() -> bool:
            return ready(await cluster.client.get(PODS, "web", "default")) == "True"

        await cluster.advance(seconds=50)
        assert not await is_ready()
        assert await cluster.until(is_ready, within=20) < 20
        assert set(asked) == {kind}


@virtual_time
async def test_nodes_are_as_they_are_described_and_more_may_join() -> None:
    zone = {"topology.kubernetes.io/zone": "a"}
    async with Cluster(
        nodes=[ClusterNodeSpec("big", labels=zone, cores=64, max_pods=5)], controllers=()
    ) as cluster:
        await cluster.add_node("late")
        nodes = {each["metadata"]["name"]: each for each in (await cluster.client.list(NODES)).items}
        assert set(nodes) == {"big", "late"}
        assert nodes["big"]["metadata"]["labels"]["topology.kubernetes.io/zone"] == "a"
        assert nodes["big"]["status"]["capacity"]["cpu"] == "64"
        assert nodes["big"]["status"]["capacity"]["pods"] == "5"
        with pytest.raises(ConfigError, match="node 'late' already exists"):
            await cluster.add_node("late")
        await cluster.node("late").remove()
        assert [each["metadata"]["name"] for each in (await cluster.client.list(NODES)).items] == ["big"]


@virtual_time
async def test_a_controller_that_is_away_does_nothing_and_goes_on_when_it_is_back() -> None:
    async with Cluster(controllers=("deployment", "replicaset", "scheduler")) as cluster:
        assert list(cluster.controllers) == ["deployment-controller", "replicaset-controller", "scheduler"]
        await cluster.controllers.stop("replicaset")
        assert not cluster.controllers.is_running("replicaset")
        with pytest.raises(ConfigError, match="replicaset-controller is not running"):
            cluster.controllers.faults("replicaset")
        await cluster.client.create(DEPLOYMENTS, deployment(2), "default")
        await cluster.settled()
        assert await phases(cluster) == {}
        await cluster.controllers.start("replicaset")
        await cluster.settled()
        assert len(await phases(cluster)) == 2
        await cluster.controllers.restart("scheduler")
        await cluster.client.scale(DEPLOYMENTS, "web", "default", 3)
        await cluster.settled()
        assert list((await phases(cluster)).values()) == ["Running"] * 3


@virtual_time
async def test_a_way_that_is_cut_stalled_or_loses_answers_looks_like_a_bad_network() -> None:
    async with Cluster(nodes=0, controllers=()) as cluster:
        client, faults = cluster.connect("mine")
        faults.cut()
        with pytest.raises(UnreachableError, match="refused"):
            await client.create(PODS, pod("a"), "default")
        faults.restore()
        faults.loses_answers = True
        with pytest.raises(UnreachableError, match="broke before the response"):
            await client.create(PODS, pod("b"), "default")
        faults.loses_answers = False
        assert set(await phases(cluster)) == {"b"}
        faults.stall()
        asyncio.get_running_loop().call_later(30, faults.resume)
        began = cluster.time
        await client.get(PODS, "b", "default")
        assert cluster.time - began == pytest.approx(30)
        assert [entry.status for entry in cluster.audit.find(who="mine")] == [201]
        await client.close()


@virtual_time
async def test_watches_that_break_are_taken_up_again_and_nothing_is_missed() -> None:
    async with Cluster(controllers=()) as cluster, cluster.timeline(PODS) as seen:
        for number in range(4):
            await cluster.client.create(PODS, pod(f"p{number}", node=""), "default")
            cluster.api.break_watches()
            await cluster.client.delete(PODS, f"p{number}", "default")
            await cluster.advance(seconds=30)
        assert [seen.first("Pod", f"p{number}", is_gone) is not None for number in range(4)] == [True] * 4


_ELSEWHERE = """
from podlife.client import PODS
from podlife.testing import Cluster, run_virtually

async def main():
    async with Cluster(nodes=3, seed=5, toleration_seconds=20) as cluster:
        for number in range(6):
            spec = {"containers": [{"name": "main", "image": "app"}]}
            await cluster.client.create(PODS, {"metadata": {"generateName": "p-"}, "spec": spec}, "default")
        await cluster.settled()
        await cluster.node("n1").stop()
        cluster.api.break_watches()
        await cluster.advance(minutes=2)
        print(*cluster.audit, sep="\\n")

run_virtually(main)
"""


def test_the_same_seed_gives_the_same_run_in_every_process() -> None:
    runs = {
        subprocess.run(
            [sys.executable, "-c", _ELSEWHERE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(runs) == 1
    assert "taint-eviction-controller" in runs.pop()
