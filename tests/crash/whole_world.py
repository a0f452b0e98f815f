"""A whole cluster of processes for tests that kill them: `podlife up`, a Deployment and a StatefulSet on it, and what
the machine itself says of their containers.

A container takes a lock with the kernel under its pod's name for as long as it lives, and writes into a journal when it
begins and when it was told to end. So one that runs beside another of its name is found out, however short that was.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from podlife.client import DEPLOYMENTS, NODES, PODS, STATEFUL_SETS, Client, DeleteOptions, Flags, load
from podlife.errors import ApiError, PodlifeError, UnreachableError
from tests.kit.up_process import UpProcess, running_up

Object = dict[str, Any]

NODES_COUNT = 3
FLAGS = (
    *("--nodes", str(NODES_COUNT), "--node-lease-duration-seconds", "4", "--node-monitor-period", "1s"),
    # A node that is away for long loses its pods: that is to happen too.
    *("--node-monitor-grace-period", "8s", "--default-unreachable-toleration-seconds", "2"),
    *("--default-not-ready-toleration-seconds", "2"),
)
ENDING_SECONDS = 0.3
# How long anything may take that is waited for.
SECONDS = 300.0

WITNESS = f"""
import fcntl, os, signal, time
folder, name = os.environ["WITNESS"], os.environ["POD_NAME"]
journal = os.open(folder + "/journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
def say(word):
    line = (word, name, os.environ["POD_UID"], os.environ["NODE_NAME"], str(os.getpid()), "%.3f" % time.monotonic())
    os.write(journal, (" ".join(line) + "\\n").encode())
def end(number, frame):
    say("told")
    time.sleep({ENDING_SECONDS})
    say("ended")
    os._exit(0)
lock = os.open(folder + "/lock-" + name, os.O_RDWR | os.O_CREAT, 0o600)
try:
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    say("TWICE")
signal.signal(signal.SIGTERM, end)
say("began")
while True:
    signal.pause()
"""


class World:
    def __init__(self, folder: Path, up: UpProcess, client: Client, seed: int) -> None:
        self.folder = folder
        self.up = up
        self.client = client
        self.random = random.Random(seed)
        self.story = [f"PODLIFE_CRASH_SEED={seed}"]

    # What is wanted

    def _template(self, app: str, version: str) -> Object:
        def field(name: str, path: str) -> Object:
            return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}

        env = [
            field("POD_NAME", "metadata.name"),
            field("POD_UID", "metadata.uid"),
            field("NODE_NAME", "spec.nodeName"),
            {"name": "WITNESS", "value": str(self.folder)},
            {"name": "VERSION", "value": version},
        ]
        command = [sys.executable, "-I", "-S", "-c", WITNESS.replace("$", "$$")]
        container = {"name": "main", "image": "none", "command": command, "env": env}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 5}
        return {"metadata": {"labels": {"app": app}}, "spec": spec}

    async def create(self) -> None:
        for ref, name, replicas in ((DEPLOYMENTS, "web", 4), (STATEFUL_SETS, "db", 3)):
            spec = {
                "replicas": replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": self._template(name, "1"),
            }
            await self.client.create(ref, {"metadata": {"name": name}, "spec": spec}, "default")

    async def change(self) -> None:
        """Something that a user does; nobody may be there to hear of it."""
        act = self.random.choice((self._scale, self._scale, self._delete_pod, self._delete_pod, self._roll))
        try:
            async with asyncio.timeout(3):
                await act()
        except (UnreachableError, ApiError, TimeoutError) as error:
            self.story.append(f"  (nobody heard it: {error})")

    async def _scale(self) -> None:
        ref, name = self.random.choice(((DEPLOYMENTS, "web"), (STATEFUL_SETS, "db")))
        replicas = self.random.randint(1, 5 if name == "web" else 3)
        self.story.append(f"scale {name} to {replicas}")
        await self.client.scale(ref, name, "default", replicas)

    async def _roll(self) -> None:
        ref, name = self.random.choice(((DEPLOYMENTS, "web"), (STATEFUL_SETS, "db")))
        template = self._template(name, str(self.random.random()))
        self.story.append(f"another version of {name}")
        await self.client.patch(ref, name, {"spec": {"template": template}}, "default")

    async def _delete_pod(self) -> None:
        pods = await self.pods()
        if pods:
            pod = self.random.choice(pods)["metadata"]
            self.story.append(f"delete {pod['name']}")
            await self.client.delete(PODS, pod["name"], "default", options=DeleteOptions(uid=pod["uid"]))

    async def pods(self) -> list[Object]:
        return list((await self.client.list(PODS, "default")).items)

    # What is killed

    async def kill(self, *, is_long: bool) -> None:
        """Somebody, with -9, or several at once; returns when they are back. `is_long` has also what takes its time."""
        parts = ["apiserver", "controllers", *(f"node-{number}" for number in range(NODES_COUNT))]
        victims = [*parts, "supervisor", "supervisor", "launcher"]
        alone = ["up", "fork server", "silence"] if is_long else ["up"]
        if self.random.random() < 0.15:
            victims = [self.random.choice(alone)]
        else:
            victims = self.random.sample(victims, self.random.choice((1, 1, 2, 3)))
        self.story.append(f"kill {', '.join(victims)}")
        async with asyncio.TaskGroup() as group:
            for victim in victims:
                group.create_task(self._kill(victim), name=victim)

    async def _kill(self, victim: str) -> None:
        match victim:
            case "up":
                await asyncio.to_thread(self.up.kill)
                await asyncio.to_thread(self.up.start)
            case "fork server":
                await self._kill_fork_server()
            case "supervisor":
                self._kill_supervisor()
            case "launcher":
                await self._kill_launcher()
            case "silence":
                await self._silence()
            case _:
                await self._kill_part(victim)

    async def _part(self, name: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.up.part, name)

    async def _kill_part(self, name: str) -> None:
        part = await self._part(name)
        if not part["pid"]:
            return
        _send(part["pid"], signal.SIGKILL)

        async def is_back() -> bool:
            pid = (await self._part(name))["pid"]
            return bool(pid) and pid != part["pid"]

        await self._until(is_back, f"{name} is not started again", seconds=SECONDS)

    async def _kill_fork_server(self) -> None:
        """What forks the parts. Without it `podlife up` can only end, and say so."""

        async def is_up() -> bool:
            return bool((await self._part("apiserver"))["pid"])

        await self._until(is_up, "there is no apiserver", seconds=SECONDS)
        fork_server = _parent((await self._part("apiserver"))["pid"])
        assert _parent(fork_server) == self.up.pid, self.explain()
        os.kill(fork_server, signal.SIGKILL)
        assert await asyncio.to_thread(self.up.wait) == 1, self.explain()
        await asyncio.to_thread(self.up.start)

    async def _silence(self) -> None:
        """A node's agent hangs for so long that its pods are evicted."""
        part = await self._part(self.random.choice([f"node-{number}" for number in range(NODES_COUNT)]))
        if part["pid"]:
            _send(part["pid"], signal.SIGSTOP)
            await asyncio.sleep(self.random.uniform(10, 15))
            _send(part["pid"], signal.SIGCONT)

    async def _kill_launcher(self) -> None:
        """What forks the supervisors of a node."""
        part = await self._part(self.random.choice([f"node-{number}" for number in range(NODES_COUNT)]))
        for pid in (int(folder.name) for folder in Path("/proc").glob("[0-9]*")):
            if part["pid"] and _parent(pid) == part["pid"] and _is_supervisor(pid):
                _send(pid, signal.SIGKILL)

    def _kill_supervisor(self) -> None:
        running = sorted(pid for pids in self.processes().values() for pid in pids)
        if running:
            pid = self.random.choice(running)
            parent = _parent(pid)
            # The parent of one whose supervisor is gone already is somebody else.
            if _is_supervisor(parent):
                _send(parent, signal.SIGKILL)

    # What must be so

    def processes(self) -> dict[str, list[int]]:
        """Those of containers, by the UID of the pod."""
        found: dict[str, list[int]] = defaultdict(list)
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                environment = (folder / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if f"WITNESS={self.folder}".encode() in environment:
                [uid] = [each[8:].decode() for each in environment if each.startswith(b"POD_UID=")]
                found[uid].append(int(folder.name))
        return found

    def check_never_twice(self) -> None:
        journal = self.folder / "journal"
        lines = journal.read_text().splitlines() if journal.exists() else []
        assert not [line for line in lines if line.startswith("TWICE")], self.explain()

    async def settle(self, *, seconds: float = SECONDS) -> None:
        """Until everything is as it is wanted, and the machine says so too. Raises AssertionError otherwise."""
        wrong = "nothing was asked yet"

        async def is_settled() -> bool:
            nonlocal wrong
            try:
                wrong = await self._wrong()
            except PodlifeError as error:
                wrong = str(error)
            return not wrong

        try:
            await self._until(is_settled, "", seconds=seconds)
        except AssertionError:
            raise AssertionError(f"{wrong}\n{self.explain()}") from None
        self.check_never_twice()

    async def _wrong(self) -> str:
        """What is not as it is wanted; nothing where all is."""
        pods = await self.pods()
        for ref, name in ((DEPLOYMENTS, "web"), (STATEFUL_SETS, "db")):
            owner = await self.client.get(ref, name, "default")
            mine = [pod for pod in pods if pod["metadata"]["labels"]["app"] == name]
            if said := _wrong_of(owner, mine):
                return said
        for node in (await self.client.list(NODES)).items:
            if not _is_ready(node):
                return f"{node['metadata']['name']} is not ready"
        running, wanted = self.processes(), {pod["metadata"]["uid"] for pod in pods}
        if running.keys() != wanted:
            return f"processes of {sorted(running)} and pods {sorted(wanted)}"
        several = {uid: pids for uid, pids in running.items() if len(pids) != 1}
        return f"more than one process: {several}" if several else ""

    async def _until(self, is_so: Callable[[], Any], what: str, *, seconds: float) -> None:
        deadline = asyncio.get_running_loop().time() + seconds
        while not await is_so():
            assert asyncio.get_running_loop().time() < deadline, f"{what}\n{self.explain()}"
            await asyncio.sleep(0.1)

    async def until_empty(self) -> None:
        """No pods: everything that was wanted is wanted no more."""

        async def is_empty() -> bool:
            return not await self.pods()

        await self._until(is_empty, "pods are left", seconds=SECONDS)

    def explain(self) -> str:
        journal = self.folder / "journal"
        tail = journal.read_text().splitlines()[-60:] if journal.exists() else []
        return "\n".join([self.story[0], *self.story[-60:], *tail, self.up.said[-3000:], self.up.logs()])

    def end_leftovers(self) -> None:
        for pids in self.processes().values():
            for pid in pids:
                _send(pid, signal.SIGKILL)


def _wrong_of(owner: Object, pods: list[Object]) -> str:
    name, replicas, status = owner["metadata"]["name"], owner["spec"]["replicas"], owner["status"]
    if len(pods) != replicas:
        return f"{name} has {len(pods)} pods of {replicas}: {[_describe(pod) for pod in pods]}"
    if bad := [pod for pod in pods if "deletionTimestamp" in pod["metadata"] or not _is_ready(pod)]:
        return f"{name}: {[_describe(pod) for pod in bad]}"
    if owner["kind"] == "StatefulSet":
        names = {pod["metadata"]["name"] for pod in pods}
        if names != {f"{name}-{number}" for number in range(replicas)}:
            return f"{name} has {names}"
    if status.get("observedGeneration") != owner["metadata"]["generation"]:
        return f"{name} was not looked at since it changed"
    if (status.get("readyReplicas", 0), status.get("updatedReplicas", 0)) != (replicas, replicas):
        return f"{name} says {status}"
    return ""


def _describe(pod: Object) -> str:
    metadata, status = pod["metadata"], pod["status"]
    states = [each.get("state") for each in status.get("containerStatuses", ())]
    node = pod["spec"].get("nodeName")
    deleted = metadata.get("deletionTimestamp", "not deleted")
    return f"{metadata['name']} ({metadata['uid']}) on {node}: {status.get('phase')}, {states}, {deleted}"


def _is_ready(obj: Object) -> bool:
    conditions = obj["status"].get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _send(pid: int, number: int) -> None:
    """It may have ended meanwhile."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def _is_supervisor(pid: int) -> bool:
    """Of the process runtime, or what forks those: they have one command."""
    try:
        return b"supervisor.launcher" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


@asynccontextmanager
async def world_in(folder: Path, seed: int) -> AsyncIterator[World]:
    with running_up(folder, *FLAGS) as up:
        async with Client.connect(load(Flags(kubeconfig=str(up.kubeconfig)))) as client:
            world = World(folder, up, client, seed)
            try:
                yield world
            finally:
                if up.is_running:
                    up.signal(signal.SIGTERM)
                    up.wait()
                world.end_leftovers()
