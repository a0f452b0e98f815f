"""What controllers have done, in the log: a line for many."""

from __future__ import annotations

import asyncio
import logging

import pytest

from podlife.api.codec import format_time
from podlife.client import JOBS, PODS, REPLICA_SETS
from podlife.controller import ControlPlane
from podlife.controller.action_log import ActionLog
from podlife.ownergc import OwnerGarbageCollector
from podlife.testing import LoopClock, virtual_time
from podlife.workloads.replicaset import ReplicaSetController
from podlife.workloads.ttl_after_finished import TtlAfterFinishedController
from tests.kit.embedded import connect, start
from tests.workloads.runs import at_work

WEB = {"kind": "ReplicaSet", "namespace": "default", "name": "web"}
NODE = {"kind": "Node", "name": "n1"}


def told(action_log: ActionLog, caplog: pytest.LogCaptureFixture) -> list[str]:
    caplog.clear()
    action_log.flush()
    return caplog.messages


@pytest.fixture
def action_log(caplog: pytest.LogCaptureFixture) -> ActionLog:
    caplog.set_level(logging.INFO, "podlife")
    return ActionLog()


def test_one_act_is_told_in_full_and_several_together(
    action_log: ActionLog, caplog: pytest.LogCaptureFixture
) -> None:
    action_log.note_event(WEB, "SuccessfulDelete", "Deleted pod: web-0")
    for number in range(3):
        action_log.note_event(WEB, "SuccessfulCreate", f"Created pod: web-{number}")
        action_log.note_event(NODE, "Seen", f"seen {number}")
    assert told(action_log, caplog) == [
        "ReplicaSet default/web: Deleted pod: web-0",
        "ReplicaSet default/web: 3 pods created",
        "Node n1: 3 times Seen",
    ]
    assert told(action_log, caplog) == [], "nothing is told twice"


def test_what_is_told_by_others_is_not_told_again(
    action_log: ActionLog, caplog: pytest.LogCaptureFixture
) -> None:
    action_log.note_event(WEB, "FailedCreate", "Error creating: no")
    action_log.note_event(WEB, "PodGarbageCollected", "gone")
    assert told(action_log, caplog) == []


def test_there_is_a_bound_to_the_lines(action_log: ActionLog, caplog: pytest.LogCaptureFixture) -> None:
    for number in range(1010):
        action_log.note(f"Job {number}", "deleted", "times deleted")
    lines = told(action_log, caplog)
    assert (len(lines), lines[-1]) == (1001, "10 more actions not listed")


@virtual_time
async def test_pods_of_a_replica_set_are_one_line(caplog: pytest.LogCaptureFixture) -> None:
    client = connect(await start())
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 300, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    await client.create(REPLICA_SETS, {"metadata": {"name": "web"}, "spec": spec}, "default")
    plane = ControlPlane(client, clock=LoopClock())
    plane.add(ReplicaSetController(plane))
    caplog.set_level(logging.INFO, "podlife")
    plane.add(OwnerGarbageCollector(plane))
    async with at_work(plane.run):
        await asyncio.sleep(5)
        await client.scale(REPLICA_SETS, "web", "default", 290)
        await asyncio.sleep(5)
        await client.delete(REPLICA_SETS, "web", "default")
        await asyncio.sleep(5)
        assert not (await client.list_all(PODS)).items
    await client.close()
    assert caplog.messages == [
        "running: replicaset-controller, garbage-collector-controller",
        "ReplicaSet default/web: 300 pods created",
        "ReplicaSet default/web: 10 pods deleted",
        "garbage-collector-controller: 290 objects of kind Pod deleted",
    ]


@virtual_time
async def test_a_finished_job_that_goes_is_told(caplog: pytest.LogCaptureFixture) -> None:
    client = connect(await start())
    clock = LoopClock()
    now = format_time(clock.now())
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    job = {"metadata": {"name": "once"}, "spec": {"template": template, "ttlSecondsAfterFinished": 5}}
    await client.create(JOBS, job, "default")
    conditions = [
        {"type": type_, "status": "True", "lastTransitionTime": now}
        for type_ in ("SuccessCriteriaMet", "Complete")
    ]
    status = {"startTime": now, "completionTime": now, "conditions": conditions}
    await client.patch(JOBS, "once", {"status": status}, "default", subresource="status")
    plane = ControlPlane(client, clock=clock)
    plane.add(TtlAfterFinishedController(plane))
    caplog.set_level(logging.INFO, "podlife")
    async with at_work(plane.run):
        await asyncio.sleep(10)
    await client.close()
    assert caplog.messages[1:] == ["Job default/once: deleted, its time to live is over"]
