"""`podlife explain` and `podlife stuck`: read, decide, print. Nothing is written to the cluster."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from podlife.cli.archive_options import ArchiveTarget
from podlife.cli.commands.explain.audit import read_audit
from podlife.cli.commands.explain.output import format_explanation, format_stuck
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.client import Client
from podlife.clock import Clock, SystemClock
from podlife.daemons import event_loop
from podlife.diagnosis import find_stuck, look_at_node, look_at_pod, with_archived, with_kubectl_flags
from podlife.explain import ClusterSnapshot, Explanation
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
    audited, unread = read_audit(audit_log, connection, namespace, name)

    async def look(client: Client, clock: Clock) -> Explanation:
        found = await look_at_pod(client, clock, namespace, name, settings, audited)
        found = replace(found, unread=(*found.unread, *unread))
        return found if found.uid or archive is None else await with_archived(found, archive)

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


def for_this_server(found: Explanation, options: ConnectionOptions) -> Explanation:
    """Suggested commands get the flags of the cluster that was explained, but no token."""
    return with_kubectl_flags(found, kubectl_flags(options))


def kubectl_flags(options: ConnectionOptions) -> str:
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
