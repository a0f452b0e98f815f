"""A node's endpoint on loopback: over the process runtime, before an API server in the same process."""

from __future__ import annotations

import asyncio
import itertools
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from podlife.client import Client
from podlife.clock import SystemClock
from podlife.kubelet.runtime import ContainerConfig, ContainerState, Runtime, SandboxConfig
from podlife.kubelet.runtimes.process import ProcessRuntime, ProcessSettings
from podlife.kubelet.server import (
    ApiAccess,
    CertificateSettings,
    CertificateSigner,
    KubeletServer,
    ServedNode,
    ServerSettings,
)
from tests.kit.real_pki import Pki

Object = dict[str, Any]
_numbers = itertools.count(1)


class Pods:
    """Pods as an agent would know them: made by hand, their statuses read from the runtime."""

    def __init__(self, runtime: Runtime, folder: Path, node_name: str = "n1") -> None:
        self.node_name = node_name
        self.runtime = runtime
        self.folder = folder
        self.known: dict[tuple[str, str], Object] = {}

    def find_pod(self, namespace: str, name: str) -> Object | None:
        return self.known.get((namespace, name))

    def pods(self) -> Iterator[Object]:
        yield from self.known.values()

    def add(self, name: str, *containers: str, **status: Any) -> Object:
        pod: Object = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "uid": f"uid-{next(_numbers)}"},
            "spec": {
                "nodeName": self.node_name,
                "containers": [{"name": each, "image": "i"} for each in containers],
            },
            "status": {"phase": "Running", "containerStatuses": [], **status},
        }
        self.known["default", name] = pod
        return pod

    async def run(self, name: str, script: str, *, container: str = "main", **config: Any) -> Object:
        """A pod with one container that runs a script."""
        pod = self.add(name, container)
        await self.start(pod, container, script, **config)
        return pod

    async def start(
        self, pod: Object, container: str, script: str, *, attempt: int = 0, **config: Any
    ) -> str:
        """Start an attempt at a container of the pod, and show it as running."""
        metadata = pod["metadata"]
        sandboxes = await self.runtime.list_sandboxes(pod_uid=metadata["uid"])
        if sandboxes:
            sandbox = sandboxes[0].id
        else:
            of_sandbox = SandboxConfig(
                metadata["uid"],
                metadata["namespace"],
                metadata["name"],
                log_directory=str(self.folder / metadata["uid"]),
            )
            sandbox = await self.runtime.run_sandbox(of_sandbox)
        started = await self.runtime.create_container(
            sandbox,
            ContainerConfig(
                container,
                image="i",
                attempt=attempt,
                command=("sh", "-c", script),
                log_path=f"{container}/{attempt}.log",
                **config,
            ),
        )
        await self.runtime.start_container(started)
        self.show(pod, container, {"running": {}}, started)
        return started

    def show(
        self, pod: Object, container: str, state: Object, container_id: str, last: Object | None = None
    ) -> None:
        others = [each for each in pod["status"]["containerStatuses"] if each["name"] != container]
        status: Object = {"name": container, "state": state, "lastState": last or {}}
        if container_id:
            status["containerID"] = f"process://{container_id}"
        pod["status"]["containerStatuses"] = [*others, status]

    async def ended(self, container_id: str) -> None:
        """Wait until the container has ended."""
        async with asyncio.timeout(60), self.runtime.events() as events:
            if (await self.runtime.container_status(container_id)).state is ContainerState.EXITED:
                return
            async for _ in events:
                if (await self.runtime.container_status(container_id)).state is ContainerState.EXITED:
                    return


def trusting_anybody() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class NoSigning:
    """A cluster in which nobody signs."""

    async def signed(self, node_name: str, names: tuple[str, ...]) -> tuple[bytes, bytes]:
        await asyncio.Event().wait()
        raise AssertionError


@dataclass
class World:
    pods: Pods
    runtime: Runtime
    endpoint: KubeletServer
    pki: Pki
    folder: Path
    sessions: dict[tuple[str | None, tuple[str, ...]], aiohttp.ClientSession] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.endpoint.port}"

    def caller(
        self, name: str | None = "kube-apiserver-kubelet-client", *groups: str
    ) -> aiohttp.ClientSession:
        """Somebody with a certificate of the cluster's authority; without a name, somebody without."""
        if (known := self.sessions.get((name, groups))) is not None and not known.closed:
            return known
        connector = aiohttp.TCPConnector(ssl=self.trusting(name, *groups))
        session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=60))
        self.sessions[name, groups] = session
        return session

    def trusting(self, name: str | None = "kube-apiserver-kubelet-client", *groups: str) -> ssl.SSLContext:
        context = trusting_anybody()
        if name is not None:
            context.load_cert_chain(*self.pki.issue_client(name, *(groups or ("system:masters",))))
        return context

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        async with self.caller().get(f"{self.url}{path}", headers=headers) as answer:
            return answer.status, await answer.text()


@asynccontextmanager
async def running(
    folder: Path, client: Client, *, signing: CertificateSigner | None = None
) -> AsyncIterator[World]:
    pki = Pki(folder / "pki")
    certificate = CertificateSettings(
        "n1", folder / "node-pki", ("127.0.0.1", "localhost"), client_authority=pki.ca_file.read_bytes()
    )
    clock = SystemClock()
    async with ProcessRuntime(ProcessSettings(folder / "runtime"), clock) as runtime:
        pods = Pods(runtime, folder / "logs")
        endpoint = KubeletServer(
            ServedNode("n1", pods, runtime, clock),
            ApiAccess(client, "n1"),
            ServerSettings(certificate, port=0),
            signing=signing or NoSigning(),
            clock=clock,
        )
        world = World(pods, runtime, endpoint, pki, folder)
        try:
            async with asyncio.TaskGroup() as group:
                task = group.create_task(endpoint.run())
                async with asyncio.timeout(60):
                    await endpoint.ready.wait()
                try:
                    yield world
                finally:
                    for session in world.sessions.values():
                        await session.close()
                    task.cancel()
        finally:
            for sandbox in await runtime.list_sandboxes():
                await runtime.remove_sandbox(sandbox.id)
