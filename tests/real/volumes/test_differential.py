"""Claims and volumes, given to kube-controller-manager and to our controllers, each on a kube-apiserver, end the same.

What kube-controller-manager made of them is recorded (`tests/volumes/golden.json`); `theirs` checks the record.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from podlife.clock import SystemClock
from podlife.controller import ControlPlane
from tests.kit.real_parts import controller_manager, kube_apiserver
from tests.real.conftest import require
from tests.real.differential.compare import differences_between
from tests.volumes.golden import golden
from tests.volumes.runs import CONTROLLERS, UPSTREAM, play_all
from tests.volumes.scenarios import SCENARIOS
from tests.workloads.runs import at_work, connect

Outcomes = dict[str, list[Any]]


@pytest.fixture(scope="module", params=["ours", "theirs"])
def played(request: pytest.FixtureRequest, parts_folder: Path) -> Outcomes:
    require("etcd", "kube-apiserver", "kube-controller-manager")
    names = [
        item.callspec.params["name"]  # type: ignore[attr-defined]
        for item in request.session.items
        if item.path == request.path and item.callspec.params["played"] == request.param  # type: ignore[attr-defined]
    ]
    folder = parts_folder / f"volumes-{request.param}"
    with kube_apiserver(folder / "server") as server:
        if request.param == "ours":
            return asyncio.run(play(names, server.kubeconfig, is_ours=True))
        with controller_manager(folder / "kcm", server, UPSTREAM):
            return asyncio.run(play(names, server.kubeconfig, is_ours=False))


async def play(names: list[str], kubeconfig: Path, *, is_ours: bool) -> Outcomes:
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(connect(kubeconfig))
        if is_ours:
            plane = ControlPlane(await stack.enter_async_context(connect(kubeconfig)), clock=SystemClock())
            for make in CONTROLLERS:
                plane.add(make(plane))
            await stack.enter_async_context(at_work(plane.run))
        return await play_all(client, names, {name: golden(name) for name in names})


@pytest.mark.parametrize("name", SCENARIOS)
def test_it_ends_as_with_kube_controller_manager(name: str, played: Outcomes) -> None:
    found = differences_between(golden(name), played[name])
    if found:
        pytest.fail("\n".join(map(str, found)), pytrace=False)
