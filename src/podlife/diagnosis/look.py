"""Looks at a pod, a node or all pods of a cluster and explains them: reads, never writes.

The same for `podlife explain`, `podlife stuck` and the page. Printing is left to them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime
from typing import Protocol

from podlife.client import Client
from podlife.clock import Clock
from podlife.diagnosis.rules import PolicyVerdicts, acting_rules
from podlife.errors import NotFoundError, PodlifeError
from podlife.explain import (
    AuditedRequest,
    Cause,
    ClusterSnapshot,
    Explanation,
    Happening,
    PodIdentity,
    SnapshotReader,
    explain_absent,
    explain_gone_node,
    explain_node,
    explain_pod,
    pod_causes,
)
from podlife.podgc import Settings
from podlife.podgc.archive.reader import ArchivedEntry, ArchiveReader, DamagedEntry, find

# Pods of one name, as a StatefulSet creates them.
_MOST_ENTRIES = 5
# At its beginning, after a pipe, or quoted within a sentence.
_KUBECTL = re.compile(r"(^|\| |`)kubectl ")


class ArchiveSource(Protocol):
    """Where an archive is; its text is what `--archive` takes."""

    def reader(self) -> AbstractAsyncContextManager[ArchiveReader]:
        """Raises PodlifeError."""


async def look_at_pod(
    client: Client,
    clock: Clock,
    namespace: str,
    name: str,
    settings: Settings | None = None,
    audited: Sequence[AuditedRequest] = (),
    gone: PodIdentity | None = None,
) -> Explanation:
    """With settings that have a policy, the verdict of the policy too. `gone` is what is known of a pod that is gone;
    another one may have its name."""
    verdicts = await _verdicts(client, clock, settings)
    reader = SnapshotReader(client, clock, acting_rules(settings, verdicts))
    try:
        if gone is not None:
            raise NotFoundError("it is gone")
        world, pod = await reader.pod(namespace, name)
    except NotFoundError:
        world, events = await reader.absent_pod(namespace)
        return explain_absent(replace(world, audited=audited), namespace, name, events, gone)
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


async def with_archived(found: Explanation, target: ArchiveSource) -> Explanation:
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


def _happening(item: ArchivedEntry, target: ArchiveSource) -> Happening:
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


def with_kubectl_flags(found: Explanation, flags: str) -> Explanation:
    """Suggested commands with these flags, which name the cluster that was explained."""
    if not flags:
        return found
    return replace(found, causes=tuple(_with_flags(cause, flags) for cause in found.causes))


def _with_flags(cause: Cause, flags: str) -> Cause:
    def put(text: str) -> str:
        return _KUBECTL.sub(lambda match: f"{match[1]}kubectl {flags} ", text)

    remedies = tuple(replace(each, command=put(each.command)) for each in cause.remedies)
    return replace(cause, text=put(cause.text), remedies=remedies)
