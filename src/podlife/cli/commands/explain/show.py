"""`podlife explain` and `podlife stuck`: read, decide, print. Nothing is written to the cluster."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import datetime

from podlife.cli.archive_options import ArchiveTarget
from podlife.cli.commands.explain.audit import read_audit
from podlife.cli.commands.explain.output import format_explanation, format_stuck
from podlife.cli.commands.explain.rules import PolicyVerdicts, acting_rules
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.client import Client
from podlife.clock import Clock, SystemClock
from podlife.daemons import event_loop
from podlife.errors import NotFoundError, PodlifeError
from podlife.explain import (
    AuditedRequest,
    Cause,
    ClusterSnapshot,
    Explanation,
    Happening,
    SnapshotReader,
    explain_absent,
    explain_gone_node,
    explain_node,
    explain_pod,
    pod_causes,
)
from podlife.podgc import Settings
from podlife.podgc.archive.reader import ArchivedEntry, DamagedEntry, find

_RIGHTS = "the role view, with nodes and leases,"
# Pods of one name, as a StatefulSet creates them.
_MOST_ENTRIES = 5

# At its beginning, after a pipe, or quoted within a sentence.
_KUBECTL = re.compile(r"(^|\| |`)kubectl ")
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
    audited, unread = read_audit(audit_log, connection, namespace, name)

    async def look(client: Client, clock: Clock) -> Explanation:
        found = await look_at_pod(client, clock, namespace, name, settings, audited)
        found = replace(found, unread=(*found.unread, *unread))
        return found if found.uid or archive is None else await _with_archived(found, archive)

    return _show(options, look, output)


def show_node(options: ConnectionOptions, name: str, output: str, audit_log: str | None = None) -> int:
    audited, unread = read_audit(audit_log, load_connection(options), "", node=name)

    async def look(client: Client, clock: Clock) -> Explanation:
        found = await look_at_node(client, clock, name, audited)
        return replace(found, unread=(*found.unread, *unread))

    return _show(options, look, output)


def _show(options: ConnectionOptions, look: _Look, output: str) -> int:
    clock = SystemClock()

    async def ask() -> Explanation:
        async with connected(options, load_connection(options), rights=_RIGHTS) as client:
            return await look(client, clock)

    found = for_this_server(event_loop.run(ask()), options)
    sys.stdout.write(format_explanation(found, output, clock.now()))
    is_known = bool(found.uid or found.timeline or found.causes)
    return 0 if is_known else 1


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
    reader = SnapshotReader(client, clock, acting_rules(settings, verdicts))
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


async def _with_archived(found: Explanation, target: ArchiveTarget) -> Explanation:
    """With entries of an archive in the timeline; one that cannot be read is listed under what could not be read."""
    try:
        async with target.reader() as reader:
            entries = await find(reader, found.name, found.namespace)
    except PodlifeError as error:
        return replace(found, unread=(*found.unread, str(error)))
    kept = [_happening(each, target) for each in entries if isinstance(each, ArchivedEntry)][:_MOST_ENTRIES]
    unread = [f"{target}/{each.place}: {each.why}" for each in entries if isinstance(each, DamagedEntry)]
    timeline = sorted((*found.timeline, *kept), key=lambda each: each.at)
    return replace(found, timeline=tuple(timeline), unread=(*found.unread, *unread))


def _happening(item: ArchivedEntry, target: ArchiveTarget) -> Happening:
    header = item.header
    why = f", {header.reason}: {header.why}" if header.reason else ""
    command = f"podlife archive show {header.uid} --archive {shlex.quote(str(target))}"
    return Happening(header.archived_at, f"archived before its deletion{why}; `{command}`", "podlife gc")


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
    world = await SnapshotReader(client, clock, acting_rules(settings, verdicts)).everything(namespace)
    if verdicts is not None:
        world = replace(world, unread=(*world.unread, *verdicts.unread))
    stuck = [pod for pod in world.pods if any(cause.is_stuck for cause in pod_causes(world, pod))]
    found = (explain_pod(world, pod) for pod in stuck)

    def since(each: Explanation) -> datetime:
        return next(cause.since for cause in each.causes if cause.is_stuck) or world.now

    return world, sorted(found, key=since)


def for_this_server(found: Explanation, options: ConnectionOptions) -> Explanation:
    """Suggested commands get the flags of the cluster that was explained, but no token."""
    flags = _flags(options)
    if not flags:
        return found
    return replace(found, causes=tuple(_with_flags(cause, flags) for cause in found.causes))


def _flags(options: ConnectionOptions) -> str:
    given = {
        "--kubeconfig": options.kubeconfig,
        "--context": options.context,
        "--server": options.server,
        "--certificate-authority": options.certificate_authority,
        "--as": options.request_as,
    }
    words = [shlex.quote(f"{flag}={value}") for flag, value in given.items() if value]
    words += ["--insecure-skip-tls-verify"] if options.insecure_skip_tls_verify else []
    return " ".join(words)


def _with_flags(cause: Cause, flags: str) -> Cause:
    def put(text: str) -> str:
        return _KUBECTL.sub(lambda match: f"{match[1]}kubectl {flags} ", text)

    remedies = tuple(replace(each, command=put(each.command)) for each in cause.remedies)
    return replace(cause, text=put(cause.text), remedies=remedies)
