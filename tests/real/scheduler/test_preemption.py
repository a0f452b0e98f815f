"""The scenarios of preemption on kube-apiserver, with ours and, if `KUBE_SCHEDULER` names the program, with
kube-scheduler. Each has the server's nodes to itself, so they run one after the other."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from podlife.controller import ControlPlane
from podlife.scheduler import Scheduler
from tests.kit.real_parts import Server, free_port, kube_apiserver
from tests.real.conftest import require
from tests.scheduling.preemption import SCENARIOS, Play, Scenario
from tests.workloads.runs import at_work, connect

States = tuple[dict[str, str], dict[str, str]]
PROGRAM = os.environ.get("KUBE_SCHEDULER", "")


@contextmanager
def kube_scheduler(folder: Path, server: Server) -> Iterator[None]:
    """Until the block is left. It is ready when it schedules."""
    folder.mkdir(parents=True)
    command = [
        PROGRAM,
        f"--kubeconfig={server.kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={free_port()}",
        f"--cert-dir={folder}",
        "--kube-api-content-type=application/json",
    ]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)


@pytest.fixture(scope="session")
def server(parts_folder: Path) -> Iterator[Server]:
    require("etcd", "kube-apiserver")
    with kube_apiserver(parts_folder / "preemption") as server:
        yield server


async def _play_all(server: Server) -> dict[str, States]:
    async with connect(server.kubeconfig) as client:
        return {each.name: await Play(client, each).run() for each in SCENARIOS}


async def _play_ours(server: Server) -> dict[str, States]:
    async with connect(server.kubeconfig) as client:
        plane = ControlPlane(client)
        plane.add(Scheduler(plane))
        async with at_work(plane.run):
            return await _play_all(server)


@pytest.fixture(scope="session")
def ours(server: Server) -> Mapping[str, States]:
    return asyncio.run(_play_ours(server))


@pytest.fixture(scope="session")
def theirs(parts_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, States]:
    if not PROGRAM:
        pytest.skip("KUBE_SCHEDULER does not name a kube-scheduler")
    require("etcd", "kube-apiserver")
    with (
        kube_apiserver(parts_folder / "preemption-theirs") as server,
        kube_scheduler(tmp_path_factory.mktemp("scheduler") / "theirs", server),
    ):
        return asyncio.run(_play_all(server))


def _expected(scenario: Scenario) -> States:
    bound = {each.name: f"on {each.node}" for each in scenario.bound}
    return bound | scenario.expected, scenario.finally_


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_ours(scenario: Scenario, ours: Mapping[str, States]) -> None:
    assert ours[scenario.name] == _expected(scenario)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_theirs(scenario: Scenario, theirs: Mapping[str, States]) -> None:
    assert theirs[scenario.name] == _expected(scenario)
