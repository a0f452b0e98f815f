"""`podlife explain` and `podlife stuck`: read, decide, print. Nothing is written to the cluster."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from podlife.cli.commands.archive.target import Target
from podlife.cli.commands.explain.archive import with_archived
from podlife.cli.commands.explain.audit import read_audit, read_own_audit
from podlife.cli.commands.explain.output import format_explanation, format_stuck
from podlife.cli.commands.explain.policy import Standings
from podlife.cli.commands.explain.rules import acting_rules
from podlife.cli.commands.explain.server import for_this_server
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.client import Client
from podlife.clock import Clock, SystemClock
from podlife.daemons import event_loop as loop
from podlife.errors import NotFoundError
from podlife.explain import (
    AuditedRequest,
    Explanation,
    Reader,
    Rules,
    World,
    explain_absent,
    explain_gone_node,
    explain_node,
    explain_pod,
    pod_causes,
)
from podlife.podgc import Settings

__all__ = ["find_stuck", "look_at_node", "look_at_pod", "show_node", "show_pod", "show_stuck"]

_RIGHTS = "the role view, with nodes and leases,"
_Look = Callable[[Client, Clock], Awaitable[Explanation]]


def show_pod(
    options: ConnectionOptions,
    namespace: str,
    name: str,
    output: str,
    settings: Settings | None = None,
    archive: Target | None = None,
    audit_log: str | None = None,
) -> int:
    """The exit code: 0, also for a pod that is stuck; 1 where nothing at all is known of it."""
    connection = load_connection(options)
    namespace = namespace or connection.namespace
    if audit_log is None:
        audited, unread = read_own_audit(connection, namespace, name)
    else:
        audited, unread = read_audit(audit_log, namespace, name)

    async def look(client: Client, clock: Clock) -> Explanation:
        found = await look_at_pod(client, clock, namespace, name, settings, audited)
        found = replace(found, unread=(*found.unread, *unread))
        return found if found.uid or archive is None else await with_archived(found, archive, clock)

    return _show(options, look, output)


def show_node(options: ConnectionOptions, name: str, output: str, audit_log: str | None = None) -> int:
    if audit_log is None:
        audited, unread = read_own_audit(load_connection(options), "", node=name)
    else:
        audited, unread = read_audit(audit_log, "", node=name)

    async def look(client: Client, clock: Clock) -> Explanation:
        found = await look_at_node(client, clock, name, audited)
        return replace(found, unread=(*found.unread, *unread))

    return _show(options, look, output)


def _show(options: ConnectionOptions, look: _Look, output: str) -> int:
    clock = SystemClock()
    found = for_this_server(loop.run(_asked(options, clock, look)), options)
    sys.stdout.write(format_explanation(found, output, clock.now()))
    is_known = bool(found.uid or found.timeline or found.causes)
    return 0 if is_known else 1


async def _asked(options: ConnectionOptions, clock: Clock, look: _Look) -> Explanation:
    async with connected(options, load_connection(options), rights=_RIGHTS) as client:
        return await look(client, clock)


async def look_at_pod(
    client: Client,
    clock: Clock,
    namespace: str,
    name: str,
    settings: Settings | None = None,
    audited: Sequence[AuditedRequest] = (),
) -> Explanation:
    """With settings that have a policy, also how the pod stands with it."""
    standings = await _standings(client, clock, settings)
    reader = Reader(client, clock, _rules(settings, standings))
    try:
        world, pod = await reader.pod(namespace, name)
    except NotFoundError:
        world, events = await reader.absent_pod(namespace)
        return explain_absent(replace(world, audited=audited), namespace, name, events)
    if standings is not None:
        await standings.ask_owner(pod)
        world = replace(world, unread=(*world.unread, *standings.unread))
    return explain_pod(replace(world, audited=audited), pod)


async def _standings(client: Client, clock: Clock, settings: Settings | None) -> Standings | None:
    if settings is None or settings.policy is None:
        return None
    standings = Standings(client, clock, settings)
    await standings.read()
    return standings


def _rules(settings: Settings | None, standings: Standings | None) -> Rules:
    return acting_rules(settings) if standings is None else acting_rules(settings, standings)


async def look_at_node(
    client: Client, clock: Clock, name: str, audited: Sequence[AuditedRequest] = ()
) -> Explanation:
    world, node = await Reader(client, clock, acting_rules()).node(name)
    world = replace(world, audited=audited)
    return explain_gone_node(world, name, ()) if node is None else explain_node(world, node)


def show_stuck(
    options: ConnectionOptions,
    namespace: str,
    output: str,
    *,
    is_everywhere: bool,
    settings: Settings | None = None,
) -> int:
    clock, connection = SystemClock(), load_connection(options)
    namespace = "" if is_everywhere else namespace or connection.namespace

    async def read() -> tuple[World, Sequence[Explanation]]:
        async with connected(options, connection, rights=_RIGHTS) as client:
            return await find_stuck(client, clock, namespace, settings)

    world, stuck = loop.run(read())
    found = [for_this_server(each, options) for each in stuck]
    sys.stdout.write(format_stuck(found, output, clock.now(), world.unread, namespace))
    return 0


async def find_stuck(
    client: Client, clock: Clock, namespace: str = "", settings: Settings | None = None
) -> tuple[World, Sequence[Explanation]]:
    """All stuck pods of a namespace or of all, the longest first."""
    standings = await _standings(client, clock, settings)
    world = await Reader(client, clock, _rules(settings, standings)).everything(namespace)
    if standings is not None:
        world = replace(world, unread=(*world.unread, *standings.unread))
    stuck = [pod for pod in world.pods if any(cause.is_stuck for cause in pod_causes(world, pod))]
    found = (explain_pod(world, pod) for pod in stuck)
    return world, sorted(found, key=lambda each: _since(each, world.now))


def _since(found: Explanation, now: datetime) -> datetime:
    return next(cause.since for cause in found.causes if cause.is_stuck) or now
