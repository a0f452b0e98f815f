"""Every scenario on kube-apiserver against its golden outcome: with kube-controller-manager, and with ours.

All that were chosen run side by side, once, when the first of them is asked for; each is a test of its own. What
kube-controller-manager comes to depends on when its own looks fall: where it comes to something else, it may try again.
Ours may not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from podlife.clock import SystemClock
from tests.kit.real_parts import Server, controller_manager, kube_apiserver
from tests.nodehealth.outcome import Outcome, difference
from tests.nodehealth.runs import KUBE_CONTROLLERS, KUBE_SETTINGS, own_controllers, play_all
from tests.nodehealth.scenarios import SCENARIOS, Scenario, golden
from tests.nodehealth.stage import FLAGS
from tests.real.conftest import require
from tests.workloads.runs import connect

Outcomes = Mapping[str, Outcome | Exception]

_MORE_TRIES = 2


class Played:
    """What came of it, with theirs and with ours."""

    def __init__(self) -> None:
        self.theirs: Outcomes = {}
        self.ours: Outcomes = {}


def chosen(request: pytest.FixtureRequest, test: str) -> list[Scenario]:
    """The scenarios of this test that are going to be run."""
    items = [item for item in request.session.items if getattr(item, "originalname", "") == test]
    return [item.callspec.params["scenario"] for item in items]  # type: ignore[attr-defined]


@pytest.fixture(scope="session")
def played(request: pytest.FixtureRequest, parts_folder: Path) -> Played:
    """Both at once, on servers of their own: most of the time is waiting."""
    require("etcd", "kube-apiserver", "kube-controller-manager")
    theirs = chosen(request, test_theirs_comes_to_what_was_recorded.__name__)
    ours = chosen(request, test_ours_comes_to_the_same_as_theirs.__name__)
    result, folder = Played(), parts_folder / "nodehealth"
    with ExitStack() as stack:
        parts = []
        if theirs:
            server = stack.enter_context(kube_apiserver(folder / "theirs", KUBE_SETTINGS))
            stack.enter_context(controller_manager(folder / "kcm", server, KUBE_CONTROLLERS, *FLAGS))
            parts.append(play_theirs(result, server, theirs))
        if ours:
            server = stack.enter_context(kube_apiserver(folder / "ours", KUBE_SETTINGS))
            parts.append(play_ours(result, server, ours))
        asyncio.run(_together(*parts))
    return result


async def _together(*parts: Coroutine[Any, Any, None]) -> None:
    await asyncio.gather(*parts)


async def play_theirs(played: Played, server: Server, scenarios: list[Scenario]) -> None:
    async with connect(server.kubeconfig) as client:
        outcomes = await play_all(client, SystemClock(), scenarios)
        for number in range(_MORE_TRIES):
            others = [each for each in scenarios if not is_as_recorded(each, outcomes[each.name])]
            if others:
                outcomes |= await play_all(client, SystemClock(), others, suffix=f"-{number}")
        played.theirs = outcomes


async def play_ours(played: Played, server: Server, scenarios: list[Scenario]) -> None:
    async with (
        connect(server.kubeconfig) as client,
        connect(server.kubeconfig) as controllers,
        own_controllers(controllers, SystemClock()),
    ):
        played.ours = await play_all(client, SystemClock(), scenarios)


def is_as_recorded(scenario: Scenario, outcome: Outcome | Exception) -> bool:
    return not isinstance(outcome, Exception) and not difference(golden(scenario), outcome)


def check(scenario: Scenario, outcome: Outcome | Exception) -> None:
    if isinstance(outcome, Exception):
        raise outcome
    found = difference(golden(scenario), outcome)
    assert not found, found


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=str)
def test_theirs_comes_to_what_was_recorded(played: Played, scenario: Scenario) -> None:
    check(scenario, played.theirs[scenario.name])


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=str)
def test_ours_comes_to_the_same_as_theirs(played: Played, scenario: Scenario) -> None:
    check(scenario, played.ours[scenario.name])
