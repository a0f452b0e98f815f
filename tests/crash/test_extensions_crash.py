"""`kill -9` of the server while clients define and remove custom resources, and register other API servers.

After each restart every acknowledged definition is served with all acknowledged instances, one whose deletion was
acknowledged ends, with all of its instances, the APIServices are those of what is served, and the store is sound.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from tests.crash.server_clients import APPLY, Object, definition, list_all
from tests.kit.server_process import ServerProcess
from tests.kit.wait import until

ROUNDS = max(3, int(os.environ.get("PODLIFE_CRASH_ROUNDS", "4")) // 5)
WRITERS = 4
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
MANAGED = {"labelSelector": "kube-aggregator.kubernetes.io/automanaged=true"}


@dataclass
class Extender:
    """Defines, fills, changes and removes a custom resource of its own, in a group of its own, again and again."""

    number: int
    chance: random.Random
    # What was acknowledged last: nothing is defined, it is, or its deletion was asked for.
    state: str = "absent"
    instances: set[str] = field(default_factory=set)
    remote: bool = False
    # A request is on its way: about the definition, an instance, or the APIService of another server.
    in_flight: str = ""
    _count: int = 0

    @property
    def group(self) -> str:
        return f"w{self.number}.example.com"

    @property
    def definition(self) -> str:
        return f"{DEFINITIONS}/things.{self.group}"

    @property
    def things(self) -> str:
        return f"/apis/{self.group}/v1/namespaces/default/things"

    @property
    def api_service(self) -> str:
        return f"v1.remote{self.number}.example.com"

    async def extend(self, session: aiohttp.ClientSession, told: asyncio.Queue[int]) -> None:
        """Raises what the client raises when its server is killed."""
        while True:
            if self.state == "deleted":
                await until(lambda: self._is_gone(session))
                self.state, self.instances = "absent", set()
            await self._step(session)
            self.in_flight = ""
            told.put_nowait(self.number)

    async def _is_gone(self, session: aiohttp.ClientSession) -> bool:
        async with session.get(self.definition) as answer:
            return answer.status == 404

    async def _step(self, session: aiohttp.ClientSession) -> None:
        if self.chance.random() < 0.15:
            await self._register(session)
        elif self.state == "absent":
            self.in_flight = "definition"
            async with session.post(DEFINITIONS, json=definition("things", self.group)) as answer:
                assert answer.status == 201, await answer.text()
            self.state = "defined"
        elif self.chance.random() < 0.15:
            self.in_flight = "definition"
            async with session.delete(self.definition) as answer:
                assert answer.status == 200, await answer.text()
            self.state = "deleted"
        elif self.chance.random() < 0.2:
            versions = self.chance.choice([("v1",), ("v1", "v2")])
            changed = definition("things", self.group, *versions)
            query = {"fieldManager": "extender", "force": "true"}
            async with session.patch(self.definition, json=changed, params=query, headers=APPLY) as answer:
                assert answer.status == 200, await answer.text()
        else:
            await self._create_instance(session)

    async def _create_instance(self, session: aiohttp.ClientSession) -> None:
        await until(lambda: self._is_served(session))
        if not self.instances:
            _, found = await list_all(session, self.things)
            assert not found, "instances of an earlier definition of this name are back"
        self._count += 1
        name = f"thing-{self._count}"
        self.in_flight = name
        body = {"apiVersion": f"{self.group}/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {}}
        async with session.post(self.things, json=body) as answer:
            assert answer.status == 201, await answer.text()
        self.instances.add(name)

    async def _is_served(self, session: aiohttp.ClientSession) -> bool:
        async with session.get(self.things) as answer:
            return answer.status == 200

    async def _register(self, session: aiohttp.ClientSession) -> None:
        self.in_flight = "remote"
        if self.remote:
            async with session.delete(f"{API_SERVICES}/{self.api_service}") as answer:
                assert answer.status == 200, await answer.text()
        else:
            spec = {
                "group": self.api_service.removeprefix("v1."),
                "version": "v1",
                "groupPriorityMinimum": 100,
                "versionPriority": 10,
                "service": {"namespace": "default", "name": "absent"},
                "insecureSkipTLSVerify": True,
            }
            body = {"metadata": {"name": self.api_service}, "spec": spec}
            async with session.post(API_SERVICES, json=body) as answer:
                assert answer.status == 201, await answer.text()
        self.remote = not self.remote

    async def verify(self, session: aiohttp.ClientSession) -> None:
        """What was acknowledged stands; of what was on its way, go on from what is found."""
        _, definitions = await list_all(session, DEFINITIONS)
        _, services = await list_all(session, API_SERVICES)
        found = definitions.get(f"things.{self.group}")
        state = "absent" if found is None else "deleted" if _is_marked(found) else "defined"
        if self.in_flight != "definition":
            # The end of a deletion is not acknowledged: it has come or it is still to come.
            assert state == self.state or (self.state, state) == ("deleted", "absent"), (self.state, state)
        if self.in_flight == "remote":
            self.remote = self.api_service in services
        assert (self.api_service in services) == self.remote
        self.state = state
        if state == "defined":
            await until(lambda: self._is_served(session))
            _, things = await list_all(session, self.things)
            extra = things.keys() - self.instances
            assert self.instances <= things.keys(), "acknowledged instances are lost"
            assert extra <= {self.in_flight}
            assert all(each["spec"] == {"size": 3} for each in things.values())
            self.instances = set(things)
        elif state == "absent":
            self.instances = set()
        self.in_flight = ""


def _is_marked(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


async def extend_until_killed(server: ServerProcess, extenders: list[Extender], steps: int) -> None:
    told: asyncio.Queue[int] = asyncio.Queue()
    async with server.session(seconds=None) as session, asyncio.timeout(300), asyncio.TaskGroup() as group:
        for each in extenders:
            group.create_task(_until_gone(each, session, told))
        for _ in range(steps):
            await told.get()
        server.kill()


async def _until_gone(extender: Extender, session: aiohttp.ClientSession, told: asyncio.Queue[int]) -> None:
    with suppress(aiohttp.ClientConnectionError, aiohttp.ClientPayloadError):
        await extender.extend(session, told)


async def has_registered_what_is_served(session: aiohttp.ClientSession) -> bool:
    _, definitions = await list_all(session, DEFINITIONS)
    async with session.get(API_SERVICES, params=MANAGED) as answer:
        items = (await answer.json())["items"]
    served = {
        f"{version['name']}.{each['spec']['group']}"
        for each in definitions.values()
        for version in each["spec"]["versions"]
    }
    return {each["metadata"]["name"] for each in items} == served


@pytest.fixture
def server(tmp_path: Path) -> Iterable[ServerProcess]:
    server = ServerProcess(tmp_path)
    yield server
    if server.is_running:
        server.kill()


async def test_definitions_and_their_instances_survive_or_end_as_acknowledged(server: ServerProcess) -> None:
    chance = random.Random(20260104)
    extenders = [Extender(number, random.Random(number)) for number in range(WRITERS)]
    server.start()
    for _ in range(ROUNDS):
        await extend_until_killed(server, extenders, steps=chance.randint(1, 150))
        report = server.run("check")
        assert report.returncode == 0, report.stderr
        server.start()
        async with server.session() as session:
            for each in extenders:
                await each.verify(session)
            await until(lambda: has_registered_what_is_served(session))
    assert "failed" not in server.log.read_text(), server.log.read_text()
