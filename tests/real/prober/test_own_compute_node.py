"""The node of `docs/own-compute.md` in a real cluster: kubectl makes a pod, sees it ready, and deletes it."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from podlife.aio import cancel_and_wait
from podlife.client import Client, Flags, load
from podlife.clock import SystemClock
from tests.conformance.runtime.custom_machine import own_compute
from tests.kit.own_compute_process import POD
from tests.kit.real_parts import Server
from tests.real.conftest import Kubectl


async def test_a_pod_of_kubectl_lives_and_ends_on_own_compute(
    kube: Server, kubectl: Kubectl, tmp_path: Path
) -> None:
    module = own_compute(whole=True)

    async def run(*arguments: str, stdin: str | None = None) -> str:
        done = await asyncio.to_thread(kubectl, *arguments, kubeconfig=kube.kubeconfig, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    connection = load(Flags(kubeconfig=str(kube.kubeconfig)))
    compute = module.Coroutines({"greet": module.greet})
    async with Client.connect(connection) as client:
        agent = asyncio.get_running_loop().create_task(module.join(client, tmp_path, compute, SystemClock()))
        try:
            await run("apply", "-f", "-", stdin=POD)
            await run("wait", "pod/hello", "--for=condition=Ready", "--timeout=120s")
            shown = json.loads(await run("get", "pod", "hello", "-o", "json"))
            [status] = shown["status"]["containerStatuses"]
            assert status["containerID"].startswith("coroutines://")
            await run("delete", "pod", "hello", "--timeout=120s")
            assert None not in (await compute.runs()).values(), "it runs on"
            assert not agent.done(), agent
        finally:
            await cancel_and_wait(agent)
            await run("delete", "node", "my-node", "--ignore-not-found")
