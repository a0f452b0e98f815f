"""`podlife gc run` as a process: what it collects, what it says, how it ends, and what it survives."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from podlife.client import EVENTS, LEASES, Client, Flags, PatchType, load
from tests.component.cli.commands import LONG_LEASE, Running, assert_one_line, last_words, podlife, started
from tests.component.cli.conftest import Server
from tests.component.cli.faulty_proxy import Answer, FaultyProxy, FirstDeletes
from tests.kit.gc_states import States
from tests.kit.real_parts import free_port
from tests.kit.server_process import running_server
from tests.kit.wait import until

QUICK = ["--quarantine", "300ms", "--period", "300ms"]
ALONE = ["--no-leader-elect", *QUICK]
ELECTION = [*LONG_LEASE, *QUICK]


@asynccontextmanager
async def collecting(*flags: str) -> AsyncIterator[Running]:
    async with started("gc", "run", *flags) as running:
        await running.wait_for("watching over")
        yield running


def left(states: States, *names: str) -> Any:
    async def are_left() -> bool:
        return await states.names() == set(names)

    return are_left


async def test_it_tells_which_policy_it_decides_by(server: Server, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(
        "apiVersion: podlife.dev/v1\nkind: PodGCPolicy\nrules: [{name: old, ttlAfterFinished: 1d}]\n"
    )
    async with collecting("--policy", str(file), "--no-leader-elect", *server.admin) as run:
        result = await run.end()
    [line] = [json.loads(line) for line in result.err.splitlines() if "watching over" in line]
    assert (line["policy"], line["rules"]) == (str(file), 1)


async def test_what_becomes_collectable_is_collected_for_all_four_reasons(
    server: Server, states: States, client: Client
) -> None:
    port = free_port()
    flags = ["--terminated-pod-gc-threshold", "2", "--listen", f"127.0.0.1:{port}", *ELECTION]
    async with collecting(*flags, *server.admin) as run:
        await run.wait_for("became leader of lease kube-system/podlife-gc")
        await states.pod("alive")
        await states.terminated("done-0", "done-1", "done-2")
        await until(left(states, "alive", "done-1", "done-2"))
        await states.orphaned("orphan")
        await states.out_of_service("stuck")
        await states.unscheduled("never")
        await until(left(states, "alive", "done-1", "done-2", "never"))
        metrics, ready = await fetch(port, "metrics"), await fetch(port, "readyz")
        told = "deleted pod orphan (orphaned): node gc-gone no longer exists"
        await until(lambda: is_told(client, told))
        result = await run.end()
    assert (result.code, result.out) == (0, "")
    for reason in ("terminated", "orphaned", "out-of-service"):
        assert f'pod_gc_collector_force_delete_pods_total{{namespace="gc",reason="{reason}"}}' in metrics[1]
    assert 'leader_election_master_status{name="podlife-gc"} 1.0' in metrics[1]
    assert ready == (200, "ok")
    lease = await client.get(LEASES, "podlife-gc", "kube-system")
    assert not lease["spec"].get("holderIdentity"), "the lease is given back"
    records = [json.loads(line) for line in result.err.splitlines()]
    assert {"deleted: gc/orphan", "shutting down: finishing in-flight requests"} <= {
        record["message"] for record in records
    }


async def is_told(client: Client, text: str) -> bool:
    return any(text in event["message"] for event in (await client.list_all(EVENTS, "gc")).items)


async def fetch(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/{path}") as answer:
        return answer.status, await answer.text()


async def test_the_api_server_may_be_killed_and_come_back(tmp_path: Path) -> None:
    port = free_port()
    with running_server(tmp_path / "server") as server:
        kubeconfig = ["--kubeconfig", str(server.kubeconfig)]
        flags = ["--listen", f"127.0.0.1:{port}", *ALONE, *kubeconfig]
        async with (
            Client.connect(load(Flags(kubeconfig=str(server.kubeconfig)))) as client,
            collecting(*flags) as run,
        ):
            states = States(client, "gc")
            await states.begin()
            await states.out_of_service("before")
            await until(left(states))
            server.kill()

            async def is_ready(code: int) -> bool:
                return (await fetch(port, "readyz"))[0] == code

            await until(lambda: is_ready(503))
            assert (await fetch(port, "healthz")) == (200, "ok")
            server.start()
            await until(lambda: is_ready(200))
            await states.pod("alive")
            await states.out_of_service("after")
            await until(left(states, "alive"))
            assert (await run.end()).code == 0


async def test_a_storm_of_429_is_waited_out(proxy: FaultyProxy, states: States) -> None:
    proxy.fault = storm = FirstDeletes(40, Answer(429, b"{}", {"Retry-After": "0"}))
    await states.terminated(*(f"p-{number:02}" for number in range(12)))
    async with collecting("--terminated-pod-gc-threshold", "1", *ALONE, *proxy.flags) as run:
        await until(left(states, "p-11"))
        assert (await run.end()).code == 0
    assert storm.met == 40


@pytest.mark.parametrize(
    "command", [["gc", "run"], ["controllers", "run", "--controllers=replicaset"]], ids=["gc", "controllers"]
)
async def test_losing_the_lease_is_the_end_with_one_line(
    server: Server, client: Client, command: list[str]
) -> None:
    name = f"podlife-{command[0]}"
    async with started(*command, *LONG_LEASE, *server.admin) as run:
        await run.wait_for("became leader of lease")
        lease = await client.get(LEASES, name, "kube-system")
        taken = {"spec": {**lease["spec"], "holderIdentity": "somebody-else"}}
        await client.patch(LEASES, name, taken, "kube-system", type=PatchType.MERGE)
        result = await run.result()
    assert result.code == 1
    assert last_words(result) == f"lease kube-system/{name} was taken by somebody-else"


async def test_any_free_port_is_told_with_its_host_and_answers_there(server: Server) -> None:
    """Without a lease to renew, the server itself is among what makes it ready."""
    async with collecting(*ALONE, "--listen", "127.0.0.1:0", *server.admin) as run:
        found = re.search(r"health and metrics are on 127\.0\.0\.1:(\d+)", run.log)
        assert found is not None
        port = int(found[1])

        async def is_ready() -> bool:
            return (await fetch(port, "readyz"))[0] == 200

        await until(is_ready)
        shown = (await fetch(port, "readyz?verbose"))[1]
    assert shown == "[+]caches ok\n[+]server ok\nreadyz check passed\n"


async def test_every_address_of_the_machine_is_told_as_such(server: Server) -> None:
    async with collecting(*ALONE, "--listen", ":0", *server.admin) as run:
        assert re.search(r"health and metrics are on 0\.0\.0\.0:\d+", run.log)


async def test_an_address_that_is_taken_is_one_line(server: Server) -> None:
    port = int(server.url.rpartition(":")[2])
    result = await podlife("gc", "run", *ALONE, "--listen", f"127.0.0.1:{port}", *server.admin)
    assert_one_line(
        result, f"cannot listen on 127.0.0.1:{port}: address already in use; choose another port, or 0"
    )
