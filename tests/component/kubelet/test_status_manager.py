"""A pod's statuses from what a runtime knows to what the API server holds, and its end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from podlife.client import Client
from podlife.client.options import DeleteOptions, PatchType
from podlife.client.refs import PODS
from podlife.errors import NotFoundError
from podlife.kubelet.observed_pod import ObservedPod
from podlife.kubelet.runtime import ContainerStatus, SandboxConfig, SandboxState, SandboxStatus
from podlife.kubelet.status.api_client import ApiStatusClient
from podlife.kubelet.status.container_statuses import PodObservation
from podlife.kubelet.status.manager import StatusManager
from podlife.kubelet.status.pod_status import NodeFacts, pod_status
from podlife.testing import LoopClock, virtual_time
from podlife.wire import Handler, Request, Response
from tests.conformance.kubelet.kit import START, Object, container, instance
from tests.kit.embedded import connect, start

BOX = SandboxStatus("s", SandboxConfig("u", "default", "p"), SandboxState.READY, START, ("10.0.0.1",))


class Agent:
    """Knows one pod, and tells what becomes of it."""

    def __init__(self, client: Client, watched: Client) -> None:
        self.api = client
        self.could_run = True
        self.known: Object = {}
        self.clock = LoopClock()
        self.manager = StatusManager(ApiStatusClient(watched), self, self.clock)

    async def see(self) -> Object:
        self.known = await self.api.get(PODS, "p", "default")
        return self.known

    async def tell(self, *containers: ContainerStatus, is_terminal: bool = False) -> Object:
        seen = PodObservation(self.known, ObservedPod.of([BOX], containers), "sim")
        old = self.manager.status(self.known["metadata"]["uid"]) or self.known["status"]
        status = pod_status(
            seen, old, lambda type_, id_: None, NodeFacts(START, ("192.0.2.1",)), is_terminal=is_terminal
        )
        self.manager.set_status(self.known, status)
        await self.manager.sync_changed()
        return await self.see()

    def pod(self, uid: str) -> Object | None:
        return self.known if self.known["metadata"]["uid"] == uid else None

    def mirror_of(self, pod: Mapping[str, Any]) -> Object | None:
        return None

    def could_have_running_containers(self, uid: str) -> bool:
        return self.could_run


@asynccontextmanager
async def agent(requests: list[str]) -> AsyncIterator[Agent]:
    async def note(request: Request, handler: Handler) -> Response:
        requests.append(request.method)
        return await handler(request)

    handler = await start()
    async with connect(handler) as client, connect(handler, note) as watched:
        spec = {"nodeName": "n", "containers": [container(command=["run"])], "restartPolicy": "Always"}
        await client.create(PODS, {"metadata": {"name": "p"}, "spec": spec}, "default")
        one = Agent(client, watched)
        await one.see()
        yield one


@virtual_time
async def test_what_runs_is_told_once_and_then_there_is_nothing_to_tell() -> None:
    requests: list[str] = []
    async with agent(requests) as one:
        shown = await one.tell(instance("a", "running"))
        assert requests == ["GET", "PATCH"]
        status = shown["status"]
        assert (status["phase"], status["podIP"], status["qosClass"]) == ("Running", "10.0.0.1", "BestEffort")
        assert {each["status"] for each in status["conditions"]} == {"True"}
        assert status["containerStatuses"][0]["containerID"] == "sim://a-0"
        requests.clear()
        await one.tell(instance("a", "running"))
        await one.manager.sync_all()
        assert requests == []


@virtual_time
async def test_a_condition_that_others_add_meanwhile_stays() -> None:
    requests: list[str] = []
    async with agent(requests) as one:
        await one.tell(instance("a", "running"))
        theirs = {"type": "example.com/gate", "status": "True"}
        patch = {"status": {"conditions": [theirs]}}
        await one.api.patch(PODS, "p", patch, "default", type=PatchType.STRATEGIC, subresource="status")
        shown = await one.tell(instance("a", "exited", 1, finished=5))
        conditions = {each["type"]: each["status"] for each in shown["status"]["conditions"]}
        assert (conditions["example.com/gate"], conditions["Ready"]) == ("True", "False")


@virtual_time
async def test_the_end_is_withheld_until_nothing_runs_and_then_the_pod_goes() -> None:
    requests: list[str] = []
    async with agent(requests) as one:
        await one.tell(instance("a", "running"))
        await one.api.delete(PODS, "p", "default", options=DeleteOptions(grace_period_seconds=30))
        await one.see()
        ended = instance("a", "exited", 0, finished=5)
        shown = await one.tell(ended, is_terminal=True)
        uid = shown["metadata"]["uid"]
        assert shown["status"]["phase"] == "Running"
        assert (one.manager.status(uid) or {})["phase"] == "Succeeded"
        one.could_run = False
        shown = await one.tell(ended, is_terminal=True)
        assert shown["status"]["phase"] == "Succeeded"
        ready = next(each for each in shown["status"]["conditions"] if each["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "PodCompleted")
        one.manager.terminate(one.known)
        await one.manager.sync_changed()
        with pytest.raises(NotFoundError):
            await one.see()
        assert one.manager.status(uid) is None
