"""What the page asks the cluster for, one request at a time: explain, YAML, logs, archive, plan, sweep.

Each is what the command of that name does, by the same code, in its machine-readable form. All of it only reads, except
the sweep: that needs the digest of the plan that was shown, deletes nothing that was not in it, and runs on when the
page is closed. Work is bounded: few explanations at a time, one plan and one sweep.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from podlife.aio import cancel_and_wait, spawn
from podlife.api.views import MetadataOnly
from podlife.client import PODS, Client, LogOptions, Ref
from podlife.clock import Clock, add_seconds
from podlife.diagnosis import (
    ArchiveSource,
    look_at_node,
    look_at_pod,
    read_audit_file,
    with_archived,
    with_kubectl_flags,
)
from podlife.errors import ApiError, ConfigError, ForbiddenError, NotFoundError, PodlifeError
from podlife.events import Recorder
from podlife.explain import AuditCollection, AuditedRequest, PodIdentity, as_dict
from podlife.podgc import Deletions, GcSession, Outcome, Plan, Removal, Selection, Settings, Victim
from podlife.podgc.archive import ArchiveStep
from podlife.podgc.archive.reader import ArchivedEntry, find
from podlife.podgc.plan import HeldBack
from podlife.podgc.removal import event_about, regarding_pod
from podlife.podgc.snapshot import list_namespaces
from podlife.podgc.views import Pod
from podlife.ui.life import PodLife, milliseconds
from podlife.ui.lives import Lives

T = TypeVar("T")

MOST_LOG_LINES = 5_000
_MOST_LOG_BYTES = 1 << 20
_MOST_EXPLAINED = 4
_MOST_AUDIT_BYTES = 64 << 20
_PLAN_SECONDS = 2.0
_FLUSH_SECONDS = 5.0
_STOP_SECONDS = 10.0
# A page cannot show more, and counts the rest.
_MOST_PODS = 2_000
_LIMITED = (
    "nodes and other namespaces (403 Forbidden): orphans are not planned, only this namespace is counted"
)
_UNGUARDED = "annotations of kube-system, which may stop all deletions (403 Forbidden): a sweep is refused"


class ConflictingSweepError(PodlifeError):
    """The plan has changed since it was shown, or a sweep runs already."""


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """`collector` decides plans and sweeps, with the policy if there is one; `make_step` archives before a deletion."""

    collector: Settings = field(default_factory=Settings)
    archive: ArchiveSource | None = None
    make_step: Callable[[Client, Clock], ArchiveStep] | None = None
    # The namespace of plans and sweeps; empty for all.
    namespace: str = ""
    # Of the API server, with its rotated files; empty for none.
    audit_log: str = ""
    # Flags that suggested commands need to reach this cluster.
    kubectl_flags: str = ""


class ClusterApi:
    """`lives` knows the pods that are gone."""

    def __init__(
        self, client: Client, clock: Clock, settings: ClusterSettings, lives: Lives | None = None
    ) -> None:
        self._client = client
        self._clock = clock
        self._settings = settings
        self._lives = lives or Lives()
        self._explaining = asyncio.Semaphore(_MOST_EXPLAINED)
        self._reading_audit = asyncio.Lock()
        self._planning = asyncio.Lock()
        # Whether only the namespace may be read.
        self._is_limited = False
        self._planned: tuple[float, Plan] | None = None
        self._sweeping: asyncio.Task[dict[str, Any]] | None = None
        self._session: GcSession | None = None
        make = settings.make_step
        self._steps = () if make is None else (make(client, clock),)

    async def explain_pod(self, namespace: str, name: str, uid: str = "") -> dict[str, Any]:
        """Raises NotFoundError for a pod whose name another one has now."""
        settings, life = self._settings, self._lives.get(uid)
        gone = None
        if isinstance(life, PodLife) and life.to is not None and (life.ns, life.name) == (namespace, name):
            gone = _identity(life)
        async with self._explaining:
            audited, unread = await self._audited(AuditCollection(namespace, name))
            found = await look_at_pod(
                self._client, self._clock, namespace, name, settings.collector, audited, gone
            )
            found = replace(found, unread=(*found.unread, *unread))
            if found.uid:
                _check_uid(found.uid, uid)
            if not found.uid and settings.archive is not None:
                found = await _in_thread(with_archived(found, settings.archive))
        return as_dict(with_kubectl_flags(found, settings.kubectl_flags))

    async def explain_node(self, name: str) -> dict[str, Any]:
        async with self._explaining:
            audited, unread = await self._audited(AuditCollection(node=name))
            found = await look_at_node(self._client, self._clock, name, audited)
        found = replace(found, unread=(*found.unread, *unread))
        return as_dict(with_kubectl_flags(found, self._settings.kubectl_flags))

    async def _audited(self, found: AuditCollection) -> tuple[Sequence[AuditedRequest], list[str]]:
        """What the audit log tells, and what of it could not be read."""
        if not self._settings.audit_log:
            return (), []
        async with self._reading_audit:
            try:
                unread = await asyncio.to_thread(
                    read_audit_file, found, self._settings.audit_log, _MOST_AUDIT_BYTES
                )
            except ConfigError as error:
                unread = [str(error)]
        return found.requests, unread

    async def yaml(self, ref: Ref, name: str, namespace: str = "", uid: str = "") -> str:
        import yaml

        obj = await self._client.get(ref, name, namespace)
        _check_uid(obj["metadata"]["uid"], uid)
        (obj.get("metadata") or {}).pop("managedFields", None)
        # A large object takes a second or more.
        return await asyncio.to_thread(yaml.safe_dump, obj, sort_keys=False, allow_unicode=True)

    async def log(
        self, namespace: str, name: str, options: LogOptions, uid: str = ""
    ) -> AsyncGenerator[bytes, None]:
        if uid:
            found = await self._client.get(PODS, name, namespace, view=MetadataOnly)
            _check_uid(found.metadata.uid, uid)
        async with aclosing(self._client.logs(name, namespace, options)) as pieces:
            async for piece in pieces:
                yield piece

    async def archived(self, namespace: str, name: str, uid: str = "") -> dict[str, Any]:
        """The newest entry of the pod. Raises NotFoundError."""
        source = self._settings.archive
        if source is None:
            raise NotFoundError("no archive: name one with --archive")

        async def read() -> dict[str, Any]:
            async with source.reader() as reader:
                found = [
                    each
                    for each in await find(reader, uid or name, namespace)
                    if isinstance(each, ArchivedEntry)
                ]
                if not found:
                    raise NotFoundError(f"{namespace}/{name} is not in the archive {source}")
                built: dict[str, Any] = msgspec.to_builtins(await reader.read(found[0].place))
                return built

        return await _in_thread(read())

    # The collector

    async def plan(self) -> dict[str, Any]:
        plan = await self._plan(at_most_seconds_old=_PLAN_SECONDS)
        page = plan_as_page(plan, self._clock.now())
        guards = self._settings.collector.guards
        unread = [_LIMITED, *([] if guards is None else [_UNGUARDED])] if self._is_limited else []
        return page | {"unread": unread}

    async def _plan(self, *, at_most_seconds_old: float = 0.0) -> Plan:
        loop = asyncio.get_running_loop()
        async with self._planning:
            if self._planned is not None and loop.time() - self._planned[0] < at_most_seconds_old:
                return self._planned[1]
            try:
                plan = await self._new_session().plan()
            except ForbiddenError:
                if self._is_limited or not self._settings.namespace:
                    raise
                self._is_limited = True
                plan = await self._new_session().plan()
            self._planned = (loop.time(), plan)
            return plan

    def _new_session(self, report: Callable[[Victim, Removal], None] | None = None) -> GcSession:
        return GcSession(
            self._client,
            self._settings.collector,
            phases=[Deletions(report)],
            selection=Selection(self._settings.namespace, reads_namespace_only=self._is_limited),
            clock=self._clock,
            steps=self._steps,
        )

    async def sweep(self, digest: str) -> dict[str, Any]:
        """Carry out the plan with this digest. Raises ConflictingSweepError, ApiError or UnreachableError."""
        if self._sweeping is not None and not self._sweeping.done():
            raise ConflictingSweepError("a sweep runs already: wait for its end")
        self._sweeping = spawn(self._swept(digest), name="sweep", on_failure=lambda _: None)
        return await asyncio.shield(self._sweeping)

    async def stop(self) -> None:
        """Delete nothing more; a sweep under way ends after the requests that were sent."""
        if self._session is not None:
            self._session.stop()
        if self._sweeping is not None:
            await asyncio.wait((self._sweeping,), timeout=_STOP_SECONDS)
            await cancel_and_wait(self._sweeping)
        for step in self._steps:
            await step.close()

    async def _swept(self, digest: str) -> dict[str, Any]:
        plan = await self._plan()
        if self._is_limited and self._settings.collector.guards is not None:
            # Who cannot know whether all deletions are stopped deletes nothing.
            await list_namespaces(self._client)
        if digest_of(plan) != digest:
            raise ConflictingSweepError("the plan has changed: look at it again before you confirm")
        recorder = Recorder(self._client, "podlife-gc", clock=self._clock)

        def report(victim: Victim, removal: Removal) -> None:
            if (event := event_about(victim, removal)) is not None:
                recorder.event(event[0], "Normal", "PodGarbageCollected", event[1])
            if removal.outcome is Outcome.KEPT:
                recorder.event(
                    regarding_pod(victim), "Warning", "PodNotCollected", f"podlife-gc: {removal.why}"
                )

        async with AsyncExitStack() as stack:
            task = spawn(recorder.run(), name="events", on_failure=lambda _: None)
            stack.push_async_callback(cancel_and_wait, task)
            self._session = self._new_session(report)
            summary = await self._session.execute(plan)
            await recorder.flush(seconds=_FLUSH_SECONDS)
        self._planned = None
        return {
            "outcomes": {str(outcome): count for outcome, count in summary.outcomes.items() if count},
            "failures": [
                _pod(each.victim.pod, why=str(each.error)) for each in summary.failures[:_MOST_PODS]
            ],
            "held": sum(len(each.victims) for each in summary.held_back),
            "left": summary.left,
            "complete": summary.is_complete,
        }


def _identity(life: PodLife) -> PodIdentity:
    """What the page has seen of a pod."""
    created_at = datetime.fromtimestamp(life.start / 1000, UTC)
    owner = ("", "") if life.owner is None else (life.owner.kind, life.owner.name)
    fields = {"spec.nodeName": life.node}
    return PodIdentity(life.ns, life.name, life.uid, created_at, owner, life.labels, fields)


def _check_uid(found: str, wanted: str) -> None:
    if wanted and found != wanted:
        raise NotFoundError("the pod is gone: another pod of this name exists now")


async def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    """An archive in a folder is read with blocking calls."""
    return await asyncio.to_thread(asyncio.run, work)


def _waiting(plan: Plan) -> list[HeldBack]:
    """What only the limit per minute holds: a sweep waits for it."""
    return [each for each in plan.held_back if each.is_for_a_minute]


def digest_of(plan: Plan) -> str:
    """The same for two plans that delete the same pods for the same reasons, at once or as the minute has room."""
    victims = (*plan.victims, *(victim for each in _waiting(plan) for victim in each.victims))
    wanted = [f"{each.pod.metadata.uid} {each.reason} {each.action}" for each in victims]
    wanted += [f"{pod.metadata.uid} {each.reason} later" for each in plan.later for pod in each.pods]
    return hashlib.sha256("\n".join(sorted(wanted)).encode()).hexdigest()[:32]


def plan_as_page(plan: Plan, now: datetime) -> dict[str, Any]:
    def at(seconds: float) -> int:
        return milliseconds(add_seconds(now, seconds))

    held = []
    for item in plan.held_back:
        refusal = item.refusal
        until = None if refusal.until is None else milliseconds(refusal.until)
        why = _held(str(refusal.guard), refusal.why, until, refusal.remedy)
        held += [_victim(victim) | why | {"goes": item.is_for_a_minute} for victim in item.victims]
    for wait in plan.waiting:
        held.append(_victim(wait.victim) | _held("owner", wait.what, milliseconds(wait.until)))
    for pod in plan.held:
        why = _held("finalizers", f"deleted already, held by {', '.join(pod.metadata.finalizers)}")
        held.append(_pod(pod) | why)
    later = [
        _pod(pod, str(item.reason), item.why) | {"at": at(item.seconds), "goes": True}
        for item in plan.later
        for pod in item.pods
    ]
    for each in plan.upcoming:
        began = each.next[0].due_at - each.seconds
        later += [
            _pod(one.pod, str(each.reason), one.why, each.rule) | {"at": at(one.due_at - began)}
            for one in each.next
        ]
    return {
        "at": milliseconds(now),
        "now": [_victim(victim) for victim in plan.victims[:_MOST_PODS]],
        "later": sorted(later, key=lambda each: each["at"])[:_MOST_PODS],
        "held": held[:_MOST_PODS],
        "counts": {"now": len(plan.victims), "later": len(later), "held": len(held)},
        # What a sweep deletes: at once, as the minute has room, and when a quarantine ends.
        "sweep": {
            "now": len(plan.victims),
            "minute": sum(len(each.victims) for each in _waiting(plan)),
            "later": sum(len(each.pods) for each in plan.later),
        },
        "digest": digest_of(plan),
    }


def _pod(pod: Pod, reason: str = "", why: str = "", rule: str = "") -> dict[str, Any]:
    named = {"ns": pod.metadata.namespace, "name": pod.metadata.name, "uid": pod.metadata.uid}
    return {**named, "reason": reason, "rule": rule, "why": why}


def _victim(victim: Victim) -> dict[str, Any]:
    return _pod(victim.pod, str(victim.reason), victim.why, victim.rule)


def _held(guard: str, why: str, until: int | None = None, lifted_by: str = "") -> dict[str, Any]:
    return {"guard": guard, "why": why, "until": until, "lifted_by": lifted_by}


def log_options(query: Any) -> LogOptions:
    """Raises ValueError."""
    tail, is_followed = int(query.get("tail", "200")), query.get("follow", "0") == "1"
    if not 0 <= tail <= MOST_LOG_LINES:
        raise ValueError(f"tail must be between 0 and {MOST_LOG_LINES}")
    return LogOptions(
        container=query.get("container", ""),
        follow=is_followed,
        previous=query.get("previous", "0") == "1",
        tail_lines=tail,
        limit_bytes=None if is_followed else _MOST_LOG_BYTES,
    )


def status_of(error: PodlifeError) -> int:
    """The HTTP status for the page."""
    if isinstance(error, ConflictingSweepError):
        return 409
    return error.code if isinstance(error, ApiError) else 502
