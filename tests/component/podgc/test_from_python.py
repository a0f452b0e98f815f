"""The obvious calls from Python are the safe ones: a policy that is named is in force, guards included."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from dataclasses import replace
from datetime import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from podlife import podgc
from podlife.aio import cancel_and_wait
from podlife.podgc import Collector, Guards, Reason, Settings, load_policy
from podlife.podgc.policy.model import STOP, Policy, Window
from tests.component.podgc.test_guards import ended, mark
from tests.component.podgc.world import World, in_cluster, in_world, running
from tests.kit.real_parts import ROOT

HEAD = "apiVersion: podlife.dev/v1\nkind: PodGCPolicy\nupstream: {terminated: {threshold: 1}}\n"


def collector(world: World, folder: Path, text: str) -> Collector:
    file = folder / "policy.yaml"
    file.write_text(HEAD + text)
    return Collector(world.client, Settings(policy=load_policy(file)), clock=world.clock)


@in_cluster
async def test_a_stop_on_a_namespace_holds_with_a_policy_that_says_nothing_of_guards(
    world: World, tmp_path: Path
) -> None:
    await ended(world, 3)
    await mark(world, "default", STOP, "an incident")
    await collector(world, tmp_path, "").sweep_once()
    assert len(await world.left()) == 3


@in_world
async def test_guards_that_come_later_are_refused_where_no_namespace_is_followed(world: World) -> None:
    """A stop that is written on a namespace would not be seen."""
    plain = world.collector()
    with pytest.raises(ValueError, match="created without a policy or guards"):
        plain.put_in_force(Settings(guards=Guards(per_minute=1)))
    guarded = Collector(world.client, Settings(guards=Guards()), clock=world.clock)
    guarded.put_in_force(Settings(guards=Guards(per_minute=1)))


@in_cluster
async def test_a_force_that_is_taken_back_holds_no_longer(world: World) -> None:
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


# docs/gc-from-python.md: its samples do what the page says, and type-check as a user's own code would


PAGE = (ROOT / "docs" / "gc-from-python.md").read_text()
SWEEP, RUN = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
POLICY = """
apiVersion: podlife.dev/v1
kind: PodGCPolicy
upstream: {terminated: {threshold: 1}}
guards: {perPass: 1}
"""


def sample(text: str, world: World, answer: str = "") -> ModuleType:
    module = ModuleType("sample")
    exec(compile(text, "sample.py", "exec", dont_inherit=True), module.__dict__)
    module.__dict__["Client"] = SimpleNamespace(connect=lambda _: world.client)
    module.__dict__["load"] = lambda: None
    module.__dict__["input"] = lambda _: answer
    return module


@in_cluster
@pytest.mark.parametrize(("answer", "left"), [("n", 3), ("y", 2)])
async def test_the_sample_shows_asks_and_sweeps_what_guards_let_go(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str], answer: str, left: int
) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    await ended(world, 3)
    code = await sample(SWEEP, world, answer).main(tmp_path / "policy.yaml")
    assert (code, len(await world.left())) == (1, left)
    said = capsys.readouterr().out
    assert "default/p000: upstream/terminated: 3 terminated pods, 1 may stay" in said
    assert "1 held back by perPass: at most 1 pods go in one pass" in said
    assert ("{'deleted': 1}" in said) is (answer == "y")


@in_cluster
async def test_the_collector_of_the_page_collects(world: World) -> None:
    await ended(world, 502)
    task = asyncio.get_running_loop().create_task(sample(RUN, world).main())
    await asyncio.sleep(10)
    assert len(await world.left()) == 500
    await cancel_and_wait(task)


def check_types(folder: Path, text: str) -> subprocess.CompletedProcess[str]:
    (folder / "sample.py").write_text(text)
    # Where the package is installed, as for anybody who writes such a file; with no settings of ours.
    flags = ["--strict", "--config-file=", f"--cache-dir={folder / 'cache'}"]
    command = [sys.executable, "-m", "mypy", *flags, "sample.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_samples_pass_mypys_strict_mode(tmp_path: Path) -> None:
    for text in (SWEEP, RUN):
        checked = check_types(tmp_path, text)
        assert checked.returncode == 0, checked.stdout
    wrong = check_types(tmp_path, SWEEP.replace("victim.why", "victim.whyever"))
    assert 'has no attribute "whyever"' in wrong.stdout


def test_all_that_is_exported_is_there_and_the_page_names_nothing_else() -> None:
    assert sorted(podgc.__all__) == list(podgc.__all__)
    for name in podgc.__all__:
        assert getattr(podgc, name) is not None
    used = re.findall(r"^from podlife\.podgc import (.*)$", PAGE, re.MULTILINE)
    assert {name for line in used for name in line.split(", ")} <= set(podgc.__all__)
