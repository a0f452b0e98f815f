"""Every scenario on kube-apiserver against its golden end state: with kube-controller-manager, and with ours.

All that were chosen run side by side, once, when the first of them is asked for; each is a test of its own.
kube-controller-manager decides from caches that may be behind, and does not always look again: where it comes to
something else than what was recorded, it may try again. Ours may not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest

from podlife.clock import SystemClock
from tests.kit.real_parts import Server, controller_manager, kube_apiserver
from tests.real.conftest import require
from tests.workloads.runs import (
    KUBE_CONTROLLERS,
    KubeQuota,
    Outcome,
    connect,
    observing,
    own_controllers,
    play_all,
)
from tests.workloads.scenario import Scenario, all_scenarios, golden
from tests.workloads.snapshot import difference

Outcomes = Mapping[str, Outcome]

_MORE_TRIES = 2


def chosen(request: pytest.FixtureRequest, fixture: str) -> list[Scenario]:
    """The scenarios of the tests that are going to be run."""
    # Other suites have a fixture of this name, too.
    mine = [item for item in request.session.items if item.path == Path(__file__)]
    items = [item for item in mine if fixture in getattr(item, "fixturenames", ())]
    return [item.callspec.params["scenario"] for item in items]  # type: ignore[attr-defined]


async def play_until_recorded(server: Server, scenarios: list[Scenario]) -> Outcomes:
    outcomes = dict(await play_on(server, scenarios))
    for number in range(_MORE_TRIES):
        others = [each for each in scenarios if not is_as_recorded(each, outcomes[str(each)])]
        if others:
            outcomes |= await play_on(server, others, suffix=f"again-{number}")
    return outcomes


async def play_on(server: Server, scenarios: list[Scenario], suffix: str = "") -> Outcomes:
    expected = {str(each): golden(each) for each in scenarios}
    async with connect(server.kubeconfig) as client, observing(client, KubeQuota(client)) as cluster:
        return await play_all(cluster, scenarios, expected, suffix)


@pytest.fixture(scope="session")
def with_theirs(request: pytest.FixtureRequest, parts_folder: Path) -> Outcomes:
    require("etcd", "kube-apiserver", "kube-controller-manager")
    folder = parts_folder / "scenarios-theirs"
    with (
        kube_apiserver(folder / "kube") as server,
        controller_manager(folder / "kcm", server, KUBE_CONTROLLERS),
    ):
        return asyncio.run(play_until_recorded(server, chosen(request, "with_theirs")))


@pytest.fixture(scope="session")
def with_ours(request: pytest.FixtureRequest, parts_folder: Path) -> Outcomes:
    require("etcd", "kube-apiserver")

    scenarios = chosen(request, "with_ours")

    async def run(server: Server) -> Outcomes:
        async with connect(server.kubeconfig) as client, own_controllers(client, SystemClock(), scenarios):
            return await play_on(server, scenarios)

    with kube_apiserver(parts_folder / "scenarios-ours" / "kube") as server:
        return asyncio.run(run(server))


def is_as_recorded(scenario: Scenario, outcome: Outcome) -> bool:
    return outcome.snapshot is not None and not difference(golden(scenario), outcome.snapshot)


def check(scenario: Scenario, outcome: Outcome) -> None:
    if outcome.error is not None:
        raise outcome.error
    assert outcome.snapshot is not None
    found = difference(golden(scenario), outcome.snapshot)
    assert not found, found


@pytest.mark.parametrize("scenario", all_scenarios(), ids=str)
def test_theirs_ends_as_recorded(with_theirs: Outcomes, scenario: Scenario) -> None:
    check(scenario, with_theirs[str(scenario)])


@pytest.mark.parametrize("scenario", all_scenarios(), ids=str)
def test_ours_ends_as_theirs(with_ours: Outcomes, scenario: Scenario) -> None:
    check(scenario, with_ours[str(scenario)])
