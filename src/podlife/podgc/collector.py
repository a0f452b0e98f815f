"""The collector that runs: informers feed the index, the policy decides, workers act.

What became collectable is collected at once; a look at everything comes every period in case something was missed.
It guarantees that nothing is done while a cache is not synced or not live, that a pod is in one worker's hands at a
time and decided about again at the last moment, and that a pod which fails backs off by itself, in nobody's way. It
ends when it is cancelled, after the calls under way, or with the reason that ended an informer. Who may run it (leader
election), and where its numbers are shown, is for others.
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
from podlife.podgc import planner as policy
from podlife.podgc.caches import Caches
from podlife.podgc.effective_settings import index_for
from podlife.podgc.event_handlers import NamespaceHandler, NodeHandler, PodHandler
from podlife.podgc.guards.controller_gate import GuardPost, is_for_all
from podlife.podgc.metrics import Metrics
from podlife.podgc.owner_wait.step import OwnerStep
from podlife.podgc.planner import Action, Plan, Victim
from podlife.podgc.removal import Outcome, remove
from podlife.podgc.reporter import Reporter
from podlife.podgc.session import GcSession
from podlife.podgc.settings import Reason, Selection, Settings
from podlife.podgc.steps import Stay, Step
from podlife.podgc.sweep import Progress, Summary
from podlife.podgc.views import Pod
from podlife.podgc.worker_pool import Crew
from podlife.workqueue import ExponentialLimiter, RateLimitedQueue

__all__ = ["Collector"]

log = logging.getLogger(__name__)

Key = tuple[str, str]
"""What a worker is given: a pod's UID, or the name of a node to look for, after which of them it is."""

_POD, _NODE = "pod", "node"
# A pod that fails is tried again after a second, then two, and so on up to five minutes.
_RETRY_SECONDS, _MOST_RETRY_SECONDS = 1.0, 300.0
# How long to wait for caches that are not live before looking again.
_UNFIT_SECONDS = 1.0
# The least time between two looks at what is due by the time of day.
_LEAST_SECONDS = 0.01


@dataclass(slots=True)
class Claim:
    """A pod that was given to the workers: where it is, since when it could be collected, when it was done."""

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
        steps: Sequence[Step] = (),
    ) -> None:
        self.settings = settings or Settings()
        self.metrics = metrics or Metrics()
        self.index = index_for(self.settings)
        self._client = client
        self._clock = clock or SystemClock()
        self._reporter = Reporter(self.metrics, recorder)
        self.guards = GuardPost(self.settings, self._clock, self.metrics, recorder)
        # Whoever waits for an owner is not archived yet.
        owner = OwnerStep(client, lambda: self.settings.policy, self._clock)
        self._own_steps = steps
        self._steps = (owner, *steps, self.guards.last_word)
        self._caches = Caches(client, self.settings)
        limiter = ExponentialLimiter[Key](_RETRY_SECONDS, _MOST_RETRY_SECONDS)
        self._queue = RateLimitedQueue[Key]("podgc", limiter=limiter)
        self._claims: dict[str, Claim] = {}
        self._checking: set[str] = set()
        # Set when something may have become collectable; the moment is that of the first event that says so.
        self._news = asyncio.Event()
        self._news_at = 0.0
        self._has_more = False
        self._was_fit = True

    @property
    def is_fit(self) -> bool:
        """Whether the caches are synced and live: nothing is done while they are not."""
        return self._caches.is_fit

    @property
    def queue(self) -> RateLimitedQueue[Key]:
        return self._queue

    async def plan_once(self, selection: Selection | None = None) -> Plan:
        """What would be collected now, by a list of everything; nothing is done and nothing is watched."""
        return await self._session(selection).plan()

    async def sweep_once(
        self,
        on_progress: Callable[[Progress], None] | None = None,
        selection: Selection | None = None,
    ) -> Summary:
        """Collect once what a list of everything shows; see `podlife.podgc.session`."""
        return await self._session(selection).execute(on_progress=on_progress)

    def _session(self, selection: Selection | None) -> GcSession:
        return GcSession(
            self._client,
            self.settings,
            selection=selection,
            clock=self._clock,
            steps=self._own_steps,
            report=self._reporter.done,
        )

    async def run(self) -> None:
        """Collect until cancelled. Raises what ended an informer, and nothing else."""
        settings = self.settings
        crew = Crew(
            self._queue, self._work, count=settings.most_in_flight, stop_seconds=settings.stop_seconds
        )
        try:
            async with crew, asyncio.TaskGroup() as group:
                self._caches.follow(group, PodHandler(self), NodeHandler(self), NamespaceHandler(self))
                group.create_task(crew.watch(), name="podgc-crew")
                group.create_task(self._decide(), name="podgc-decide")
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    def put_in_force(self, settings: Settings) -> None:
        """Decide by these from now on, with another policy in them. What is known of missing nodes and what is under
        way stays; nothing is collected before the pods have been read anew, for what this policy asks of them. Raises
        ValueError if they need namespaces, for guards or a policy, and the collector was created with neither."""
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

    # What the informers tell

    def note(self, is_news: bool) -> None:
        if is_news and not self._news.is_set():
            self._news_at = asyncio.get_running_loop().time()
            self._news.set()

    def release(self, pod: Pod) -> None:
        """The pod is gone, or nothing is left to do for it."""
        self.guards.forget(pod.metadata.uid)
        if self._give_up(pod.metadata.uid):
            self._queue.forget((_POD, pod.metadata.uid))

    def _give_up(self, uid: str) -> bool:
        claim = self._claims.pop(uid, None)
        if claim is not None:
            self.index.end_removal(claim.node, uid)
        return claim is not None

    def has_claimed(self, pod: Pod) -> bool:
        return pod.metadata.uid in self._claims

    # Deciding

    async def _decide(self) -> None:
        loop = asyncio.get_running_loop()
        await self._wait_for_caches()
        # Quarantine runs from first sight, and before both caches were there nothing was seen.
        self.index.begin_quarantines(loop.time())
        next_pass = self._news_at = loop.time()
        while True:
            if not self._check_fitness():
                await asyncio.sleep(_UNFIT_SECONDS)
                continue
            self.index.end_inheritance()
            is_pass = loop.time() >= next_pass
            self._look(is_pass=is_pass)
            if is_pass:
                # Counted from the end of a pass, as upstream (GC-01).
                next_pass = loop.time() + self.settings.period_seconds
            wake_at = min(next_pass, self._next_check(), self._next_due(), self.guards.wake_at)
            await wait_until_set(self._news, seconds=max(0.0, wake_at - loop.time()))

    async def _wait_for_caches(self) -> None:
        while not await self._caches.wait_for_sync(seconds=self.settings.period_seconds):
            log.warning("nothing is collected yet: %s", self._caches.trouble or "a cache has not synced")
            # An informer that has ended says so at once, and its failure is about to end this task.
            await asyncio.sleep(_UNFIT_SECONDS)

    def _check_fitness(self) -> bool:
        is_fit = self.is_fit
        if is_fit != self._was_fit:
            self._was_fit = is_fit
            if is_fit:
                log.info("the caches are live again: collecting goes on")
            else:
                why = self._caches.trouble or "nothing is heard of the server"
                log.warning("nothing is collected while a cache is not live: %s", why)
        return is_fit

    def _next_check(self) -> float:
        if not self.settings.does_collect(Reason.ORPHANED):
            return math.inf
        waiting = (
            policy.due_at(absence, self.settings)
            for name, absence in self.index.missing.items()
            if name not in self._checking
        )
        return min(waiting, default=math.inf)

    def _next_due(self) -> float:
        """When time alone lets a pod go next, in the loop's seconds."""
        wait = self.index.next_due_at - self._clock.now().timestamp()
        # The two clocks need not agree to the last digit.
        return asyncio.get_running_loop().time() + max(_LEAST_SECONDS, wait)

    def _look(self, *, is_pass: bool) -> None:
        started = perf_counter()
        self.index.pass_time(self._clock.now())
        now = asyncio.get_running_loop().time()
        since = self._news_at if self._news.is_set() else now
        self._news.clear()
        if is_pass:
            self._release_stale(now)
        for uid in self.guards.lift(self.index, is_pass=is_pass):
            self._give_up(uid)
        if self.guards.is_ready(self.index, self.settings, is_pass=is_pass, is_more=self._has_more):
            self._claim(since)
        # Queued after the pods, because the length of the queue is compared with the room in the minute.
        for name in policy.due_nodes(self.index, self.settings, now):
            if name not in self._checking:
                self._checking.add(name)
                self._queue.add((_NODE, name))
        self.metrics.pass_seconds.observe(perf_counter() - started)

    def _claim(self, since: float) -> None:
        """Give victims to the workers: as many as keep them busy, so that a look stays short however many there are."""
        self._has_more = False
        most = min(self._backlog, self.guards.room())
        for victim in policy.victims(self.index, self.settings, self._claims):
            uid = victim.pod.metadata.uid
            refusal = self.guards.holds(victim)
            if refusal is not None:
                if is_for_all(refusal):
                    return
                self._claims[uid] = Claim(victim.pod.spec.node_name, since, asyncio.get_running_loop().time())
                continue
            if len(self._queue) >= most:
                self._has_more = True
                return
            self._claims[uid] = Claim(victim.pod.spec.node_name, since)
            self._queue.add((_POD, uid))

    @property
    def _backlog(self) -> int:
        return 2 * self.settings.most_in_flight

    def _release_stale(self, now: float) -> None:
        """What was done a period ago and is still there was not done for good: it is looked at again."""
        until = now - self.settings.period_seconds
        stale = [
            uid for uid, claim in self._claims.items() if claim.done_at is not None and claim.done_at <= until
        ]
        for uid in stale:
            self._give_up(uid)

    # Acting

    async def _work(self, key: Key) -> None:
        if not self.is_fit:
            self._queue.add_after(key, _UNFIT_SECONDS)
            return
        kind, name = key
        if kind == _NODE:
            await self._check_node(name)
        else:
            await self._collect(name)
        if self._has_more and len(self._queue) < self._backlog // 2:
            self.note(is_news=True)

    async def _check_node(self, name: str) -> None:
        """One look at the server before an orphan is believed (GC-52)."""
        loop = asyncio.get_running_loop()
        interruptions = self._caches.interruptions
        try:
            await self._client.get(NODES, name, view=MetadataOnly)
        except PodlifeError as error:
            if not (isinstance(error, NotFoundError) and error.is_about(name)):
                self.metrics.node_checks["error"] += 1
                self.index.doubt_missing(name, loop.time())
                told = "node %s could not be looked for, its pods stay: %s"
                log.warning(told, name, error, extra={"node": name})
                return
            self.metrics.node_checks["gone"] += 1
            if not self.is_fit or self._caches.interruptions != interruptions:
                # It may have come back since without its event having arrived: a watch that is resumed counts as live
                # before it has told of what it missed.
                self.index.doubt_missing(name, loop.time())
            elif self.index.confirm_missing(name, loop.time()):
                log.info("node %s no longer exists: its pods are collected", name, extra={"node": name})
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
        victim = None if pod is None else policy.victim_of(self.index, self.settings, pod)
        if victim is None:
            # A node came back, somebody else deleted, the threshold is met: it is nobody's victim any more.
            self._give_up(uid)
            self._queue.forget((_POD, uid))
            return
        if self.guards.admit(victim) is not None:
            # Not held when it was handed out: the next look sees to it.
            self._give_up(uid)
            self._queue.forget((_POD, uid))
            self.note(is_news=True)
            return
        if victim.action is not Action.DELETE and victim.reason is not Reason.TERMINATED:
            self.index.begin_removal(victim.pod)
        loop = asyncio.get_running_loop()
        if not self._queue.retries((_POD, uid)):
            self.metrics.reaction_seconds.observe(loop.time() - claim.since)
        try:
            steps = self._steps
            if self.settings.policy is not None:
                steps = (*steps, partial(self._decide_again, self.settings))
            removal = await remove(self._client, victim, self.settings.gates, self._clock, steps)
        except PodlifeError as error:
            self.note(is_news=self.guards.note(victim, error))
            self._reporter.failed(victim, error)
            self._queue.add_rate_limited((_POD, uid))
            return
        self.note(is_news=self.guards.note(victim, removal))
        if removal.outcome is Outcome.CHANGED:
            # The event that tells how is on its way: decided again then, on what it says.
            self._queue.add_rate_limited((_POD, uid))
            return
        if removal.outcome is Outcome.KEPT:
            self._reporter.kept(victim, removal.why)
            self._queue.add_rate_limited((_POD, uid))
            if isinstance(removal.why, Stay):
                # Not later than that; the intervals may have grown beyond it.
                wait = (removal.why.until - self._clock.now()).total_seconds()
                self._queue.add_after((_POD, uid), max(_LEAST_SECONDS, wait))
            return
        claim.done_at = loop.time()
        self._queue.forget((_POD, uid))
        self._reporter.done(victim, removal)

    async def _decide_again(self, settings: Settings, victim: Victim) -> str:
        """The last step: the others take their time. They went by `settings`; another policy asks others of them."""
        if not self.is_fit:
            return self._caches.trouble or "nothing is heard of the server"
        if settings is not self.settings:
            return "another policy is in force by now, which decides anew"
        self.index.pass_time(self._clock.now())
        pod = self.index.pod(victim.pod.spec.node_name, victim.pod.metadata.uid)
        is_meant = pod is None or policy.victim_of(self.index, self.settings, pod) is not None
        return "" if is_meant else "it was decided otherwise meanwhile"
