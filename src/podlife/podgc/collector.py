"""Pod garbage collector, as a controller.

Informers keep a `PodIndex` up to date, the planner selects victims, and a worker pool removes them. A pod is removed as
soon as an event makes it collectable; a full pass every `period_seconds` catches anything that was missed.

Guarantees:
- Nothing is deleted while a cache is unsynced or its watch is stale.
- A pod is handled by one worker at a time and re-evaluated immediately before deletion.
- A failing pod backs off on its own and does not delay others.

`run()` returns when cancelled, after in-flight requests complete, or raises the error that ended an informer. Leader
election and metrics exposition are left to the caller.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter

from podlife.aio import wait_until_set
from podlife.api.views import MetadataOnly
from podlife.client import NODES, Client
from podlife.clock import Clock, SystemClock
from podlife.errors import NotFoundError, PodlifeError
from podlife.events import Recorder
from podlife.podgc import planner, quarantine
from podlife.podgc.caches import Caches
from podlife.podgc.effective_settings import index_for
from podlife.podgc.event_handlers import NamespaceHandler, NodeHandler, PodHandler
from podlife.podgc.guards.controller_gate import ControllerGate, is_for_all
from podlife.podgc.metrics import Metrics
from podlife.podgc.owner_wait.step import OwnerStep
from podlife.podgc.plan import Action, Plan, Victim
from podlife.podgc.reasons import Reason
from podlife.podgc.removal import Outcome, PreDeleteStep, Reporter, Stay, remove
from podlife.podgc.session import Deletions, GcSession
from podlife.podgc.settings import Selection, Settings
from podlife.podgc.summary import Progress, Summary
from podlife.podgc.views import Pod
from podlife.podgc.worker_pool import WorkerPool
from podlife.workqueue import ExponentialLimiter, RateLimitedQueue

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""A work item: its kind, and a pod's UID or the name of a node to look up."""

_POD, _NODE = "pod", "node"
# A failing pod is retried after one second, then two, up to five minutes.
_RETRY_SECONDS, _MOST_RETRY_SECONDS = 1.0, 300.0
# How long to wait for stale caches before checking again.
_STALE_SECONDS = 1.0
# Minimum time between two checks for what is due by the time of day.
_LEAST_SECONDS = 0.01


@dataclass(slots=True)
class Claim:
    """A victim handed to the worker pool: its node, when it became collectable, when it was removed."""

    node: str
    since: float
    done_at: float | None = None


class Collector:
    def __init__(
        self,
        client: Client,
        settings: Settings | None = None,
        *,
        clock: Clock | None = None,
        recorder: Recorder | None = None,
        metrics: Metrics | None = None,
        steps: Sequence[PreDeleteStep] = (),
    ) -> None:
        self.settings = settings or Settings()
        self.metrics = metrics or Metrics()
        self.index = index_for(self.settings)
        self._client = client
        self._clock = clock or SystemClock()
        self._reporter = Reporter(self.metrics, recorder)
        self.guards = ControllerGate(self.settings, self._clock, self.metrics, recorder)
        # The owner wait comes first: a pod that waits is not archived yet.
        owner = OwnerStep(client, lambda: self.settings.policy, self._clock)
        self._own_steps = steps
        self._steps = (owner, *steps, self.guards.recheck)
        self._caches = Caches(client, self.settings)
        limiter = ExponentialLimiter[Key](_RETRY_SECONDS, _MOST_RETRY_SECONDS)
        self.queue = RateLimitedQueue[Key]("podgc", limiter=limiter)
        self._claims: dict[str, Claim] = {}
        self._checking: set[str] = set()
        # Set when a pod may have become collectable, with the time of the first event that says so.
        self._changed = asyncio.Event()
        self._changed_at = 0.0
        self._has_more = False
        self._was_fit = True

    @property
    def is_fit(self) -> bool:
        """Whether the caches are synced and live; nothing is deleted while they are not."""
        return self._caches.is_fit

    async def plan_once(self, selection: Selection | None = None) -> Plan:
        """What would be collected now. Lists everything once; changes nothing."""
        return await self._session(selection).plan()

    async def sweep_once(
        self, on_progress: Callable[[Progress], None] | None = None, selection: Selection | None = None
    ) -> Summary:
        """Collect once; see `podlife.podgc.session`."""
        return await self._session(selection).execute(on_progress=on_progress)

    def _session(self, selection: Selection | None) -> GcSession:
        return GcSession(
            self._client,
            self.settings,
            selection=selection,
            clock=self._clock,
            steps=self._own_steps,
            phases=[Deletions(self._reporter.done)],
        )

    async def run(self) -> None:
        """Collect until cancelled. Raises only the error that ended an informer."""
        settings = self.settings
        crew = WorkerPool(
            self.queue, self._work, count=settings.most_in_flight, stop_seconds=settings.stop_seconds
        )
        try:
            async with crew, asyncio.TaskGroup() as group:
                self._caches.follow(group, PodHandler(self), NodeHandler(self), NamespaceHandler(self))
                group.create_task(crew.watch(), name="podgc-crew")
                group.create_task(self._decide(), name="podgc-decide")
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    def put_in_force(self, settings: Settings) -> None:
        """Switch to other settings, usually with another policy. Quarantines and removals in progress are kept;
        collection pauses until the pods have been listed again with the fields that the policy needs. Raises ValueError
        if the settings need namespaces and the collector was created without a policy and without guards."""
        if settings == self.settings:
            return
        if settings.asks_namespaces and not self._caches.has_namespaces:
            raise ValueError(
                "a collector created without a policy or guards does not watch namespaces: create a new one"
            )
        before, self.settings, self.index = self.index, settings, index_for(settings)
        self.index.inherit(before)
        self._caches.fill(self.index)
        self._caches.replace_pods(settings, PodHandler(self))
        self.guards.put_in_force(settings)
        self.metrics.policy_generation += 1
        self.note(is_news=True)

    # Called by the event handlers

    def note(self, is_news: bool) -> None:
        if is_news and not self._changed.is_set():
            self._changed_at = asyncio.get_running_loop().time()
            self._changed.set()

    def release(self, pod: Pod) -> None:
        """The pod is gone or settled."""
        self.guards.forget(pod.metadata.uid)
        if self._unclaim(pod.metadata.uid):
            self.queue.forget((_POD, pod.metadata.uid))

    def _unclaim(self, uid: str) -> bool:
        claim = self._claims.pop(uid, None)
        if claim is not None:
            self.index.end_removal(claim.node, uid)
        return claim is not None

    def has_claimed(self, pod: Pod) -> bool:
        return pod.metadata.uid in self._claims

    # Planning

    async def _decide(self) -> None:
        loop = asyncio.get_running_loop()
        await self._wait_for_caches()
        # A quarantine starts when the node is first missed, which needs synced caches.
        self.index.begin_quarantines(loop.time())
        next_pass = self._changed_at = loop.time()
        while True:
            if not self._check_caches():
                await asyncio.sleep(_STALE_SECONDS)
                continue
            self.index.end_inheritance()
            is_pass = loop.time() >= next_pass
            self._plan(is_pass=is_pass)
            if is_pass:
                # The period starts at the end of a pass, as upstream (GC-01).
                next_pass = loop.time() + self.settings.period_seconds
            wake_at = min(next_pass, self._next_check(), self._next_due(), self.guards.wake_at)
            await wait_until_set(self._changed, seconds=max(0.0, wake_at - loop.time()))

    async def _wait_for_caches(self) -> None:
        while not await self._caches.wait_for_sync(seconds=self.settings.period_seconds):
            log.warning("waiting for caches: %s", self._caches.trouble or "not synced")
            # If an informer has ended, its failure is about to end this task.
            await asyncio.sleep(_STALE_SECONDS)

    def _check_caches(self) -> bool:
        is_fit = self.is_fit
        if is_fit != self._was_fit:
            self._was_fit = is_fit
            if is_fit:
                log.info("caches are live again, resuming collection")
            else:
                log.warning(
                    "collection paused: cache is stale (%s)",
                    self._caches.trouble or "no response from the server",
                )
        return is_fit

    def _next_check(self) -> float:
        if not self.settings.does_collect(Reason.ORPHANED):
            return math.inf
        waiting = (
            quarantine.ends_at(absence, self.settings)
            for name, absence in self.index.missing.items()
            if name not in self._checking
        )
        return min(waiting, default=math.inf)

    def _next_due(self) -> float:
        """When the next pod becomes due by time alone, in the event loop's seconds."""
        wait = self.index.classifier.next_due_at - self._clock.now().timestamp()
        # The two clocks may differ slightly.
        return asyncio.get_running_loop().time() + max(_LEAST_SECONDS, wait)

    def _plan(self, *, is_pass: bool) -> None:
        started = perf_counter()
        self.index.pass_time(self._clock.now())
        now = asyncio.get_running_loop().time()
        since = self._changed_at if self._changed.is_set() else now
        self._changed.clear()
        if is_pass:
            self._release_stale(now)
        for uid in self.guards.lift(self.index, is_pass=is_pass):
            self._unclaim(uid)
        if self.guards.is_ready(self.index, self.settings, is_pass=is_pass, is_more=self._has_more):
            self._claim(since)
        # Queued after the pods: the queue length is compared with the room that perMinute leaves.
        for name in quarantine.due_nodes(self.index, self.settings, now):
            if name not in self._checking:
                self._checking.add(name)
                self.queue.add((_NODE, name))
        self.metrics.pass_seconds.observe(perf_counter() - started)

    def _claim(self, since: float) -> None:
        """Queue victims, but no more than keep the workers busy, so that planning stays short however many exist."""
        self._has_more = False
        most = min(self._backlog, self.guards.room())
        for victim in planner.victims(self.index, self.settings, self._claims):
            uid = victim.pod.metadata.uid
            refusal = self.guards.holds(victim)
            if refusal is not None:
                if is_for_all(refusal):
                    return
                self._claims[uid] = Claim(victim.pod.spec.node_name, since, asyncio.get_running_loop().time())
                continue
            if len(self.queue) >= most:
                self._has_more = True
                return
            self._claims[uid] = Claim(victim.pod.spec.node_name, since)
            self.queue.add((_POD, uid))

    @property
    def _backlog(self) -> int:
        return 2 * self.settings.most_in_flight

    def _release_stale(self, now: float) -> None:
        """A pod that still exists a period after its removal is evaluated again."""
        until = now - self.settings.period_seconds
        stale = [
            uid for uid, claim in self._claims.items() if claim.done_at is not None and claim.done_at <= until
        ]
        for uid in stale:
            self._unclaim(uid)

    # Execution

    async def _work(self, key: Key) -> None:
        if not self.is_fit:
            self.queue.add_after(key, _STALE_SECONDS)
            return
        kind, name = key
        if kind == _NODE:
            await self._check_node(name)
        else:
            await self._collect(name)
        if self._has_more and len(self.queue) < self._backlog // 2:
            self.note(is_news=True)

    async def _check_node(self, name: str) -> None:
        """Ask the server for the node before its pods count as orphans (GC-52)."""
        loop = asyncio.get_running_loop()
        interruptions = self._caches.interruptions
        try:
            await self._client.get(NODES, name, view=MetadataOnly)
        except PodlifeError as error:
            if not (isinstance(error, NotFoundError) and error.is_about(name)):
                self.metrics.node_checks["error"] += 1
                self.index.doubt_missing(name, loop.time())
                log.warning("cannot get node %s, keeping its pods: %s", name, error, extra={"node": name})
                return
            self.metrics.node_checks["gone"] += 1
            if not self.is_fit or self._caches.interruptions != interruptions:
                # The node may be back before its event arrives: a resumed watch counts as live before it has delivered
                # the events it missed.
                self.index.doubt_missing(name, loop.time())
            elif self.index.confirm_missing(name, loop.time()):
                log.info("node %s no longer exists, collecting its pods", name, extra={"node": name})
        else:
            self.metrics.node_checks["found"] += 1
            self.index.doubt_missing(name, loop.time())
        finally:
            self._checking.discard(name)
            self.note(is_news=True)

    async def _collect(self, uid: str) -> None:
        claim = self._claims.get(uid)
        if claim is None:
            return
        self.index.pass_time(self._clock.now())
        pod = self.index.pod(claim.node, uid)
        victim = None if pod is None else planner.victim_of(self.index, self.settings, pod)
        if victim is None:
            # No longer a victim: its node is back, it was deleted, or the threshold is met.
            self._unclaim(uid)
            self.queue.forget((_POD, uid))
            return
        if self.guards.admit(victim) is not None:
            # A guard has held it since it was queued: the next planning handles it.
            self._unclaim(uid)
            self.queue.forget((_POD, uid))
            self.note(is_news=True)
            return
        if victim.action is not Action.DELETE and victim.reason is not Reason.TERMINATED:
            self.index.begin_removal(victim.pod)
        loop = asyncio.get_running_loop()
        if not self.queue.retries((_POD, uid)):
            self.metrics.reaction_seconds.observe(loop.time() - claim.since)
        try:
            steps = self._steps
            if self.settings.policy is not None:
                steps = (*steps, partial(self._decide_again, self.settings))
            removal = await remove(self._client, victim, self.settings.gates, self._clock, steps)
        except PodlifeError as error:
            self.note(is_news=self.guards.note(victim, error))
            self._reporter.failed(victim, error)
            self.queue.add_rate_limited((_POD, uid))
            return
        self.note(is_news=self.guards.note(victim, removal))
        if removal.outcome is Outcome.CHANGED:
            # The event with the change is on its way; the pod is evaluated again then.
            self.queue.add_rate_limited((_POD, uid))
            return
        if removal.outcome is Outcome.KEPT:
            self._reporter.kept(victim, removal.why)
            self.queue.add_rate_limited((_POD, uid))
            if isinstance(removal.why, Stay):
                # At that time at the latest; the backoff may be longer by now.
                wait = (removal.why.until - self._clock.now()).total_seconds()
                self.queue.add_after((_POD, uid), max(_LEAST_SECONDS, wait))
            return
        claim.done_at = loop.time()
        self.queue.forget((_POD, uid))
        self._reporter.done(victim, removal)

    async def _decide_again(self, settings: Settings, victim: Victim) -> str:
        """The last step, because earlier ones may take long. They used `settings`, which may have been replaced."""
        if not self.is_fit:
            return self._caches.trouble or "no response from the server"
        if settings is not self.settings:
            return "the policy was replaced, evaluating again"
        self.index.pass_time(self._clock.now())
        pod = self.index.pod(victim.pod.spec.node_name, victim.pod.metadata.uid)
        is_meant = pod is None or planner.victim_of(self.index, self.settings, pod) is not None
        return "" if is_meant else "no longer collectable"
