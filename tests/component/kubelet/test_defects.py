"""Values at the edge of what the API allows, and defects in parts of the agent: they cost one pod at most, never the
agent."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from podlife.api.codec import Object
from podlife.client import PODS
from podlife.kubelet import admission as admitting
from podlife.kubelet.config.pod_source import PodSource
from podlife.kubelet.interfaces import NoVolumes
from podlife.kubelet.kuberuntime.handler_runner import HandlerRunner
from podlife.kubelet.runtime import ExecResult
from podlife.kubelet.runtimes.sim import Behaviour, SimRuntime
from podlife.kubelet.status import manager as status_manager
from podlife.kubelet.status.patch import merged_status
from podlife.testing import virtual_time
from tests.component.kubelet.node_world import NodeWorld, failing, node_world, on_a_node, pod
from tests.kit.objects import container

INT32, INT64 = 2**31 - 1, 2**63 - 1
PROBE = {
    "exec": {"command": ["true"]},
    "initialDelaySeconds": INT32,
    "periodSeconds": INT32,
    "timeoutSeconds": INT32,
    "failureThreshold": INT32,
}


# Values


@on_a_node
async def test_a_pod_with_the_longest_times_there_are_runs_and_is_deleted(world: NodeWorld) -> None:
    main = container(
        livenessProbe={**PROBE, "terminationGracePeriodSeconds": INT64},
        startupProbe=PROBE,
        lifecycle={"preStop": {"sleep": {"seconds": 300_000_000_000}}},
    )
    sidecar = container("proxy", restartPolicy="Always")
    await world.create(
        pod(
            containers=[main],
            initContainers=[sidecar],
            terminationGracePeriodSeconds=300_000_000_000,
            activeDeadlineSeconds=INT32,
        )
    )
    await world.until_phase("Running")
    await world.delete(grace_seconds=5)
    assert await world.until_gone() < 10


@on_a_node
async def test_a_container_found_ill_ends_at_once_however_long_its_grace_is(world: NodeWorld) -> None:
    world.behaviours["main"] = Behaviour(exec=lambda command: ExecResult(1, b"", b""))
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    await world.create(pod(containers=[container(livenessProbe=probe)], terminationGracePeriodSeconds=INT64))
    await world.until(
        lambda each: any(one["restartCount"] > 0 for one in each["status"].get("containerStatuses") or ()),
        seconds=30,
    )


@on_a_node
async def test_a_time_that_cannot_be_read_in_a_condition_of_another_component_ends_no_agent(
    world: NodeWorld,
) -> None:
    await world.running(pod())
    condition = {"type": "example.com/gate", "status": "True"}
    condition["lastTransitionTime"] = "0001-01-01T00:00:00+14:00"
    shown = await world.get()
    shown["status"]["conditions"].append(condition)
    # As kube-apiserver could hand it on: the source of pods has it, not the embedded server.
    world.agent.api_pods.put(shown)
    await asyncio.sleep(30)
    await world.running(pod("other"))


@virtual_time
@pytest.mark.parametrize("start", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
async def test_a_pod_that_claims_to_have_begun_at_the_edge_of_time_is_no_burden(start: str) -> None:
    async with node_world(is_begun=False) as world:
        await world.create(pod(activeDeadlineSeconds=INT32))
        claim = {"status": {"phase": "Pending", "startTime": start}}
        await world.client.patch(PODS, "web", claim, "default", subresource="status")
        await world.begin()
        # One that began in the first year is past any deadline, one of the last never is.
        await world.until_phase("Failed" if start.startswith("0001") else "Running")
        await world.running(pod("other"))


# Defects


@on_a_node
async def test_a_pod_whose_status_cannot_be_made_ready_to_send_keeps_no_other_from_being_sent(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_broken = True

    def fail(shown: Any, *arguments: Any, **options: Any) -> Any:
        if is_broken and shown["metadata"]["name"] == "bad":
            raise RuntimeError("a defect")
        return merged_status(shown, *arguments, **options)

    monkeypatch.setattr(status_manager, "merged_status", fail)
    await world.create(pod("bad"))
    await asyncio.sleep(30)
    await world.running(pod())
    is_broken = False
    await world.until_phase("Running", "bad", seconds=15)


@on_a_node
async def test_a_pod_that_admission_fails_on_is_refused_and_the_others_are_taken(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = admitting.admission_failure

    def fail(pod: Any, *arguments: Any) -> Any:
        if pod["metadata"]["name"] == "bad":
            raise RuntimeError("a defect")
        return judge(pod, *arguments)

    monkeypatch.setattr(admitting, "admission_failure", fail)
    await world.create(pod("bad"))
    await world.running(pod())
    refused = await world.until_phase("Failed", "bad")
    assert refused["status"]["reason"] == "UnexpectedAdmissionError"


@pytest.mark.parametrize("verb", ["list_sandboxes", "list_containers", "events"])
@on_a_node
async def test_an_agent_outlives_a_runtime_that_fails_in_a_way_nobody_expects(
    world: NodeWorld, verb: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(SimRuntime, verb)
    is_broken = True

    def fail(*arguments: Any, **options: Any) -> Any:
        if is_broken:
            raise ZeroDivisionError("a defect")
        return real(*arguments, **options)

    monkeypatch.setattr(SimRuntime, verb, fail)
    await world.create(pod())
    await asyncio.sleep(20)
    is_broken = False
    await world.until_phase("Running")


@on_a_node
async def test_a_container_ends_even_if_its_pre_stop_hook_fails_in_a_way_nobody_expects(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HandlerRunner, "run", failing(ZeroDivisionError("a defect")))
    hook = {"lifecycle": {"preStop": {"exec": {"command": ["bye"]}}}}
    await world.running(pod(containers=[container(**hook)]))
    await world.delete()
    assert await world.until_gone() < 5
    await asyncio.sleep(1)
    assert "FailedPreStopHook" in [reason for reason, _, _ in await world.events()]


@on_a_node
async def test_a_container_whose_post_start_hook_fails_in_a_way_nobody_expects_is_killed_and_shows_why(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HandlerRunner, "run", failing(ZeroDivisionError("a defect")))
    hook = {"lifecycle": {"postStart": {"exec": {"command": ["hello"]}}}}
    await world.create(pod(containers=[container(**hook)], restartPolicy="Never"))
    await world.until_phase("Failed")
    await asyncio.sleep(1)
    assert "FailedPostStartHook" in [reason for reason, _, _ in await world.events()]


@on_a_node
async def test_an_agent_goes_on_following_its_pods_after_a_defect(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = PodSource.put
    is_broken = False

    def fail(self: PodSource, obj: Any) -> None:
        if is_broken:
            raise ZeroDivisionError("a defect")
        put(self, obj)

    monkeypatch.setattr(PodSource, "put", fail)
    await asyncio.sleep(5)
    is_broken = True
    await world.create(pod())
    await asyncio.sleep(20)
    is_broken = False
    await world.until_phase("Running")


@on_a_node
async def test_a_clock_that_is_set_forward_makes_no_node_ill(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PL-09"""
    await world.running(pod())
    now = world.clock.now
    monkeypatch.setattr(world.clock, "now", lambda: now() + timedelta(hours=8))
    assert world.agent.complaint == ""
    assert list(world.agent._problems()) == []


@on_a_node
async def test_what_cannot_be_removed_ends_no_agent_and_is_removed_later(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = SimRuntime.remove_sandbox
    failures = [OSError("nobody has foreseen this"), RecursionError("nor this")]

    async def fail_at_first(*arguments: Any) -> None:
        if failures:
            raise failures.pop()
        await remove(*arguments)

    monkeypatch.setattr(SimRuntime, "remove_sandbox", fail_at_first)
    await world.running(pod())
    await world.delete()
    await world.until_gone()
    await asyncio.sleep(700)
    assert failures == []
    assert await world.agent.runtime.list_sandboxes() == []
    await world.running(pod("next"))


@virtual_time
async def test_an_agent_that_cannot_look_at_its_volumes_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def fail(_: object) -> tuple[str, ...]:
        nonlocal looks
        looks += 1
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(NoVolumes, "mounted", fail)
    async with node_world() as world:
        await world.running(pod())
        await asyncio.sleep(700)
        await world.delete()
        await world.until_gone()
    assert looks > 1


@pytest.mark.parametrize(
    ("verb", "reason"),
    [("create_container", "CreateContainerError"), ("start_container", "RunContainerError")],
)
@on_a_node
async def test_a_disk_that_refuses_a_container_is_the_reason_why_it_waits(
    world: NodeWorld, monkeypatch: pytest.MonkeyPatch, verb: str, reason: str
) -> None:
    monkeypatch.setattr(SimRuntime, verb, failing(OSError(36, "File name too long")))
    await world.create(pod())
    found = await world.until(lambda each: _waits_for(each) not in ("", "ContainerCreating"))
    assert _waits_for(found) == reason
    told = [message for why, message, _ in await world.events() if why == "Failed"]
    assert "File name too long" in told[0]


def _waits_for(found: Object) -> str:
    statuses = found["status"].get("containerStatuses") or [{"state": {}}]
    return str((statuses[0]["state"].get("waiting") or {}).get("reason") or "")
