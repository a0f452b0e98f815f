"""The kubelet of one node, assembled.

    kubelet = Kubelet(client, runtime, KubeletSettings(NodeSettings("n1")), clock, machine=machine)
    ... await kubelet.run() ...

`run` opens the runtime, lists what is running, claims the node's name, and then syncs its pods; pods keep running when
it is cancelled. The constructor starts nothing. Many kubelets in one process can share one watch (`api_pods`), and an
idle kubelet only renews its lease.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from podlife.aio import only_failure
from podlife.api.codec import Object
from podlife.client import Client
from podlife.clock import Clock
from podlife.events import Recorder
from podlife.kubelet.config import ApiMirrorClient, FileSource
from podlife.kubelet.config.api import watch_pods
from podlife.kubelet.config.pod_source import PodSource
from podlife.kubelet.core import KubeletCore
from podlife.kubelet.interfaces import NoVolumes, Volumes
from podlife.kubelet.kuberuntime import crash_loop_backoff
from podlife.kubelet.kuberuntime.handler_runner import HandlerRunner
from podlife.kubelet.node_status import (
    CLUSTER_FILE,
    ClusterMembership,
    KubeletIdentity,
    Machine,
    NodeReporter,
)
from podlife.kubelet.object_cache import ApiObjectCache
from podlife.kubelet.pod import NodePod
from podlife.kubelet.pod_fields import Pod, is_static
from podlife.kubelet.pod_manager import PodManager
from podlife.kubelet.prober.manager import ProberManager
from podlife.kubelet.prober.state import ProbeResult, ProbeType
from podlife.kubelet.runtime import OwnNetwork, Runtime
from podlife.kubelet.settings import KubeletSettings
from podlife.kubelet.status import ApiStatusClient, StatusManager
from podlife.kubelet.volumemanager import VolumeManager, VolumeSettings

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from podlife.kubelet.server import KubeletServer

_COMPONENT = "kubelet"
_ENDPOINT_SECONDS = 30.0
_RUNTIME_SECONDS = 5.0


class Kubelet:
    """`reporter` maintains the Node object, `status` the statuses of the pods; `core` runs them."""

    def __init__(
        self, client: Client, runtime: Runtime, settings: KubeletSettings, clock: Clock, *, machine: Machine
    ) -> None:
        self._client = client
        self._clock = clock
        self.settings = settings
        self.runtime = runtime
        self.pod_manager = PodManager(self._could_run)
        self.recorder = Recorder(client, _COMPONENT, clock=clock)
        self.status = StatusManager(ApiStatusClient(client), self.pod_manager, clock)
        self.objects = ApiObjectCache(client, clock, api_server=settings.api_server)
        self.volumes = self._make_volumes(client)
        self.prober = ProberManager(
            runtime, self.status, clock, self.recorder, self._on_probe_result, clock.now()
        )
        self._machine = machine
        file = None if settings.data is None else settings.data / CLUSTER_FILE
        self.membership = ClusterMembership(client, settings.node.name, file)
        self._identity = KubeletIdentity(settings.data, lambda: machine.facts().machine_id)
        self.reporter = self._make_reporter(settings.node.kubelet_port)
        self.core = KubeletCore(
            runtime,
            self.pod_manager,
            self.status,
            self.recorder,
            clock,
            volumes=self.volumes,
            objects=self.objects,
            hooks=HandlerRunner(runtime, self.recorder),
            prober=self.prober,
            mirrors=ApiMirrorClient(client, self),
            backoff=crash_loop_backoff(settings.crash_loop_max_seconds),
            node=self.node,
            host_ips=settings.node.addresses,
            logs=settings.logs,
        )

    @property
    def api_pods(self) -> PodSource:
        return self.core.sync_loop.api_pods

    @property
    def complaint(self) -> str:
        """Why it is not healthy; empty if it is."""
        if not self.core.pleg.is_healthy:
            return "the container runtime has not been listed recently"
        return "" if self.core.sync_loop.is_complete else "the pods of this node are not known yet"

    @property
    def uid(self) -> str:
        """The UID of the Node; "" while it is not registered."""
        return self.reporter.uid

    def node(self) -> Object:
        return self.reporter.node()

    def find_pod(self, namespace: str, name: str) -> Pod | None:
        """The pod with its newest status."""
        pod = self.pod_manager.by_name(namespace, name)
        return None if pod is None else self._with_status(pod)

    def pods(self) -> Iterable[Pod]:
        return [self._with_status(pod) for pod in self.pod_manager]

    def collect(self) -> Iterator[Metric]:
        from podlife.kubelet.prometheus import pod_families, probe_families

        yield from pod_families(self.core, self.pod_manager)
        yield from probe_families(self.prober.metrics)

    async def run(self) -> None:
        """Run until cancelled; pods keep running. Raises the error that ended it: a runtime that cannot be opened, a
        port in use, another kubelet with the node's name (`NameInUseError`), or at the start a cluster other than the
        one the node has joined (`AnotherClusterError`). Several errors are raised as a group."""
        try:
            await self._run()
        except BaseExceptionGroup as failures:
            if (error := only_failure(failures)) is None:
                raise
            raise error from None

    async def _run(self) -> None:
        try:
            async with self.runtime, asyncio.TaskGroup() as group:
                group.create_task(self.recorder.run(), name="events")
                if self.settings.endpoint is not None:
                    await self._serve(group)
                group.create_task(self.core.run(), name="pods")
                self._follow_static_pods(group)
                await self.reporter.claim()
                if self.settings.follows_pods:
                    watching = watch_pods(
                        self._client, self.settings.node.name, self.api_pods, self.membership.check
                    )
                    group.create_task(watching, name="pods of the API server")
                # Before the first relist, a node that was ready would be reported as not ready.
                await self.core.pleg.wait_for_relist(seconds=_RUNTIME_SECONDS)
                group.create_task(self.reporter.run(), name="node")
        finally:
            await self.prober.close()

    def _follow_static_pods(self, group: asyncio.TaskGroup) -> None:
        settings = self.settings
        if settings.static_pods is None:
            self.core.sync_loop.static_pods.complete()
        else:
            static = FileSource(
                settings.static_pods, settings.node.name, self._clock, check=settings.check_static_pod
            )
            group.create_task(static.run(self.core.sync_loop.static_pods.put_all), name="static pods")
            group.create_task(self._sync_unmirrored_pods(), name="mirrors of static pods")

    async def _sync_unmirrored_pods(self) -> None:
        """Create mirrors as soon as the Node exists: the scheduler should know that their resources are taken."""
        await self.reporter.registered.wait()
        for pod in self.pod_manager:
            if is_static(pod) and self.pod_manager.mirror_of(pod) is None:
                self.core.sync_loop.sync(pod.uid)

    async def _serve(self, group: asyncio.TaskGroup) -> None:
        """Start the server first: the node is registered with the server's port."""
        endpoint = self._make_endpoint()
        serving = group.create_task(endpoint.run(), name="endpoint")
        ready = group.create_task(endpoint.ready.wait(), name="endpoint is ready")
        await asyncio.wait((serving, ready), timeout=_ENDPOINT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if endpoint.port:
            from podlife.kubelet.server import DECLARED_FEATURES

            self.reporter = self._make_reporter(endpoint.port, DECLARED_FEATURES)

    def _make_volumes(self, client: Client) -> Volumes:
        if self.settings.data is None:
            return NoVolumes()
        settings = VolumeSettings(
            context=lambda pod: self.core.downward_context(pod["metadata"]["uid"]),
            node=self.node,
            report=self._report_volume,
            is_network_own=isinstance(self.runtime, OwnNetwork),
        )
        return VolumeManager(client, self.objects, self._clock, self.settings.data, settings)

    def _make_endpoint(self) -> KubeletServer:
        # Imported here, because simulated nodes do without.
        from prometheus_client import CollectorRegistry

        from podlife.controller.metrics import export_client
        from podlife.kubelet.server import ApiAccess, ClusterSigner, KubeletServer, ServedNode

        settings = self.settings.endpoint
        assert settings is not None
        name = self.settings.node.name
        registry = CollectorRegistry()
        export_client(registry, self._client.limiter, self.recorder)
        registry.register(self)
        node = ServedNode(name, self, self.runtime, self._clock, registry, trouble=lambda: self.complaint)
        access = ApiAccess(self._client, name)
        return KubeletServer(node, access, settings, signing=ClusterSigner(self._client), clock=self._clock)

    def _make_reporter(self, port: int, features: tuple[str, ...] = ()) -> NodeReporter:
        return NodeReporter(
            self._client,
            replace(
                self.settings.node,
                kubelet_port=port,
                declared_features=(*features, *self.settings.node.declared_features),
            ),
            self._clock,
            machine=self._machine,
            runtime=self.runtime,
            recorder=self.recorder,
            problems=self._problems,
            membership=self.membership,
            identity=self._identity,
        )

    def _problems(self) -> Iterable[str]:
        if not self.core.pleg.is_healthy:
            yield "PLEG is not healthy: the container runtime has not been listed for minutes"

    def _report_volume(self, pod: Pod, text: str) -> None:
        self.core.events.pod(pod, "FailedMount", text, is_warning=True)

    def _on_probe_result(self, uid: str, container_id: str, type_: ProbeType, result: ProbeResult) -> None:
        self.core.sync_loop.handle_probe_result(uid, container_id, type_, result)

    def _could_run(self, uid: str) -> bool:
        return self.core.workers.could_have_running_containers(uid)

    def _with_status(self, pod: NodePod) -> Object:
        status = self.status.status(pod.uid)
        return dict(pod) if status is None else {**pod, "status": status}
