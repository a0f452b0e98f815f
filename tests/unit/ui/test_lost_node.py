"""A pod whose node is lost before its grace is over, and which is collected much later."""

from __future__ import annotations

import pytest

from podlife.ui.life import PodLife
from tests.unit.explain.objects import a_node, deleted
from tests.unit.ui.test_lives import World, at, kinds, ready_pod


@pytest.fixture
def collected() -> PodLife:
    world = World()
    world.node(a_node())
    pod = ready_pod(**deleted(30, seconds=0))
    life = world.pod(pod)
    world.pass_to(at(seconds=30.1))
    world.pass_to(at(seconds=33))
    world.node(a_node("Unknown"), at(seconds=40))
    world.gone(pod, at(seconds=90))
    return life


def test_the_kill_that_nobody_made_stays_missed(collected: PodLife) -> None:
    assert [each.state for each in collected.next if each.what.startswith("kills")] == ["missed"]


def test_no_kill_is_marked(collected: PodLife) -> None:
    assert "kill" not in kinds(collected)
