"""What the rules speak of: a few pods and nodes, the collector at work on them, and what is left."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from podlife.podgc import Collector
from tests.component.podgc.world import NODE, World, running

# The quarantine of the rules, at its default.
Q = 40.0


@dataclass(frozen=True)
class P:
    """A pod of a row; pods are made in the order of the row, each an hour younger than the one before."""

    name: str
    phase: str = "Running"
    node: str = NODE
    is_terminating: bool = False
    reason: str = ""
    finalizers: tuple[str, ...] = ()
    namespace: str = "default"


@dataclass(frozen=True)
class Row:
    pods: Sequence[P]
    deleted: set[str]
    patched: set[str]
    threshold: int = 0


async def make(world: World, pods: Sequence[P]) -> None:
    for pod in pods:
        await world.pod(
            pod.name,
            phase=pod.phase,
            node=pod.node,
            is_terminating=pod.is_terminating,
            reason=pod.reason,
            finalizers=pod.finalizers,
            namespace=pod.namespace,
        )


async def collect(world: World, seconds: float = 100.0, **settings: Any) -> Collector:
    """Let a collector run for so long."""
    collector = world.collector(**settings)
    async with running(collector):
        await asyncio.sleep(seconds)
    return collector


async def expect(world: World, row: Row, collector: Collector) -> None:
    names = {pod.name for pod in row.pods}
    assert set(await world.left()) == names - row.deleted
    assert set(world.patched()) == row.patched
    assert sum(collector.metrics.deleted.values()) == len(row.deleted)
    assert not collector.metrics.errors
