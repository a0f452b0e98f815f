"""Scenarios of quotas and limit ranges on kube-apiserver, with kube-controller-manager and with our controller.

Both must end as recorded; `tests/component` holds the embedded server against the same record.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from podlife.clock import SystemClock
from podlife.controller import ControlPlane
from podlife.resourcequota import ResourceQuotaController
from tests.kit.real_parts import controller_manager, kube_apiserver
from tests.real.conftest import require
from tests.resourcequota.runs import CONTROLLER, play_all
from tests.resourcequota.scenarios import SCENARIOS
from tests.resourcequota.stage import prepare
from tests.workloads.runs import at_work, connect

Outcomes = Mapping[str, str]


@pytest.fixture(scope="module")
def names(request: pytest.FixtureRequest) -> list[str]:
    chosen = [
        item.callspec.params["name"]  # type: ignore[attr-defined]
        for item in request.session.items
        if item.path == request.path
    ]
    return [*dict.fromkeys(chosen)]


@pytest.fixture(scope="module")
def with_theirs(names: list[str], parts_folder: Path) -> Outcomes:
    require("etcd", "kube-apiserver", "kube-controller-manager")
    folder = parts_folder / "quota-theirs"
    with (
        kube_apiserver(folder / "kube") as server,
        controller_manager(folder / "kcm", server, [CONTROLLER]),
    ):
        return asyncio.run(_play(server.kubeconfig, names))


@pytest.fixture(scope="module")
def with_ours(names: list[str], parts_folder: Path) -> Outcomes:
    require("etcd", "kube-apiserver")
    with kube_apiserver(parts_folder / "quota-ours") as server:
        return asyncio.run(_play_with_ours(server.kubeconfig, names))


async def _play(kubeconfig: Path, names: list[str]) -> Outcomes:
    async with connect(kubeconfig) as client:
        await prepare(client)
        return await play_all(client, names)


async def _play_with_ours(kubeconfig: Path, names: list[str]) -> Outcomes:
    async with connect(kubeconfig) as line:
        plane = ControlPlane(line, clock=SystemClock())
        plane.add(ResourceQuotaController(plane))
        async with at_work(plane.run):
            return await _play(kubeconfig, names)


@pytest.mark.parametrize("name", SCENARIOS)
def test_theirs_ends_as_recorded(name: str, with_theirs: Outcomes) -> None:
    if with_theirs[name]:
        pytest.fail(with_theirs[name], pytrace=False)


@pytest.mark.parametrize("name", SCENARIOS)
def test_ours_ends_as_recorded(name: str, with_ours: Outcomes) -> None:
    if with_ours[name]:
        pytest.fail(with_ours[name], pytrace=False)
