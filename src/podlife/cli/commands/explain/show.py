"""`podlife explain` and `podlife stuck`: read, decide, print. Nothing is written to the cluster."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from podlife.cli.archive_target import ArchiveTarget
from podlife.cli.commands.explain.archive import with_archived
from podlife.cli.commands.explain.audit import read_audit, read_own_audit
from podlife.cli.commands.explain.output import format_explanation, format_stuck
from podlife.cli.commands.explain.policy import PolicyVerdicts
from podlife.cli.commands.explain.rules import acting_rules
from podlife.cli.commands.explain.server import for_this_server
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.client import Client
from podlife.clock import Clock, SystemClock
from podlife.daemons import event_loop
from podlife.errors import NotFoundError
from podlife.explain import (
    ActionRules,
    AuditedRequest,
    ClusterSnapshot,
    Explanation,
    SnapshotReader,
    explain_absent,
    explain_gone_node,
    explain_node,
    explain_pod,
    pod_causes,
)
from podlife.podgc import Settings

_RIGHTS = "the role view, with nodes and leases,"
_Look = Callable[[Client, Clock], Awaitable[Explanation]]


def show_pod(
    options: ConnectionOptions,
    namespace: str,
    name: str,
    output: str,
    settings: Settings | None = None,
    archive: ArchiveTarget | None = None,
    audit_log: str | None = None,
) -> int:
    """The exit code: 0, even for a pod that is stuck; 1 when nothing is known of it."""
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
    found = for_this_server(event_loop.run(_asked(options, clock, look)), options)
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
    """With settings that have a policy, the verdict of the policy too."""
    verdicts = await _verdicts(client, clock, settings)
    reader = SnapshotReader(client, clock, _rules(settings, verdicts))
    try:
        world, pod = await reader.pod(namespace, name)
    except NotFoundError:
        world, events = await reader.absent_pod(namespace)
        return explain_absent(replace(world, audited=audited), namespace, name, events)
    if verdicts is not None:
        await verdicts.ask_owner(pod)
        world = replace(world, unread=(*world.unread, *verdicts.unread))
    return explain_pod(replace(world, audited=audited), pod)


async def _verdicts(client: Client, clock: Clock, settings: Settings | None) -> PolicyVerdicts | None:
    if settings is None or settings.policy is None:
        return None
    verdicts = PolicyVerdicts(client, clock, settings)
    await verdicts.read()
    return verdicts


def _rules(settings: Settings | None, verdicts: PolicyVerdicts | None) -> ActionRules:
    return acting_rules(settings) if verdicts is None else acting_rules(settings, verdicts)


async def look_at_node(
    client: Client, clock: Clock, name: str, audited: Sequence[AuditedRequest] = ()
) -> Explanation:
    world, node = await SnapshotReader(client, clock, acting_rules()).node(name)
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

    async def read() -> tuple[ClusterSnapshot, Sequence[Explanation]]:
        async with connected(options, connection, rights=_RIGHTS) as client:
            return await find_stuck(client, clock, namespace, settings)

    world, stuck = event_loop.run(read())
    found = [for_this_server(each, options) for each in stuck]
    sys.stdout.write(format_stuck(found, output, clock.now(), world.unread, namespace))
    return 0


async def find_stuck(
    client: Client, clock: Clock, namespace: str = "", settings: Settings | None = None
) -> tuple[ClusterSnapshot, Sequence[Explanation]]:
    """All stuck pods of a namespace or of all, the longest first."""
    verdicts = await _verdicts(client, clock, settings)
    world = await SnapshotReader(client, clock, _rules(settings, verdicts)).everything(namespace)
    if verdicts is not None:
        world = replace(world, unread=(*world.unread, *verdicts.unread))
    stuck = [pod for pod in world.pods if any(cause.is_stuck for cause in pod_causes(world, pod))]
    found = (explain_pod(world, pod) for pod in stuck)
    return world, sorted(found, key=lambda each: _since(each, world.now))


def _since(found: Explanation, now: datetime) -> datetime:
    return next(cause.since for cause in found.causes if cause.is_stuck) or now
