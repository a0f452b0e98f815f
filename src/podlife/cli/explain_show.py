"""`podlife explain` and `podlife stuck`: read, decide, print. Nothing is written to the cluster."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from podlife.cli import loop
from podlife.cli.connecting import ConnectionOptions, connected, load_connection
from podlife.cli.explain_output import format_explanation, format_stuck
from podlife.cli.explain_rules import acting_rules
from podlife.cli.explain_server import for_this_server
from podlife.client import Client
from podlife.clock import Clock, SystemClock
from podlife.errors import NotFoundError
from podlife.explain import (
    Explanation,
    Reader,
    World,
    explain_absent,
    explain_gone_node,
    explain_node,
    explain_pod,
    pod_causes,
)

__all__ = ["find_stuck", "look_at_node", "look_at_pod", "show_node", "show_pod", "show_stuck"]

_RIGHTS = "the role view, with nodes and leases,"
_Look = Callable[[Client, Clock], Awaitable[Explanation]]


def show_pod(options: ConnectionOptions, namespace: str, name: str, output: str) -> int:
    """The exit code: 0, also for a pod that is stuck; 1 where nothing at all is known of it."""
    namespace = namespace or load_connection(options).namespace
    return _show(options, lambda client, clock: look_at_pod(client, clock, namespace, name), output)


def show_node(options: ConnectionOptions, name: str, output: str) -> int:
    return _show(options, lambda client, clock: look_at_node(client, clock, name), output)


def _show(options: ConnectionOptions, look: _Look, output: str) -> int:
    clock = SystemClock()
    found = for_this_server(loop.run(_asked(options, clock, look)), options)
    sys.stdout.write(format_explanation(found, output, clock.now()))
    is_known = bool(found.uid or found.timeline or found.causes)
    return 0 if is_known else 1


async def _asked(options: ConnectionOptions, clock: Clock, look: _Look) -> Explanation:
    async with connected(options, load_connection(options), rights=_RIGHTS) as client:
        return await look(client, clock)


async def look_at_pod(client: Client, clock: Clock, namespace: str, name: str) -> Explanation:
    reader = Reader(client, clock, acting_rules())
    try:
        world, pod = await reader.pod(namespace, name)
    except NotFoundError:
        world, events = await reader.absent_pod(namespace)
        return explain_absent(world, namespace, name, events)
    return explain_pod(world, pod)


async def look_at_node(client: Client, clock: Clock, name: str) -> Explanation:
    world, node = await Reader(client, clock, acting_rules()).node(name)
    return explain_gone_node(world, name, ()) if node is None else explain_node(world, node)


def show_stuck(options: ConnectionOptions, namespace: str, output: str, *, is_everywhere: bool) -> int:
    clock, connection = SystemClock(), load_connection(options)
    namespace = "" if is_everywhere else namespace or connection.namespace

    async def read() -> tuple[World, Sequence[Explanation]]:
        async with connected(options, connection, rights=_RIGHTS) as client:
            return await find_stuck(client, clock, namespace)

    world, stuck = loop.run(read())
    found = [for_this_server(each, options) for each in stuck]
    sys.stdout.write(format_stuck(found, output, clock.now(), world.unread))
    return 0


async def find_stuck(
    client: Client, clock: Clock, namespace: str = ""
) -> tuple[World, Sequence[Explanation]]:
    """All stuck pods of a namespace or of all, the longest first."""
    world = await Reader(client, clock, acting_rules()).everything(namespace)
    stuck = [pod for pod in world.pods if any(cause.is_stuck for cause in pod_causes(world, pod))]
    found = (explain_pod(world, pod) for pod in stuck)
    return world, sorted(found, key=lambda each: _since(each, world.now))


def _since(found: Explanation, now: datetime) -> datetime:
    return next(cause.since for cause in found.causes if cause.is_stuck) or now
