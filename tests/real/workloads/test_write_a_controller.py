"""The controller of `docs/write-a-controller.md`, saved and started as the page says, on kube-apiserver."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from podlife.client import CONFIG_MAPS, EVENTS, NAMESPACES, PODS
from tests.component.test_write_a_controller import block
from tests.kit.real_parts import Server, run_kubectl
from tests.kit.wait import until
from tests.workloads.runs import connect

NAMESPACE = "warm-pools"


@contextmanager
def running(folder: Path, kubeconfig: Path) -> Iterator[subprocess.Popen[bytes]]:
    program = folder / "warm_pools.py"
    program.write_text(block("python"))
    process = subprocess.Popen(
        [sys.executable, str(program)], env={**os.environ, "KUBECONFIG": str(kubeconfig)}
    )
    try:
        yield process
        assert process.poll() is None
    finally:
        process.kill()
        process.wait(60)


async def test_pods_come_are_replaced_and_go_as_the_pool_asks(kube: Server, tmp_path: Path) -> None:
    async with connect(kube.kubeconfig) as client:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})

        async def names() -> set[str]:
            return {pod["metadata"]["name"] for pod in (await client.list(PODS, NAMESPACE)).items}

        async def are(count: int) -> bool:
            return len(await names()) == count

        with running(tmp_path, kube.kubeconfig):
            pool = block("yaml")
            applied = run_kubectl("apply", "-n", NAMESPACE, "-f", "-", kubeconfig=kube.kubeconfig, stdin=pool)
            assert applied.returncode == 0, applied.stderr
            await until(lambda: are(3))
            [lost, *_] = await names()
            await client.delete(PODS, lost, NAMESPACE)

            async def is_replaced() -> bool:
                return lost not in await names() and await are(3)

            await until(is_replaced)
            await client.patch(CONFIG_MAPS, "ci", {"data": {"size": "1"}}, NAMESPACE)
            await until(lambda: are(1))

            async def told() -> bool:
                reasons = [event["reason"] for event in (await client.list(EVENTS, NAMESPACE)).items]
                return (reasons.count("SuccessfulCreate"), reasons.count("SuccessfulDelete")) == (4, 2)

            await until(told)
        await client.delete(NAMESPACES, NAMESPACE)
