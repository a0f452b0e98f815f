"""The obvious calls from Python are the safe ones: a policy that is named is in force, guards included."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import time
from pathlib import Path

import pytest

from podlife.podgc import Collector, Guards, Reason, Settings, load_policy
from podlife.podgc.policy.model import STOP, Policy, Window
from podlife.testing import virtual_time
from tests.component.podgc.test_guards import ended, mark
from tests.component.podgc.world import World, running, serve

HEAD = "apiVersion: podlife.dev/v1\nkind: PodGCPolicy\nupstream: {terminated: {threshold: 1}}\n"


def collector(world: World, folder: Path, text: str) -> Collector:
    file = folder / "policy.yaml"
    file.write_text(HEAD + text)
    return Collector(world.client, Settings(policy=load_policy(file)), clock=world.clock)


@virtual_time
async def test_a_policy_that_only_observes_deletes_nothing_by_a_sweep_or_a_run(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        await ended(world, 3)
        summary = await collector(world, tmp_path, "guards: {observeOnly: true}").sweep_once()
        assert len(await world.left()) == 3
        assert [(str(each.refusal.guard), len(each.pods)) for each in summary.held_back] == [
            ("observeOnly", 2)
        ]
        assert not summary.is_complete
        async with running(collector(world, tmp_path, "guards: {observeOnly: true}")):
            await asyncio.sleep(60)
        assert len(await world.left()) == 3


@virtual_time
async def test_a_plan_has_no_more_victims_than_a_pass_may_take(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        await ended(world, 3)
        plan = await collector(world, tmp_path, "guards: {perPass: 1}").plan_once()
        assert [victim.pod.metadata.name for victim in plan.victims] == ["p000"]
        [held] = plan.held_back
        assert (str(held.refusal.guard), [pod.metadata.name for pod in held.pods]) == ("perPass", ["p001"])


@virtual_time
async def test_a_stop_on_a_namespace_holds_with_a_policy_that_says_nothing_of_guards(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        await ended(world, 3)
        await mark(world, "default", STOP, "an incident")
        await collector(world, tmp_path, "").sweep_once()
        assert len(await world.left()) == 3


@virtual_time
async def test_guards_that_come_later_are_refused_where_no_namespace_is_followed(tmp_path: Path) -> None:
    """A stop that is written on a namespace would not be seen."""
    async with serve(tmp_path) as world:
        plain = Collector(world.client, Settings(), clock=world.clock)
        with pytest.raises(ValueError, match="created without a policy or guards"):
            plain.put_in_force(Settings(guards=Guards(per_minute=1)))
        guarded = Collector(world.client, Settings(guards=Guards()), clock=world.clock)
        guarded.put_in_force(Settings(guards=Guards(per_minute=1)))


@virtual_time
async def test_a_force_that_is_taken_back_holds_no_longer(tmp_path: Path) -> None:
    async with serve(tmp_path) as world:
        await world.node()
        shares = Guards(share_of_namespace=0.1, share_at_least=0)
        forced = Settings(threshold=1, guards=shares, is_forced=True)
        running_one = Collector(world.client, forced, clock=world.clock)
        async with running(running_one):
            await asyncio.sleep(5)
            running_one.put_in_force(replace(forced, is_forced=False))
            await asyncio.sleep(5)
            await ended(world, 3)
            await asyncio.sleep(60)
            assert len(await world.left()) == 3


def test_a_policy_in_settings_is_what_the_settings_say() -> None:
    reasons = frozenset((Reason.TERMINATED, Reason.ORPHANED))
    policy = Policy(guards=Guards(per_pass=5), collect=reasons, threshold=7, quarantine_seconds=3.0)
    settings = Settings(policy=policy, guards=Guards(per_pass=9), collect=frozenset((Reason.ORPHANED,)))
    assert (settings.threshold, settings.quarantine_seconds) == (7, 3.0)
    assert settings.collect == {Reason.ORPHANED}
    assert settings.guards == Guards(per_pass=5)
    assert replace(settings, is_forced=False) == settings


def test_what_is_given_beside_a_policy_is_never_lost_to_it() -> None:
    policy = Policy(guards=Guards(share_of_cluster=0.5, share_at_least=3))
    night = (Window(start=time(22), end=time(6)),)
    beside = Guards(share_of_cluster=0.1, share_of_namespace=0.2, windows=night)
    assert Settings(policy=policy, guards=beside).guards == Guards(
        share_of_cluster=0.1, share_of_namespace=0.2, share_at_least=3, windows=night
    )
    day = Policy(guards=Guards(windows=(Window(start=time(9), end=time(17)),)))
    with pytest.raises(ValueError, match="windows are set both in the policy and in the guards"):
        Settings(policy=day, guards=beside)
