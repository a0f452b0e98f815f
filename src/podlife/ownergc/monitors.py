"""One informer per deletable resource, added and removed as the server's resources change.

Discovery runs every 30 seconds. A resource that cannot be watched is skipped, logged once, and retried next time. One
that is no longer served is removed after a delay: a starting server does not list everything at once. One whose
discovery fails is kept. Objects that were deleted while a resource was not watched are reported when the watch is
restored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Protocol

from podlife.client import Client, Ref
from podlife.client.discovery import ServerResources, discover
from podlife.client.retry import backoff_seconds
from podlife.errors import PodlifeError
from podlife.informer import Informer
from podlife.ownergc.views import ObjectIdentity, Partial, PartialMetadata

log = logging.getLogger(__name__)

# Maximum wait for the first list of a resource, as in kube-controller-manager.
PATIENCE_SECONDS = 30.0
# Consecutive discoveries without a resource, while it is not watched, after which it counts as removed.
_MOST_ABSENCES = 2


class Listener(Protocol):
    """Receives the events of all resources."""

    def observe(self, identity: ObjectIdentity, seen: PartialMetadata) -> None: ...
    def lose(self, identity: ObjectIdentity) -> None: ...
    def drop(self, uid: str) -> None: ...


class Monitor:
    """One resource; the handler of its informers, one at a time."""

    def __init__(
        self, client: Client, ref: Ref, listener: Listener, known: Mapping[str, ObjectIdentity]
    ) -> None:
        self.ref = ref
        # Why the server refuses the watch, if it does.
        self.refusal: PodlifeError | None = None
        # Consecutive discoveries without this resource.
        self.absences = 0
        self._client = client
        self._listener = listener
        # Objects of earlier informers: those missing at the next sync were deleted meanwhile.
        self._known = dict(known)
        self._informer = self._new_informer()
        self._task: asyncio.Task[None] | None = None
        self._started_at = 0.0

    @property
    def has_synced(self) -> bool:
        return self._informer.has_synced

    @property
    def is_live(self) -> bool:
        return self._informer.is_live

    @property
    def trouble(self) -> PodlifeError | None:
        return self.refusal or self._informer.trouble

    @property
    def is_awaited(self) -> bool:
        """Whether it is not live, but may be soon; false if the server refuses it or its first list takes too long."""
        if self.is_live or self.refusal is not None:
            return False
        waited = asyncio.get_running_loop().time() - self._started_at
        return self.has_synced or waited < PATIENCE_SECONDS

    @property
    def known(self) -> Mapping[str, ObjectIdentity]:
        """All known objects by UID."""
        return self._known | {obj.metadata.uid: self._identity(obj) for obj in self._informer.cache.list()}

    async def wait_for_sync(self, *, seconds: float) -> bool:
        return await self._informer.wait_for_sync(seconds=seconds)

    def ensure_running(self, group: asyncio.TaskGroup) -> None:
        """Start it, or restart it after a refusal."""
        if self._task is None or self._task.done():
            if self._task is not None:
                self._known = dict(self.known)
                self._informer = self._new_informer()
            self._started_at = asyncio.get_running_loop().time()
            self._task = group.create_task(self._run(), name=f"{self.ref} of the owner collector")
        elif self.has_synced:
            self._catch_up()

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            await self._informer.run()
        except PodlifeError as error:
            if self.refusal is None:
                log.warning("skipping %s, cannot watch: %s", self.ref, error)
            self.refusal = error

    def _catch_up(self) -> None:
        if self.refusal is not None:
            log.info("watching %s again", self.ref)
        self.refusal = None
        if self._known:
            left = {obj.metadata.uid for obj in self._informer.cache.list()}
            known, self._known = self._known, {}
            for uid, identity in known.items():
                if uid not in left:
                    self._listener.lose(identity)

    def _new_informer(self) -> Informer[Partial]:
        informer = Informer(self._client, self.ref, view=Partial, metadata_only=True)
        informer.add_handler(self)
        return informer

    def on_add(self, obj: Partial) -> None:
        self._listener.observe(self._identity(obj), obj.metadata)

    def on_update(self, old: Partial, new: Partial) -> None:
        self._listener.observe(self._identity(new), new.metadata)

    def on_delete(self, obj: Partial) -> None:
        self._listener.lose(self._identity(obj))

    def _identity(self, obj: Partial) -> ObjectIdentity:
        metadata = obj.metadata
        return ObjectIdentity(
            self.ref.kind, self.ref.api_version, metadata.namespace, metadata.name, metadata.uid
        )


class Monitors:
    def __init__(
        self,
        client: Client,
        listener: Listener,
        *,
        ignored: Collection[tuple[str, str]],
        period_seconds: float,
    ) -> None:
        self.catalogue = ServerResources()
        self._client = client
        self._listener = listener
        self._ignored = frozenset(ignored)
        self._period_seconds = period_seconds
        self._is_known = asyncio.Event()
        self.followed: dict[Ref, Monitor] = {}
        self._by_kind: dict[tuple[str, str], Monitor] = {}

    def is_live(self, identity: ObjectIdentity) -> bool:
        """Whether the object is currently watched."""
        monitor = self._by_kind.get((identity.api_version, identity.kind))
        return monitor is not None and monitor.is_live

    def awaited(self) -> Monitor | None:
        """A resource that is currently not watched, so that dependents may be missing."""
        return next((monitor for monitor in self.followed.values() if monitor.is_awaited), None)

    async def wait_for_sync(self, *, seconds: float) -> None:
        """Wait until every resource was listed or refused, at most `seconds` after discovery."""
        await self._is_known.wait()
        waits = [monitor.wait_for_sync(seconds=seconds) for monitor in self.followed.values()]
        await asyncio.gather(*waits)

    @property
    def complaint(self) -> str:
        """Why not everything is watched; empty if it is. Resources that the server refuses do not count."""
        if not self.followed:
            return "API discovery has not completed"
        for ref, monitor in self.followed.items():
            if monitor.refusal is None and not monitor.is_live:
                why = f": {monitor.trouble}" if monitor.trouble else ""
                return f"the metadata of {ref} are {'not live' if monitor.has_synced else 'not synced'}{why}"
        return ""

    async def run(self) -> None:
        """Run until cancelled."""
        failures = 0
        async with asyncio.TaskGroup() as group:
            while True:
                delay = self._period_seconds
                try:
                    catalogue = await discover(self._client)
                except PodlifeError as error:
                    failures += 1
                    delay = min(delay, backoff_seconds(failures))
                    # Log once, not at every attempt.
                    level = logging.WARNING if failures == 1 else logging.DEBUG
                    log.log(level, "API discovery failed, retrying: %s", error)
                else:
                    if failures:
                        log.info("API discovery works again")
                    failures = 0
                    self._follow(catalogue, group)
                await asyncio.sleep(delay)

    def _follow(self, catalogue: ServerResources, group: asyncio.TaskGroup) -> None:
        if not catalogue.followed:
            # A server without resources is still starting.
            return
        # For groups whose discovery failed, the earlier result still holds.
        kinds = {key: ref for key, ref in self.catalogue.kinds.items() if key[0] in catalogue.unknown}
        self.catalogue = replace(catalogue, kinds={**kinds, **catalogue.kinds})
        wanted = {ref for ref in catalogue.followed if (ref.group, ref.plural) not in self._ignored}
        self._replace({(ref.group, ref.plural): ref for ref in wanted}, catalogue.unknown)
        self._by_kind = {(ref.api_version, ref.kind): monitor for ref, monitor in self.followed.items()}
        for monitor in self.followed.values():
            monitor.ensure_running(group)
        self._is_known.set()

    def _replace(self, wanted: dict[tuple[str, str], Ref], unknown: Collection[str]) -> None:
        known: dict[Ref, Mapping[str, ObjectIdentity]] = {}
        for ref, monitor in [*self.followed.items()]:
            successor = wanted.get((ref.group, ref.plural))
            if successor is None and self._is_kept(monitor, unknown):
                continue
            monitor.absences = 0
            if successor == ref:
                continue
            monitor.stop()
            del self.followed[ref]
            if successor is not None:
                known[successor] = monitor.known
                continue
            log.info("%s no longer served", ref)
            for uid in monitor.known:
                self._listener.drop(uid)
        for ref in sorted(set(wanted.values()) - self.followed.keys(), key=str):
            self.followed[ref] = Monitor(self._client, ref, self._listener, known.get(ref, {}))

    def _is_kept(self, monitor: Monitor, unknown: Collection[str]) -> bool:
        """Whether to keep watching a resource that is missing in discovery."""
        if monitor.ref.api_version in unknown:
            return monitor.has_synced
        monitor.absences += 1
        return monitor.is_live or monitor.absences < _MOST_ABSENCES
