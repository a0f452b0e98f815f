"""`python -m bench.podgc_index COUNT`: the collector, alone, with so many pods in its index; prints JSON.

In a process of its own, so that its memory is all there is to measure. The pods come as they would from a server,
in pages and then a watch that is silent, from a handler in the same process that makes them up as they are read.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from time import perf_counter

import uvloop

from bench.processes import resident_bytes
from podlife.aio import cancel_and_wait
from podlife.client import Client, InProcessTransport
from podlife.podgc import Collector, Settings
from podlife.wire import Handler, Request, Response

_NODES = 5_000
_PASSES = 200
# One in so many has ended: the threshold is not reached.
_ENDED_EACH = 100


def _pod(number: int) -> str:
    phase = "Succeeded" if number % _ENDED_EACH == 0 else "Running"
    day, second = divmod(number, 86_400)
    time = f"2030-01-{day % 28 + 1:02}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z"
    return (
        '{"metadata":{'
        f'"name":"service-{number % 997}-7d9c5b8f6d-{number:07x}","namespace":"team-{number % 300}",'
        f'"uid":"{number:08x}-0000-4000-8000-{number * 7919:012x}","resourceVersion":"{number + 1000}",'
        f'"generation":1,"creationTimestamp":"{time}","labels":{{"app":"service"}}}},'
        f'"spec":{{"nodeName":"node-{number % _NODES}","containers":[{{"name":"c","image":"i"}}]}},'
        f'"status":{{"phase":"{phase}","conditions":[{{"type":"Ready","status":"True"}}],'
        f'"podIP":"10.0.0.1"}}}}'
    )


def _node(number: int) -> str:
    return (
        '{"metadata":{'
        f'"name":"node-{number}","uid":"node-{number}","resourceVersion":"{number + 1}"}},'
        '"spec":{},"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    )


@dataclass(frozen=True)
class Made:
    """Objects that are made up as they are read."""

    kind: str
    count: int
    make: Callable[[int], str]


def nodes() -> Made:
    return Made("Node", _NODES, _node)


def _page(made: Made, start: int, limit: int) -> bytes:
    kind, count, make = made.kind, made.count, made.make
    end = min(start + limit, count)
    items = ",".join(make(number) for number in range(start, end))
    more = f',"continue":"{end}"' if end < count else ""
    head = f'{{"kind":"{kind}List","apiVersion":"v1","metadata":{{"resourceVersion":"9000000000"{more}}}'
    return f'{head},"items":[{items}]}}'.encode()


def handler(**resources: Made) -> Handler:
    """Serves these, by the last part of their path."""

    async def silence() -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async def handle(request: Request) -> Response:
        if "watch" in request.query:
            return Response(200, silence())
        # As over a socket, others have their turn between two pages.
        await asyncio.sleep(0)
        start, limit = int(request.query.get("continue") or 0), int(request.query.get("limit"))
        return Response(200, _page(resources[request.path.rpartition("/")[2]], start, limit))

    return handle


async def _measure(count: int) -> dict[str, float]:
    client = Client(InProcessTransport(handler(pods=Made("Pod", count, _pod), nodes=nodes())))
    # The period is the least time between two passes: they are what is measured.
    collector = Collector(client, Settings(period_seconds=0.01))
    gc.collect()
    before, began = resident_bytes(os.getpid()), perf_counter()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(collector.run())
        passes = collector.metrics.pass_seconds
        while passes.total == 0:
            await asyncio.sleep(0.05)
        synced = perf_counter() - began
        assert len(collector.index) == count
        gc.collect()
        used = resident_bytes(os.getpid()) - before
        first, first_sum = passes.total, passes.sum
        while passes.total < first + _PASSES:
            await asyncio.sleep(0.05)
        idle = (passes.sum - first_sum) / (passes.total - first)
        await cancel_and_wait(task)
    return {"bytes_per_pod": used / count, "idle_pass_ms": idle * 1e3, "sync_seconds": synced}


if __name__ == "__main__":
    # That it is not synced for a while is no news here.
    logging.disable(logging.WARNING)
    print(json.dumps(uvloop.run(_measure(int(sys.argv[1])))))
