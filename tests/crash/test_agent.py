"""A node's agent killed with -9 in every phase of a pod, and started again: no container runs twice, none is lost,
every exit code is told, and the pod ends as it should."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podlife.client import LEASES, NODES, PODS, Client, DeleteOptions, Flags, PatchType, load
from podlife.errors import NotFoundError
from tests.kit.agent_process import AgentProcess, running_agent
from tests.kit.server_process import ServerProcess, running_server
from tests.kit.wait import until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")

Object = dict[str, Any]
HELD = "test.example/hold"
LOOP = "while :; do sleep 0.05; done"
# How long anything may take that is waited for.
SECONDS = 120.0


class World:
    """A server and an agent, both processes; containers write a line to `witness` when they begin."""

    def __init__(self, folder: Path, server: ServerProcess, agent: AgentProcess, client: Client) -> None:
        self.folder = folder
        self.server = server
        self.agent = agent
        self.client = client

    def container(self, name: str, then: str, *, on_term: str = "", **fields: Any) -> Object:
        """`on_term` is what it does when it is asked to end: from before it says that it has begun."""
        first = f"trap '{on_term}' TERM; " if on_term else ""
        script = f"{first}echo {name} $$$$ >> {self.folder}/witness; {then}"
        return {"name": name, "image": "none", "command": ["sh", "-c", script], **fields}

    async def create(self, *containers: Object, **spec: Any) -> None:
        # Held, so that its last status can be seen after the node has finished with it.
        metadata = {"name": "web", "finalizers": [HELD]}
        spec = {"nodeName": "n1", "containers": list(containers), "restartPolicy": "Never", **spec}
        await self.client.create(PODS, {"metadata": metadata, "spec": spec}, "default")

    async def delete(self, grace_seconds: int | None = None) -> None:
        options = DeleteOptions(grace_period_seconds=grace_seconds)
        await self.client.delete(PODS, "web", "default", options=options)

    async def patch(self, **metadata: Any) -> None:
        change = {"metadata": metadata}
        await self.client.patch(PODS, "web", change, "default", type=PatchType.MERGE)

    def restart_agent(self) -> None:
        self.agent.kill()
        self.agent.start()

    async def until(self, is_so: Callable[[Object], bool]) -> Object:
        seen: Object = {}
        try:
            async with asyncio.timeout(SECONDS):
                while not is_so(seen := await self.client.get(PODS, "web", "default")):
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(seen["status"]) from None
        return seen

    async def until_file(self, name: str) -> None:
        await until((self.folder / name).exists, seconds=SECONDS)

    async def until_running(self, *names: str) -> Object:
        """The cluster says so, and these containers (`main`, where none is named) have said that they began."""
        pod = await self.until(is_running)
        await until(lambda: set(names or ("main",)) <= self.starts().keys(), seconds=SECONDS)
        return pod

    async def until_finished(self) -> Object:
        """The node has finished with the deleted pod: only what holds it is left. Answers its last state."""
        pod = await self.until(lambda each: each["metadata"].get("deletionGracePeriodSeconds") == 0)
        await self.patch(finalizers=None)
        return pod

    def _witnessed(self) -> list[list[str]]:
        path = self.folder / "witness"
        return [line.split() for line in path.read_text().splitlines()] if path.exists() else []

    def starts(self) -> Counter[str]:
        """How often each container began."""
        return Counter(name for name, _ in self._witnessed())

    def alive(self) -> list[int]:
        """Processes that containers left running."""
        return [int(pid) for _, pid in self._witnessed() if Path(f"/proc/{pid}").exists()]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("server")) as one:
        made = one.run("kubeconfig", "--node", "n1", "-o", str(one.data / "node.kubeconfig"))
        assert made.returncode == 0, made.stderr
        yield one


@pytest.fixture
async def world(server: ServerProcess, tmp_path: Path) -> AsyncIterator[World]:
    with running_agent(tmp_path / "agent", server.data / "node.kubeconfig") as agent:
        async with Client.connect(load(Flags(kubeconfig=str(server.kubeconfig)))) as client:
            one = World(tmp_path, server, agent, client)
            try:
                yield one
            finally:
                for pid in one.alive():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                if agent.is_running:
                    agent.kill()
                # The next test is another machine under the same name.
                for ref, namespace in ((NODES, ""), (LEASES, "kube-node-lease")):
                    with contextlib.suppress(NotFoundError):
                        await client.delete(ref, "n1", namespace)


def state(pod: Object, name: str = "main") -> Object:
    statuses = pod["status"]["containerStatuses"]
    found: Object = next(each["state"] for each in statuses if each["name"] == name)
    return found


def refusal_of(agent: AgentProcess) -> str:
    ended = subprocess.run(
        agent.command, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL
    )
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    return ended.stderr


def is_running(pod: Object) -> bool:
    return pod["status"].get("phase") == "Running" and "running" in state(pod)


async def test_an_agent_killed_while_a_pod_starts_starts_what_is_left_and_nothing_twice(
    world: World, tmp_path: Path
) -> None:
    first = world.container("first", f"touch {tmp_path}/first; sleep 0.5")
    await world.create(
        world.container("main", "exec sleep 1000"),
        world.container("other", "exec sleep 1000"),
        initContainers=[first],
        terminationGracePeriodSeconds=1,
    )
    await world.until_file("first")
    world.restart_agent()
    pod = await world.until_running("first", "main", "other")
    assert world.starts() == {"first": 1, "main": 1, "other": 1}
    assert [each["restartCount"] for each in pod["status"]["containerStatuses"]] == [0, 0]
    await world.delete()
    await world.until_finished()
    assert not world.alive()


async def test_what_ended_while_there_was_no_agent_is_told_with_its_exit_code(
    world: World, tmp_path: Path
) -> None:
    end = tmp_path / "end"
    await world.create(
        world.container("main", f"while [ ! -e {end} ]; do sleep 0.02; done; touch {tmp_path}/ended; exit 7")
    )
    await world.until_running()
    world.agent.kill()
    end.touch()
    await world.until_file("ended")
    world.agent.start()
    pod = await world.until(lambda each: each["status"].get("phase") == "Failed")
    assert state(pod)["terminated"]["exitCode"] == 7
    assert world.starts() == {"main": 1}
    await world.delete()
    await world.until_finished()


async def test_a_running_pod_does_not_notice_that_its_agent_was_killed(world: World, tmp_path: Path) -> None:
    await world.create(world.container("main", "exec sleep 1000"), restartPolicy="Always")
    before = await world.until_running()
    world.restart_agent()
    await world.patch(labels={"seen": "again"})
    await asyncio.sleep(0.5)
    after = await world.client.get(PODS, "web", "default")
    assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
    assert world.starts() == {"main": 1}
    await world.delete(1)
    await world.until_finished()


async def test_an_agent_killed_in_a_hook_ends_the_pod_all_the_same(world: World, tmp_path: Path) -> None:
    hook = f"touch {tmp_path}/hook; [ -e {tmp_path}/go ] || exec sleep 1000"
    handler = {"preStop": {"exec": {"command": ["sh", "-c", hook]}}}
    main = world.container("main", LOOP, on_term="exit 3", lifecycle=handler)
    await world.create(main, terminationGracePeriodSeconds=60)
    await world.until_running()
    await world.delete()
    await world.until_file("hook")
    world.agent.kill()
    (tmp_path / "go").touch()
    world.agent.start()
    pod = await world.until_finished()
    assert state(pod)["terminated"]["exitCode"] == 3
    assert pod["status"]["phase"] == "Failed"
    assert world.starts() == {"main": 1}
    assert not world.alive()


async def test_an_agent_killed_between_the_request_to_end_and_the_end_sees_it_through(
    world: World, tmp_path: Path
) -> None:
    main = world.container("main", LOOP, on_term=f"touch {tmp_path}/asked")
    await world.create(main, terminationGracePeriodSeconds=2)
    await world.until_running()
    await world.delete()
    await world.until_file("asked")
    world.restart_agent()
    pod = await world.until_finished()
    assert state(pod)["terminated"]["exitCode"] == 137
    assert world.starts() == {"main": 1}
    assert not world.alive()


async def test_an_agent_killed_before_it_could_tell_of_the_end_tells_it_when_it_is_back(
    world: World, tmp_path: Path
) -> None:
    main = world.container("main", LOOP, on_term=f"touch {tmp_path}/asked; sleep 0.3; exit 5")
    await world.create(main, terminationGracePeriodSeconds=60)
    await world.until_running()
    await world.delete()
    await world.until_file("asked")
    os.kill(world.server.pid, signal.SIGSTOP)
    try:
        await until(lambda: not world.alive(), seconds=SECONDS)
        world.agent.kill()
    finally:
        os.kill(world.server.pid, signal.SIGCONT)
    assert "deletionTimestamp" in (await world.client.get(PODS, "web", "default"))["metadata"]
    world.agent.start()
    pod = await world.until_finished()
    assert state(pod)["terminated"]["exitCode"] == 5
    assert pod["status"]["phase"] == "Failed"


async def test_a_pod_that_was_deleted_at_once_while_there_was_no_agent_is_ended_on_the_node(
    world: World, tmp_path: Path
) -> None:
    await world.create(world.container("main", "exec sleep 1000"))
    await world.until_running()
    world.agent.kill()
    await world.patch(finalizers=None)
    await world.delete(0)
    with pytest.raises(NotFoundError):
        await world.client.get(PODS, "web", "default")
    assert world.alive()
    world.agent.start()
    await until(lambda: not world.alive(), seconds=SECONDS)


async def test_an_agent_told_to_stop_leaves_its_pods_running_and_a_second_one_is_refused(
    world: World, tmp_path: Path
) -> None:
    await world.create(world.container("main", "exec sleep 1000"), terminationGracePeriodSeconds=1)
    await world.until_running()
    [line] = refusal_of(world.agent).splitlines()
    assert "another node agent uses" in line
    assert world.agent.stop() == 0
    assert world.alive()
    world.agent.start()
    await world.delete()
    await world.until_finished()
    assert not world.alive()


def test_an_agent_with_the_credentials_of_another_node_is_told_so(
    server: ServerProcess, tmp_path: Path
) -> None:
    other = AgentProcess(tmp_path, server.data / "node.kubeconfig", name="n2")
    [line] = refusal_of(other).splitlines()
    assert "are not those of node n2 (403)" in line


async def test_a_second_agent_under_the_name_of_a_live_one_is_refused_and_runs_nothing(
    world: World, server: ServerProcess, tmp_path: Path
) -> None:
    await world.create(world.container("main", LOOP))
    await world.until_running()
    other = AgentProcess(tmp_path / "other", server.data / "node.kubeconfig")
    refused = await asyncio.to_thread(refusal_of, other)
    assert "node 'n1' is already served by another agent" in refused.splitlines()[-1]
    assert world.starts() == Counter({"main": 1})
    assert world.agent.is_running
    await world.delete()
    await world.until_finished()
