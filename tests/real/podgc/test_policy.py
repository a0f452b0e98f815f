"""A policy as a user has it, on kube-apiserver: planned, swept, and followed by a collector that runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from podlife.api.codec import format_time
from podlife.client import PODS, PatchType
from tests.component.cli.commands import podlife, started
from tests.kit.a_day_later import a_day_later, environment_of
from tests.kit.gc_states import States
from tests.real.podgc.cluster import until_left

POLICY = """\
apiVersion: podlife.dev/v1
kind: PodGCPolicy
protect:
  namespaces: [kube-system]
  labels: ["example.com/hold=true"]
rules:
  - name: evicted
    select: {{namespaces: [{namespace}], phase: [Failed], reason: [Evicted, "OutOf*"]}}
    ttlAfterFinished: {ttl}
  - name: jobs
    select: {{namespaces: [{namespace}], ownerKind: [Job]}}
    exclude: {{labels: "debug=true"}}
    keep: {{count: 1, per: owner}}
  - name: stuck
    select: {{namespaces: [{namespace}]}}
    maxTerminating: 1s
"""


def write(path: Path, states: States, *, ttl: str = "10m") -> Path:
    other = path.with_suffix(".new")
    other.write_text(POLICY.format(namespace=states.namespace, ttl=ttl))
    return other.replace(path)


async def ended(
    states: States, name: str, *, minutes_ago: float, phase: str = "Succeeded", **how: Any
) -> None:
    reason = how.pop("reason", "")
    await states.pod(name, phase=phase, reason=reason, **how)
    finished = format_time(a_day_later() - timedelta(minutes=minutes_ago))
    terminated = {"exitCode": 1, "finishedAt": finished, "startedAt": finished, "reason": "Error"}
    statuses = [
        {
            "name": "main",
            "image": "example/none",
            "imageID": "",
            "ready": False,
            "restartCount": 0,
            "state": {"terminated": terminated},
        }
    ]
    await states.client.patch(
        PODS,
        name,
        {"status": {"containerStatuses": statuses}},
        states.namespace,
        type=PatchType.MERGE,
        subresource="status",
    )


async def everything(states: States) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    await ended(states, "evicted-old", minutes_ago=20, phase="Failed", reason="Evicted")
    await ended(states, "evicted-young", minutes_ago=1, phase="Failed", reason="Evicted")
    await ended(
        states,
        "evicted-held",
        minutes_ago=20,
        phase="Failed",
        reason="Evicted",
        labels={"example.com/hold": "true"},
    )
    await ended(
        states,
        "evicted-kept",
        minutes_ago=20,
        phase="Failed",
        reason="Evicted",
        annotations={"podlife.dev/keep-until": format_time(datetime(2100, 1, 1, tzinfo=UTC))},
    )
    for number in range(3):
        await ended(states, f"job-{number}", minutes_ago=30 - number, ownerReferences=[job])
    await ended(states, "job-debug", minutes_ago=40, ownerReferences=[job], labels={"debug": "true"})
    await states.pod("alive")


LEFT = {"evicted-young", "evicted-held", "evicted-kept", "job-2", "job-debug", "alive"}


async def test_a_plan_names_the_rule_of_each_and_a_sweep_does_what_it_shows(
    states: States, admin: list[str], tmp_path: Path
) -> None:
    await everything(states)
    flags, clock = (
        ["--policy", str(write(tmp_path / "policy.yaml", states)), *admin],
        environment_of(tmp_path),
    )
    plan = json.loads((await podlife("gc", "plan", "-o", "json", *flags, **clock)).out)
    assert [(pod["name"], pod["rule"], pod["reason"]) for pod in plan["victims"]] == [
        ("job-0", "jobs", "surplus"),
        ("job-1", "jobs", "surplus"),
        ("evicted-old", "evicted", "expired"),
    ]
    [upcoming] = plan["upcoming"]
    assert (upcoming["rule"], upcoming["next"][0]["name"]) == ("evicted", "evicted-young")
    assert 400 < upcoming["inSeconds"] < 540
    swept = await podlife("gc", "sweep", "--yes", *flags, **clock)
    assert (swept.code, swept.err) == (0, "")
    assert swept.out.startswith("3 pods deleted (1 expired, 2 surplus)")
    assert await states.names() == LEFT


async def test_a_running_collector_follows_its_file_and_collects_what_stays_beyond_its_grace(
    states: States, admin: list[str], tmp_path: Path
) -> None:
    path = write(tmp_path / "policy.yaml", states, ttl="24h")
    flags = ["--policy", str(path), "--period", "1h", "--no-leader-elect", *admin]
    async with started("gc", "run", *flags, **environment_of(tmp_path)) as run:
        await everything(states)
        await states.pod("stuck")
        await states.delete("stuck", grace_seconds=1)

        await until_left(states, LEFT | {"evicted-old"})
        path.write_text("rules: 1\n")
        await run.wait_for("policy not reloaded")
        assert await states.names() == LEFT | {"evicted-old"}
        write(path, states)

        await until_left(states, LEFT)
        result = await run.end()
    assert result.code == 0, result.err
