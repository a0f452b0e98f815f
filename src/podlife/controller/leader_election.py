"""Leader election on a Lease, compatible with client-go: at most one of several candidates works.

A leader measures its lease from when it sent the successful renewal; candidates measure from when they observed the
change. A leader that cannot renew for `renew_seconds` cancels its work, which has until `lease_seconds`
to end before another candidate can start. Clocks of other machines are not used. (client-go measures from the
response: a late one allows two leaders.)

The elector's requests bypass the controller's limiter, so a busy controller does not lose its lease. `run` raises
LeaseLostError when the lease is lost and can be called again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import socket
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime

from podlife.aio import cancel_and_wait, spawn
from podlife.api.codec import Object, format_micro_time, parse_time
from podlife.client import LEASES, Client, Limiter
from podlife.clock import Clock, add_seconds
from podlife.errors import ConfigError, ConflictError, NotFoundError, PodlifeError
from podlife.events import Recorder

log = logging.getLogger(__name__)

# Spreads the candidates' requests; client-go's factor.
_JITTER = 1.2

Work = Callable[[], Awaitable[None]]


class LeaseLostError(PodlifeError):
    """The leader lost its lease: it was not renewed in time, or another candidate holds it."""


def make_identity() -> str:
    return f"{socket.gethostname()}_{uuid.uuid4()}"


class LeaderElector:
    def __init__(  # noqa: PLR0913 - the lease, the candidate, and three related times
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        lease_seconds: float = 15.0,
        renew_seconds: float = 10.0,
        retry_seconds: float = 2.0,
        clock: Clock,
        recorder: Recorder | None = None,
        on_new_leader: Callable[[str], None] | None = None,
    ) -> None:
        """Raises ConfigError for impossible times or no identity. `on_new_leader` is called with each new leader."""
        _check(identity, lease_seconds, renew_seconds, retry_seconds)
        self.identity = identity
        # Half of the deadline, so that one lost response does not lose the lease.
        self._client = client.with_timeout(renew_seconds / 2, limiter=Limiter())
        self._namespace = namespace
        self._name = name
        self._lease_seconds = lease_seconds
        self._renew_seconds = renew_seconds
        self._retry_seconds = retry_seconds
        self._clock = clock
        self._recorder = recorder
        self._on_new_leader = on_new_leader
        self._seen: LeaseObservation | None = None
        # The observed leader; empty if there is none.
        self.leader = ""
        # The lease as last written by this candidate, and when that request began; None unless it is the holder.
        self._held: Object | None = None
        self._renewed_at = 0.0
        self.is_leader = False
        # Why the last attempt to acquire or renew the lease failed; empty if it did not.
        self.complaint = ""
        # The holder that was last logged, and its acquire time.
        self._logged_holder: tuple[str, str] | None = None

    def __str__(self) -> str:
        return f"lease {self._namespace}/{self._name}"

    async def run(self, work: Work) -> None:
        """Acquire the lease and run the work while holding it. The lease is released when the work has ended or was
        cancelled. Raises LeaseLostError, or what the work raises."""
        await self._acquire()
        # Failures are read from the tasks.
        leading = spawn(_do(work), name=f"leading {self}", on_failure=lambda _: None)
        renewing = spawn(self._keep(), name=f"renewing {self}", on_failure=lambda _: None)
        try:
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self._stop(leading, renewing)
            _log_failure(leading)
            raise
        is_lost = not leading.done()
        await self._stop(leading, renewing)
        if is_lost:
            _log_failure(leading)
            renewing.result()
        leading.result()

    async def _stop(self, leading: asyncio.Task[None], renewing: asyncio.Task[None]) -> None:
        """Stop the work, then release the lease, which is renewed until the work has ended."""
        try:
            leading.cancel()
            await asyncio.wait((leading, renewing), return_when=asyncio.FIRST_COMPLETED)
            if not leading.done():
                left = self._renewed_at + self._lease_seconds - asyncio.get_running_loop().time()
                await asyncio.wait((leading,), timeout=max(0.0, left))
            if not leading.done():
                log.error("%s lost, but its work does not stop", self)
            elif not renewing.done():
                await cancel_and_wait(renewing)
                await self._release()
        finally:
            # Even if the stop itself is cancelled.
            renewing.cancel()
            self._held = None
            self.is_leader = False
            self._event("stopped leading")

    # Holding

    async def _acquire(self) -> None:
        while not await self._try():  # noqa: ASYNC110 - the lease changes on another machine
            # Upstream's interval: asking more often does not acquire a lease faster.
            await asyncio.sleep(self._retry_seconds * (1 + _JITTER * random.random()))  # noqa: S311 - spreads load
        self.is_leader = True
        self._logged_holder = None
        log.info("%s became leader of %s", self.identity, self)
        self._event("became leader")

    async def _keep(self) -> None:
        """Renew the lease periodically; ends only with LeaseLostError."""
        loop = asyncio.get_running_loop()
        # Counted from the start of the last renewal, so that slow responses do not delay the next one.
        next_at = self._renewed_at + self._retry_seconds
        while True:
            deadline = self._renewed_at + self._renew_seconds
            await asyncio.sleep(max(0.0, min(next_at, deadline) - loop.time()))
            if loop.time() >= deadline:
                why = self.complaint or "no response"
                raise LeaseLostError(f"{self} was not renewed for {self._renew_seconds:g} s: {why}")
            try:
                async with asyncio.timeout_at(deadline):
                    is_held = await self._try()
            except TimeoutError:
                self.complaint = self.complaint or "the server does not respond"
                continue
            if not is_held and self.leader not in ("", self.identity):
                raise LeaseLostError(f"{self} was taken by {self.leader}")
            next_at = (self._renewed_at if is_held else loop.time()) + self._retry_seconds

    async def _try(self) -> bool:
        """Acquire or renew the lease; return whether this candidate holds it now."""
        try:
            is_held = await self._renew() or await self._acquire_if_free()
        except PodlifeError as error:
            self._complain(str(error))
            return False
        self._complain("")
        return is_held and asyncio.get_running_loop().time() < self._renewed_at + self._renew_seconds

    async def _renew(self) -> bool:
        if self._held is None:
            return False
        try:
            await self._write(self._held, renew(self._held["spec"], self._clock.now()))
        except (ConflictError, NotFoundError):
            return False
        return True

    async def _acquire_if_free(self) -> bool:
        """Read the lease, and acquire it if it is free."""
        now = self._clock.now
        try:
            lease = await self._client.get(LEASES, self._name, self._namespace)
        except NotFoundError:
            await self._write(None, claim(None, self.identity, self._lease_seconds, now()))
            return True
        at = asyncio.get_running_loop().time()
        self._seen = observe(self._seen, lease, at)
        self._notice(holder_of(self._seen.spec))
        if not is_free(self._seen, self.identity, at, self._lease_seconds):
            self._log_waiting(self._seen)
            return False
        await self._write(lease, claim(self._seen.spec, self.identity, self._lease_seconds, now()))
        return True

    async def _write(self, lease: Object | None, spec: Object) -> None:
        """Write this spec. Raises ConflictError if the lease changed since it was read."""
        began = asyncio.get_running_loop().time()
        if lease is None:
            written = make_lease(self._namespace, self._name, spec)
            self._held = await self._client.create(LEASES, written)
        else:
            self._held = await self._client.update(LEASES, {**lease, "spec": spec})
        self._renewed_at = began
        self._notice(self.identity)

    async def _release(self) -> None:
        try:
            async with asyncio.timeout(self._renew_seconds / 2):
                await self._release_lease()
        except (PodlifeError, TimeoutError) as error:
            log.warning(
                "%s not released, other candidates wait until it expires: %s", self, str(error) or "no answer"
            )

    async def _release_lease(self) -> None:
        lease = self._held
        while lease is not None and holder_of(lease["spec"]) == self.identity:
            spec = release(lease["spec"], self._clock.now())
            try:
                await self._client.update(LEASES, {**lease, "spec": spec})
            except ConflictError:
                # A renewal was stored, but its response was lost.
                lease = await self._client.get(LEASES, self._name, self._namespace)
            else:
                self._notice("")
                return

    # Events and logs

    def _notice(self, leader: str) -> None:
        if leader == self.leader:
            return
        self.leader = leader
        if leader and self._on_new_leader is not None:
            self._on_new_leader(leader)

    def _log_waiting(self, seen: LeaseObservation) -> None:
        """Log once for each holder."""
        holder, since = holder_of(seen.spec), str(seen.spec.get("acquireTime") or "an unknown time")
        if self.is_leader or self._logged_holder == (holder, since):
            return
        self._logged_holder = holder, since
        log.info(
            "%s waiting for %s: held by %s since %s, expires if not renewed for %g s",
            self.identity,
            self,
            holder,
            since.partition(".")[0],
            promised_seconds(seen.spec, self._lease_seconds),
        )

    def _complain(self, complaint: str) -> None:
        # Log once, not at every attempt.
        if complaint and complaint != self.complaint:
            log.warning("%s: %s", self, complaint)
        self.complaint = complaint

    def _event(self, what: str) -> None:
        if self._recorder is None:
            return
        regarding = {
            "kind": LEASES.kind,
            "apiVersion": LEASES.api_version,
            "namespace": self._namespace,
            "name": self._name,
        }
        self._recorder.event(regarding, "Normal", "LeaderElection", f"{self.identity} {what}")


async def _do(work: Work) -> None:
    """Wrap an awaitable in a coroutine, for a task."""
    await work()


def _log_failure(leading: asyncio.Task[None]) -> None:
    """Log a failure of the work during shutdown; the caller raises another error."""
    if leading.done() and not leading.cancelled() and (failure := leading.exception()) is not None:
        log.error("work failed during shutdown", exc_info=failure)


def _check(identity: str, lease_seconds: float, renew_seconds: float, retry_seconds: float) -> None:
    if not identity:
        raise ConfigError("leader election needs an identity")
    if retry_seconds <= 0:
        raise ConfigError(f"the retry period must be greater than zero, not {retry_seconds:g} s")
    if renew_seconds <= _JITTER * retry_seconds:
        raise ConfigError(
            f"the renew deadline ({renew_seconds:g} s) must be greater than {_JITTER:g} times the retry period "
            f"({retry_seconds:g} s)"
        )
    if lease_seconds <= renew_seconds:
        raise ConfigError(
            f"the lease duration ({lease_seconds:g} s) must be greater than the renew deadline "
            f"({renew_seconds:g} s)"
        )


# The Lease itself, and who may acquire it: pure


@dataclass(frozen=True, slots=True)
class LeaseObservation:
    """A Lease's spec, and when (by the local clock) it was first observed. Times in a Lease are informative: a holder
    is alive as long as the Lease changes, and each observer measures the time since the last change."""

    spec: Object
    at: float


def observe(seen: LeaseObservation | None, lease: Object, now: float) -> LeaseObservation:
    """The observation after reading the lease: an unchanged lease keeps its age."""
    spec = lease.get("spec") or {}
    return seen if seen is not None and seen.spec == spec else LeaseObservation(spec, now)


def holder_of(spec: Object) -> str:
    return str(spec.get("holderIdentity") or "")


def is_free(seen: LeaseObservation, identity: str, now: float, lease_seconds: float) -> bool:
    """Whether `identity` may acquire the lease: it has no holder, is its own, or has not changed for its duration. A
    lease without a duration gets `lease_seconds`."""
    holder = holder_of(seen.spec)
    return holder in ("", identity) or seen.at + promised_seconds(seen.spec, lease_seconds) <= now


def promised_seconds(spec: Object, lease_seconds: float) -> float:
    """The duration of the lease; `lease_seconds` if it has none."""
    return float(spec.get("leaseDurationSeconds") or lease_seconds)


def make_lease(namespace: str, name: str, spec: Object) -> Object:
    return {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def claim(old: Object | None, identity: str, lease_seconds: float, now: datetime) -> Object:
    """The spec with which `identity` acquires the lease; a renewal if it is already the holder."""
    is_mine = old is not None and holder_of(old) == identity
    transitions = 0 if old is None else int(old.get("leaseTransitions") or 0) + (not is_mine)
    timestamp = format_micro_time(now)
    mine = {
        **(old or {}),
        "holderIdentity": identity,
        # The API has whole seconds; rounded up, since others rely on it.
        "leaseDurationSeconds": math.ceil(lease_seconds),
        # An int32 in the API.
        "leaseTransitions": min(transitions, 2**31 - 1),
    }
    return renew(mine, now) if is_mine else {**mine, "acquireTime": timestamp, "renewTime": timestamp}


def renew(spec: Object, now: datetime) -> Object:
    """The spec with a new time, even if the clock did not advance: others recognize a live holder by the change."""
    timestamp = format_micro_time(now)
    if (last := spec.get("renewTime") or "") >= timestamp:
        timestamp = format_micro_time(add_seconds(parse_time(last), 1e-6))
    return {**spec, "renewTime": timestamp}


def release(spec: Object, now: datetime) -> Object:
    """The spec of a released lease, which any candidate may acquire immediately."""
    timestamp = format_micro_time(now)
    released = {
        "holderIdentity": "",
        "leaseDurationSeconds": 1,
        "acquireTime": timestamp,
        "renewTime": timestamp,
    }
    return {**spec, **released}
