"""Probes as the agent runs them: what is told, who has one, when the first one is, what is counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from podlife.kubelet.prober.metrics import ProbeLabels, ProbeMetrics
from podlife.kubelet.prober.prober import ProbeOutcome, ProbeReply, ProbeRequest, run_probe
from podlife.kubelet.prober.state import ProbeResult
from podlife.kubelet.prometheus import probe_families
from podlife.kubelet.runtime import ExecError, ExecResult, ExecTimeoutError
from podlife.testing import virtual_time
from tests.component.kubelet_prober.kit import (
    BAD,
    LIVENESS,
    OK,
    READINESS,
    STARTUP,
    Node,
    at,
    node,
    probe,
    running,
    status,
)
from tests.conformance.kubelet.kit import Object, container, deleting, pod, sidecar
from tests.kit.worlds import in_world
from tests.unit.kubelet.probe.servers import answering, ok, serving

probing = in_world(node, "here")


async def asked(spec: Object, *, runtime: Any = None, **fields: Any) -> ProbeReply:
    one = container(**fields)
    return await run_probe(runtime, ProbeRequest(spec, pod(one), one, "1", "127.0.0.1", 5))


@virtual_time
async def test_a_probe_that_cannot_be_carried_out_is_tried_three_times_and_told_once() -> None:
    """PR-12"""

    def no_such_command() -> int:
        raise ExecError("no such command in container 1")

    async with node() as here:
        here.answer = no_such_command
        here.shown["u"] = status(running())
        here.probes.add(pod(container(startupProbe=probe(), livenessProbe=probe(failureThreshold=1))))
        await at(9)
        assert len(here.asked) == 3
        assert here.events == [
            (
                "spec.containers{a}",
                "Unhealthy",
                "Liveness probe errored and resulted in unknown state: no such command in container a",
            )
        ]
        assert here.probes.result(LIVENESS, "1") is OK
        assert not here.probes.metrics.total


@probing
async def test_a_failure_is_told_every_time_with_what_the_command_said(here: Node) -> None:
    """PR-12"""
    here.answer, here.output = lambda: 1, b"no " * 10_000
    here.shown["u"] = status(initContainerStatuses=[running("x")])
    here.probes.add(pod(init=[sidecar(readinessProbe=probe())]))
    await at(15)
    assert (
        here.events
        == [
            ("spec.initContainers{x}", "Unhealthy", f"Readiness probe failed: {'no ' * 10_000}"[: 10240 + 24])
        ]
        * 2
    )


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (ok(b"fine"), ProbeReply(ProbeOutcome.SUCCESS)),
        (b"HTTP/1.1 204 No Content\r\n\r\n", ProbeReply(ProbeOutcome.SUCCESS)),
        (
            b"HTTP/1.1 302 F\r\nLocation: http://example.com/\r\n\r\ngo",
            ProbeReply(ProbeOutcome.WARNING, "Probe terminated redirects, Response body: go"),
        ),
        (
            b"HTTP/1.1 503 U\r\n\r\nsecret",
            ProbeReply(ProbeOutcome.FAILURE, "HTTP probe failed with statuscode: 503"),
        ),
    ],
)
async def test_what_an_answer_by_http_means(answer: bytes, found: ProbeReply) -> None:
    """PR-13"""
    async with serving(answering(answer)) as port:
        ports = [{"name": "web", "containerPort": port}]
        assert await asked({"httpGet": {"port": "web", "path": "/x"}}, ports=ports) == found


async def test_what_other_questions_mean() -> None:
    """PR-13"""
    async with serving(answering(b"")) as port:
        assert await asked({"tcpSocket": {"port": port}}) == ProbeReply(ProbeOutcome.SUCCESS)
        found = await asked({"grpc": {"port": port}})
        assert found.outcome is ProbeOutcome.FAILURE
        assert "failed to connect service" in found.output
    assert (await asked({"tcpSocket": {"port": port}})).outcome is ProbeOutcome.FAILURE
    assert await asked({}) == ProbeReply(ProbeOutcome.UNKNOWN, error="missing probe handler for p_ns(u):a")
    assert "port web not found" in (await asked({"tcpSocket": {"port": "web"}})).error


class Program:
    """A runtime in which every command ends like this."""

    def __init__(self, end: ExecResult | ExecError) -> None:
        self.end = end
        self.asked: list[tuple[str, ...]] = []

    async def exec_sync(self, container_id: str, command: Sequence[str], **_: object) -> ExecResult:
        self.asked.append(tuple(command))
        if isinstance(self.end, ExecError):
            raise self.end
        return self.end


@pytest.mark.parametrize(
    ("end", "found"),
    [
        (ExecResult(0, b"ready", b""), ProbeReply(ProbeOutcome.SUCCESS, "ready")),
        (ExecResult(3, b"out", b"err"), ProbeReply(ProbeOutcome.FAILURE, "outerr")),
        (ExecResult(1, b"y" * 3_000_000, b""), ProbeReply(ProbeOutcome.FAILURE, "y" * 10240)),
        (
            ExecTimeoutError("too long"),
            ProbeReply(ProbeOutcome.FAILURE, 'command timed out: "wait 9" timed out after 5s'),
        ),
    ],
)
async def test_what_the_end_of_a_command_means(end: ExecResult | ExecError, found: ProbeReply) -> None:
    """PR-13, PR-14"""
    program, env = Program(end), [{"name": "N", "value": "9"}]
    assert await asked({"exec": {"command": ["wait", "$(N)"]}}, runtime=program, env=env) == found
    assert program.asked == [("wait", "9")]


@probing
async def test_a_pod_has_one_prober_per_container_and_type_however_often_it_is_added(here: Node) -> None:
    """PR-16, PR-20: one that lacks some gets those, whichever it has already."""
    here.shown["u"] = status(
        running("a", "1"), running("b", "2"), initContainerStatuses=[running("x", "3"), running("i", "4")]
    )
    of_pod = pod(
        container("a", livenessProbe=probe()),
        container("b", livenessProbe=probe()),
        init=[sidecar(livenessProbe=probe()), container("i", livenessProbe=probe())],
    )
    first = {**of_pod, "spec": {**of_pod["spec"], "containers": of_pod["spec"]["containers"][:1]}}
    here.probes.add(first)
    for _ in range(3):
        here.probes.add(of_pod)
    here.probes.add(pod(metadata={"uid": "without"}))
    await at(5)
    assert sorted(which for _, which in here.asked) == ["1", "2", "3"]
    here.probes.keep_only({"without"})
    here.probes.remove("u")
    here.probes.remove("u")
    await at(50)
    assert len(here.asked) == 3


@virtual_time
async def test_the_first_probe_of_a_new_agent_waits_a_part_of_its_period() -> None:
    """PR-18"""
    async with node(agent_age_seconds=5, random=0.3) as here:
        here.shown["u"] = status(running())
        here.probes.add(pod(container(livenessProbe=probe(periodSeconds=10))))
        await at(20)
        assert here.times == [3, 13]


@probing
async def test_when_a_pod_is_to_end_no_container_of_it_is_found_ill_or_late(here: Node) -> None:
    """PR-19: sidecars too, otherwise than upstream."""
    here.answer = lambda: 1
    here.shown["u"] = status(running(), initContainerStatuses=[running("x", "3", started=False)])
    of_pod = pod(
        container(livenessProbe=probe()), init=[sidecar(livenessProbe=probe(), startupProbe=probe())]
    )
    here.probes.add(of_pod)
    await at(1)
    told = len(here.events)
    here.probes.stop_for_termination(deleting(of_pod))
    await at(100)
    assert len(here.events) == told
    assert BAD not in {here.probes.result(LIVENESS, "1"), here.probes.result(STARTUP, "3")}


@probing
async def test_what_is_counted_of_probes(here: Node) -> None:
    """PR-21: and forgotten with the pod."""
    here.shown["u"] = status(running())
    codes = iter([0, 1, 0])
    here.answer = lambda: next(codes)
    here.probes.add(pod(container(readinessProbe=probe())))
    await at(25)
    labels = ProbeLabels("Readiness", "a", "p", "ns", "u")
    assert here.probes.metrics.total == {(labels, "successful"): 2, (labels, "failed"): 1}
    assert here.probes.metrics.seconds[labels].total == 2
    of_pod = 'container="a",namespace="ns",pod="p"'
    assert _lines(here.probes.metrics) == {
        f'prober_probe_total{{{of_pod},pod_uid="u",probe_type="Readiness",result="failed"}} 1.0',
        f'prober_probe_total{{{of_pod},pod_uid="u",probe_type="Readiness",result="successful"}} 2.0',
        f'prober_probe_duration_seconds_count{{{of_pod},probe_type="Readiness"}} 2.0',
    }
    assert here.probes.result(READINESS, "1") is ProbeResult.SUCCESS
    here.probes.remove("u")
    assert (here.probes.metrics.total, here.probes.metrics.seconds) == ({}, {})


def _lines(metrics: ProbeMetrics) -> set[str]:
    class Source(Collector):
        def collect(self) -> Iterator[Metric]:
            return probe_families(metrics)

    registry = CollectorRegistry()
    registry.register(Source())
    lines = generate_latest(registry).decode().splitlines()
    return {
        each
        for each in lines
        if each.startswith(("prober_probe_total", "prober_probe_duration_seconds_count"))
    }
