"""The story of a node that is down, as a user lives it: `podlife up`, kubectl, real processes and sockets, real time
with shortened waits. What takes 40 s, 300 s and 40 s in a cluster takes 10 s, 6 s and 6 s here, and is measured."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.client import Client, Flags, load
from podlife.demo.recorder import ClusterRecorder, RecordedObject, condition
from podlife.demo.scenario import is_ready, is_terminating, name_of, node_of, uid_of
from podlife.demo.workloads import Journal, deployment, pod, stateful_set, template
from tests.kit.up_process import UpProcess, podlife, running_up
from tests.real.conftest import Kubectl

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the process runtime needs Linux")

Object = dict[str, Any]

GRACE, TOLERATION, QUARANTINE, POD_GRACE = 10, 6, 6, 2
FLAGS = (
    *("--nodes", "3", "--node-lease-duration-seconds", "4", "--node-monitor-period", "1s"),
    *("--node-monitor-grace-period", f"{GRACE}s", "--pod-gc-quarantine", f"{QUARANTINE}s"),
    *("--default-unreachable-toleration-seconds", str(TOLERATION)),
)
# What a machine with other things to do may take beyond what a rule says. With less than 40 s it is still the rule.
SLACK = 25.0
# More than nothing, less than the period of the pod collector.
AT_ONCE = 15.0
SECONDS = 180.0


class Story:
    def __init__(self, up: UpProcess, kubectl: Kubectl, recorder: ClusterRecorder, journal: Journal) -> None:
        self.up = up
        self.recorder = recorder
        self.journal = journal
        self._kubectl = kubectl

    async def kubectl(self, *arguments: str, stdin: str | None = None) -> str:
        done = await self.tried(*arguments, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    async def tried(self, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(self._kubectl, *arguments, kubeconfig=self.up.kubeconfig, stdin=stdin)

    async def podlife(self, *arguments: str) -> None:
        done = await asyncio.to_thread(podlife, *arguments, "--data", str(self.up.data))
        assert done.returncode == 0, done.stderr

    async def apply(self, *objects: Object) -> None:
        for each in objects:
            await self.kubectl("apply", "-f", "-", stdin=json.dumps(each))

    async def until_ready(self, app: str, count: int) -> list[Object]:
        def find() -> list[Object] | None:
            pods = self.recorder.pods(app)
            is_all = len(pods) == count and all(is_ready(each) and not is_terminating(each) for each in pods)
            return pods if is_all else None

        return await self.recorder.until(f"{count} ready pods of {app}", find, seconds=SECONDS)

    async def seen(
        self, what: str, obj: Object, is_it: Callable[[RecordedObject], bool], *, since: float = 0.0
    ) -> float:
        """When it was so for the first time."""
        found = await self.recorder.until_seen(what, uid_of(obj), is_it, since=since, seconds=SECONDS)
        return found.at


@asynccontextmanager
async def story_in(folder: Path, kubectl: Kubectl) -> AsyncIterator[Story]:
    with running_up(folder, *FLAGS) as up:
        async with Client.connect(load(Flags(kubeconfig=str(up.kubeconfig)))) as client:
            recorder, journal = ClusterRecorder(client), Journal(folder)
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(each.run()) for each in (recorder, journal)]
                yield Story(up, kubectl, recorder, journal)
                for task in beside:
                    task.cancel()


def now() -> float:
    return asyncio.get_running_loop().time()


def about(seconds: float, *, since: float, at: float) -> bool:
    # What we see of either end comes late, by more or by less.
    return seconds / 2 <= at - since <= seconds + SLACK


def has_taint(seen: RecordedObject, effect: str) -> bool:
    taints = seen.object["spec"].get("taints") or ()
    return any(
        each["key"] == "node.kubernetes.io/unreachable" and each["effect"] == effect for each in taints
    )


async def test_a_node_is_down_and_comes_back_and_another_is_deleted(tmp_path: Path, kubectl: Kubectl) -> None:
    async with story_in(tmp_path, kubectl) as story:
        made = (template(app, story.journal.polite(), grace_seconds=POD_GRACE) for app in ("db", "web"))
        db_template, web_template = made
        await story.apply(stateful_set("db", 3, db_template), deployment("web", 3, web_template))
        dbs, webs = await story.until_ready("db", 3), await story.until_ready("web", 3)
        await deleted_while_its_node_answers(story, dbs[0])
        await never_scheduled(story, pod("nowhere", web_template, nodeSelector={"disk": "none"}))
        dbs, webs = await story.until_ready("db", 3), await story.until_ready("web", 3)
        victim = next(each for each in dbs if node_of(each) in {node_of(web) for web in webs})
        beside = next(each for each in webs if node_of(each) == node_of(victim))
        await down_and_stuck(story, victim, beside)
        await out_of_service(story, victim)
        await back_again(story, victim)
        await node_deleted(story)


async def deleted_while_its_node_answers(story: Story, db: Object) -> None:
    began = now()
    # It waits until the pod is gone.
    await story.kubectl("delete", "pod", name_of(db))
    assert story.journal.lines(name_of(db), "ended")
    assert now() - began < POD_GRACE + SLACK


async def never_scheduled(story: Story, nowhere: Object) -> None:
    """GD-02: without a node there is nobody to wait for."""
    await story.apply(nowhere)
    await story.kubectl("delete", "pod", "nowhere", "--wait=false")
    assert "NotFound" in (await story.tried("get", "pod", "nowhere")).stderr


async def down_and_stuck(story: Story, victim: Object, beside: Object) -> None:
    name, node_name = name_of(victim), node_of(victim)
    node = story.recorder.node(node_name)
    assert node is not None
    down = now()
    await story.podlife("down", node_name)
    # Deleted before anybody knows that its node is down: it hangs all the same.
    await story.kubectl("delete", "pod", name, "--wait=false")
    unknown = await story.seen(
        "Ready=Unknown", node, lambda seen: condition(seen.object, "Ready")["status"] == "Unknown", since=down
    )
    assert about(GRACE, since=down, at=unknown)
    tainted = await story.seen("NoExecute", node, lambda seen: has_taint(seen, "NoExecute"), since=down)
    await story.seen("web not ready", beside, lambda seen: not is_ready(seen.object), since=down)
    assert "NotReady" in await story.kubectl("get", "node", node_name)
    evicted = await story.seen("web evicted", beside, lambda seen: is_terminating(seen.object), since=down)
    assert about(TOLERATION, since=tainted, at=evicted)

    def replaced() -> list[Object] | None:
        new = [each for each in story.recorder.pods("web") if not is_terminating(each) and is_ready(each)]
        return new if len(new) == 3 and node_name not in map(node_of, new) else None

    await story.recorder.until("three other pods of web", replaced, seconds=SECONDS)
    stuck = story.recorder.pod(name)
    assert stuck is not None
    assert (uid_of(stuck), is_terminating(stuck)) == (uid_of(victim), True)
    assert "Terminating" in await story.kubectl("get", "pod", name)
    assert "2/3" in await story.kubectl("get", "statefulset", "db")
    assert story.journal.alive(name, node_name)


async def out_of_service(story: Story, victim: Object) -> None:
    name, node_name = name_of(victim), node_of(victim)
    began = now()
    await story.kubectl("taint", "nodes", node_name, "node.kubernetes.io/out-of-service=down:NoExecute")
    tainted = now()
    gone = await story.seen("the stuck pod gone", victim, lambda seen: seen.is_gone, since=began)
    # The pod collector's period is 20 s: it does not wait for it.
    assert gone - tainted < AT_ONCE
    dbs = await story.until_ready("db", 3)
    [successor] = [each for each in dbs if name_of(each) == name]
    assert uid_of(successor) != uid_of(victim)
    assert node_of(successor) != node_name


async def back_again(story: Story, victim: Object) -> None:
    name, node_name = name_of(victim), node_of(victim)
    # The old process has outlived its record, and its agent.
    assert story.journal.alive(name, node_name)
    await story.podlife("up", node_name)
    await story.recorder.until_true(
        "the end of what was left", lambda: not story.journal.alive(name, node_name), seconds=SECONDS
    )
    await story.recorder.until_true(
        "the node ready", lambda: is_ready(story.recorder.node(node_name) or {"status": {}}), seconds=SECONDS
    )
    await story.kubectl("taint", "nodes", node_name, "node.kubernetes.io/out-of-service-")
    for each in [*await story.until_ready("db", 3), *await story.until_ready("web", 3)]:
        assert len(story.journal.alive(name_of(each), node_of(each))) == 1, name_of(each)


async def node_deleted(story: Story) -> None:
    orphan = (await story.until_ready("web", 3))[0]
    node_name = node_of(orphan)
    await story.podlife("down", node_name)
    await story.kubectl("delete", "node", node_name)
    began = now()
    gone = await story.seen("the orphan gone", orphan, lambda seen: seen.is_gone)
    assert about(QUARANTINE, since=began, at=gone)
    assert node_name not in {node_of(each) for each in await story.until_ready("web", 3)}
    await story.podlife("up", node_name)
    await story.recorder.until_true(
        "the end of the orphan's process",
        lambda: not story.journal.alive(name_of(orphan), node_name),
        seconds=SECONDS,
    )
