"""The agent of one node: everything that runs its pods, put together.

    agent = Agent(client, runtime, AgentSettings(NodeSettings("n1")), clock, machine=machine)
    ... await agent.run() ...

It opens the runtime, looks at what runs already, then takes its pods and goes on with them; when it is cancelled the
pods run on. Constructing one starts nothing. Where many live in one process their pods may come from one watch for all
(`api_pods`), and an idle one does nothing but renew its lease.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable

from podlife.api.codec import Object
from podlife.client import Client
from podlife.clock import Clock
from podlife.events import Recorder
from podlife.kubelet.lifecycle.admission import Refusal, refusal
from podlife.kubelet.lifecycle.backoff import crash_loop_backoff
from podlife.kubelet.lifecycle.downward import Surroundings
from podlife.kubelet.lifecycle.objects import Pod
from podlife.kubelet.lifecycle.relist import Change
from podlife.kubelet.node import Machine, NodeReporter
from podlife.kubelet.pods.absent import NoHooks, NoProbes, NoVolumes
from podlife.kubelet.pods.api_pods import follow_pods
from podlife.kubelet.pods.cache import PodCache
from podlife.kubelet.pods.changes import Changes
from podlife.kubelet.pods.container_config import ConfigMaker
from podlife.kubelet.pods.housekeeping import Housekeeping, Rooms
from podlife.kubelet.pods.images import Images
from podlife.kubelet.pods.killing import Killer
from podlife.kubelet.pods.known_pods import KnownPods
from podlife.kubelet.pods.logs_on_disk import LogFolders
from podlife.kubelet.pods.loop import PodLoop, Workers
from podlife.kubelet.pods.moments import Moments
from podlife.kubelet.pods.pod import NodePod
from podlife.kubelet.pods.sources import PodSource
from podlife.kubelet.pods.starting import Starter, Tools
from podlife.kubelet.pods.statuses import Statuses
from podlife.kubelet.pods.steps import Parts, PodSteps
from podlife.kubelet.pods.syncing import PodSyncer
from podlife.kubelet.pods.telling import Telling
from podlife.kubelet.podworkers import PodWorkers
from podlife.kubelet.ports import Hooks, Probes, Volumes
from podlife.kubelet.references import ApiReferences
from podlife.kubelet.runtime import Runtime
from podlife.kubelet.settings import AgentSettings
from podlife.kubelet.status_client import ApiPodStatusClient
from podlife.kubelet.status_manager import StatusManager

__all__ = ["Agent"]

_COMPONENT = "kubelet"


class Agent:
    """`reporter` is the node's own object, `manager` what is told of its pods, `workers` what is done for them."""

    def __init__(
        self, client: Client, runtime: Runtime, settings: AgentSettings, clock: Clock, *, machine: Machine
    ) -> None:
        self.settings = settings
        self.runtime = runtime
        self.known = KnownPods()
        self.recorder = Recorder(client, _COMPONENT, clock=clock)
        self.manager = StatusManager(ApiPodStatusClient(client), self.known, clock)
        self.reporter = NodeReporter(
            client,
            settings.node,
            clock,
            machine=machine,
            runtime=runtime,
            recorder=self.recorder,
            problems=self._problems,
        )
        self._client = client
        self._clock = clock
        self._seconds = Moments()
        self._backoff = crash_loop_backoff(settings.crash_loop_max_seconds)
        self._telling = Telling(self.recorder)
        self.cache = PodCache()
        self.changes = Changes(runtime, self.cache, clock, seconds=self._seconds, told=self._take_changes)
        self._put_together()

    @property
    def api_pods(self) -> PodSource:
        """The pods that the API server has for this node."""
        return self._loop.api_pods

    @property
    def complaint(self) -> str:
        """Why it is not at work; empty when it is."""
        if not self.changes.is_healthy:
            return "the container runtime has not been looked at"
        return "" if self._loop.is_complete else "the pods of this node are not known yet"

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """With the newest status that there is."""
        pod = self.known.by_name(namespace, name)
        return None if pod is None else self._with_status(pod)

    def pods(self) -> Iterable[Pod]:
        return [self._with_status(pod) for pod in self.known]

    async def run(self) -> None:
        """Until it is cancelled, which ends no pod."""
        async with self.runtime, asyncio.TaskGroup() as group:
            group.create_task(self.recorder.run(), name="events")
            group.create_task(self.reporter.run(), name="node")
            group.create_task(self.changes.run(), name="runtime")
            # What runs already is known before anything is decided about it.
            await self.changes.wait_for_relist()
            group.create_task(self.manager.run(), name="statuses")
            group.create_task(self.workers.run(), name="pod workers")
            group.create_task(self._loop.run(), name="pods")
            group.create_task(self._housekeeping.run(), name="housekeeping")
            if self.settings.static_pods is None:
                self._loop.static_pods.complete()
            if self.settings.follows_pods:
                following = follow_pods(self._client, self.settings.node.name, self.api_pods)
                group.create_task(following, name="pods of the API server")

    # Put together

    def _put_together(self) -> None:
        settings, runtime, clock = self.settings, self.runtime, self._clock
        self.references = ApiReferences(self._client, clock)
        self.volumes: Volumes = NoVolumes()
        self.probes: Probes = NoProbes()
        self.hooks: Hooks = NoHooks()
        logs, images = LogFolders(settings.logs), Images(runtime, clock, self._telling)
        killer = Killer(runtime, self.hooks, self._telling)
        statuses = Statuses(
            self.manager,
            self.probes,
            self._telling,
            clock,
            runtime_name=runtime.name,
            host_ips=settings.node.addresses,
        )
        configs = ConfigMaker(self.volumes, self.references, logs, default_uid=_default_uid(runtime))
        tools = Tools(runtime, images, configs, self.hooks, killer, self._telling, logs, clock)
        around = Surroundings(settings.node.addresses)
        syncer = PodSyncer(tools, Starter(tools, self._backoff), statuses, around)
        steps = PodSteps(
            Parts(
                cache=self.cache,
                manager=self.manager,
                statuses=statuses,
                syncer=syncer,
                killer=killer,
                probes=self.probes,
                volumes=self.volumes,
                references=self.references,
                mirrors=None,
                telling=self._telling,
                clock=clock,
                seconds=self._seconds,
                look_again=self._look_again,
                due_at=self._note_due,
                ended=self._tidy,
                network_complaint=str,
            )
        )
        self.workers: Workers = PodWorkers(steps, self.cache, self.recorder, seconds=self._seconds)
        self.known.could_run = self.workers.could_have_running_containers
        self._loop = PodLoop(
            self.known, self.workers, self.manager, self._telling, admit=self._refusal, tidy=self._tidy
        )
        rooms = Rooms(
            known=self.known,
            workers=self.workers,
            cache=self.cache,
            runtime=runtime,
            manager=self.manager,
            statuses=statuses,
            probes=self.probes,
            volumes=self.volumes,
            killer=killer,
            images=images,
            backoff=self._backoff,
            logs=logs,
        )
        self._statuses = statuses
        self._images = images
        self._housekeeping = Housekeeping(
            rooms, is_complete=lambda: self._loop.is_complete, collect=self._collect_waits
        )

    # What one part tells another

    def _take_changes(self, uid: str, changes: tuple[Change, ...]) -> None:
        self._loop.take_changes(uid, changes)

    def _look_again(self, uid: str) -> None:
        # Where events flow they tell of what a step has done.
        if not self.changes.is_evented:
            self.changes.reinspect(uid)

    def _note_due(self, uid: str, at: float) -> None:
        if self._loop.deadlines.due_at(uid) is None:
            self._loop.deadlines.put(uid, at)

    def _tidy(self, uid: str | None) -> None:
        self._housekeeping.tidy(uid)

    def _collect_waits(self) -> None:
        self._backoff.collect(self._clock.now())
        self._images.collect()

    def _problems(self) -> Iterable[str]:
        if not self.changes.is_healthy:
            yield "PLEG is not healthy: the container runtime has not been looked at for 3 minutes"

    def _refusal(self, pod: NodePod) -> Refusal | None:
        others = [
            each
            for each in self.known
            if each.uid != pod.uid
            and not self._statuses.is_over(each)
            and not self.workers.is_known_terminated(each.uid)
        ]
        return refusal(pod, self.reporter.node(), others)

    def _with_status(self, pod: NodePod) -> Object:
        status = self.manager.status(pod.uid)
        return dict(pod) if status is None else {**pod, "status": status}


def _default_uid(runtime: Runtime) -> int | None:
    """Whom containers run as that do not say: processes run as the agent does, containers as their image says."""
    return os.geteuid() if runtime.name == "process" else None
